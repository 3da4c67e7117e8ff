"""
The raw verbs of remote stores: one request each, no retries, exceptions as the libraries raise them.

`RemoteStorage` adds the guarantees of the storage protocol. `S3Backend` uses the S3 protocol through s3fs and supports
all of them. `FsspecBackend` works with any other file system of fsspec; its capabilities say what it cannot guarantee.
"""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

from fsspec.asyn import sync

from hudi_py.errors import ConfigError, StorageError
from hudi_py.storage.base import Capabilities, Entry, Listing, StorageFailure, Versioned
from hudi_py.storage.remote_faults import as_failure, classify, classify_code

KEYS_PER_DELETE = 250  # S3 allows 1000; smaller requests are throttled less and lose less when one fails
_CREATOR = "hudi-py-creator"  # user metadata that says which call created the object
_PART_BYTES = 16 << 20  # size of an upload's parts; S3 allows 10,000 of them, so files of up to 156 GiB

CheckSize: TypeAlias = Callable[[int], None]  # takes a size in bytes, raises if it is too large to be read whole


class Page(NamedTuple):
    """A part of a listing; pass *token* to get the next part, None after the last one."""

    entries: Listing
    token: str | None


class Backend(Protocol):
    """The verbs of a remote store. Paths are relative to the root and have been checked by the caller."""

    @property
    def is_create_documented(self) -> bool: ...  # whether `put_new` can be trusted without trying it out

    @property
    def capabilities(self) -> Capabilities: ...
    def list_page(self, folder: str, token: str | None) -> Page: ...
    def get(self, path: str, start: int, end: int) -> bytes: ...
    def get_whole(self, path: str, check: CheckSize) -> bytes: ...
    def size(self, path: str) -> int | None: ...
    def put(self, path: str, data: bytes) -> None: ...
    def put_new(self, path: str, data: bytes, creator: str) -> None: ...
    def get_version(self, path: str, check: CheckSize) -> Versioned: ...
    def put_if(self, path: str, data: bytes, version: str | None) -> str: ...
    def creator(self, path: str) -> str | None: ...
    def open_write(self, path: str) -> Any: ...
    def delete(self, path: str) -> bool: ...
    def delete_page(self, paths: Sequence[str]) -> dict[str, bool | StorageFailure]: ...
    def delete_folder_page(self, folder: str) -> bool: ...
    def delete_empty(self, folder: str) -> bool: ...
    def copy(self, source: str, target: str) -> bool: ...
    def tag(self, path: str, key: str, value: str | None) -> bool: ...


class S3Backend:
    """
    S3 and servers that speak its protocol.

    Args:
        fs: An ``s3fs.S3FileSystem``. Most of its own methods are not used: they hide errors of bulk deletion, expand
            patterns in names, and check for existence before they create.
        bucket: Name of the bucket.
        prefix: Key of the root, without slashes at its ends; may be empty.
    """

    capabilities = Capabilities(
        atomic_create=True,
        atomic_replace=True,
        has_folders=False,
        conditional_replace=True,
        reports_missing=False,
        tags=True,
    )

    def __init__(self, fs: Any, bucket: str, prefix: str) -> None:
        self._fs, self._bucket, self._prefix = fs, bucket, prefix

    @property
    def is_create_documented(self) -> bool:
        """Whether this is AWS, which documents If-None-Match; other servers may ignore it and overwrite silently."""
        host = str(self._fs.s3.meta.endpoint_url).partition("://")[2].partition("/")[0].partition(":")[0]
        return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))

    def list_page(self, folder: str, token: str | None) -> Page:
        key = self._key(folder)
        prefix = f"{key}/" if key else ""
        more = {"ContinuationToken": token} if token else {}
        answer = self._call("list_objects_v2", Prefix=prefix, Delimiter="/", **more)
        entries = [Entry(found["Prefix"][len(prefix) : -1], True) for found in answer.get("CommonPrefixes", [])]
        for found in answer.get("Contents", []):
            entries.append(
                Entry(found["Key"][len(prefix) :], False, found["Size"], _milliseconds(found["LastModified"]))
            )
        # An empty name is the marker object that some tools create for the folder itself.
        return Page([entry for entry in entries if entry.name], answer.get("NextContinuationToken"))

    def get_whole(self, path: str, check: CheckSize) -> bytes:
        return self.get_version(path, check).content

    def get(self, path: str, start: int, end: int) -> bytes:
        full = f"{self._bucket}/{self._key(path)}"
        data: bytes = self._fs.cat_file(full, start=start, end=end, max_concurrency=1)
        return data

    def size(self, path: str) -> int | None:
        found = self._head(path)
        return None if found is None else int(found["ContentLength"])

    def put(self, path: str, data: bytes) -> None:
        self._call("put_object", Key=self._key(path), Body=data)

    def put_new(self, path: str, data: bytes, creator: str) -> None:
        self._call("put_object", Key=self._key(path), Body=data, IfNoneMatch="*", Metadata={_CREATOR: creator})

    def get_version(self, path: str, check: CheckSize) -> Versioned:
        """Return content and ETag from one response; its header gives the size to check before the body is read."""

        async def get() -> Versioned:
            answer = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=self._key(path))
            body = answer["Body"]
            try:
                check(int(answer["ContentLength"]))
                return Versioned(await body.read(), str(answer["ETag"]))
            finally:
                body.close()

        found: Versioned = sync(self._fs.loop, get)
        return found

    def put_if(self, path: str, data: bytes, version: str | None) -> str:
        """Return the new ETag. The server answers 412 if the object has another version, 404 if it is absent."""
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        return str(self._call("put_object", Key=self._key(path), Body=data, **condition)["ETag"])

    def creator(self, path: str) -> str | None:
        """Return the id of the call that created the object; None if it is absent, ``""`` if it has no such mark."""
        found = self._head(path)
        return None if found is None else str(found.get("Metadata", {}).get(_CREATOR, ""))

    def open_write(self, path: str) -> Any:
        return self._fs.open(f"{self._bucket}/{self._key(path)}", "wb", block_size=_PART_BYTES)

    def delete(self, path: str) -> bool:
        # S3 reports success for absent objects, too; asking first is the only way to tell the two apart.
        if self._head(path) is None:
            return False
        self._call("delete_object", Key=self._key(path))
        return True

    def delete_page(self, paths: Sequence[str]) -> dict[str, bool | StorageFailure]:
        path_by_key = {self._key(path): path for path in paths}
        outcome: dict[str, bool | StorageFailure] = dict.fromkeys(paths, True)
        for key, failure in self._delete_keys([*path_by_key]).items():
            outcome[path_by_key[key]] = failure
        return outcome

    def delete_folder_page(self, folder: str) -> bool:
        # Always list the first page: the objects of the previous one are deleted.
        answer = self._call("list_objects_v2", Prefix=f"{self._key(folder)}/", MaxKeys=KEYS_PER_DELETE)
        keys = [found["Key"] for found in answer.get("Contents", [])]
        for failure in self._delete_keys(keys).values() if keys else ():
            raise StorageError(failure.message, failure.retryable)
        return bool(answer.get("IsTruncated"))

    def delete_empty(self, folder: str) -> bool:
        return False  # there are no folders

    def copy(self, source: str, target: str) -> bool:
        """Copy on the server, in parts where the object is larger than one request may copy; False if it is absent."""
        try:
            self._fs.cp_file(f"{self._bucket}/{self._key(source)}", f"{self._bucket}/{self._key(target)}")
        except FileNotFoundError:
            return False
        return True

    def tag(self, path: str, key: str, value: str | None) -> bool:
        """Put a tag on an object, or take it off if the value is None; False if the object is absent."""
        try:
            found = self._call("get_object_tagging", Key=self._key(path))["TagSet"]
            tags = [each for each in found if each["Key"] != key]
            tags += [] if value is None else [{"Key": key, "Value": value}]
            if found and not tags:  # servers refuse a set without any
                self._call("delete_object_tagging", Key=self._key(path))
            elif tags != found:
                self._call("put_object_tagging", Key=self._key(path), Tagging={"TagSet": tags})
        except FileNotFoundError:
            return False
        return True

    def _delete_keys(self, keys: Sequence[str]) -> dict[str, StorageFailure]:
        """Delete keys and return the failures by key; s3fs's own bulk deletion ignores that part of the response."""
        # Quiet: the answer lists failures only.
        request = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        failures = {}
        for found in self._call("delete_objects", Delete=request).get("Errors", []):
            fault = classify_code(str(found.get("Code", "")), str(found.get("Message", "")))
            failures[str(found["Key"])] = as_failure(fault, f"delete s3://{self._bucket}/{found['Key']}")
        return failures

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix and path else path or self._prefix

    def _head(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._call("head_object", Key=self._key(path))
        except FileNotFoundError:
            return None
        return found

    def _call(self, method: str, **arguments: Any) -> Any:
        return self._fs.call_s3(method, Bucket=self._bucket, **arguments)


class FsspecBackend:
    """
    Any other file system of fsspec. Its create and replace were not shown to be atomic, so they count as not atomic.

    Args:
        fs: An ``fsspec.AbstractFileSystem``.
        base: Path of the root, in the notation of *fs*.
        name: Protocol of *fs*, for messages.
    """

    capabilities = Capabilities(atomic_create=False, atomic_replace=False, has_folders=True)

    is_create_documented = True  # `put_new` always raises, so there is nothing to try out

    def __init__(self, fs: Any, base: str, name: str) -> None:
        self._fs, self._base, self._name = fs, base.rstrip("/"), name

    def list_page(self, folder: str, token: str | None) -> Page:
        return Page([_entry(found) for found in self._children(self._full(folder))], None)

    def get(self, path: str, start: int, end: int) -> bytes:
        if self.size(path) is None:
            raise FileNotFoundError(path)
        data: bytes = self._fs.cat_file(self._full(path), start=start, end=end)
        return data

    def get_whole(self, path: str, check: CheckSize) -> bytes:
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(path)
        check(size)
        data: bytes = self._fs.cat_file(self._full(path))
        return data

    def size(self, path: str) -> int | None:
        self._fs.invalidate_cache()
        try:
            found = self._fs.info(self._full(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return None if found["type"] == "directory" else int(found["size"])

    def put(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(self._in_folder(path), data)

    def put_new(self, path: str, data: bytes, creator: str) -> None:
        raise StorageError(
            f"create_new {path}: creating only if absent is not proven for {self._name}:// storage, two writers could "
            "both win; nothing was written, use a local disk or S3 to write tables"
        )

    def creator(self, path: str) -> str | None:
        return None if self.size(path) is None else ""

    def get_version(self, path: str, check: CheckSize) -> Versioned:
        content = self.get_whole(path, check)
        return Versioned(content, hashlib.sha256(content).hexdigest())

    def put_if(self, path: str, data: bytes, version: str | None) -> str:
        raise ConfigError(f"{path}: conditional replace is not proven for {self._name} storage; nothing was changed")

    def open_write(self, path: str) -> Any:
        return self._fs.open(self._in_folder(path), "wb")

    def delete(self, path: str) -> bool:
        self._fs.invalidate_cache()
        try:
            found = self._fs.info(self._full(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        if found["type"] == "directory":
            raise StorageError(f"{path} is a folder; it was not deleted")
        try:
            self._fs.rm_file(self._full(path))
        except FileNotFoundError:
            return False
        return True

    def delete_page(self, paths: Sequence[str]) -> dict[str, bool | StorageFailure]:
        outcome: dict[str, bool | StorageFailure] = {}
        for path in paths:
            try:
                outcome[path] = self.delete(path)
            except StorageError as error:
                outcome[path] = StorageFailure(str(error), error.retryable)
            except Exception as error:
                fault = classify(error)
                if fault is None:
                    raise
                outcome[path] = as_failure(fault, f"delete {path}")
        return outcome

    def delete_folder_page(self, folder: str) -> bool:
        self._delete_tree(self._full(folder))
        return False

    def delete_empty(self, folder: str) -> bool:
        full = self._full(folder)
        if self.size(folder) is not None or not self._fs.isdir(full) or self._children(full):
            return False
        self._fs.rmdir(full)
        return True

    def copy(self, source: str, target: str) -> bool:
        if self.size(source) is None:
            return False
        self._fs.cp_file(self._full(source), self._in_folder(target))
        return True

    def tag(self, path: str, key: str, value: str | None) -> bool:
        raise ConfigError(f"{path}: tags are not known of {self._name} storage; nothing was changed")

    def _delete_tree(self, full: str) -> None:
        # Not `rm(recursive=True)`: that expands patterns, and a partition may be called `a*`.
        for found in self._children(full):
            if found["type"] == "directory":
                self._delete_tree(found["name"])
            else:
                self._fs.rm_file(found["name"])
        with contextlib.suppress(FileNotFoundError):
            if self._fs.isdir(full):
                self._fs.rmdir(full)

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base

    def _in_folder(self, path: str) -> str:
        """Return the full path after creating its folder, where the file system has folders."""
        full = self._full(path)
        self._fs.makedirs(posixpath.dirname(full), exist_ok=True)
        return full

    def _children(self, full: str) -> list[dict[str, Any]]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(full, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        itself = full.strip("/")  # asked to list a file, some file systems return the file itself
        return [child for child in found if child["name"].strip("/") != itself]


def _entry(found: dict[str, Any]) -> Entry:
    name = found["name"].rstrip("/").rpartition("/")[2]
    if found["type"] == "directory":
        return Entry(name, True)
    modified = next(
        (found[key] for key in ("mtime", "LastModified", "last_modified", "updated", "created") if key in found), None
    )
    return Entry(name, False, found.get("size"), _milliseconds(modified))


def _milliseconds(moment: object) -> int | None:
    if isinstance(moment, datetime):
        return int(moment.timestamp() * 1000)
    return int(moment * 1000) if isinstance(moment, int | float) else None
