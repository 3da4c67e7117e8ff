"""Lists folders on a local disk: names, kinds and sizes of files, and the checksum files beside the data."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from itertools import compress, repeat

from hudi_py.model.files import NOT_REGULAR
from hudi_py.storage._beneath import refuse_entangled
from hudi_py.storage.base import Entry, Listing, is_hidden


def sizes_of(folder: int, names: Iterable[str]) -> dict[str, int]:
    """Return sizes in bytes by name of files in the folder with this descriptor; absent files are left out."""
    sizes = {}
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder)
        except FileNotFoundError:
            continue
        sizes[name] = found.st_size if stat.S_ISREG(found.st_mode) else NOT_REGULAR
    return sizes


def checksums_of(folder: str) -> frozenset[str]:
    """Return the names of the checksum files in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:  # the deletions that follow fail with the same error and report it
        return frozenset()
    if ".crc/" not in f"{'/'.join(names)}/":
        return frozenset()
    return frozenset(name for name in names if name[-4:] == ".crc" and name[0] == ".")


_may_hide = re.compile(r"\.crc/|\.[^/]{36}/").search  # matches every name for which `is_hidden` is true, and others


def names_in(found: Iterable[os.DirEntry[str]], root: str) -> Listing:
    """
    Return names and kinds, without hidden files and without asking for sizes: a stat per file is four times slower.

    Written for speed, because folders with 30,000 names are common and some have a million: work per name is left to
    built-ins that loop in C, and hidden files, which few folders have, are searched for in all names at once.
    """
    items = list(found)
    names = [item.name for item in items]
    if _may_hide(f"{'/'.join(names)}/"):
        items = [item for item in items if is_shown(item)]
        names = [item.name for item in items]
    folders = [item.is_dir() for item in items]
    if True in folders:
        for item in compress(items, folders):
            if item.is_symlink():
                refuse_entangled(root, item.path)
    rows = zip(names, folders, repeat(None), repeat(None), strict=False)
    return list(map(tuple.__new__, repeat(Entry), rows))


def named_detailed(items: Sequence[os.DirEntry[str]], root: str, named: Collection[str]) -> Listing:
    """As `names_in`, with size and time of these names, and without those that were deleted since."""
    looked_up = {item.name: detailed(item, root) for item in items if item.name in named}
    entries = names_in(items, root)
    return [known for each in entries if (known := looked_up.get(each.name, each)) is not None]


def is_shown(item: os.DirEntry[str]) -> bool:
    return not is_hidden(item.name) or item.is_dir()


def detailed(item: os.DirEntry[str], root: str) -> Entry | None:
    """Return the entry with size and time, or None if the file was deleted since it was listed."""
    is_folder = item.is_dir()
    if is_folder and item.is_symlink():
        refuse_entangled(root, item.path)
    try:
        found = item.stat()
    except OSError:
        return None
    return Entry(item.name, is_folder, None if is_folder else found.st_size, found.st_mtime_ns // 1_000_000)
