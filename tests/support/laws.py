"""
How many cases a law is tried with: all, or a share of them where ``HUDI_LAW_SHARE`` names one (``8``: an eighth).
"""

import os
from zlib import crc32

from hypothesis import settings

SHARE = int(os.environ.get("HUDI_LAW_SHARE", "1"))


def examples(count):
    """Try a law with so many examples."""
    return settings(max_examples=max(count // SHARE, 3))


def of_one_release(names):
    """
    Where only a share runs, each table of real Hudi (``TABLE-RELEASE``) as one release wrote it.

    Which one follows from the table, so that all releases take part. For laws; answers of a release are all compared.
    """
    by_table = {}
    for name in names:
        by_table.setdefault(name.rpartition("-")[0], []).append(name)
    chosen = {table: crc32(table.encode()) % len(same) for table, same in by_table.items()}
    return [name for table, same in by_table.items() for name in (same if SHARE == 1 else [same[chosen[table]]])]
