"""
Base files in a format that the table does not have. Pure.

``hoodie.table.base.file.format=PARQUET`` does not keep files in ORC, HFile or Lance out of a partition: the table may
have been configured differently for a while, or files may have been copied there. They have names of base files, so
views show them, and reading their rows is refused. But listings of some releases of Apache Hudi leave them out, so it
is unknown whether they supersede other files. In doubt nothing next to them is written, savepointed or deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hudi_py.errors import UnsupportedTable
from hudi_py.model.files import FileSlice, join_path, parse_base_file

_ENDINGS = (".parquet", ".orc", ".hfile", ".lance")


def foreign_base_files(names: Iterable[str], extensions: Collection[str]) -> list[str]:
    """
    The names of base files in other formats than these.

    Args:
        names: Names of files.
        extensions: Extensions of the table's base files, without the dot; empty if any is allowed.
    """
    # Only endings that Hudi writes: any other name is not a base file to it either.
    others = tuple(each for each in _ENDINGS if each[1:] not in extensions)
    if not extensions:
        return []
    return sorted(name for name in names if name.endswith(others) and parse_base_file(name) is not None)


def why_not_rewritten(file_slice: FileSlice) -> str | None:
    """Why a slice is not compacted or clustered: its base file would be rewritten in Parquet; None if it is in that."""
    base = file_slice.base_file
    return None if base is None or base.extension == "parquet" else f"its base file {base.name} is not in Parquet"


def refuse_foreign(partition: str, names: Iterable[str], extensions: Collection[str], what: str) -> None:
    """
    Refuse to write, savepoint or delete next to base files of other formats.

    Args:
        partition: Relative path.
        names: Names of files in it.
        extensions: As `foreign_base_files`.
        what: What is refused, such as ``a clean``.

    Raises:
        UnsupportedTable: There is such a file.
    """
    found = foreign_base_files(names, extensions)
    if found:
        raise UnsupportedTable(
            f"{join_path(partition, found[0])} is a base file in a format that the table does not have by its "
            f"properties, so that {what} cannot tell what is current there; nothing was changed. Use Apache Hudi for "
            "this table, or set hoodie.table.base.file.format to what it is"
        )
