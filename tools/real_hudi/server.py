"""
The child process: reads one JSON request per line, answers one JSON line.

Started by `real_hudi.client`; ends when its input ends, when its parent is gone, or on ``quit``. The JVM below it ends
with it, because PySpark's gateway exits when the pipe from its parent closes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from real_hudi.clock import build_clock
from real_hudi.operations import Operations, operation_names
from real_hudi.session import HudiJvm, start_spark

MESSAGE_CHARACTERS_MAX = 2000


def main(version: str, jar: str, scratch: str) -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever Spark prints goes to the log, not into the protocol
    watch_parent(Path(scratch))
    os.environ["TZ"] = "UTC"
    time.tzset()
    clock = build_clock(Path(scratch)) if os.environ.get("REAL_HUDI_NO_CLOCK") is None else None
    os.environ.update(clock.environment if clock else {})  # inherited by the JVM; this process itself is not affected
    hudi = HudiJvm(version, start_spark(Path(jar), Path(scratch)))
    os.environ.pop("LD_PRELOAD", None)
    operations = Operations(hudi, clock)
    answers.write(json.dumps({"id": 0, "ok": {"jvm_pid": hudi.pid, "clock": clock is not None}}) + "\n")
    allowed = operation_names()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            break
        answers.write(json.dumps(_answer(operations, allowed, request), default=str) + "\n")
    hudi.spark.stop()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)  # the JVM follows when its pipe closes; nothing here waits for it


def _answer(operations: Operations, allowed: tuple[str, ...], request: dict[str, Any]) -> dict[str, Any]:
    try:
        if request["op"] not in allowed:
            raise ValueError(f"unknown operation {request['op']!r}")
        return {"id": request["id"], "ok": getattr(operations, request["op"])(**request["args"])}
    except Exception as error:  # noqa: BLE001  (reported to the parent)
        traceback.print_exc()
        return {"id": request["id"], "error": _describe(error)}


def _describe(error: Exception) -> dict[str, str]:
    """Class and message, of the Java exception and its causes when there is one."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        return {"type": type(error).__name__, "message": str(error)[:MESSAGE_CHARACTERS_MAX]}
    texts: list[str] = []
    while cause is not None and len(texts) < 6:
        texts.append(cause.toString().split("\n")[0])
        cause = cause.getCause()
    kind = texts[0].split(":")[0].strip()
    return {"type": kind, "message": " / caused by: ".join(texts)[:MESSAGE_CHARACTERS_MAX]}


def watch_parent(scratch: Path) -> None:
    """End this process at once when its parent is gone, even in the middle of a call."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
