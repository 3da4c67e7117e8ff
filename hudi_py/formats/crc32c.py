"""CRC-32C (Castagnoli), which guards the blocks of HFiles. Pure."""

from __future__ import annotations

import google_crc32c


def crc32c_chunks(data: bytes, chunk_bytes: int) -> list[int]:
    """
    Checksums of *data* cut into chunks, as in RFC 3720: that of ``b"123456789"`` is 0xE3069283.

    Args:
        data: Any length; empty data counts as one empty chunk.
        chunk_bytes: Length of each chunk but the last.
    """
    starts = range(0, max(len(data), 1), chunk_bytes)
    return [google_crc32c.value(data[start : start + chunk_bytes]) for start in starts]
