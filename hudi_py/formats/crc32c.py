"""CRC-32C (Castagnoli), the checksum of HFile blocks. Pure."""

from __future__ import annotations

import google_crc32c


def crc32c_chunks(data: bytes, chunk_bytes: int) -> list[int]:
    """
    Return the checksums of *data*, split into chunks, as in RFC 3720: ``b"123456789"`` gives 0xE3069283.

    Args:
        data: Any length; empty data counts as one empty chunk.
        chunk_bytes: Length of every chunk except the last.
    """
    starts = range(0, max(len(data), 1), chunk_bytes)
    return [google_crc32c.value(data[start : start + chunk_bytes]) for start in starts]
