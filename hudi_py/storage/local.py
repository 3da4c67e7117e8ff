"""
Storage on a local disk, using system calls directly.

Crash safety relies on three facts about POSIX file systems: a hard link appears atomically and never replaces a file,
a rename replaces atomically, and both are durable once the folder is synchronised. Hadoop keeps a checksum of ``name``
in ``.name.crc`` and refuses data that does not match it, but accepts data without a checksum. So an old checksum file
is deleted *before* new data appears under its name (rules/timeline 6.5).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, Literal, TypeVar, cast

from hudi_py.errors import AlreadyExists, ConfigError, CorruptMetadata, NotFound, OutcomeUnknown, StorageError
from hudi_py.model.tag import Tag
from hudi_py.storage._beneath import (
    FOLDER_ONLY,
    LinkInTheWay,
    folder_beneath,
    in_folder,
    remove_folder,
    synchronise,
)
from hudi_py.storage._create import (
    create_complete,
    create_empty,
    open_again,
    open_regular,
    regular_descriptor,
    remove_checksum,
    temporary_file,
)
from hudi_py.storage._data_file import DataFile, failure
from hudi_py.storage._entries import checksums_of, detailed, is_shown, named_detailed, names_in, sizes_of
from hudi_py.storage._move import move_beneath
from hudi_py.storage.base import (
    READ_BYTES_MAX,
    Capabilities,
    Deletion,
    Details,
    Entry,
    Listing,
    SideFileLeft,
    StorageFailure,
    Versioned,
    bytes_max,
    check_all_below_root,
    check_below_root,
    check_names,
    check_path,
    check_read_size,
    checked_moves,
    is_hidden,
    is_temporary,
    refuse_tags,
)

# From this number of files on, one listing is cheaper than trying to delete a checksum beside each file: an attempt
# costs half as much as deleting a file, even if there is no checksum.
_ONE_LISTING_PAYS = 8
_GROWTH_BYTES = 1 << 20
_Opened = TypeVar("_Opened")


class LocalStorage:
    """
    A folder on a local disk.

    Args:
        root: The table's base path; need not exist yet. A relative path is made absolute now, so a later change of the
            working directory has no effect.
        read_bytes_max: Largest file, in bytes, that `read` accepts.

    Raises:
        ConfigError: *root* is empty or a URL.
    """

    def __init__(self, root: str | os.PathLike[str], *, read_bytes_max: int = READ_BYTES_MAX) -> None:
        text = os.fspath(root)
        if not text or "://" in text or "\0" in text:
            raise ConfigError(f"{text!r} is not a local folder; use open_storage() for URLs")
        self._root = os.path.abspath(text)
        self._prefix = self._root.rstrip("/") + "/"
        self._read_bytes_max = read_bytes_max

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(atomic_create=True, atomic_replace=True, has_folders=True)

    @property
    def root(self) -> str:
        return self._root

    # ------------------------------------------------------------------ reading

    def list(self, folder: str, *, details: Details = False) -> Listing:
        full = self._prefix + check_path(folder)
        try:
            with os.scandir(full) as found:
                if details is True:
                    return [entry for item in found if is_shown(item) and (entry := detailed(item, self._root))]
                if details:
                    return named_detailed(list(found), self._root, details)
                return names_in(found, self._root)
        except LinkInTheWay as error:
            raise CorruptMetadata(str(error.strerror)) from error
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", folder, error) from error

    def list_hidden(self, folder: str) -> Listing:
        try:
            with os.scandir(self._prefix + check_path(folder)) as found:
                listed = [
                    detailed(item, self._root) if is_temporary(item.name) else Entry(item.name, item.is_dir())
                    for item in found
                    if is_hidden(item.name)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failure("list", folder, error) from error
        return [entry for entry in listed if entry is not None and not entry.is_folder]

    def read(self, path: str) -> bytes:
        bound = bytes_max(path, self._read_bytes_max)
        descriptor, size = self._open(regular_descriptor, path)
        try:
            # Not read at all above the bound, so a huge file cannot fill the memory before it is refused.
            data = b"" if size > bound else os.read(descriptor, size + 1)
            # Less arrives at once of more than 2 GiB, and one byte more of a file that is being appended to right now.
            while data and len(data) != size and len(data) <= bound:
                more = os.read(descriptor, max(size - len(data) + 1, _GROWTH_BYTES))
                if not more:
                    break
                data += more
        except OSError as error:
            raise self._failure("read", path, error) from error
        finally:
            os.close(descriptor)
        if max(size, len(data)) > bound:
            check_read_size(self._root, path, max(size, len(data)), self._read_bytes_max)
        return data

    def size(self, path: str) -> int | None:
        try:
            found = os.stat(self._prefix + check_below_root(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failure("size", path, error) from error
        return None if stat.S_ISDIR(found.st_mode) else found.st_size

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        check_path(folder)
        check_names(names)
        try:
            descriptor = os.open(self._prefix + folder, FOLDER_ONLY)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise self._failure("size", folder, error) from error
        try:
            return sizes_of(descriptor, names)
        except OSError as error:
            raise self._failure("size", folder, error) from error
        finally:
            os.close(descriptor)

    def barrier(self, folder: str) -> str | None:
        try:
            with folder_beneath(self._root, check_path(folder)):
                return None
        except LinkInTheWay as error:
            return str(error.strerror)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failure("open", folder, error) from error

    def open_read(self, path: str) -> BinaryIO:
        return self._open(open_regular, path)

    def _open(self, opened: Callable[[str], _Opened], path: str) -> _Opened:
        try:
            return opened(self._prefix + check_below_root(path))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise NotFound(f"{self._prefix}{path}: no such file") from error
        except OSError as error:
            raise self._failure("read", path, error) from error

    # ------------------------------------------------------------------ writing

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        full = self._prefix + check_below_root(path)
        try:
            in_folder(self._root, path, create_complete(data, before) if data else create_empty(before))
        except FileExistsError as error:
            raise AlreadyExists(f"{full} exists already; it was left as it is") from error
        except OSError as error:
            raise self._failure("create_new", path, error) from error
        if lasts:
            self._confirm(path)

    def replace(self, path: str, data: bytes) -> None:
        def put(folder: int, name: str) -> None:
            with temporary_file(folder, name, data) as temporary:
                # Hadoop's checksum of the old content would make Hudi's readers refuse the new one.
                remove_checksum(folder, name)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

        try:
            in_folder(self._root, check_below_root(path), put)
        except OSError as error:
            raise self._failure("replace", path, error) from error
        self._confirm(path)

    def read_version(self, path: str) -> Versioned:
        content = self.read(path)
        return Versioned(content, hashlib.sha256(content).hexdigest())

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        check_below_root(path)
        raise ConfigError(
            f"{self._prefix}{path}: a local disk cannot replace a file conditionally; nothing was changed"
        )

    def open_write(self, path: str) -> BinaryIO:
        try:
            raw = in_folder(self._root, check_below_root(path), open_again)
        except OSError as error:
            raise self._failure("open_write", path, error) from error
        return cast("BinaryIO", DataFile(raw, self._prefix + path, lambda: self._synchronise(path)))

    # ------------------------------------------------------------------ deleting

    def delete(self, path: str) -> bool:
        outcome = self.delete_many([path])[path]
        if isinstance(outcome, StorageFailure):
            raise StorageError(outcome.message, outcome.retryable)
        return outcome.was_there if isinstance(outcome, SideFileLeft) else outcome

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        wanted = list(dict.fromkeys(paths))
        check_all_below_root(wanted)
        by_folder: dict[str, list[str]] = {}
        for path in wanted:
            by_folder.setdefault(path.rpartition("/")[0], []).append(path)
        outcomes: dict[str, Deletion] = {}
        for folder, group in by_folder.items():
            try:
                with folder_beneath(self._root, folder) as descriptor:
                    checksums = checksums_of(self._prefix + folder) if len(group) >= _ONE_LISTING_PAYS else None
                    if checksums is None or checksums:
                        for path in group:
                            outcomes[path] = self._unlink(descriptor, path, checksums)
                    else:
                        self._unlink_data(descriptor, len(f"{folder}/") if folder else 0, group, outcomes)
            except (FileNotFoundError, NotADirectoryError):
                outcomes.update(dict.fromkeys(group, False))
            except OSError as error:
                outcomes.update({path: _refused(self._failure("delete", path, error)) for path in group})
        return outcomes

    def delete_folder(self, folder: str) -> None:
        try:
            remove_folder(self._root, check_below_root(folder))
        except OSError as error:
            raise self._failure("delete_folder", folder, error) from error

    def delete_empty(self, folder: str) -> bool:
        above, _, name = check_below_root(folder).rpartition("/")
        try:
            with folder_beneath(self._root, above) as descriptor:
                os.rmdir(name, dir_fd=descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            # POSIX allows either for a folder that is not empty.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise self._failure("delete_empty", folder, error) from error
        return True

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        by_folder: dict[tuple[str, str], list[str]] = {}
        for path, (old, new) in checked_moves(paths, source, target).items():
            by_folder.setdefault((old.rpartition("/")[0], new.rpartition("/")[0]), []).append(path)
        outcomes: dict[str, Deletion] = {}
        for (old, new), group in by_folder.items():
            outcomes.update(move_beneath(self._root, old, new, group, self._refused_move))
        return outcomes

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        for path in paths:
            check_below_root(path)
        raise refuse_tags(self._root)

    # ------------------------------------------------------------------ steps

    def _refused_move(self, path: str, error: OSError) -> StorageFailure:
        return _refused(self._failure("move", path, error))

    def _confirm(self, path: str) -> None:
        try:
            self._synchronise(path)
        except OSError as error:
            # Not a plain failure: the file is there, and a second attempt would find it taken.
            raise OutcomeUnknown(
                f"{self._prefix}{path} was written, but the disk did not confirm it ({error.strerror}); "
                "check the disk, then reload and see whether the file exists"
            ) from error

    def _synchronise(self, path: str) -> None:
        """Make the file's name durable: synchronise its folder."""
        with folder_beneath(self._root, path.rpartition("/")[0]) as folder:
            synchronise(folder)

    def _unlink(self, folder: int, path: str, checksums: frozenset[str] | None = None) -> Deletion:
        """
        Delete the data, then its checksum file.

        In this order because a checksum without data is harmless; one that cannot be deleted is only reported.

        Args:
            folder: Descriptor of the folder of *path*.
            path: Path of the file, relative to the root.
            checksums: Names of all checksum files in the folder; None if it was not listed, then deletion is tried.
        """
        name = path.rpartition("/")[2]
        was_there = True
        try:
            os.unlink(name, dir_fd=folder)
        except OSError as error:
            outcome = self._not_unlinked(folder, path, error)
            if isinstance(outcome, StorageFailure):
                return outcome
            was_there = False
        # Also when the data was absent: a crash in an earlier deletion may have left the checksum file.
        side = f".{name}.crc"
        if checksums is None or side in checksums:
            try:
                os.unlink(side, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                    where = path[: len(path) - len(name)] + side
                    return SideFileLeft(side, str(self._failure("delete", where, error)), was_there)
        return was_there

    def _unlink_data(self, folder: int, start: int, paths: Iterable[str], outcomes: dict[str, Deletion]) -> None:
        """
        Delete files in a folder without checksum files: takes a third less time for a hundred thousand files.

        Args:
            folder: Descriptor of the folder of all *paths*.
            start: Index in each path where the name begins.
            paths: Paths of the files, relative to the root.
            outcomes: Gets one entry per path.
        """
        unlink = os.unlink
        for path in paths:
            try:
                unlink(path[start:], dir_fd=folder)
            except OSError as error:
                outcomes[path] = self._not_unlinked(folder, path, error)
            else:
                outcomes[path] = True

    def _not_unlinked(self, folder: int, path: str, error: OSError) -> Literal[False] | StorageFailure:
        """Return False if the file did not exist, else why it was not deleted."""
        if isinstance(error, FileNotFoundError):
            return False
        if _is_folder(folder, path.rpartition("/")[2]):  # EISDIR on Linux, EPERM by POSIX
            return StorageFailure(f"{self._prefix}{path} is a folder; it was not deleted", False)
        return _refused(self._failure("delete", path, error))

    def _failure(self, verb: str, path: str, error: OSError) -> StorageError:
        return failure(verb, self._prefix + path, error)


def _refused(error: StorageError) -> StorageFailure:
    return StorageFailure(str(error), error.retryable)


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
