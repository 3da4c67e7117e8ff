"""
A clock that tests can move.

Hudi takes the time of new instants, of hour-based cleaning and of archival from the JVM, without a way to replace it.
So the JVM is started with a small preloaded library (``clock.c``) that shifts its real-time clock by an offset in a
shared file. Needs Linux and a C compiler; without them there is no such clock and the JVM sees the real time.
"""

from __future__ import annotations

import datetime as dt
import mmap
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class ShiftedClock:
    """The offset shared with a JVM; `environment` is what that JVM has to be started with."""

    def __init__(self, library: Path, shared_file: Path) -> None:
        shared_file.write_bytes(struct.pack("<q", 0))
        with shared_file.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(library), "REAL_HUDI_CLOCK": str(shared_file)}

    def set(self, moment: dt.datetime | None) -> None:
        """Let the JVM's clock show *moment* (aware) and go on from there; None is the real time."""
        shift_ns = 0 if moment is None else int(moment.timestamp() * 1000 - time.time() * 1000) * 1_000_000
        self._shared[0:8] = struct.pack("<q", shift_ns)


def build_clock(folder: Path) -> ShiftedClock | None:
    """Compile the library into *folder*; None when this machine cannot."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "clock.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    if subprocess.run(command, stdout=sys.stderr, stderr=sys.stderr, check=False).returncode:
        return None
    return ShiftedClock(library, folder / "clock.offset")


def parse_instant(text: str) -> dt.datetime:
    """``yyyyMMddHHmmss[SSS]`` in UTC to an aware datetime; 14 digits mean the last millisecond, as in Hudi."""
    digits = (text + "999")[:17] if len(text) == 14 else text[:17]
    return dt.datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=dt.timezone.utc)
