"""Keeps what was decoded from small files, so that the same content is not decoded again. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_BYTES_MAX: Final = 1 << 14
_ENTRIES: Final = 256


def kept_if_small(decode: Callable[Concatenate[bytes, P], T]) -> Callable[Concatenate[bytes, P], T]:
    """
    Keep the results of a decoder for the last 256 contents of up to 16 KB; larger ones are decoded each time.

    A small commit looks at the same instants, properties and log blocks up to ten times, and decoding takes longer than
    reading them. The content is the key, so the files are still read, and a changed file is decoded again.
    Results are shared: callers must not change them. Errors are not kept.
    """
    kept = functools.lru_cache(maxsize=_ENTRIES)(decode)

    @functools.wraps(decode)
    def decoded(data: bytes, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if len(data) > _BYTES_MAX:
            return decode(data, *args, **kwargs)
        return kept(data, *args, **kwargs)  # type: ignore[arg-type]  # lru_cache has lost the signature

    return decoded
