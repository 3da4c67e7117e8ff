"""Reads the footers of base files for a check; nothing else of the files is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.fsview.listing import listing_threads
from hudi_py.model.files import BaseFile
from hudi_py.services.check.judge_contents import Footer
from hudi_py.storage.base import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_COMMIT_TIME: Final = META_COLUMNS[0]
_FILE_NAME: Final = META_COLUMNS[4]


def read_footers(
    storage: Storage, files: Iterable[tuple[str, BaseFile]]
) -> Iterator[tuple[str, BaseFile, Footer | str]]:
    """
    Read the footers of base files, several at once where the storage answers slowly.

    Args:
        storage: Of the table.
        files: Path in the table, and the file by its name.

    Returns:
        Path, file, and its footer, or why it cannot be read; files that are missing by now are left out.

    Raises:
        StorageError: The storage refused or cannot be reached.
    """

    def read(file: tuple[str, BaseFile]) -> tuple[str, BaseFile, Footer | str] | None:
        found = _footer(storage, *file)
        return None if found is None else (*file, found)

    with ThreadPoolExecutor(listing_threads(storage)) as pool:
        yield from (each for each in pool.map(read, files) if each is not None)


def _footer(storage: Storage, path: str, base: BaseFile) -> Footer | str | None:
    from hudi_py.rows.read import open_parquet

    try:
        with open_parquet(storage, path, base, alone=True) as file:
            footer = file.metadata
            names, times = bounds(footer, _FILE_NAME), bounds(footer, _COMMIT_TIME)
            return Footer(footer.num_rows, names, times)
    except NotFound:
        return None
    except (CorruptMetadata, ValueError) as error:  # bounds that are not text
        return str(error)


def bounds(footer: pq.FileMetaData, column: str) -> tuple[str, str] | None:
    """Smallest and largest value of a column of text; None where a row group does not tell."""
    at = next((n for n in range(footer.num_columns) if footer.schema.column(n).path == column), None)
    if at is None or not footer.num_rows:
        return None
    found = []
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(at).statistics
        # Bounds of a part of the rows would say nothing about the others.
        if statistics is None or not statistics.has_min_max:
            return None
        found += [str(statistics.min), str(statistics.max)]
    return min(found), max(found)
