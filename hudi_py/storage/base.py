"""
The storage protocol: every byte of a table is read and written through it.

Paths are relative to the storage's root (the table's base path), ``/``-separated, without leading or trailing slash.
``""`` is the root itself: it can be listed, but not read, written or deleted. A path that would leave the root raises
`ConfigError` before anything is done.

What every backend promises (`tests/contract/storage` runs the same tests against each of them):

==================  ===============================================================================================
verb                promise
==================  ===============================================================================================
``list``            never cached; an absent folder is empty; order unspecified; hides temporary files
                    (``<name>.<uuid>``) and checksum side files (``.<name>.crc``)
``sizes``           sizes of the named files in one folder, in one call; what exists but is not a regular file has
                    the size `NOT_REGULAR`
``list_hidden``     the files that ``list`` hides: temporary files with size and time, checksum side files
``read``            the whole content, or `NotFound`; `CorruptMetadata` for files above the storage's size limit, and
                    on a local disk for what is not a regular file
``create_new``      the object appears complete or not at all; `AlreadyExists` if the name is taken; one winner
                    among racing writers; durable when it returns
``replace``         readers see the old or the new content, never a mixture; durable when it returns
``open_write``      streaming; the name may appear before it is complete (data files: guarded by markers)
``read_version``    content and version, read together; equal versions have equal content; or `NotFound`
``swap``            replaces only the given version, or creates only if absent; one winner among racing
                    writers; durable when it returns (needs ``capabilities.conditional_replace``, else refused)
``delete``          idempotent: returns False when there was nothing to delete
``delete_many``     the same for many paths, in bulk where the backend can
``delete_folder``   recursive and idempotent
``delete_empty``    removes a folder only if nothing is in it; returns whether it did
``move_many``       the same files below another folder, one result per path; interrupted at any moment, a file is at
                    one of the two places, or whole at both
``tag_many``        a label on each object that rules of the store look for (needs ``capabilities.tags``, else refused)
==================  ===============================================================================================

Missing parent folders are created by the verbs that write. A path that names a folder is not an object: `read` raises
`NotFound`, `size` returns None. Backends raise `StorageError` when the storage fails, with ``retryable`` set where the
same call may succeed later, and `OutcomeUnknown` when `create_new`, `replace` or `swap` was sent but could not be
confirmed: the write may or may not have happened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.tag import Tag

READING_VERBS = frozenset({"list", "list_hidden", "read", "read_version", "size", "sizes", "barrier", "open_read"})
# A damaged or foreign file must not exhaust memory. Users can raise the limit: savepoints of 2 GB have been seen.
READ_BYTES_MAX = 1 << 30
SMALL_BYTES_MAX = 1 << 24  # limit for files that are always small; the names of 50,000 markers take 5 MB
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
MUTATING_VERBS = frozenset(
    {
        "create_new",
        "replace",
        "swap",
        "open_write",
        "delete",
        "delete_many",
        "delete_folder",
        "delete_empty",
        "move_many",
        "tag_many",
    }
)


def spoken(verb: str) -> str:
    """The verb as messages say it: what follows it (``create_new``, ``delete_many``) is for callers."""
    return verb.partition("_")[0]


class Entry(NamedTuple):
    """
    A file or folder in a listing.

    ``size_bytes`` and ``modified_ms`` (epoch milliseconds) are None when the caller did not ask for details and the
    backend does not get them for free.
    """

    name: str
    is_folder: bool
    size_bytes: int | None = None
    modified_ms: int | None = None


Details: TypeAlias = bool | Collection[str]
Listing: TypeAlias = list[Entry]  # needed because inside the storage classes `list` is a method


class Capabilities(NamedTuple):
    """Facts about a backend that callers may rely on."""

    atomic_create: bool  # create_new has one winner among racing processes; where False, create_new is refused
    atomic_replace: bool  # during replace, readers never find the object missing
    has_folders: bool  # empty folders exist and have to be removed
    conditional_replace: bool = False  # swap is available
    reports_missing: bool = True  # delete_many returns False for absent paths; otherwise True means "absent now"
    tags: bool = False  # tag_many is available
    is_rehearsal: bool = False  # what is changed is forgotten: for dry runs, of which nobody else may hear


class Storage(Protocol):
    """A folder on some storage and everything below it. Picklable, so that Spark executors can use it."""

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can guarantee."""

    @property
    def root(self) -> str:
        """Absolute path or URL of the root, without trailing slash, as Hudi writes it into plans (no ``file:``)."""

    def list(self, folder: str, *, details: Details = False) -> Listing:
        """
        Return the files and folders directly in *folder*; with *details* also sizes and modification times.

        Names instead of True ask for those of these only, which a disk looks up one by one.
        """

    def list_hidden(self, folder: str) -> Listing:
        """
        Return the files directly in *folder* that `list` hides; temporary files with size and time.

        These include temporary files (`is_temporary`) that are still being written.
        """

    def read(self, path: str) -> bytes:
        """Return the whole content. Raises `NotFound`."""

    def size(self, path: str) -> int | None:
        """Return the size in bytes, or None when there is no such object."""

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        """
        Return sizes in bytes of files directly in *folder*, by name; `NOT_REGULAR` for anything but a regular file.

        Absent files are left out. Symbolic links are followed, as `open_read` follows them.

        Raises:
            ConfigError: A name leads out of the folder.
        """

    def barrier(self, folder: str) -> str | None:
        """Return why nothing in *folder* can be written or deleted (a symbolic link leads to it), or None if it can."""

    def open_read(self, path: str) -> BinaryIO:
        """Open a seekable stream, as Parquet readers need it. Raises `NotFound`."""

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        """
        Create atomically and durably.

        Args:
            path: Relative to the root.
            data: The content.
            before: Called when all is prepared, right before the object can appear, and again before each repetition;
                if it raises, nothing is created.
            lasts: Whether the name has to outlive a loss of power; if not, a disk need not be waited for.

        Raises:
            AlreadyExists: The name is taken.
            OutcomeUnknown: It cannot be confirmed.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Create or replace atomically and durably. Raises `OutcomeUnknown` if it cannot be confirmed."""

    def read_version(self, path: str) -> Versioned:
        """Return the whole content together with its version, for `swap`. Raises `NotFound`."""

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        """
        Replace the object if it still has the given version (compare and swap).

        Args:
            path: Path of the object.
            data: New content.
            version: As `read_version` returned it; None to create the object only if it is absent.

        Returns:
            The new version; None if the object has another version now. Then nothing was changed.

        Raises:
            ConfigError: The backend cannot replace conditionally.
            OutcomeUnknown: The request was sent but not confirmed.
        """

    def open_write(self, path: str) -> BinaryIO:
        """
        Open a data file for streaming, replacing an existing one; it is complete and durable once closed.

        Use it as a context manager: after an exception there is an incomplete file, no file, or the previous one.
        """

    def delete(self, path: str) -> bool:
        """Delete one object; return False when it was not there. Raises `StorageError` for a folder."""

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        """
        Delete many objects and return one result per path.

        A result is True (deleted), False (was not there) or a `StorageFailure`. `SideFileLeft` replaces True or False
        where only the checksum file beside the data could not be deleted. Where ``capabilities.reports_missing`` is
        False, True only means that the object is absent now. If any path is invalid, nothing is deleted at all.
        """

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything below it; an absent folder is ignored. Links are not followed."""

    def delete_empty(self, folder: str) -> bool:
        """
        Remove *folder* if nothing is in it, hidden files included; return whether it was removed.

        False also where folders do not exist by themselves, as in object stores.
        """

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        """
        Move files from below one folder to the same paths below another, and return one result per path.

        A rename where folders exist, so that it costs the same for large files; in object stores a copy on the server,
        then a deletion. A file that is already at the target is replaced.

        Args:
            paths: Relative to *source* and to *target*.
            source: Folder where they are; ``""`` for the root.
            target: Folder where they shall be; ``""`` for the root.

        Returns:
            As `delete_many`: True (moved), False (not at the source) or a `StorageFailure`.

        Raises:
            ConfigError: A path is invalid; then nothing was moved.
        """

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        """
        Put a tag on objects, or take it off; their other tags stay.

        Args:
            paths: Relative to the root.
            tag: The tag. To take one off, only its key counts.
            remove: Whether to take it off.

        Returns:
            One result per path: True, False (there is no such object) or a `StorageFailure`.

        Raises:
            ConfigError: The storage has no tags, or a path is invalid; nothing was changed.
        """


class Versioned(NamedTuple):
    """Content of an object and the version that belongs to exactly this content."""

    content: bytes
    version: str


def bytes_max(path: str, bound: int) -> int:
    """
    Return the largest size in bytes up to which a file is read whole.

    Args:
        path: Relative to the table.
        bound: ``hoodie_py.read.max.bytes``. Properties, partition metafiles, heartbeats, markers, locks, version files
            of the archive and checksums have a smaller limit of their own, `SMALL_BYTES_MAX`.
    """
    return min(bound, SMALL_BYTES_MAX) if _SMALL.search(path) else bound


def check_read_size(root: str, path: str, size: int, bound: int) -> None:
    """
    Raise if a file is too large to be read whole.

    Args:
        root: Full path or URL of the table.
        path: Path of the file, relative to *root*.
        size: Size of the file in bytes.
        bound: ``hoodie_py.read.max.bytes``.

    Raises:
        CorruptMetadata: The file is larger than its limit.
    """
    most = bytes_max(path, bound)
    if size <= most:
        return
    if most < bound:
        way_out = "it is damaged, restore it from a copy of the table"
        if path.endswith("hoodie.properties"):
            way_out += ", or from hoodie.properties.backup if that exists"
    else:
        way_out = "raise hoodie_py.read.max.bytes if the file is intact, else restore it from a copy of the table"
    raise CorruptMetadata(f"{root}/{path}: {size} bytes, but such a file is read only up to {most} bytes: {way_out}")


class StorageFailure(NamedTuple):
    """Why one path of a bulk call failed."""

    message: str
    retryable: bool


class SideFileLeft(NamedTuple):
    """The data was deleted (or absent), but the checksum file beside it could not be deleted. Not a failure."""

    name: str
    message: str
    was_there: bool


Deletion: TypeAlias = bool | StorageFailure | SideFileLeft  # result for one path, see `Storage.delete_many`


_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\0")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def _is_bad(path: str) -> bool:
    """Return whether non-empty *path* is invalid. The regular expression decides; the tests before it are faster."""
    suspicious = path[0] in "/." or path[-1] == "/" or "/." in path or "//" in path or "\0" in path
    return suspicious and _BAD_PART.search(path) is not None


_SUSPICIOUS = ("\0/", "\0.", "/\0", "/.", "//", "\0\0")  # in a text of paths with a NUL before and after each path


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
    Return *path* unchanged if it may be written or deleted: a clean relative path, but not the root.

    Raises:
        ConfigError: It is the root, or invalid as in `check_path`.
    """
    if not path or _is_bad(path):
        raise ConfigError(f"{path!r} is not a path below the root of the table; nothing was touched")
    return path


def check_names(names: Sequence[str]) -> None:
    """
    Raise unless all *names* are plain file names.

    Raises:
        ConfigError: A name has a slash, leads out of the folder, or is empty.
    """
    check_all_below_root(names)
    for name in names:
        if "/" in name:
            raise ConfigError(f"{name!r} is not the name of a file; nothing was touched")


def check_all_below_root(paths: Sequence[str]) -> None:
    """
    Raise unless all *paths* pass `check_below_root`.

    Raises:
        ConfigError: A path is invalid.
    """
    # One search in one long text is much faster than one call per path. Valid paths contain no NUL, so a NUL can
    # separate them.
    text = "\0".join(("", *paths, ""))
    is_plain = text.count("\0") == len(paths) + 1 and not any(bad in text for bad in _SUSPICIOUS)
    if not is_plain:
        for path in paths:
            check_below_root(path)


def checked_moves(paths: Iterable[str], source: str, target: str) -> dict[str, tuple[str, str]]:
    """
    Return each path with where it is and where it shall be, relative to the root; for `Storage.move_many`.

    Raises:
        ConfigError: A path is invalid, or the two folders are the same.
    """
    before, after = (f"{check_path(folder)}/" if folder else "" for folder in (source, target))
    moves = {path: (before + path, after + path) for path in paths}
    check_all_below_root([each for pair in moves.values() for each in pair])
    if before == after:
        raise ConfigError(f"{source!r} and {target!r} are the same folder; nothing was moved")
    return moves


def refuse_tags(root: str) -> ConfigError:
    """Return the error of a storage without tags."""
    return ConfigError(f"{root}: only objects in S3 have tags; nothing was changed. Leave the tag out")


def is_temporary(name: str) -> bool:
    """Return whether the name is that of a temporary file of an atomic creation, ours or Hudi's: ``<name>.<uuid>``."""
    return name[-37:-36] == "." and len(name) > 37 and _UUID.fullmatch(name, len(name) - 36) is not None


def is_hidden(name: str) -> bool:
    """
    Return whether a file with this name is left out of listings.

    Hidden are checksum side files of Hadoop's local file system (``.name.crc``) and temporary files that an atomic
    creation, ours or Hudi's, leaves after a crash (``name.<uuid>``). Ask only for files: a partition folder may have
    such a name.
    """
    return (name[-4:] == ".crc" and name[0] == ".") or is_temporary(name)
