"""Which copies of instants, that `recover` made before it removed or replaced them, hold values of columns. Pure."""

from __future__ import annotations

from typing import Final

from hudi_py.model.json_document import parse_json
from hudi_py.services.erasure.facts import ErasureHolds, ErasureTrace
from hudi_py.services.erasure.indexes import OF_FILES_GONE
from hudi_py.services.erasure.past import bounds_in
from hudi_py.services.erasure.rows import Wanted

# Only commits of table version 6 have them, which are JSON.
_VALUES: Final = (b'"minValue"', b'"maxValue"')
_DAMAGED: Final = "it is a damaged copy of a commit, whose smallest and largest values may be of these rows"


def trace_in_copy(data: bytes, partition: str | None, wanted: Wanted) -> ErasureTrace | None:
    """
    What the copy of an instant holds of what is looked for; None if it certainly holds nothing of it.

    Args:
        data: Content of the copy, maybe damaged: that is what most were made for.
        partition: Path of the partition; None for all.
        wanted: The record keys.
    """
    if not any(word in data for word in _VALUES):
        return None
    try:
        kept = [keys for path, _, keys in bounds_in(parse_json(data)) if partition in (None, path)]
    except (ValueError, AttributeError, TypeError):
        return ErasureTrace(ErasureHolds.VALUES, (), _DAMAGED)
    if not kept:
        return None
    keys = tuple(sorted(wanted.keys & {key for each in kept for key in each}))
    return ErasureTrace(ErasureHolds.VALUES, keys, OF_FILES_GONE if wanted.keys and not keys else "")
