"""
Where the crash tests interrupt: at every mutation, or with ``HUDI_CRASH_SHARE=6`` each mode at every sixth one.
"""

import os

from hudi_py import testing

EVERY = int(os.environ.get("HUDI_CRASH_SHARE", "1"))
IS_SAMPLE = EVERY > 1


def interruptions(fresh, modes=testing.INTERRUPTION_MODES):
    """See `hudi_py.testing.interruptions`."""
    return testing.interruptions(fresh, modes, every=EVERY)
