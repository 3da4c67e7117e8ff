"""
Meters and the protocol between `run` and its contestants. Knows nothing about Hudi.

A contestant is a process that reads one JSON request per line and answers one line, marked so that stray prints cannot
be mistaken for it. It lives for the whole run: JVMs are warm, and repetitions of different contestants alternate.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

MARK: Final = "@@R "
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Meter:
    """
    Wall time and CPU seconds of a block, and the CPU that strangers used meanwhile.

    Args:
        pids: Roots of the measured process trees; none means this process.
    """

    def __init__(self, pids: Iterable[int] = ()) -> None:
        self._roots = list(pids) or [os.getpid()]

    def __enter__(self) -> Meter:  # noqa: PYI034  (Self needs Python 3.11)
        for pid in self._roots:
            _restart_peak(pid)
        self._machine = _machine_cpu_s()
        self._others = self._others_cpu_s()
        self._own = _own_cpu_s()
        self._start = time.perf_counter()  # last: the meter itself takes milliseconds
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._start
        own = _own_cpu_s() - self._own if os.getpid() in self._roots else 0.0
        machine = _machine_cpu_s() - self._machine
        self.cpu_s = max(0.0, own + self._others_cpu_s() - self._others)
        self.strangers = max(0.0, machine - self.cpu_s) / max(self.wall_s, 0.05)
        self.peak_mb = max(_status_kb(pid, "VmHWM") for pid in self._roots) // 1024

    def dict(self, **more: Any) -> dict[str, Any]:
        """The figures as JSON, in seconds and megabytes, with *more* beside them."""
        return {
            "s": round(self.wall_s, 5),
            "cpu": round(self.cpu_s, 4),
            "other": round(self.strangers, 2),
            "peak_mb": self.peak_mb,
            "load1": round(os.getloadavg()[0], 2),
            **more,
        }

    def _others_cpu_s(self) -> float:
        """CPU of the measured processes besides this one, in steps of one tick."""
        ticks = sum(_ticks(pid) for root in self._roots for pid in tree(root) if pid != os.getpid())
        return ticks / _TICKS_PER_SECOND


def serve(operations: Mapping[str, Callable[..., Any]]) -> None:
    """
    Answer requests until ``quit`` or the end of the input.

    ``NotImplementedError`` means that the contestant does not take part in that operation; any other error is reported
    and the process goes on.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes to the log

    def answer(content: dict[str, Any]) -> None:
        answers.write(MARK + json.dumps(content) + "\n")

    answer({"ok": sorted(operations)})
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            return
        try:
            answer({"ok": operations[request["op"]](**request.get("args", {}))})
        except NotImplementedError as reason:
            answer({"na": str(reason) or "not implemented"})
        except Exception as error:  # noqa: BLE001  (reported to the runner)
            traceback.print_exc()
            answer({"err": f"{type(error).__name__}: {str(error)[:600]}"})


class Contestant:
    """The runner's end of a contestant."""

    def __init__(self, name: str, command: list[str], logs: Path) -> None:
        self.name = name
        here = Path(__file__).resolve().parent
        path = [str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]
        self._log = (logs / f"{name.replace(':', '_')}.log").open("wb")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        )
        self.operations = frozenset(self._read()["ok"])

    def call(self, op: str, /, **args: Any) -> dict[str, Any]:
        """``{"ok": answer}``, ``{"na": reason}`` or ``{"err": message}``."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, "args": args}) + "\n")
        return self._read()

    def close(self) -> None:
        """End the process."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"op": "quit"}) + "\n")
            self._process.stdin.close()
            self._process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        self._log.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(MARK):
                return dict(json.loads(line.removeprefix(MARK)))
        raise RuntimeError(f"contestant {self.name} ended; see {self._log.name}")


def scan(path: Path, look: Callable[[os.DirEntry[str]], object] = lambda _: None) -> int:
    """Count the base files of a table by a bare listing. Only *look*, which gets each entry, may ask for sizes."""
    count, folders = 0, [str(path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".hoodie":
                        folders.append(entry.path)
                elif entry.name.endswith(".parquet"):
                    look(entry)
                    count += 1
    return count


# ------------------------------------------------------------------ /proc; on other systems the figures are zero
def _own_cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _stat_fields(pid: int | str) -> list[str]:
    """Fields of ``/proc/PID/stat`` behind the command name; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def _ticks(pid: int) -> int:
    """User and system time, with that of children that have ended."""
    return sum(map(int, _stat_fields(pid)[11:15]))


def tree(root: int) -> list[int]:
    """Process numbers of a process and all below it."""
    children: dict[int, list[int]] = {}
    names = [entry.name for entry in Path("/proc").iterdir()] if Path("/proc/self").exists() else []
    for pid in (int(name) for name in names if name.isdigit()):
        fields = _stat_fields(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found, to_visit = [], [root]
    while to_visit:
        pid = to_visit.pop()
        found.append(pid)
        to_visit += children.get(pid, [])
    return found


def _machine_cpu_s() -> float:
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, irq, softirq = map(int, first)
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND


def _status_kb(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


def resident_mb(pid: int) -> int:
    """Resident memory of a process; 0 when it is gone."""
    return _status_kb(pid, "VmRSS") // 1024


def command_of(pid: int) -> str:
    """Name of a process's command; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _restart_peak(pid: int) -> None:
    """Restart the kernel's high-water mark of resident memory, where that is allowed."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return
