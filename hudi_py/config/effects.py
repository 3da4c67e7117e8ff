"""
On which uses of a table each setting that hudi_py serves has an effect. Pure.

A setting that is given for one call and has none there is named: whoever gives it expects something of it. What is
given for many uses at once, in a file that a Spark job reads too, is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from hudi_py.config.keys import key_by_name
from hudi_py.config.uses import Use

_CHANGING: Final = Use.WRITE | Use.SERVICES
_EFFECTS: Final = (
    (
        Use.WRITE,
        """hoodie.table.* hoodie.database.name hoodie.write.table.version hoodie.datasource.write.* hoodie.combine.*
        hoodie.record.* hoodie.parquet.* hoodie.index.* hoodie.bloom.* hoodie.copyonwrite.* hoodie.allow.empty.commit
        hoodie.write.complex.* hoodie.bulkinsert.* hoodie.upsert.* hoodie.insert.* hoodie.delete.* hoodie_py.write.*
        hoodie.clean.automatic""",
    ),
    (
        Use.WRITE | Use.CLEAN | Use.ARCHIVE,  # each of the two keeps what the other still needs, and warns of it
        """hoodie.table.services.enabled hoodie.clean.* hoodie_py.clean.* hoodie.archive.*
        hoodie.keep.* hoodie.commits.archival.batch hoodie.fail.on.timeline.archiving
        hoodie.timeline.compaction.* hoodie.compact.inline.*""",
    ),
    (
        _CHANGING,
        """hoodie.write.lock.* hoodie.write.concurrency.* hoodie.fs.* hoodie.client.heartbeat.*
        hoodie.clean.failed.writes.policy hoodie.metadata.compact.*""",
    ),
    (Use.ALL, "hoodie.metadata.enable hoodie_py.read.* hoodie_py.conf.*"),
)


def effect_of(name: str) -> Use:
    """
    On which uses a served setting has an effect.

    Args:
        name: Canonical name of a key.

    Raises:
        KeyError: No table holds it.
    """
    if name in _rules():
        return _rules()[name]
    return _rules()[max((each for each in _families() if name.startswith(each)), key=len, default=name) + "*"]


@cache
def _rules() -> dict[str, Use]:
    return {name: use for use, names in _EFFECTS for name in names.split()}


@cache
def _families() -> tuple[str, ...]:
    return tuple(name.removesuffix("*") for name in _rules() if name.endswith("*"))


def without_effect(names: Iterable[str], use: Use) -> Iterator[tuple[str, str]]:
    """
    Those of the settings that do nothing for a use, each with the reason.

    Args:
        names: Of known settings, in any spelling.
        use: What the table is used for.
    """
    from hudi_py.config.verdict import Kind, verdict_of

    for name in names:
        key = key_by_name(name)
        if key is not None:
            effect = effect_of(key.name)
            if not effect & use:
                yield name, f"it is about {effect.words}"
            continue
        verdict = verdict_of(name)
        if verdict is None:
            continue
        if verdict.kind is Kind.HARMLESS:
            yield name, verdict.reason
        elif verdict.refused is not None and not verdict.refused.uses & use:
            yield name, f"it is about {verdict.refused.uses.words}, for which it is refused"
