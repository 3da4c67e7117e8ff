"""
Finds all files, log files too, that a commit names without decoding it: some 20 times as fast. Pure.

As `hudi_py.fsview.named`; what is in any other form than all releases write is left to the decoder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import compress
from operator import itemgetter
from typing import Final, NamedTuple

from hudi_py.fsview.named import (
    are_texts,
    avro_head,
    avro_size,
    base_paths_beside_logs,
    group_of,
    is_avro,
    is_whole,
    json_size,
)

_PATH_KEY: Final = b'"path"'
_PARTS: Final = 3  # of what follows that key: up to a quote, the path, all the rest
_are_log_names: Final = re.compile(rb"(?:[^\x00-\x1f/]+\.log\.[0-9]+(?:_[0-9A-Za-z-]+)?\n)+").fullmatch
_between, _path = itemgetter(0), itemgetter(1)


class NamedFiles(NamedTuple):
    """
    The files that a commit wrote.

    Args:
        bases: Paths of its Parquet files as those of `base_paths`, without ``_<time>.parquet``.
        logs: Paths of its log files, relative to the table.
    """

    bases: list[bytes]
    logs: list[bytes]


def named_files(data: bytes, requested_time: str, *, may_name_logs: bool = True) -> NamedFiles | None:
    """
    The files that a commit names; None if it has to be decoded.

    Args:
        data: Content of a completed commit, deltacommit or replacecommit.
        requested_time: Requested time of the commit.
        may_name_logs: Whether to look for log files at all, which takes as long as all the rest.
    """
    if not may_name_logs:
        bases = base_paths_beside_logs(data, requested_time)
        return None if bases is None else NamedFiles(bases, [])
    if is_avro(data):
        bases, logs = base_paths_beside_logs(data, requested_time), _avro_logs(data)
        if bases is None or logs is None or not are_texts(path for path, _ in logs):
            return None
        return NamedFiles(bases, [path for path, _ in logs])
    stats = _json_stats(data)
    if stats is None or not are_texts(path for path, _ in stats):
        return None
    return _sorted_out([path for path, _ in stats], requested_time)


def sizes_of_groups(data: bytes, requested_time: str, groups: Collection[bytes]) -> dict[bytes, int] | None:
    """
    Path, relative to the table, and recorded size in bytes of the files of some groups; 0 if the commit recorded none.

    Args:
        data, requested_time: As `named_files`.
        groups: As `group_of` returns them: partition path and file id.

    Returns:
        None if the commit has to be decoded.
    """
    stats = _avro_stats(data, requested_time) if is_avro(data) else _json_stats(data)
    if stats is None or not are_texts(path for path, _ in stats):
        return None
    size_of = avro_size if is_avro(data) else json_size
    sizes: dict[bytes, int] = {}
    for path, behind in stats:
        if group_of_file(path) in groups:
            size = size_of(path, behind)
            # The same path twice: two stats of one file, and it is not said here which of them counts.
            if size is None or path in sizes:
                return None
            sizes[path] = size
    return sizes


def is_log(path: bytes) -> bool:
    """Whether it is the path of a log file, relative to the table."""
    return path.startswith(b".", path.rfind(b"/") + 1)


def group_of_file(path: bytes) -> bytes:
    """Partition path and file id of the group of a base or log file."""
    return log_group(path) if is_log(path) else group_of(path)


def log_group(path: bytes) -> bytes:
    """Partition path and file id of the group of a log file, as `group_of` returns them for base files."""
    start = path.rfind(b"/") + 1
    return path[:start] + path[start + 1 : path.find(b"_", start)]


def _sorted_out(paths: list[bytes], requested_time: str) -> NamedFiles | None:
    end = f"_{requested_time}.parquet".encode()
    is_base = [path.endswith(end) for path in paths]
    bases = [path[: -len(end)] for path in compress(paths, is_base)]
    if len(bases) == len(paths):
        return NamedFiles(bases, [])
    logs = [path for path, base in zip(paths, is_base, strict=True) if not base]
    return NamedFiles(bases, logs) if _are_logs(path.rpartition(b"/")[2][1:] for path in logs) else None


def _are_logs(names: Iterable[bytes]) -> bool:
    """Whether all are names of log files with rows, without the dot at the beginning."""
    return _are_log_names(b"\n".join((*names, b""))) is not None


def _json_stats(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Of each stat its path and what follows that."""
    stats = [piece.split(b'"', 2) for piece in data.split(_PATH_KEY)[1:]]
    if not is_whole(data) or not all(len(stat) == _PARTS for stat in stats):
        return None
    if not all(between.strip() == b":" for between in {*map(_between, stats)}):
        return None  # a path of null, or a partition of that name
    # A backslash begins an escape of JSON, and the raw bytes are not the path.
    return None if b"\\" in b"".join(map(_path, stats)) else [(path, behind) for _, path, behind in stats]


def _avro_stats(data: bytes, requested_time: str) -> list[tuple[bytes, bytes]] | None:
    bases, logs, end = base_paths_beside_logs(data, requested_time), _avro_logs(data), f"_{requested_time}.parquet"
    if bases is None or logs is None:
        return None
    behind = data.split(end.encode())[1:]
    return [*((path + end.encode(), piece) for path, piece in zip(bases, behind, strict=True)), *logs]


def _avro_logs(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """
    Path of each log file and what follows it.

    A path is preceded by the branch of the union and its length. Its stat names the file a second time, without folder.
    """
    count = data.count(b".log.")
    if not count:
        return []
    pieces = data.split(b"/.")
    before, behind = pieces[:-1], pieces[1:]
    names = [piece[: piece.find(b"\x02")] for piece in behind]
    folders = [piece[piece.rfind(b"\x02") + 1 :] for piece in before]
    if not names or not _are_logs(names):
        return None
    # More names than two for each path: some are in another form, as those of a table without partitions.
    if count > 2 * len(names):
        return None
    totals = [len(folder) + len(name) for folder, name in zip(folders, names, strict=True)]
    heads = {total: avro_head(total, len("/.")) for total in {*totals}}
    found = []
    for folder, name, total, piece in zip(folders, names, totals, behind, strict=True):
        head = heads[total]
        if not head or not folder.startswith(head):
            return None
        found.append((folder[len(head) :] + b"/." + name, piece[len(name) :]))
    return found
