"""
The hash function xxHash64, for short texts: Apache Hudi hashes names of columns and partitions with it. Pure.

Source: xxHash fast digest algorithm, specification 0.1.1 (XXH64).
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = 2**64 - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE: Final = 32
_WORD: Final = 8
_HALF: Final = 4


def xxhash64(data: bytes, seed: int = 0) -> int:
    """The hash of *data* as a number of 64 bits."""
    position = 0
    if len(data) >= _STRIPE:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position <= len(data) - _STRIPE:
            words = struct.unpack_from("<4Q", data, position)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            position += _STRIPE
        shifts = (1, 7, 12, 18)
        result = sum(_rotated(lane, shift) for lane, shift in zip(lanes, shifts, strict=True)) & _MASK
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        result = (seed + _P5) & _MASK
    return _finished(_with_tail((result + len(data)) & _MASK, data[position:]))


def _with_tail(result: int, tail: bytes) -> int:
    position = 0
    while position + _WORD <= len(tail):
        (word,) = struct.unpack_from("<Q", tail, position)
        result = (_rotated(result ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        position += _WORD
    if position + _HALF <= len(tail):
        (half,) = struct.unpack_from("<I", tail, position)
        result = (_rotated(result ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        position += _HALF
    for byte in tail[position:]:
        result = _rotated(result ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return result


def _finished(result: int) -> int:
    result = (result ^ result >> 33) * _P2 & _MASK
    result = (result ^ result >> 29) * _P3 & _MASK
    return result ^ result >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 64 - bits) & _MASK
