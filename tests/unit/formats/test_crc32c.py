"""CRC-32C against RFC 3720's test vectors and the definition by long division."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.formats.crc32c import crc32c_chunks
from support.laws import examples


def by_definition(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def test_vectors_of_rfc_3720():
    """The published checksums come out."""
    vectors = [b"123456789", bytes(32), b"\xff" * 32, bytes(range(32)), bytes(range(31, -1, -1)), b""]
    sums = [0xE3069283, 0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0x113FDB5C, 0]
    assert [[each] for each in sums] == [crc32c_chunks(data, 99) for data in vectors]


@examples(60)
@given(st.binary(max_size=40), st.integers(0, 3000), st.integers(1, 1500))
def test_chunks_of_any_length_have_the_checksum_of_the_definition(head, zeros, chunk_bytes):
    """Whatever the lengths, the last chunk's too."""
    data = head + bytes(zeros) + head[::-1]
    chunks = [data[start : start + chunk_bytes] for start in range(0, max(len(data), 1), chunk_bytes)]

    assert [by_definition(chunk) for chunk in chunks] == crc32c_chunks(data, chunk_bytes)
