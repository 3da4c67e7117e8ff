"""Finds the tables that a command over many tables works on: from a file, a folder, a pattern, a URL or a catalog."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from hudi_py.errors import ConfigError
from hudi_py.inspection.glue_tables import SCHEME, tables_in_glue
from hudi_py.model.files import METADATA_FOLDER, join_path
from hudi_py.model.words import why_unread
from hudi_py.storage.base import Storage
from hudi_py.txn.turns import place_of

_DEPTH_MAX: Final = 8
_HIVE: Final = frozenset({"hive", "hive2", "hms", "thrift", "hive+thrift"})
"""What tools call the catalog of Hive in addresses."""
_TEXT_BYTES_MAX: Final = 64 << 20


def tables_of(source: str, storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """
    Return the locations of tables that *source* stands for, each once, however it is spelled.

    Args:
        source: A file with one location a line (empty lines and lines that begin with ``#`` are left out; ``-`` is
            standard input), a folder or a URL below which tables are looked for, a pattern (``lake/*``), or a database
            in the catalog of AWS Glue (``glue://DATABASE``, ``glue://DATABASE/PATTERN``).
        storage_options: Options of the storage library.

    Raises:
        ConfigError: There is nothing of that name, or it has no tables.
        StorageError: The storage cannot be listed.
    """
    found = tables_now(source, storage_options)
    if not found:
        raise ConfigError(f"{source} has no tables; give a file with one location per line, a folder, or a pattern")
    return found


def tables_now(source: str, storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """As `tables_of`, of a source that may have none any more."""
    return each_once(_find(source, storage_options))


def tables_of_all(sources: Iterable[str], storage_options: Mapping[str, str]) -> tuple[str, ...]:
    """As `tables_of`, of several sources: a table that two of them have is one, too."""
    return each_once(location for source in sources for location in tables_of(source, storage_options))


def each_once(locations: Iterable[str]) -> tuple[str, ...]:
    """Return each table once, however it is spelled."""
    named: dict[str, str] = {}
    for location in locations:
        # However it is spelled: two runs on one table at the same time get in each other's way.
        named.setdefault(place_of(location), location)
    return tuple(named.values())


def _find(source: str, options: Mapping[str, str]) -> Iterator[str]:
    if source == "-":
        yield from _lines(sys.stdin)
    elif os.path.isfile(source):
        # A data file given by mistake would be read as a list of a million tables.
        if os.path.getsize(source) > _TEXT_BYTES_MAX:
            raise ConfigError(f"{source} has more than {_TEXT_BYTES_MAX} bytes; it should have one location per line")
        try:
            with open(source, encoding="utf-8-sig") as file:
                yield from _lines(file)
        except UnicodeDecodeError as error:
            raise ConfigError(f"{source} is not text; it should have one location per line") from error
        except OSError as error:
            raise ConfigError(f"{source} cannot be read: {why_unread(error)}") from error
    elif source.partition("://")[0].lower() in _HIVE and "://" in source:
        raise ConfigError(
            f"{source}: the catalog of Hive is not asked, because no client for it is kept well; write the locations "
            "of its tables into a file, one a line (DESCRIBE FORMATTED shows them), and give --tables FILE"
        )
    elif source.startswith(SCHEME):
        yield from tables_in_glue(source, options)
    # Before patterns: a folder may have brackets in its name.
    elif "://" in source or os.path.isdir(source):
        yield from tables_below(source, options)
    elif glob.has_magic(source):
        yield from _matching(source, options)
    else:
        raise ConfigError(f"{source}: there is no such file or folder")


def _matching(pattern: str, options: Mapping[str, str]) -> Iterator[str]:
    """Tables below the folders of a pattern, but none inside of a table: a copy of one in a partition is its data."""
    inside: set[str] = set()
    # Sorted: a folder comes before those below it.
    for path in sorted(glob.glob(pattern, recursive=True)):
        if not os.path.isdir(path) or any(str(each) in inside for each in Path(path).parents):
            continue
        for table in tables_below(path, options):
            inside.add(str(Path(table)))
            yield table


def _lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = line.strip("\ufeff").strip()  # standard input keeps the mark with which some editors begin a file
        if text and not text.startswith("#"):
            yield text


def tables_below(location: str, options: Mapping[str, str]) -> Iterator[str]:
    """Yield the location itself if it is a table, else the tables below it; inside of a table nothing is looked for."""
    from hudi_py.storage.factory import open_storage

    scheme, colons, rest = location.partition("://")
    folder = rest if colons else location
    is_local = scheme == "file" or not colons
    root = location.rstrip("/") or location
    for path in _walk_disk(folder) if is_local else _walk(open_storage(location, options)):
        yield f"{root}/{path}" if path else root


def _walk_disk(root: str) -> Iterator[str]:
    """
    As `_walk`, on a local disk: a link that leads out is followed, one that leads back is not.

    What that leads to is found at its own place. A folder that may not be listed is told as a table that fails: what is
    in it is not passed over in silence, and the others are worked on.
    """
    real_root, seen, level = os.path.realpath(root), set[str](), [""]
    for _ in range(_DEPTH_MAX):
        below: list[str] = []
        for folder in level:
            try:
                with os.scandir(os.path.join(root, folder)) as found:
                    folders = [each for each in found if each.is_dir()]
            except FileNotFoundError:  # deleted meanwhile
                continue
            except OSError:
                yield folder
                continue
            if any(each.name == METADATA_FOLDER for each in folders):
                yield folder
                continue
            for each in sorted(folders, key=lambda entry: entry.name):
                if each.is_symlink():
                    target = os.path.realpath(each.path)
                    if target in seen or os.path.commonpath((real_root, target)) in (real_root, target):
                        continue
                    seen.add(target)
                below.append(join_path(folder, each.name))
        level = sorted(below)


def _walk(storage: Storage) -> Iterator[str]:
    level = [""]
    # Bounded: a source may be the root of a bucket.
    for _ in range(_DEPTH_MAX):
        below: list[str] = []
        for folder in level:
            entries = storage.list(folder)
            # Inside of a table nothing is looked for: its partitions may be many, and its metadata table is one of
            # Hudi, too.
            if any(entry.is_folder and entry.name == METADATA_FOLDER for entry in entries):
                yield folder
            else:
                below += [join_path(folder, entry.name) for entry in entries if entry.is_folder]
        level = sorted(below)
