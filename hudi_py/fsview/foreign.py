"""
Base files in a format that the table does not have. Pure.

``hoodie.table.base.file.format=PARQUET`` does not keep files in ORC, HFile or Lance out of a partition: a table that
was configured otherwise for a while has them, and whoever copies files. Their names are those of base files, so views
show them and rows are refused by name; but Apache Hudi's own listings leave them out in some releases, so nobody can
tell whether they supersede anything. On doubt nothing is written beside them, pinned or deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hudi_py.errors import UnsupportedTable
from hudi_py.model.files import join_path, parse_base_file

_ENDINGS = (".parquet", ".orc", ".hfile", ".lance")


def foreign_base_files(names: Iterable[str], extensions: Collection[str]) -> list[str]:
    """
    The names of base files in other formats than these.

    Args:
        names: Names of files.
        extensions: Those of the table, without the dot; empty where it may have any.
    """
    others = tuple(each for each in _ENDINGS if each[1:] not in extensions)
    if not extensions:
        return []
    return sorted(name for name in names if name.endswith(others) and parse_base_file(name) is not None)


def refuse_foreign(partition: str, names: Iterable[str], extensions: Collection[str], what: str) -> None:
    """
    Refuse what would build on, pin or delete base files of other formats.

    Args:
        partition: Relative path.
        names: Names of files in it.
        extensions: As `foreign_base_files`.
        what: Is refused, as ``a clean``.

    Raises:
        UnsupportedTable: There is one.
    """
    found = foreign_base_files(names, extensions)
    if found:
        raise UnsupportedTable(
            f"{join_path(partition, found[0])} is a base file in a format that the table does not have by its "
            f"properties, so that {what} cannot tell what is current there; nothing was changed. Use Apache Hudi for "
            "this table, or set hoodie.table.base.file.format to what it is"
        )
