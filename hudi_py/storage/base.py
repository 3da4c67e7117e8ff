"""
The storage protocol: every byte of a table passes through here.

Paths are relative to the storage's root (the table's base path), ``/``-separated, without leading or trailing slash;
``""`` is the root itself: it can be listed, but it is neither an object nor a folder that could be deleted. A path
that would leave the root is refused with `ConfigError` before any effect.

What each backend promises, and `tests/contract/storage` proves for each:

==================  ===============================================================================================
verb                promise
==================  ===============================================================================================
``list``            fresh; an absent folder is empty; order unspecified; never shows temporary files
                    (``<name>.<uuid>``) nor checksum side files (``.<name>.crc``)
``sizes``           of named files directly in one folder, in one go; what is there and no regular file is told apart
``list_hidden``     what ``list`` never shows: temporary files with size and time, checksum side files
``read``            the whole content, or `NotFound`; `CorruptMetadata` for what is no regular file, and for more than
                    the storage's bound of bytes (local disk)
``create_new``      the object appears complete or not at all; `AlreadyExists` if the name is taken; one winner
                    among racing writers; durable when it returns
``replace``         readers see the old or the new content, never a mixture; durable when it returns
``open_write``      streaming; the name may appear before it is complete (data files: guarded by markers)
``read_version``    content and version, of one moment; equal versions have equal content, or `NotFound`
``swap``            replaces only that version, or creates only where there is nothing; one winner among racing
                    writers; durable when it returns (``capabilities.conditional_replace``, else refused)
``delete``          idempotent: False when there was nothing
``delete_many``     the same for many paths, in bulk where the backend can
``delete_folder``   recursive and idempotent
==================  ===============================================================================================

Missing parent folders are created by the verbs that write. A path that names a folder is not an object: `read` raises
`NotFound`, `size` is None. Backends raise `StorageError` for the outside world's faults, with ``retryable`` set where
the same call may succeed later, and `OutcomeUnknown` when `create_new`, `replace` or `swap` was sent and cannot be
confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

from hudi_py.errors import ConfigError, CorruptMetadata

READING_VERBS = frozenset({"list", "list_hidden", "read", "read_version", "size", "sizes", "open_read"})
READ_BYTES_MAX = 1 << 30  # of a file that is read whole, unless the user raises it: savepoints of 2 GB have been seen
SMALL_BYTES_MAX = 1 << 24  # of one that is small by its nature; 50,000 names of markers are 5 MB
_SMALL = re.compile(
    r"""(?:^|/)(?:
    \.hoodie/(?:
        hoodie\.properties(?:\.backup)? | lock | \.locks/[^/]+ | metadata/\.hoodie/hoodie\.properties
        | \.heartbeat/[^/]+ | \.temp/.+ | (?:.+/)?_version_ | (?:.+/)?version
    )
    | \.hoodie_partition_metadata(?:\.parquet|\.orc)? | \.[^/]+\.crc
    )\Z""",
    re.VERBOSE,
)
MUTATING_VERBS = frozenset({"create_new", "replace", "swap", "open_write", "delete", "delete_many", "delete_folder"})


class Entry(NamedTuple):
    """
    One name in a folder.

    ``size_bytes`` and ``modified_ms`` (epoch milliseconds) are None when the listing was asked without details and
    the backend does not get them for free.
    """

    name: str
    is_folder: bool
    size_bytes: int | None = None
    modified_ms: int | None = None


Listing: TypeAlias = list[Entry]  # inside the classes `list` is a method


class Capabilities(NamedTuple):
    """Facts about a backend that callers may rely on."""

    atomic_create: bool  # create_new has one winner among racing processes; otherwise it is refused
    atomic_replace: bool  # replace never shows a gap
    has_folders: bool  # empty folders exist and have to be removed
    conditional_replace: bool = False  # swap is there
    reports_missing: bool = True  # delete_many can tell False (was not there) from True; otherwise True = gone now


class Storage(Protocol):
    """A root folder on some storage. Implementations are picklable, so that Spark executors can use them."""

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""

    @property
    def root(self) -> str:
        """Absolute path or URL of the root, without trailing slash, as Hudi writes it into plans (no ``file:``)."""

    def list(self, folder: str, *, details: bool = False) -> Listing:
        """Names directly inside *folder*; with *details* also size and modification time of files."""

    def list_hidden(self, folder: str) -> Listing:
        """
        The files directly inside *folder* that `list` hides; of temporary ones also size and time.

        Those (`is_temporary`) that are being written at this moment are among them.
        """

    def read(self, path: str) -> bytes:
        """Whole content. Raises `NotFound`."""

    def size(self, path: str) -> int | None:
        """Size in bytes, or None when there is no such object."""

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        """
        Sizes in bytes of files directly in *folder*, by name; `NOT_REGULAR` for what is no regular file.

        Names of what is absent are left out. Links are followed, as `open_read` follows them.

        Raises:
            ConfigError: A name leads out of the folder.
        """

    def barrier(self, folder: str) -> str | None:
        """Why nothing in *folder* is written or deleted: a symbolic link leads to it. None where nothing bars it."""

    def open_read(self, path: str) -> BinaryIO:
        """Seekable stream, for Parquet. Raises `NotFound`."""

    def create_new(self, path: str, data: bytes) -> None:
        """Create atomically and durably. Raises `AlreadyExists`, and `OutcomeUnknown` when that cannot be known."""

    def replace(self, path: str, data: bytes) -> None:
        """Create or replace atomically and durably. Raises `OutcomeUnknown` when that cannot be known."""

    def read_version(self, path: str) -> Versioned:
        """Whole content, and what tells it from every other content of that name. Raises `NotFound`."""

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        """
        Replace the object if it still is of that version; None stands for no object at all.

        Returns:
            The new version; None where it was of another, and then nothing was changed.

        Raises:
            ConfigError: The backend cannot.
            OutcomeUnknown: Whether it was replaced cannot be known.
        """

    def open_write(self, path: str) -> BinaryIO:
        """
        Stream a data file, replacing what is there; it is complete and durable once closed.

        Use it as a context manager: leaving by an exception leaves a torn file, none, or what was there before.
        """

    def delete(self, path: str) -> bool:
        """Delete one object; False when it was not there. A folder is refused with `StorageError`."""

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        """
        Delete many; per path True (deleted), False (was not there), or why it could not be deleted.

        `SideFileLeft` stands for True or False where the checksum file beside the data refused to go.

        Where ``capabilities.reports_missing`` is False, True only says that it is gone now. A bad path refuses the
        whole call before any effect.
        """

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything below it; nothing happens when it is absent. Links are not followed."""


class Versioned(NamedTuple):
    """What an object held at one moment, and its version then."""

    content: bytes
    version: str


def bytes_max(path: str, bound: int) -> int:
    """
    How many bytes of a file are read whole at most.

    Args:
        path: Relative to the table.
        bound: ``hoodie_py.read.max.bytes``; properties, partition metafiles, heartbeats, markers, locks, versions of
            the archive and checksums have one of their own.
    """
    return min(bound, SMALL_BYTES_MAX) if _SMALL.search(path) else bound


def check_read_size(root: str, path: str, size: int, bound: int) -> None:
    """
    Refuse a file that is too large to be read whole.

    Args:
        root: Of the table: full path or URL.
        path: Relative to it.
        size: In bytes.
        bound: ``hoodie_py.read.max.bytes``.

    Raises:
        CorruptMetadata: It is.
    """
    most = bytes_max(path, bound)
    if size <= most:
        return
    if most < bound:
        way_out = "it is damaged, bring it back from a copy of the table"
        if path.endswith("hoodie.properties"):
            way_out += ", or from hoodie.properties.backup where there is one"
    else:
        way_out = "raise hoodie_py.read.max.bytes if it is whole, else bring it back from a copy of the table"
    raise CorruptMetadata(
        f"{root}/{path}: {size} bytes; of such a file no more than {most} are read at once: {way_out}"
    )


class StorageFailure(NamedTuple):
    """Why one path of a bulk call failed."""

    message: str
    retryable: bool


class SideFileLeft(NamedTuple):
    """The data is deleted, or was not there; the checksum file beside it refuses to go. It is no failure."""

    name: str
    message: str
    was_there: bool


Deletion: TypeAlias = bool | StorageFailure | SideFileLeft  # of one path of a bulk call


_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\0")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def _is_bad(path: str) -> bool:
    """Whether non-empty *path* has a bad part. The expression decides; the tests before it are faster."""
    suspicious = path[0] in "/." or path[-1] == "/" or "/." in path or "//" in path or "\0" in path
    return suspicious and _BAD_PART.search(path) is not None


_SUSPICIOUS = ("\0/", "\0.", "/\0", "/.", "//", "\0\0")  # in paths put together with a NUL before and behind each


def check_path(path: str) -> str:
    """
    Return *path* unchanged if it is a clean relative path below the root, or the root itself (``""``).

    Raises:
        ConfigError: It is absolute, has an empty, ``.`` or ``..`` part, or a NUL.
    """
    if path and _is_bad(path):
        raise ConfigError(f"{path!r} is not a path inside the table; nothing was touched")
    return path


def check_below_root(path: str) -> str:
    """
    Return *path* unchanged if it is a clean relative path and not the root: what may be written or deleted.

    Raises:
        ConfigError: It is not, see `check_path`.
    """
    if not path or _is_bad(path):
        raise ConfigError(f"{path!r} is not a path below the root of the table; nothing was touched")
    return path


def check_names(names: Sequence[str]) -> None:
    """
    Refuse what is no name of a file directly in a folder.

    Raises:
        ConfigError: It leads out of the folder, or is empty.
    """
    check_all_below_root(names)
    for name in names:
        if "/" in name:
            raise ConfigError(f"{name!r} is not the name of a file; nothing was touched")


def check_all_below_root(paths: Sequence[str]) -> None:
    """
    As `check_below_root` for many paths, of which all are looked at before it returns.

    Raises:
        ConfigError: One of them is bad.
    """
    text = "\0".join(("", *paths, ""))  # no good path holds a NUL, so whatever is bad about one shows in the text
    is_plain = text.count("\0") == len(paths) + 1 and not any(bad in text for bad in _SUSPICIOUS)
    if not is_plain:
        for path in paths:
            check_below_root(path)


def is_temporary(name: str) -> bool:
    """Whether a file of that name is what an atomic creation, ours or Hudi's, was writing: ``<name>.<uuid>``."""
    return name[-37:-36] == "." and len(name) > 37 and _UUID.fullmatch(name, len(name) - 36) is not None


def is_hidden(name: str) -> bool:
    """
    Whether a file of that name is kept out of listings.

    Checksum side files of Hadoop's local file system (``.name.crc``) and the temporary files that ours and Hudi's
    atomic creation leave after a crash (``name.<uuid>``). Never true of folders: a partition may look like that.
    """
    return (name[-4:] == ".crc" and name[0] == ".") or is_temporary(name)
