"""
Proves that a process has ended, for locks that name their holder. Linux only.

A process is named by the boot of its machine, its namespace of process numbers, its number there, and the time of its
start. If the first two are those of this process, the kernel shows whether a process with the same number and start
still runs; a number alone may have been given to another process. In all other cases the process may be running.
"""

from __future__ import annotations

import os
from typing import Final

_MARK: Final = "process"
_ENDED: Final = frozenset("ZXx")


def this_process() -> str:
    """Name of this process; empty if the system does not provide it."""
    place, started = _place(), _started(os.getpid())
    return f"{_MARK} {place} {os.getpid()} {started}" if place and started else ""


def is_gone(name: str) -> bool:
    """Whether the process of that name is proven to have ended."""
    mark, _, rest = name.partition(" ")
    parts = rest.split()
    # Anything else was written by another release or by Hudi, and proves nothing.
    if mark != _MARK or len(parts) != 3 or not parts[1].isdigit():
        return False
    place, pid, started = parts
    # A container may hide /proc, and then every process would look as if it had ended.
    are_processes_seen = _started(os.getpid()) != ""
    return place == _place() != "" and are_processes_seen and _started(int(pid)) != started


def _place() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start of a process in ticks since the boot; empty if there is no process of that number, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name of the program stands in brackets before it, and may itself contain blanks and brackets.
            state, *rest = file.read().rpartition(")")[2].split()
        # A killed process keeps its number until its parent asks how it ended, which in a container may be never. Its
        # first thread looks the same while others still run.
        if state in _ENDED and len(os.listdir(f"/proc/{pid}/task")) <= 1:
            return ""
        return rest[18]
    except (OSError, IndexError, ValueError):
        return ""
