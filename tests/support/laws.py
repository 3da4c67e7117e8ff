"""
How many examples a law is tried with: all, or a share of them where ``HUDI_LAW_SHARE`` names one (``8``: an eighth).
"""

import os

from hypothesis import settings

SHARE = int(os.environ.get("HUDI_LAW_SHARE", "1"))


def examples(count):
    """Try a law with so many examples."""
    return settings(max_examples=max(count // SHARE, 3))
