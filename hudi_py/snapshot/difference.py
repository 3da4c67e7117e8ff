"""What differs between two times of a table: files, rows, columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from hudi_py.snapshot.history import Numbers

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen(kw_only=True)
class Difference:
    """
    What differs between two times.

    Args:
        start, end: Instant times; the commits after *start* and until *end* make the difference.
        added, removed: Path to size in bytes (None if unknown) of the files that only one of the two snapshots shows.
        commits: Requested times of the writes in between.
        numbers: What these wrote.
        columns_added, columns_removed: Name to type.
        columns_changed: Name to the types at both times.
    """

    start: str
    end: str
    added: Mapping[str, int | None]
    removed: Mapping[str, int | None]
    commits: tuple[str, ...]
    numbers: Numbers
    columns_added: Mapping[str, str]
    columns_removed: Mapping[str, str]
    columns_changed: Mapping[str, tuple[str, str]]


def columns_of(schema: pa.Schema) -> dict[str, str]:
    """Name to type in words of Arrow."""
    return {field.name: str(field.type) for field in schema}


def difference(
    start: str,
    end: str,
    *,
    files: tuple[Mapping[str, int | None], Mapping[str, int | None]],
    columns: tuple[Mapping[str, str], Mapping[str, str]],
    commits: tuple[str, ...],
    numbers: Numbers,
) -> Difference:
    """Compare the files (path to size) and columns (name to type) of two snapshots; the earlier one comes first."""
    before, after = files
    old, new = columns
    return Difference(
        start=start,
        end=end,
        # Sorted, so that two calls give the same document.
        added={path: after[path] for path in sorted(after.keys() - before.keys())},
        removed={path: before[path] for path in sorted(before.keys() - after.keys())},
        commits=commits,
        numbers=numbers,
        columns_added={name: new[name] for name in new if name not in old},
        columns_removed={name: old[name] for name in old if name not in new},
        columns_changed={name: (old[name], new[name]) for name in new if name in old and old[name] != new[name]},
    )
