"""Positions of records in the header of a log block."""

import base64
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.formats.record_positions import encode_positions
from support.laws import examples

# Headers of log blocks that Apache Hudi 1.1.1 wrote for updates of these rows.
OF_HUDI = {
    (0,): "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAAA",
    (0, 2): "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAAAAgA=",
    (1, 2, 3): "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAEAAgADAA==",
}


def decoded(text):
    """The numbers in a portable 64-bit Roaring bitmap without runs, by the specification of the format."""
    data = base64.b64decode(text)
    (count,) = struct.unpack_from("<q", data)
    found, at = [], 8
    for _ in range(count):
        high, cookie, size = struct.unpack_from("<III", data, at)
        assert cookie == 12346
        start = at + 4  # offsets count from the cookie
        for number in range(size):
            key, last = struct.unpack_from("<HH", data, at + 12 + 4 * number)
            (offset,) = struct.unpack_from("<I", data, at + 12 + 4 * size + 4 * number)
            begin, above = start + offset, (high << 32) + (key << 16)
            if last < 4096:
                lows = struct.unpack_from(f"<{last + 1}H", data, begin)
                end = begin + 2 * len(lows)
            else:
                bits = int.from_bytes(data[begin : begin + 8192], "little")
                lows = [low for low in range(1 << 16) if bits >> low & 1]
                end = begin + 8192
                assert len(lows) == last + 1
            found += [above + low for low in lows]
        at = end
    assert at == len(data)
    return found


@pytest.mark.parametrize("rows", OF_HUDI)
def test_headers_are_those_of_hudi(rows):
    """Byte for byte."""
    assert encode_positions(np.array(rows)) == OF_HUDI[rows]


@examples(60)
@given(st.sets(st.one_of(st.integers(0, 200), st.integers(65530, 65550), st.integers(0, (1 << 40) - 1)), min_size=1))
def test_all_rows_are_in_the_header(rows):
    """Near each other and far from each other, in one container and in several, beyond four billion, too."""
    assert decoded(encode_positions(np.array(sorted(rows)))) == sorted(rows)


@pytest.mark.parametrize("count", [4096, 4097, 65536, 65536 + 4097])
def test_many_rows_are_sets_of_bits(count):
    """From 4097 values of a container, where readers expect it."""
    rows = np.arange(7, 7 + count)
    assert decoded(encode_positions(rows)) == rows.tolist()
