"""
Files of a table: base files, log files, slices, groups, and the grammar of their names.

Source: Hudi 0.15.0, 1.0.2, 1.1.1, ``FSUtils``, ``HoodieBaseFile``, ``HoodieLogFile``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from hudi_py.model.moved import StoredNames

PARTITION_METAFILE: Final = ".hoodie_partition_metadata"
DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"  # folder of rows whose partition column is null or empty
PARTITION_METAFILES: Final = frozenset(PARTITION_METAFILE + suffix for suffix in ("", ".parquet", ".orc"))
METADATA_FOLDER: Final = ".hoodie"
METADATA_TABLE_FOLDER: Final = f"{METADATA_FOLDER}/metadata"
OWN_FOLDER: Final = ".hoodie/.aux/hudi_py"
"""Folder of files that only hudi_py uses: reserved times, notes of cleans, copies of damaged files."""
NOT_REGULAR: Final = -1  # reported as size of anything but a regular file: a folder, a pipe, a socket or a device

# All releases of Hudi write times of at least 14 digits. Requiring them keeps us from taking foreign files for our own
# and deleting them: app_2024_01.csv, .app_2024.log.1
_TIME_DIGITS_MIN: Final = 14
# Stands for bytes in a name that are not UTF-8. Java writes none, and no commit could hold the name.
_NO_TEXT: Final = "\ud800-\udfff"
_match_no_text: Final = re.compile(f"[{_NO_TEXT}]").search
_BASE_FILE: Final = (
    rf"([^._{_NO_TEXT}{{none}}][^_{_NO_TEXT}{{none}}]*)_({{silent}}[^_{_NO_TEXT}{{none}}]*)"
    rf"_([0-9]{{{{{_TIME_DIGITS_MIN},}}}})\.({{silent}}parquet|orc|hfile|lance)"
)
"""
Groups: file id, write token, instant time, extension.

``none`` is replaced by characters that no name contains, which is needed to search many names joined by such a
character; ``silent`` by ``?:`` where token and extension are not asked for.
"""
_match_base_file: Final = re.compile(_BASE_FILE.format(none="", silent="")).fullmatch
_find_base_files: Final[Callable[[str], list[tuple[str, str]]]] = re.compile(
    rf"(?<=/){_BASE_FILE.format(none='/', silent='?:')}(?=/)"
).findall
_LOG_FILE: Final = re.compile(
    rf"\.([^{_NO_TEXT}]+?)_([0-9]{{{_TIME_DIGITS_MIN},}})\.(log|archive)\.(\d+)(?:_([^.{_NO_TEXT}]+?))?(\.cdc)?"
)


METADATA_BOOTSTRAP_TIME: Final = "00000000000001"
"""Requested time of the commit whose files have the meta columns only (``HoodieTimeline``)."""


@attrs.frozen(slots=True)
class SourceFile:
    """
    A file outside of the table that has the columns of a base file, row by row (bootstrapped tables).

    Args:
        uri: Its location.
        size_bytes: Its size when the table was made; None if unknown.
        values: Partition columns and their values as text, None for null; for columns that the file lacks.
    """

    uri: str
    size_bytes: int | None = None
    values: Mapping[str, str | None] = attrs.field(factory=dict, hash=False)


@attrs.frozen(slots=True)
class BaseFile:
    """
    A columnar file with the rows of a slice, without its log files (``<file id>_<token>_<instant>.parquet``).

    ``source`` has all columns but the meta columns, where the table was bootstrapped and the file has none of them.
    ``moved`` says what the file's columns are called today; None if they have kept their names.
    """

    name: str
    file_id: str
    write_token: str
    instant_time: str
    extension: str = "parquet"
    size_bytes: int | None = attrs.field(default=None, eq=False)
    source: SourceFile | None = attrs.field(default=None, eq=False, repr=False)
    moved: StoredNames | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def lacks_columns(self) -> bool:
        """Whether the file has the meta columns only, because the table was bootstrapped."""
        return self.instant_time == METADATA_BOOTSTRAP_TIME


@attrs.frozen(slots=True)
class LogFile:
    """
    A log file (``.<file id>_<time>.log.<version>_<write token>[.cdc]``).

    ``instant_time`` is the base instant of the slice in layout 1; in layout 2 it is the requested time of the delta
    commit that wrote the file.
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
        """Sort key, oldest first (``HoodieLogFile.LogFileComparator``)."""
        return (self.instant_time, self.version, self.write_token, self.is_cdc)


@attrs.frozen(slots=True)
class FileSlice:
    """
    One version of a file group: at most one base file and its log files.

    Args:
        partition_path: Relative path of the partition, ``""`` in a table without partitions.
        file_id: Id of the file group.
        base_instant_time: Time of the instant that started the slice.
        base_file: None if the slice has only log files, or none yet because its compaction is pending.
        log_files: Log files, oldest first.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the columns of its base file are in that file and have the names of today, for readers by name."""
        base = self.base_file
        return base is None or (base.source is None and base.moved is None)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the base file, then of the log files, newest first: the order of Hudi's clean plans (A-37)."""
        base = () if self.base_file is None else (self.base_file.name,)
        return base + tuple(log.name for log in reversed(self.log_files))

    @property
    def file_count(self) -> int:
        """Number of files: base file and log files."""
        return len(self.log_files) + (self.base_file is not None)

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """Base file, if there is one, then log files, oldest first."""
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)

    @property
    def size_bytes(self) -> int:
        """Number of bytes of its files as far as they are known."""
        return sum(file.size_bytes or 0 for file in self.files)

    @property
    def shown_from(self) -> str:
        """
        The earliest time at which the table shows a file of the slice; compares with requested times.

        In layout 2 a write may have been requested before the compaction that opened the slice, and have completed
        behind it: its log file is on this slice, and the table as of that write shows it together with the slice below.
        """
        return min((self.base_instant_time, *(log.instant_time for log in self.log_files)))

    @property
    def is_empty(self) -> bool:
        """Whether the slice has no file yet: a pending compaction started it."""
        return self.base_file is None and not self.log_files


@attrs.frozen(slots=True)
class FileGroup:
    """All versions of one set of records: its file slices, newest first."""

    partition_path: str
    file_id: str
    slices: tuple[FileSlice, ...]


def bases_of(slices: Iterable[FileSlice]) -> tuple[tuple[str, BaseFile], ...]:
    """Partition path and base file of the slices that have one."""
    return tuple(
        (file_slice.partition_path, file_slice.base_file) for file_slice in slices if file_slice.base_file is not None
    )


def parse_base_file(name: str, size_bytes: int | None = None) -> BaseFile | None:
    """
    Parse the name of a base file; return None if it is not one.

    Stricter than Hudi, which accepts any text as time and so may delete old versions of files that are not its own.
    """
    match = _match_base_file(name)
    if match is None:
        return None
    file_id, write_token, instant_time, extension = match.groups()
    return BaseFile(name, file_id, write_token, instant_time, extension, size_bytes)


def is_base_file(name: str) -> bool:
    """Return whether `parse_base_file` accepts *name*, without the cost of building a `BaseFile`."""
    return _match_base_file(name) is not None


def base_file_key(name: str) -> tuple[str, str] | None:
    """Return file id and time of a base file, without the cost of building a `BaseFile`; None if it is not one."""
    match = _match_base_file(name)
    return None if match is None else (match[1], match[3])


def base_file_keys(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return what `base_file_key` returns of those of many names that are base files, in two thirds of the time."""
    return _find_base_files(f"/{'/'.join(names)}/")


def format_base_file(file_id: str, write_token: str, instant_time: str, extension: str = "parquet") -> str:
    """Return the name of a base file; the inverse of `parse_base_file`."""
    return f"{file_id}_{write_token}_{instant_time}.{extension}"


def parse_log_file(name: str, size_bytes: int | None = None) -> LogFile | None:
    """Parse the name of a log file; return None if it is not one (such as a ``.crc`` side file)."""
    match = _LOG_FILE.fullmatch(name)
    # The archive's log files have the same grammar, and do not hold rows.
    if match is None or match[3] != "log":
        return None
    file_id, instant_time, _, version, token, cdc = match.groups()
    return LogFile(name, file_id, instant_time, int(version), token or "", cdc is not None, size_bytes)


def parse_data_file(name: str, size_bytes: int | None = None) -> BaseFile | LogFile | None:
    """Parse the name of a base file or a log file; return None if it is neither."""
    return parse_base_file(name, size_bytes) or parse_log_file(name, size_bytes)


def newest_by_group(names: Iterable[str]) -> dict[str, str]:
    """Of each file group that has files among these of one partition, by file id: the instant time of the newest."""
    newest: dict[str, str] = {}
    for name in names:
        parsed = parse_data_file(name)
        if parsed is not None:
            newest[parsed.file_id] = max(newest.get(parsed.file_id, ""), parsed.instant_time)
    return newest


def is_data_file(name: str) -> bool:
    """Return whether *name* is that of a base file or a log file."""
    return is_base_file(name) or parse_log_file(name) is not None


def is_text(name: str) -> bool:
    """Return whether a name on a disk is UTF-8; other names can be in no commit."""
    return name.isascii() or _match_no_text(name) is None


def is_partition_path(path: str) -> bool:
    """Return whether *path* can be a partition: ``""``, or a clean relative path outside the metadata folder."""
    parts = path.split("/") if path else []
    return parts[:1] != [METADATA_FOLDER] and "\0" not in path and not {"", ".", ".."}.intersection(parts)


def above(path: str) -> Iterator[str]:
    """Yield the folders in which a partition lies, outermost first: ``""``, the table itself, and then its parents."""
    parts = path.split("/") if path else []
    return ("/".join(parts[:depth]) for depth in range(len(parts)))


def join_path(partition_path: str, name: str) -> str:
    """Return the path of a file, relative to the table."""
    return f"{partition_path}/{name}" if partition_path else name
