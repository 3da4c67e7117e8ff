"""
Object stores and other remote file systems, through fsspec.

Two problems of networks are solved here, once for all verbs: calls that fail temporarily are repeated; and when the
answer to a create is lost, the object itself says who created it.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, TypeAlias, TypeVar, cast

from hudi_py.errors import AlreadyExists, ConfigError, HudiError, NotFound, OutcomeUnknown, StorageError
from hudi_py.model.files import OWN_FOLDER, join_path
from hudi_py.model.store_names import S3_SCHEMES
from hudi_py.model.tag import Tag
from hudi_py.runtime.randomness import new_uuid
from hudi_py.storage.base import (
    READ_BYTES_MAX,
    Capabilities,
    Details,
    Listing,
    StorageFailure,
    Versioned,
    check_below_root,
    check_names,
    check_path,
    check_read_size,
    checked_moves,
    is_hidden,
    refuse_tags,
    spoken,
)
from hudi_py.storage.remote_backends import Backend, FsspecBackend, S3Backend
from hudi_py.storage.remote_bulk import REQUESTS_MAX, Pace, copy_then_delete, delete_in_pages, for_each
from hudi_py.storage.remote_clients import backend_of
from hudi_py.storage.remote_faults import Fault, Meaning, classify
from hudi_py.storage.remote_options import redact
from hudi_py.storage.remote_streams import RangeReader, Upload
from hudi_py.storage.retry import Attempts, Retry

Keys: TypeAlias = list[str]  # needed because inside the class `list` is a method
T = TypeVar("T")

_READ_BUFFER_BYTES = 1 << 20
_PROBE_FOLDER = OWN_FOLDER


class _GivenUp(Exception):
    """All attempts of a call failed, the last one with *fault*; doubtful means that one may have taken effect."""

    def __init__(self, fault: Fault, cause: Exception, is_doubtful: bool) -> None:
        super().__init__(fault, cause, is_doubtful)
        self.fault, self.cause, self.is_doubtful = fault, cause, is_doubtful


class RemoteStorage:
    """
    A folder on a remote store, accessed through fsspec.

    Args:
        url: ``scheme://bucket/prefix``. Put credentials into *options* or, better, into the environment.
        options: Options of the fsspec implementation, as text; dots for nested ones (``client_kwargs.region_name``).
            For S3 also Hadoop's names (``fs.s3a.access.key``) and those of Rust tools (``aws_access_key_id``).
        retry: How often and for how long failed calls are repeated.
        read_bytes_max: Largest object, in bytes, that `read` downloads.

    Raises:
        ConfigError: *url* is not the URL of a folder, or contains a password.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, str] | None = None,
        *,
        retry: Retry | None = None,
        read_bytes_max: int = READ_BYTES_MAX,
    ) -> None:
        scheme, separator, rest = url.partition("://")
        has_host = scheme.lower() not in S3_SCHEMES or rest[:1] != "/"
        if not separator or not scheme or not rest.strip("/") or not has_host:
            raise ConfigError(f"{url.rpartition('@')[2]!r} is not a URL of a folder, like s3://bucket/table")
        if "@" in rest.partition("/")[0] and ":" in rest.partition("@")[0]:
            raise ConfigError(
                "the URL holds a password, and URLs end up in plans and logs; use storage options instead"
            )
        self._scheme, self._url, self._options = scheme.lower(), url.rstrip("/"), dict(options or {})
        self._retry, self._read_bytes_max = retry or Retry(), read_bytes_max
        self._is_create_proven = self._is_swap_proven = False
        self._pace = Pace(REQUESTS_MAX if self._scheme in S3_SCHEMES else 1)

    def __repr__(self) -> str:
        return f"RemoteStorage({self._url!r}, options={sorted(self._options)})"

    @property
    def capabilities(self) -> Capabilities:
        return (S3Backend if self._scheme in S3_SCHEMES else FsspecBackend).capabilities

    @property
    def root(self) -> str:
        return self._url

    @property
    def options(self) -> Mapping[str, str]:
        """The options that it was opened with."""
        return self._options

    # ------------------------------------------------------------------ reading

    def list(self, folder: str, *, details: Details = False) -> Listing:
        return [entry for entry in self._listed(folder) if entry.is_folder or not is_hidden(entry.name)]

    def list_hidden(self, folder: str) -> Listing:
        return [entry for entry in self._listed(folder) if not entry.is_folder and is_hidden(entry.name)]

    def _listed(self, folder: str) -> Listing:
        check_path(folder)
        entries: Listing = []
        token: str | None = None
        while True:
            page = self._call("list", folder, lambda backend, token=token: backend.list_page(folder, token))  # type: ignore[misc]
            entries += page.entries
            token = page.token
            if token is None:
                return entries

    def read(self, path: str) -> bytes:
        check_below_root(path)
        return self._call("read", path, lambda backend: backend.get_whole(path, self._check_size(path)))

    def size(self, path: str) -> int | None:
        check_below_root(path)
        return self._call("size", path, lambda backend: backend.size(path))

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        check_names(names)
        if len(names) == 1:
            size = self.size(join_path(folder, names[0]))
            return {} if size is None else {names[0]: size}
        # One listing takes fewer requests than asking for each name.
        wanted = frozenset(names)
        listed = self._listed(folder) if wanted else []
        return {entry.name: entry.size_bytes or 0 for entry in listed if not entry.is_folder and entry.name in wanted}

    def barrier(self, folder: str) -> str | None:
        check_path(folder)
        return None  # there are no links

    def open_read(self, path: str) -> BinaryIO:
        size = self.size(path)
        if size is None:
            raise NotFound(f"{self._url}/{path}: no such object")
        reader = RangeReader(functools.partial(self._fetch, path), size, f"{self._url}/{path}")
        return cast("BinaryIO", io.BufferedReader(reader, _READ_BUFFER_BYTES))

    # ------------------------------------------------------------------ writing

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        check_below_root(path)
        # Before the first creation: afterwards an overwritten file of another writer could not be brought back.
        self._prove_create()
        self._create(path, data, before)

    def replace(self, path: str, data: bytes) -> None:
        check_below_root(path)
        self._call("replace", path, lambda backend: backend.put(path, data), is_write=True)

    def read_version(self, path: str) -> Versioned:
        check_below_root(path)
        return self._call("read", path, lambda backend: backend.get_version(path, self._check_size(path)))

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        check_below_root(path)
        self._prove_swap()
        return self._swap(path, data, version)

    def open_write(self, path: str) -> BinaryIO:
        check_below_root(path)
        target = self._call("open_write", path, lambda backend: backend.open_write(path))
        return cast("BinaryIO", Upload(target, functools.partial(self._upload_failure, path)))

    # ------------------------------------------------------------------ deleting

    def delete(self, path: str) -> bool:
        # If the answer to our own deletion was lost, the repetition returns False; the object is deleted either way.
        check_below_root(path)
        return self._call("delete", path, lambda backend: backend.delete(path))

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, bool | StorageFailure]:
        keys = [*dict.fromkeys(paths)]
        for path in keys:
            check_below_root(path)
        return delete_in_pages(keys, self._delete_page, self._pace, lambda: self._attempts("delete_many", ""))

    def delete_folder(self, folder: str) -> None:
        check_below_root(folder)
        while self._call("delete_folder", folder, lambda backend: backend.delete_folder_page(folder)):
            pass  # ends, because each call deletes a page or raises

    def delete_empty(self, folder: str) -> bool:
        check_below_root(folder)
        return self._call("delete_empty", folder, lambda backend: backend.delete_empty(folder))

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, bool | StorageFailure]:
        def copy(old: str, new: str) -> bool:
            return self._call("move_many", old, lambda backend: backend.copy(old, new))

        return copy_then_delete(checked_moves(paths, source, target), copy, self.delete_many)

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        keys = [check_below_root(path) for path in dict.fromkeys(paths)]
        if not self.capabilities.tags:
            raise refuse_tags(self._url)

        def put(path: str) -> bool:
            value = None if remove else tag.value
            return self._call("tag_many", path, lambda backend: backend.tag(path, tag.key, value))

        return for_each(keys, put)

    # ------------------------------------------------------------------ steps

    def _check_size(self, path: str) -> Callable[[int], None]:
        return lambda size: check_read_size(self._url, path, size, self._read_bytes_max)

    def _fetch(self, path: str, start: int, end: int) -> bytes:
        return self._call("read", path, lambda backend: backend.get(path, start, end))

    def _upload_failure(self, path: str, error: Exception) -> Exception:
        fault = None if isinstance(error, HudiError) else classify(error)
        return error if fault is None else self._failure("open_write", path, fault)

    def _delete_page(self, keys: Keys) -> Mapping[str, bool | StorageFailure]:
        """Send one request, without repeating it: `delete_in_pages` repeats it with smaller pages."""
        return self._call("delete_many", "", lambda backend: backend.delete_page(keys), repeats=False)

    def _create(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> None:
        """
        Create an object, and find out whether another writer created it or we did and the answer was lost.

        Comparing contents is not enough: two writers may create the same empty file. So each call marks its object
        with an id of its own.
        """
        creator = new_uuid()
        is_sent = False

        def put(backend: Backend) -> None:
            nonlocal is_sent
            if before is not None:
                try:
                    before()
                except HudiError as error:
                    if not is_sent:
                        raise
                    # An earlier request may have been carried out although its answer did not arrive.
                    return self._resolve(path, creator, is_doubtful=True, cause=error)
            is_sent = True
            return backend.put_new(path, data, creator)

        try:
            self._repeated("create_new", path, put)
        except _GivenUp as end:
            if end.fault.meaning is not Meaning.TAKEN and not end.is_doubtful:
                raise self._failure("create_new", path, end.fault) from end.cause
            # Also after a plain "exists already": the library below may have repeated the request on its own.
            self._resolve(path, creator, end.is_doubtful, end.cause)

    def _resolve(self, path: str, creator: str, is_doubtful: bool, cause: Exception) -> None:
        """Return if *creator* created the object. Raises `AlreadyExists` if another did, `OutcomeUnknown` in doubt."""
        try:
            found = self._call("create_new", path, lambda backend: backend.creator(path))
        except StorageError as error:
            raise self._unknown("create_new", path, str(error)) from error
        if found == creator:
            return
        if found is not None:
            raise AlreadyExists(f"{self._url}/{path} exists already; it was left as it is") from cause
        if is_doubtful:  # the object is absent now, but the request may still be on its way
            raise self._unknown("create_new", path, "the answer was lost") from cause
        raise StorageError(f"create_new {self._url}/{path}: the name was taken and is free again", True) from cause

    def _prove_create(self) -> None:
        """
        Make sure that this server supports create-if-absent: some S3 servers ignore the condition and overwrite.

        Tried once per process and storage, by creating the same object twice; never on AWS, which documents support.

        Raises:
            StorageError: The server ignores the condition.
        """
        if self._is_create_proven or self._call("create_new", "", lambda backend: backend.is_create_documented):
            return
        path = f"{_PROBE_FOLDER}/create-{new_uuid()}"
        self._create(path, b"1")
        try:
            self._create(path, b"2")
        except AlreadyExists:
            self._is_create_proven = True
        finally:
            self._call("delete", path, lambda backend: backend.delete(path))
        if not self._is_create_proven:
            raise StorageError(
                f"create_new {self._url}: this server ignores If-None-Match and would let two writers overwrite each "
                "other; nothing was written, upgrade the server or keep the table elsewhere"
            )

    def _swap(self, path: str, data: bytes, version: str | None) -> str | None:
        """
        Swap, and find out the result when the answer was lost.

        The content says who wrote it: callers must write content that no other writer writes.
        """
        try:
            return self._repeated("swap", path, lambda backend: backend.put_if(path, data, version))
        except _GivenUp as end:
            fault, cause, is_doubtful = end.fault, end.cause, end.is_doubtful
        is_refused = fault.meaning in (Meaning.TAKEN, Meaning.MISSING)
        if not is_refused and not is_doubtful:
            raise self._failure("swap", path, fault) from cause
        try:
            found = self.read_version(path)
        except NotFound:
            found = Versioned(b"", "")
        # Compared also after a plain refusal: the library below may have repeated a request that had succeeded.
        if found.version and found.content == data:
            return found.version
        if is_refused:
            return None
        raise self._unknown("swap", path, "the answer was lost") from cause

    def _prove_swap(self) -> None:
        """
        Make sure that this server supports replace-if-unchanged (If-Match), as `_prove_create` does for creation.

        Raises:
            StorageError: The server ignores the condition.
        """
        if self._is_swap_proven or self._call("swap", "", lambda backend: backend.is_create_documented):
            return
        path = f"{_PROBE_FOLDER}/swap-{new_uuid()}"
        first = self._swap(path, b"1", None)
        try:
            is_kept = self._swap(path, b"2", None) is None
            # Both conditions have to be refused: creation where there is an object, and a version that is not the
            # current one.
            self._is_swap_proven = is_kept and self._swap(path, b"3", f'"{"0" * 32}"') is None
        finally:
            self._call("delete", path, lambda backend: backend.delete(path))
        if first is None or not self._is_swap_proven:
            raise StorageError(
                f"swap {self._url}: this server ignores If-Match and would let two writers overwrite each other; "
                "nothing was written, upgrade the server or keep the table elsewhere"
            )

    def _call(
        self,
        verb: str,
        path: str,
        action: Callable[[Backend], T],
        *,
        is_write: bool = False,
        repeats: bool = True,
    ) -> T:
        """Run *action*, repeated while it fails temporarily. Raises `StorageError`, or `OutcomeUnknown` for a write."""
        try:
            return self._repeated(verb, path, action, repeats=repeats)
        except _GivenUp as end:
            if is_write and end.is_doubtful:
                raise self._unknown(verb, path, end.fault.message) from end.cause
            raise self._failure(verb, path, end.fault) from end.cause

    def _repeated(self, verb: str, path: str, action: Callable[[Backend], T], *, repeats: bool = True) -> T:
        """Run *action* until it succeeds or `Retry` says stop. Raises `_GivenUp` with the last failure."""
        is_doubtful, attempts = False, self._attempts(verb, path)
        while True:
            try:
                return action(self._backend())
            except StorageError as error:
                if not (error.retryable and repeats and attempts.again(self._redact(str(error)))):
                    raise
            except HudiError:
                raise
            except Exception as error:
                fault = self._classified(error)
                # Remembered over all attempts: the last one may have failed for certain although an earlier one took
                # effect.
                is_doubtful |= fault.meaning is Meaning.UNKNOWN
                if not (fault.is_retryable and repeats and attempts.again(self._redact(fault.message))):
                    raise _GivenUp(fault, error, is_doubtful) from error

    def _attempts(self, verb: str, path: str) -> Attempts:
        return self._retry.begin(f"{spoken(verb)} {self._url}/{path}")

    def _classified(self, error: Exception) -> Fault:
        fault = classify(error)
        if fault is None:
            raise error
        return fault

    def _failure(self, verb: str, path: str, fault: Fault) -> StorageError:
        message = self._redact(f"{spoken(verb)} {self._url}/{path}: {fault.message}")
        if fault.meaning is Meaning.MISSING and verb == "read":
            return NotFound(message)
        return StorageError(message, fault.is_retryable)

    def _unknown(self, verb: str, path: str, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            self._redact(
                f"{spoken(verb)} {self._url}/{path}: it may or may not have been written ({why}); reload and look"
            )
        )

    def _redact(self, text: str) -> str:
        return redact(text, self._options)

    def _backend(self) -> Backend:
        try:
            return backend_of(self._scheme, self._url, self._options)
        except (TypeError, ValueError, KeyError, ImportError) as error:
            raise ConfigError(
                self._redact(f"{self._url} cannot be opened, check the storage options: {error}")
            ) from error
