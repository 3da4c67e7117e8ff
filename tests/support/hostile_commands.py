"""Runs every command on one table in this process, within bounds of memory and time; prints what came of each."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import signal
import sys
from typing import Any

from hudi_py.inspection.cli import main

MEMORY_BYTES = 3 << 30  # of addresses: libraries and their threads reserve a good part of it
SECONDS = 60


class TooSlow(BaseException):
    """Past every handler, like a kill."""


def commands(table: str, time: str) -> list[list[str]]:
    """The whole command line; what only looks comes first."""
    return [
        ["timeline", table, "--contents", "--archived", "--json"],
        ["timeline", table, "--all-states"],
        ["instant", table, time],
        ["files", table],
        ["files", table, "--json"],
        ["clean", table, "--dry-run", "--commits-retained", "1"],
        ["explain", table, "."],
        ["erased", table, "--partition", "a"],
        ["erased", table, "--key", "1", "--json"],
        ["overview", table],
        ["check", table],
        ["read", table, "--limit", "3"],
        ["read", table, "--from", "0", "--limit", "3"],
        ["read", table, "--from", "0", "--with-deletes", "--limit", "3", "--json"],
        ["read", table, "--cdc", "--limit", "3"],
        ["read", table, "--read-optimized", "--limit", "3"],
        ["savepoint", "list", table],
        ["lease", "list", table],
        ["consumer", "list", table, "--json"],
        ["tag", "list", table, "--json"],
        ["doctor", table],
        ["deletion", "show", table],
        ["policy", "show", table],
        ["du", table, "--by-commit"],
        ["history", table],
        ["diff", table, time, "now"],
        ["simulate", table, "--commits-retained", "1"],
        ["report", table, "-o", f"{table}.html"],
        ["fleet", table],
        ["compact", table, "--dry-run"],
        ["cluster", table, "--dry-run"],
        ["write", table, f"{table}.jsonl", "--dry-run"],
        ["delete", table, "--where", "id is not null", "--dry-run"],
        ["expire-partitions", table, "--days", "1", "--dry-run"],
        ["orphans", table, "--dry-run"],
        ["undo", table, "orphans-1", "--dry-run"],
        ["clean", table, "--commits-retained", "1", "--list", f"{table}.{time}.list"],
        ["approve", table, f"{table}.{time}.list", "--by", "ann"],
        ["maintain", table, "--dry-run"],
        ["recover", table, "--dry-run"],
        ["recover", table],
        ["archive", table],
        ["compact", table],
        ["cluster", table],
        ["rollback", table, time],
        ["lease", "create", table, "--ttl", "1h"],
        ["consumer", "set", table, "job-7", time],
        ["tag", "schedule", table, "--daily", "30"],
        ["clean", table, "--commits-retained", "1", "--quarantine"],
        ["undo", table, "orphans-1"],
        ["orphans", table, "--older-than", "0m"],
        ["maintain", table],
        ["savepoint", "create", table],
        ["write", table, f"{table}.jsonl"],
        ["delete", table, "--where", "id is not null"],
    ]


def run(arguments: list[str]) -> dict[str, Any]:
    """One command; its exit code and what it printed."""
    # With an encoding, as a terminal or a file has: not every text that Python can hold can be printed.
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    signal.alarm(SECONDS)
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    except TooSlow:
        code = "too slow"
    except BaseException as error:
        code = repr(error)
    finally:
        signal.alarm(0)
    return {
        "command": " ".join(arguments[:1] + arguments[2:]),
        "code": code,
        "out": _text(out),
        "err": _text(err),
    }


def _text(stream: io.TextIOWrapper) -> str:
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode()


def peak_mb() -> int:
    """Most memory that this program held; the rusage of a process begins with that of its parent."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) // 1024


def _too_slow(*_: object) -> None:
    raise TooSlow


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_slow)
    for each in commands(sys.argv[1], sys.argv[2]):
        answer = run(each)
        answer["peak_mb"] = peak_mb()
        sys.stdout.write(json.dumps(answer) + "\n")
