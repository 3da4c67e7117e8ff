"""
Where the files of a table are listed from: its folders, or an inventory file of the store.

Folders of other tables below this one (those with a ``.hoodie`` of their own) are left out with all that is in them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

from hudi_py.errors import ConfigError
from hudi_py.fsview.lister import FolderLister
from hudi_py.fsview.listing import is_table, list_about, listing_threads
from hudi_py.model.files import METADATA_FOLDER, above, is_partition_path, join_path
from hudi_py.model.words import why_unread
from hudi_py.services.orphans.s3_inventory import is_manifest, object_urls
from hudi_py.storage.base import Entry, Storage

_INVENTORY_COLUMNS: Final = ("path", "size", "mtime")
_SECONDS_MAX: Final = 100_000_000_000  # a larger number is in milliseconds: as seconds it would be the year 5138


class Folder(NamedTuple):
    """
    One folder of the table.

    Args:
        path: Relative path.
        files: What lies directly in it, without folders.
    """

    path: str
    files: list[Entry]


def walk_table(storage: Storage, others: Callable[[str], None]) -> Iterator[Folder]:
    """
    Yield every folder of the table but ``.hoodie``, down to the bottom.

    Without sizes and times, which on a local disk cost four times as much as the names, and matter for the few files
    in question only.

    Args:
        storage: Storage of the table.
        others: Called with the path of each folder that is a table of its own.
    """
    lister = FolderLister(storage, threads=listing_threads(storage))
    level = [""]
    while level:
        below: list[str] = []
        for path, entries in zip(level, lister.each(level), strict=True):
            folders = [entry for entry in entries if entry.is_folder]
            # Its files belong to its own timeline, of which this one knows nothing: each of them would be an orphan
            # here.
            if path and is_table(folders):
                others(path)
                continue
            below += [join_path(path, each.name) for each in folders if path or each.name != METADATA_FOLDER]
            yield Folder(path, [entry for entry in entries if not entry.is_folder] if folders else entries)
        level = below


def read_inventory(file: str, storage: Storage, others: Callable[[str], None]) -> Iterator[Folder]:
    """
    Yield the folders of a table from an inventory of its store, so that nothing has to be listed.

    Args:
        file: CSV with a heading, or Parquet: the columns ``path`` (relative to the table, or a full path or URL),
            ``size`` in bytes and ``mtime`` (epoch seconds or milliseconds, or ISO 8601). Or the manifest of an
            inventory of Amazon S3, see `object_urls`; then files have neither size nor time.
        storage: Of the table.
        others: As for `walk_table`.

    Raises:
        ConfigError: The file cannot be read, a column is missing or has other values, or it lists no file of the table.
        StorageError: The store that has a manifest refused or cannot be reached.
    """
    root, is_of_table = storage.root, False
    folders: dict[str, list[Entry]] = {}
    tables: set[str] = set()
    bare = root.partition("://")[2] or root
    by_amazon = is_manifest(file)
    rows = ((url, None, None) for url in object_urls(file, storage)) if by_amazon else _inventory_rows(file)
    # From 2, the row of the first file as an editor counts them: row 1 is the heading.
    for number, (path, size, mtime) in enumerate(rows, 2):
        relative = _relative(str(path), root, bare)
        # Inventories list whole buckets, so most rows may belong to other tables.
        if not relative:
            continue
        is_of_table = True
        folder, _, name = relative.rpartition("/")
        if by_amazon and not name:  # an object that stands for a folder
            continue
        # Of no file of the table: its paths are plain, and the same file by another path would look like a stranger.
        if not is_partition_path(folder) and METADATA_FOLDER not in folder.split("/"):
            continue
        parts = folder.split("/") if folder else []
        if METADATA_FOLDER in parts:
            inner = "/".join(parts[: parts.index(METADATA_FOLDER)])
            if inner and is_partition_path(inner):
                tables.add(inner)
            continue
        try:
            entry = Entry(name, False) if by_amazon else Entry(name, False, int(size), _milliseconds(mtime))
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"--inventory {file}, row {number}: {error}; nothing was done") from error
        folders.setdefault(folder, []).append(entry)
    # An inventory of another bucket would read as a table in order.
    if not is_of_table:
        raise ConfigError(
            f"--inventory {file} lists no file of {root}; nothing was done. Its paths are relative to the table, or "
            "begin with the table's own path or URL"
        )
    for table in sorted(tables):
        others(table)
    for folder, entries in sorted(folders.items()):
        if not is_within(folder, tables):
            yield Folder(folder, entries)


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Whether a folder is one of these or lies below one; everything lies within ``""``, the table itself."""
    return any(not folder or path == folder or path.startswith(f"{folder}/") for folder in folders)


def tables_around(storage: Storage, listed: Mapping[str, Iterable[Entry]]) -> frozenset[str]:
    """
    The folders at or above these ones that are other tables at this moment.

    Whoever listed the folders may not have seen it: an inventory is days old, or leaves out what begins with a dot.

    Args:
        storage: Storage of the table.
        listed: Folders of the table, with what is in them now.
    """
    around = {folder: False for path in listed for folder in above(path) if folder and folder not in listed}
    outer = list_about(storage, around)
    return frozenset(folder for folder, entries in {**outer, **listed}.items() if folder and is_table(entries))


def bootstrapped_from(properties: Mapping[str, str], root: str) -> str | None:
    """
    The folder whose files a bootstrapped table was made from; None if it is elsewhere.

    Args:
        properties: Of that table.
        root: Location of the table that the folder is relative to.
    """
    source = properties.get("hoodie.bootstrap.base.path")
    if not source:
        return None
    path = f"{source.rstrip('/')}/"
    if "://" not in path:
        path = path.removeprefix("file:")
    found = _relative(path, root, root.partition("://")[2] or root)
    return None if found is None else found.rstrip("/")


def _inventory_rows(file: str) -> Iterator[tuple[Any, Any, Any]]:
    try:
        if file.lower().endswith(".parquet"):
            yield from _parquet_rows(file)
            return
        # With a mark of the byte order before it, as spreadsheets write it, too.
        with Path(file).open(newline="", encoding="utf-8-sig") as text:
            rows = csv.DictReader(text)
            _check_columns(file, rows.fieldnames or ())
            for row in rows:
                yield row["path"], row["size"], row["mtime"]
    except (OSError, UnicodeError, csv.Error) as error:
        raise ConfigError(f"--inventory {file} cannot be read: {why_unread(error)}; nothing was done") from error


def _parquet_rows(file: str) -> Iterator[tuple[Any, Any, Any]]:
    from pyarrow.lib import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as opened:
            _check_columns(file, opened.schema_arrow.names)
            for batch in opened.iter_batches(columns=list(_INVENTORY_COLUMNS)):
                columns = batch.to_pydict()
                yield from zip(*(columns[name] for name in _INVENTORY_COLUMNS), strict=True)
    except (ArrowException, ValueError, OverflowError) as error:  # cut off, or with times that no calendar has
        raise ConfigError(f"--inventory {file} cannot be read: {error}; nothing was done") from error


def _check_columns(file: str, names: Any) -> None:
    missing = [name for name in _INVENTORY_COLUMNS if name not in names]
    if missing:
        raise ConfigError(f"--inventory {file} has no column {missing[0]!r}; it needs {', '.join(_INVENTORY_COLUMNS)}")


def _relative(path: str, root: str, bare: str) -> str | None:
    """The path below the table; None for what lies outside of it. Schemes may differ (s3a and s3)."""
    text = path.partition("://")[2] if "://" in path else path
    # With the slash, so that a table `orders` does not take the files of `orders_old` for its own.
    for prefix in (f"{bare}/", f"{root}/"):
        if text.startswith(prefix):
            return text[len(prefix) :]
    return None if "://" in path or text.startswith("/") else text


def _milliseconds(mtime: Any) -> int:
    if isinstance(mtime, datetime):
        # Inventories of stores are in UTC; a column of Parquet need not say so.
        aware = mtime if mtime.tzinfo is not None else mtime.replace(tzinfo=timezone.utc)
        return int(aware.timestamp() * 1000)
    try:
        number = float(mtime)
    except (TypeError, ValueError):
        moment = datetime.fromisoformat(str(mtime).replace("Z", "+00:00"))
        return _milliseconds(moment)
    return int(number if number > _SECONDS_MAX else number * 1000)
