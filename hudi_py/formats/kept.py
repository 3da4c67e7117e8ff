"""Keeps what was decoded from small files, so that the same content is not decoded again. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_BYTES_MAX: Final = 1 << 14
_ENTRIES: Final = 256
_LAST_BYTES_MAX: Final = 1 << 20  # of a commit of some 5,000 files


def kept_if_small(decode: Callable[Concatenate[bytes, P], T]) -> Callable[Concatenate[bytes, P], T]:
    """
    Keep the results of a decoder for the last 256 contents of up to 16 KB, and for the last one of up to 1 MB.

    A small commit looks at the same instants, properties and log blocks up to ten times, a read of a large table three
    times at its last commit, and decoding takes longer than reading them. The content is the key, so the files are
    still read, and a changed file is decoded again.
    Results are shared: callers must not change them. Errors are not kept.
    """
    kept = functools.lru_cache(maxsize=_ENTRIES)(decode)
    last = functools.lru_cache(maxsize=1)(decode)

    @functools.wraps(decode)
    def decoded(data: bytes, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if len(data) > _LAST_BYTES_MAX:
            return decode(data, *args, **kwargs)
        found = last if len(data) > _BYTES_MAX else kept
        return found(data, *args, **kwargs)  # type: ignore[arg-type]  # lru_cache has lost the signature

    return decoded
