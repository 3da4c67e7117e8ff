"""Opens the storage for a path or URL. Libraries for remote stores are imported only when they are needed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from hudi_py.errors import ConfigError
from hudi_py.storage.base import READ_BYTES_MAX, Storage
from hudi_py.storage.local import LocalStorage

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/{0,3})(.*)", re.DOTALL)
_PACKAGE_BY_SCHEME = {
    "s3": "'hudi_py[s3]'",
    "s3a": "'hudi_py[s3]'",
    "s3n": "'hudi_py[s3]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
}


def open_storage(
    location: str | os.PathLike[str],
    options: Mapping[str, str] | None = None,
    *,
    read_bytes_max: int = READ_BYTES_MAX,
) -> Storage:
    """
    Return the storage of a table. Nothing is read or written yet.

    Args:
        location: A local path, ``file:///…``, ``s3://bucket/…`` (or ``s3a``), or any other URL that fsspec supports.
        options: For remote storage, see `RemoteStorage`; ignored for a local path.
        read_bytes_max: Files larger than this, in bytes, are not read whole.

    Raises:
        ConfigError: The scheme is unknown, a package is not installed, or *location* is neither a path nor a URL.
    """
    path = os.fspath(location) if isinstance(location, os.PathLike) else location
    if not isinstance(path, str):
        raise ConfigError(f"location={location!r}: give a path or a URL as a text or a pathlib.Path")
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"storage_options={options!r}: give a dictionary of names and values")
    location = path
    if not location.strip():
        raise ConfigError("the location of the table is empty; give a path or a URL")
    match = _SCHEME.match(location)
    if match is None:
        return LocalStorage(location, read_bytes_max=read_bytes_max)
    scheme, slashes, rest = match[1].lower(), match[2], match[3]
    if scheme == "file":
        return LocalStorage(_local_path(location, slashes, rest), read_bytes_max=read_bytes_max)
    if "::" in location:
        raise ConfigError(
            f"{location!r}: chained URLs are not supported, because a cache in front of the table would be out of date"
        )
    if slashes not in ("//", "///"):  # three slashes: hdfs:///path uses the default name node
        if slashes == "" and "/" not in match[1]:
            return LocalStorage(location, read_bytes_max=read_bytes_max)  # a local folder may be called `a:b`
        raise ConfigError(f"{location!r} is neither a path nor a URL; did you mean {scheme}://{rest}?")
    return _remote(location, scheme, options, read_bytes_max)


def open_beside(storage: Storage, location: str) -> Storage:
    """
    Return the storage of a folder outside of a table that belongs to it; with the table's options, if both are remote.

    Raises:
        ConfigError: As `open_storage`.
    """
    # Wrappers have no options; those of the storage inside count.
    while (within := getattr(storage, "inner", None) or getattr(storage, "outer", None)) is not None:
        storage = within
    return open_storage(location, getattr(storage, "options", None))


def _local_path(location: str, slashes: str, rest: str) -> str:
    if slashes in ("/", "///"):
        return _plain_or_quoted("/" + rest)
    if slashes == "//" and rest.startswith("localhost/"):
        return _plain_or_quoted(rest.removeprefix("localhost"))
    raise ConfigError(f"{location!r} does not name an absolute local path; write file:///path")


def _plain_or_quoted(path: str) -> str:
    """
    Return the path, unquoted (``%20``) only if just the unquoted path exists.

    Hadoop writes paths into URLs as they are, other tools quote them; nothing in the URL says which was done.
    """
    quoted = unquote(path)
    return quoted if quoted != path and not os.path.lexists(path) and os.path.lexists(quoted) else path


def _remote(location: str, scheme: str, options: Mapping[str, str] | None, read_bytes_max: int) -> Storage:
    from hudi_py.storage.remote import RemoteStorage

    storage = RemoteStorage(location, options, read_bytes_max=read_bytes_max)
    try:
        import fsspec

        # Now, so that a missing package is named before anything is read.
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        package = _PACKAGE_BY_SCHEME.get(scheme)
        # fsspec says it of the others.
        wanted = str(error) if package is None else f"pip install {package}"
        raise ConfigError(f"{scheme}:// storage needs a package that is missing; {wanted}") from error
    except ValueError as error:
        raise ConfigError(
            f"{scheme}:// is not supported by fsspec; use a local path, file://, s3:// or another fsspec protocol"
        ) from error
    return storage
