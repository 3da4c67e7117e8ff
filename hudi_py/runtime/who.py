"""Says who runs this process, for those who ask later who held or removed something."""

from __future__ import annotations

import getpass
import os
import socket


def who_runs_this() -> str:
    """User, host and process."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container without users
        user = "unknown"
    return f"{user}@{socket.gethostname()}:{os.getpid()}"
