"""
Where the crash tests interrupt: at every mutation, or with ``HUDI_CRASH_SAMPLE=1`` each mode at every second one.
"""

import os

from hudi_py import testing

IS_SAMPLE = os.environ.get("HUDI_CRASH_SAMPLE") == "1"
EVERY = 2 if IS_SAMPLE else 1


def interruptions(fresh, modes=testing.INTERRUPTION_MODES):
    """See `hudi_py.testing.interruptions`."""
    return testing.interruptions(fresh, modes, every=EVERY)
