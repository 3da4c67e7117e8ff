"""From what a user types to a storage. Libraries for remote stores are imported only when one is asked for."""

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
    "s3": "s3fs",
    "s3a": "s3fs",
    "s3n": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "hdfs": "pyarrow",
    "sftp": "paramiko",
}


def open_storage(
    location: str | os.PathLike[str],
    options: Mapping[str, str] | None = None,
    *,
    read_bytes_max: int = READ_BYTES_MAX,
) -> Storage:
    """
    Open the storage of a table. Nothing in it is read or written yet.

    Args:
        location: A local path, ``file:///…``, ``s3://bucket/…`` (or ``s3a``), or any other URL that fsspec knows.
        options: For remote storage, see `RemoteStorage`; a local path needs none and ignores them.
        read_bytes_max: Larger files are not read whole.

    Raises:
        ConfigError: Unknown scheme, a package that is not installed, or a location that is neither path nor URL.
    """
    location = os.fspath(location)
    if not location.strip():
        raise ConfigError("the location of the table is empty; give a path or a URL")
    match = _SCHEME.match(location)
    if match is None:
        return LocalStorage(location, read_bytes_max=read_bytes_max)
    scheme, slashes, rest = match[1].lower(), match[2], match[3]
    if scheme == "file":
        return LocalStorage(_local_path(location, slashes, rest), read_bytes_max=read_bytes_max)
    if "::" in location:
        raise ConfigError(f"{location!r}: chained URLs are not supported, a cache between us and the table goes stale")
    if slashes not in ("//", "///"):  # three: the default name node of HDFS
        if slashes == "" and "/" not in match[1]:
            return LocalStorage(location, read_bytes_max=read_bytes_max)  # a folder may be called `a:b`
        raise ConfigError(f"{location!r} is neither a path nor a URL; did you mean {scheme}://{rest}?")
    return _remote(location, scheme, options, read_bytes_max)


def _local_path(location: str, slashes: str, rest: str) -> str:
    if slashes in ("/", "///"):
        return _plain_or_quoted("/" + rest)
    if slashes == "//" and rest.startswith("localhost/"):
        return _plain_or_quoted(rest.removeprefix("localhost"))
    raise ConfigError(f"{location!r} names no absolute local path; write file:///path")


def _plain_or_quoted(path: str) -> str:
    """Hadoop writes a path into a URL as it is, everybody else quotes it (``%20``): whichever is there is meant."""
    quoted = unquote(path)
    return quoted if quoted != path and not os.path.lexists(path) and os.path.lexists(quoted) else path


def _remote(location: str, scheme: str, options: Mapping[str, str] | None, read_bytes_max: int) -> Storage:
    package = _PACKAGE_BY_SCHEME.get(scheme, "")
    from hudi_py.storage.remote import RemoteStorage

    storage = RemoteStorage(location, options, read_bytes_max=read_bytes_max)
    try:
        import fsspec

        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        wanted = f"fsspec {package}".strip()
        raise ConfigError(f"{scheme}:// storage needs packages that are missing: pip install {wanted}") from error
    except ValueError as error:
        raise ConfigError(
            f"{scheme}:// is no storage that fsspec knows; use a local path, file://, s3:// or one of its protocols"
        ) from error
    return storage
