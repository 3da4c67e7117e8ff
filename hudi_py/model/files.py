"""
Files of a table: base files, log files, slices, groups, and the grammar of their names.

Source: Hudi 0.15.0, 1.0.2, 1.1.1, ``FSUtils``, ``HoodieBaseFile``, ``HoodieLogFile``.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

PARTITION_METAFILE: Final = ".hoodie_partition_metadata"
DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"  # folder of rows without a value, or with an empty one
PARTITION_METAFILES: Final = frozenset(PARTITION_METAFILE + suffix for suffix in ("", ".parquet", ".orc"))
METADATA_FOLDER: Final = ".hoodie"
OWN_FOLDER: Final = ".hoodie/.aux/hudi_py"
"""What we keep beside what Hudi knows: reserved times, notes of cleans, copies of what was damaged."""
NOT_REGULAR: Final = -1  # the size of what is no regular file: a folder, a pipe, a socket or a device

_TIME_DIGITS_MIN: Final = 14  # what no release ever wrote is somebody else's file: app_2024_01.csv, .app_2024.log.1
BASE_FILE_PATTERN: Final = (
    rf"([^._{{none}}][^_{{none}}]*)_([^_{{none}}]*)_([0-9]{{{{{_TIME_DIGITS_MIN},}}}})\.(parquet|orc|hfile|lance)"
)
"""Of file id, write token, instant time and extension; ``none`` is to be filled in with characters no name holds."""
_match_base_file: Final = re.compile(BASE_FILE_PATTERN.format(none="")).fullmatch
_LOG_FILE: Final = re.compile(rf"\.(.+?)_([0-9]{{{_TIME_DIGITS_MIN},}})\.(log|archive)\.(\d+)(?:_([^.]+?))?(\.cdc)?")


@attrs.frozen(slots=True)
class BaseFile:
    """A columnar file that holds all rows of one slice (``<file id>_<write token>_<instant>.parquet``)."""

    name: str
    file_id: str
    write_token: str
    instant_time: str
    extension: str = "parquet"
    size_bytes: int | None = attrs.field(default=None, eq=False)


@attrs.frozen(slots=True)
class LogFile:
    """
    A log file (``.<file id>_<time>.log.<version>_<write token>[.cdc]``).

    ``instant_time`` is the base instant of the slice in layout 1, the requested time of the writing delta commit
    in layout 2.
    """

    name: str
    file_id: str
    instant_time: str
    version: int
    write_token: str
    is_cdc: bool = False
    size_bytes: int | None = attrs.field(default=None, eq=False)

    @property
    def order(self) -> tuple[str, int, str, bool]:
        """Sort key: oldest first (``HoodieLogFile.LogFileComparator``)."""
        return (self.instant_time, self.version, self.write_token, self.is_cdc)


@attrs.frozen(slots=True)
class FileSlice:
    """
    One version of a file group: at most one base file and its log files.

    Args:
        partition_path: Relative path of the partition, ``""`` when the table has none.
        file_id: Of the group.
        base_instant_time: Instant that opened the slice.
        base_file: None while only logs exist (or a compaction is pending).
        log_files: Oldest first.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()

    @property
    def file_names(self) -> tuple[str, ...]:
        """Base file first, then logs newest first: the order of Hudi's clean plans (rule A-37)."""
        base = () if self.base_file is None else (self.base_file.name,)
        return base + tuple(log.name for log in reversed(self.log_files))

    @property
    def file_count(self) -> int:
        """Base file and logs."""
        return len(self.log_files) + (self.base_file is not None)

    @property
    def is_empty(self) -> bool:
        """Whether the slice has no file at all (opened by a pending compaction)."""
        return self.base_file is None and not self.log_files


@attrs.frozen(slots=True)
class FileGroup:
    """All slices of one set of records, newest first."""

    partition_path: str
    file_id: str
    slices: tuple[FileSlice, ...]


def parse_base_file(name: str, size_bytes: int | None = None) -> BaseFile | None:
    """
    Parse a base file's name; None when it is not one.

    Hudi takes any time, and so cleans away old versions of what is not its own.
    """
    match = _match_base_file(name)
    if match is None:
        return None
    file_id, write_token, instant_time, extension = match.groups()
    return BaseFile(name, file_id, write_token, instant_time, extension, size_bytes)


def is_base_file(name: str) -> bool:
    """Whether `parse_base_file` takes *name*; for many names, of which nothing else is asked."""
    return _match_base_file(name) is not None


def format_base_file(file_id: str, write_token: str, instant_time: str, extension: str = "parquet") -> str:
    """Inverse of `parse_base_file`."""
    return f"{file_id}_{write_token}_{instant_time}.{extension}"


def parse_log_file(name: str, size_bytes: int | None = None) -> LogFile | None:
    """Parse a log file's name; None when it is not one (``.crc`` side files are not)."""
    match = _LOG_FILE.fullmatch(name)
    if match is None or match[3] != "log":
        return None
    file_id, instant_time, _, version, token, cdc = match.groups()
    return LogFile(name, file_id, instant_time, int(version), token or "", cdc is not None, size_bytes)


def is_partition_path(path: str) -> bool:
    """Whether *path* may be a partition of a table: ``""``, or a plain relative path outside its metadata folder."""
    parts = path.split("/") if path else []
    return parts[:1] != [METADATA_FOLDER] and "\0" not in path and not {"", ".", ".."}.intersection(parts)


def in_default_partition(partition_path: str, position: int, count: int) -> bool:
    """
    Whether the rows of a partition have no value of one partition column, or an empty one: both are stored alike.

    Args:
        partition_path: Relative, hive style or not.
        position: Of the column among the partition columns.
        count: How many there are; where the path has another number of folders, any of them may be the column's.
    """
    folders = partition_path.split("/")
    asked = folders[position : position + 1] if len(folders) == count else folders
    return any(folder.rpartition("=")[2] == DEFAULT_PARTITION for folder in asked)


def join_path(partition_path: str, name: str) -> str:
    """Path of a file relative to the table's base path."""
    return f"{partition_path}/{name}" if partition_path else name
