"""
The clients of remote stores that a process has open: one for each protocol and set of options.

Each process opens its own, because clients do not survive a fork and must not be pickled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from hudi_py.model.store_names import S3_SCHEMES
from hudi_py.storage.remote_backends import Backend, FsspecBackend, S3Backend
from hudi_py.storage.remote_options import nested_options, s3_options

# By process, protocol and options: tasks of an executor share them, a forked child opens its own.
_CLIENTS: dict[tuple[int, str, str], Any] = {}
_CLIENTS_LOCK = threading.Lock()
os.register_at_fork(after_in_child=lambda: _forget_clients())


def backend_of(scheme: str, url: str, options: Mapping[str, str]) -> Backend:
    """
    Return what carries out the calls to a store, on a client of this process.

    Args:
        scheme: Scheme of *url* in lower case.
        url: ``scheme://bucket/prefix``.
        options: Options of the fsspec implementation.

    Raises:
        TypeError, ValueError, KeyError, ImportError: The options do not fit, or the library is not installed.
    """
    if scheme in S3_SCHEMES:
        bucket, _, prefix = url.partition("://")[2].partition("/")
        return S3Backend(_client("s3", options), bucket, prefix.strip("/"))
    fs = _client(scheme, options, url)
    return FsspecBackend(fs, fs._strip_protocol(url), scheme)


def _client(protocol: str, options: Mapping[str, str], url: str = "") -> Any:
    """
    Return the fsspec file system of this process for *options* and, except for S3, for the host in *url*.

    fsspec's own cache of instances is not used: it could return an instance that caches listings.
    """
    import fsspec

    kind = fsspec.get_filesystem_class(protocol)
    from_url = {} if protocol == "s3" else kind._get_kwargs_from_urls(url)
    key = (os.getpid(), protocol, repr((sorted(from_url.items()), sorted(options.items()))))
    with _CLIENTS_LOCK:
        if key not in _CLIENTS:
            if protocol == "s3":
                fs = kind(skip_instance_cache=True, **s3_options(options))
                fs.retries = 1  # `Retry` repeats; nested loops would multiply the waiting time
            else:
                fs = kind(skip_instance_cache=True, **{**from_url, **nested_options(options)})
            _CLIENTS[key] = fs
        return _CLIENTS[key]


def _forget_clients() -> None:
    """Forget all clients in a forked child: the parent's are unusable, and the lock may be held for ever."""
    global _CLIENTS_LOCK
    _CLIENTS_LOCK = threading.Lock()
    _CLIENTS.clear()
