"""`RealHudi`: the parent's end of the child process."""

from __future__ import annotations

import atexit
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from real_hudi.bundle import TABLE_VERSION, find_bundle

_TOOLS = Path(__file__).resolve().parent.parent
_START_SECONDS_MAX = 120
_LOG_LINES = 15


class RealHudiError(Exception):
    """
    Real Hudi refused or failed.

    Args:
        kind: Java (or Python) class of the error.
        message: Its message, with those of its causes.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind

    def __str__(self) -> str:
        return str(self.args[1])


class RealHudi:
    """
    Real Apache Hudi of one version, in a process of its own that starts at the first call.

    Rows to write are a list of dicts, a PyArrow table, or the path of a Parquet file; rows read are plain JSON values
    in canonical form and order, see `canonical`. Settings go under Hudi's own names and override everything.

    Args:
        version: One of `VERSIONS`; its bundle is looked for (and fetched) right away.
        call_seconds_max: A call that takes longer is an error and ends the process.

    Raises:
        Unavailable: It cannot run on this machine.
    """

    def __init__(self, version: str, call_seconds_max: float = 300) -> None:
        self.version = version
        self.table_version = TABLE_VERSION.get(version, 6)
        self._jar = find_bundle(version)
        self._call_seconds_max = call_seconds_max
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._calls = 0
        self._has_clock = False

    # ------------------------------------------------------------------ operations
    def write(
        self, table: str | Path, rows: Any, operation: str = "upsert", options: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """One write; returns its completed instant. *rows* may be None for operations without rows."""
        return dict(self._write_call("write", table, rows, operation, options))

    def write_for(
        self, table: str | Path, sources: list[Any], operation: str, options: Mapping[str, object], seconds: float
    ) -> dict[str, Any]:
        """Writers at the same time, one for each source, until the time is over; ``{"commits", "lost", "cpu_s"}``."""
        self._started()
        paths = [parquet_of(rows, self._scratch / f"writer-{number}.parquet") for number, rows in enumerate(sources)]
        given = _texts(options)
        return dict(
            self._call(
                "write_for", table=_path(table), sources=paths, operation=operation, options=given, seconds=seconds
            )
        )

    def fail_write(
        self, table: str | Path, rows: Any, operation: str = "upsert", options: Mapping[str, object] | None = None
    ) -> str:
        """One write that dies after its data files and before its completion; returns the pending instant."""
        return str(self._write_call("fail_write", table, rows, operation, options))

    def read(
        self, table: str | Path, as_of: str | None = None, metadata: bool | None = None, *, meta: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Rows of the snapshot, or as of an instant; *metadata* forces reading with or without metadata table."""
        given = _texts(options)
        return list(self._call("read", table=_path(table), as_of=as_of, metadata=metadata, meta=meta, options=given))

    def find(self, table: str | Path, where: str, options: Mapping[str, object] | None = None) -> dict[str, Any]:
        """``{"rows": [...], "files_read": N}`` of the snapshot, with data skipping."""
        return dict(self._call("find", table=_path(table), where=where, options=_texts(options)))

    def sql(self, statement: str, settings: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        """Rows of one SQL statement; *settings* of the session hold for this statement only."""
        return list(self._call("sql", statement=statement, settings=_texts(settings)))

    def validate_listing(self, table: str | Path) -> list[dict[str, Any]]:
        """Files on which Hudi's procedure ``validate_metadata_table_files`` sees folders and metadata table differ."""
        return list(self._call("validate_listing", table=_path(table)))

    def clean(self, table: str | Path, options: Mapping[str, object] | None = None) -> dict[str, Any]:
        """``{"metadata": HoodieCleanMetadata or None, "deleted_files": [relative paths]}``."""
        return dict(self._call("clean", table=_path(table), options=_texts(options)))

    def plan_clean(
        self, table: str | Path, policy: str = "KEEP_LATEST_COMMITS", *, commits_retained: int | None = None,
        file_versions_retained: int | None = None, hours_retained: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What Hudi would clean, in the shape of ``hudi-py clean --dry-run --json``; writes nothing."""
        return dict(
            self._call(
                "plan_clean",
                table=_path(table),
                policy=policy,
                commits_retained=commits_retained,
                file_versions_retained=file_versions_retained,
                hours_retained=hours_retained,
                options=_texts(options),
            )
        )

    def timeline(self, table: str | Path, *, archived: bool = False) -> dict[str, Any]:
        """Shape of ``hudi-py timeline --json``."""
        return dict(self._call("timeline", table=_path(table), archived=archived))

    def file_slices(self, table: str | Path, use_metadata: bool = False) -> dict[str, Any]:
        """Shape of ``hudi-py files --json`` (``partitions`` only)."""
        return dict(self._call("file_slices", table=_path(table), use_metadata=use_metadata))

    def list_everything(self, table: str | Path, use_metadata: bool = False) -> int:
        """List every file of every partition; returns the number of partitions."""
        return int(self._call("list_everything", table=_path(table), use_metadata=use_metadata))

    def schedule(self, table: str | Path, service: str, options: Mapping[str, object] | None = None) -> str | None:
        """Store the plan of a ``CLEAN``, ``COMPACT``, ``LOG_COMPACT`` or ``CLUSTER``; returns its instant, or None."""
        time = self._call("schedule", table=_path(table), service=service, options=_texts(options))
        return None if time is None else str(time)

    def carry_out(
        self, table: str | Path, service: str, instant: str, options: Mapping[str, object] | None = None
    ) -> None:
        """Carry out a pending ``COMPACT``, ``LOG_COMPACT`` or ``CLUSTER``."""
        self._call("carry_out", table=_path(table), service=service, instant=instant, options=_texts(options))

    def schedule_undo(self, table: str | Path, instant: str, *, restore: bool = False) -> str:
        """Store the plan of a rollback of *instant*, or of a restore to it, and undo nothing; returns its instant."""
        return str(self._call("schedule_undo", table=_path(table), instant=instant, restore=restore))

    def rollback(
        self, table: str | Path, instant: str | None = None, options: Mapping[str, object] | None = None
    ) -> bool:
        """Roll back *instant*, or all failed writes."""
        return bool(self._call("rollback", table=_path(table), instant=instant, options=_texts(options)))

    def savepoint(self, table: str | Path, instant: str, *, delete: bool = False) -> None:
        """Create or delete a savepoint."""
        self._call("savepoint", table=_path(table), instant=instant, delete=delete)

    def restore(self, table: str | Path, instant: str, options: Mapping[str, object] | None = None) -> None:
        """Restore to a savepoint."""
        self._call("restore", table=_path(table), instant=instant, options=_texts(options))

    def expired_partitions(self, table: str | Path, options: Mapping[str, object]) -> list[str]:
        """Partitions that the strategy in ``hoodie.partition.ttl.*`` would drop now, sorted; nothing is written."""
        found: list[str] = self._call("expired_partitions", table=_path(table), options=_texts(options))
        return found

    def archive(self, table: str | Path, options: Mapping[str, object]) -> None:
        """Archive the timeline."""
        self._call("archive", table=_path(table), options=_texts(options))

    def lock(self, table: str | Path, options: Mapping[str, object] | None = None) -> bool:
        """Take the lock that is a file in the table; False when another holds it. Ask `unlock` in any case."""
        return bool(self._call("lock", table=_path(table), options=_texts(options) or {}))

    def unlock(self, table: str | Path) -> None:
        """Give it back, whoever's it is, as Hudi does."""
        self._call("unlock", table=_path(table))

    def format_lease(self, expired: bool, valid_until: int, owner: str) -> str:
        """What Hudi's lock by conditional writes holds; since 1.0.2."""
        return str(self._call("format_lease", expired=expired, valid_until=valid_until, owner=owner))

    def parse_lease(self, text: str) -> list[Any]:
        """What Hudi reads there: expired, valid until, owner."""
        return list(self._call("parse_lease", text=text))

    def take_lease(
        self, location: str, storage_options: Mapping[str, str], owner: str, settings: Mapping[str, object]
    ) -> bool:
        """Take Hudi's lock by conditional writes and keep it, renewed by its own thread; False if another has it."""
        given = {"storage_options": dict(storage_options), "owner": owner, "settings": _texts(settings)}
        return bool(self._call("take_lease", location=location, **given))

    def renewals_refused(self, location: str) -> int:
        """How many of its renewals found that the lock is another's by now."""
        return int(self._call("renewals_refused", location=location))

    def release_lease(self, location: str) -> None:
        """Give back what `take_lease` took."""
        self._call("release_lease", location=location)

    @property
    def is_running(self) -> bool:
        """Whether the process has been started."""
        return self._process is not None

    @property
    def has_clock(self) -> bool:
        """Whether `set_clock` works here; starts the process."""
        self._started()
        return self._has_clock

    def set_clock(self, moment: str | None) -> bool:
        """Move the JVM's clock to an instant time in UTC, None = real time; False where that is not possible."""
        return bool(self._call("set_clock", moment=moment))

    # ------------------------------------------------------------------ process
    def jvm_pid(self) -> int:
        """Process id of the JVM, to stop it in the middle of its work."""
        return int(self._call("jvm_pid"))

    def start(self) -> None:
        """Start the process now instead of at the first call."""
        self._started()

    def close(self) -> None:
        """End the process; another call would start a new one."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"id": -1, "op": "quit"}) + "\n")
            process.stdin.close()
            process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        atexit.unregister(self.close)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None:
            return self._process
        self._scratch = Path(tempfile.mkdtemp(prefix=f"real-hudi-{self.version}-"))
        self._answers = queue.Queue()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_", "SPARK_"))}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_TOOLS), os.environ.get("PYTHONPATH")]))
        with (self._scratch / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "real_hudi.server", self.version, str(self._jar), str(self._scratch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                cwd=self._scratch,
                env=environment,
                start_new_session=True,  # an interrupt at the keyboard must not tear it down in mid-answer
            )
        threading.Thread(target=_pump, args=(process, self._answers), daemon=True).start()
        self._process = process
        atexit.register(self.close)
        self._has_clock = bool(self._next_answer(0, _START_SECONDS_MAX)["clock"])
        return process

    def _call(self, op: str, **args: Any) -> Any:
        process = self._started()
        self._calls += 1
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"id": self._calls, "op": op, "args": args}) + "\n")
        except OSError as error:
            raise self._ended(op) from error
        return self._next_answer(self._calls, self._call_seconds_max)

    def _next_answer(self, number: int, seconds_max: float) -> Any:
        try:
            line = self._answers.get(timeout=seconds_max)
        except queue.Empty:
            message = f"Hudi {self.version} gave no answer within {seconds_max} s; {self._tail()}"
            error = RealHudiError("Timeout", message)
            if self._process is not None:
                self._process.kill()
            self.close()
            raise error from None
        if line is None:
            raise self._ended("start" if number == 0 else "call")
        answer = json.loads(line)
        assert answer["id"] == number, (answer["id"], number)
        if "error" in answer:
            raise RealHudiError(answer["error"]["type"], answer["error"]["message"])
        return answer["ok"]

    def _ended(self, op: str) -> RealHudiError:
        error = RealHudiError("ProcessEnded", f"the process of Hudi {self.version} ended during {op}; {self._tail()}")
        self.close()
        return error

    def _tail(self) -> str:
        try:
            lines = (self._scratch / "log").read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return "end of its log:\n" + "\n".join(lines[-_LOG_LINES:])

    # ------------------------------------------------------------------ rows
    def _write_call(
        self, op: str, table: str | Path, rows: Any, operation: str, options: Mapping[str, object] | None
    ) -> Any:
        self._started()
        source = None if rows is None else parquet_of(rows, self._scratch / f"rows-{self._calls}.parquet")
        given = _texts(options)
        return self._call(op, table=_path(table), source=source, operation=operation, options=given)


def parquet_of(rows: Any, path: Path) -> str:
    """Path of a Parquet file with *rows*; written to *path* unless *rows* is a path already."""
    if isinstance(rows, (str, Path)):
        return str(Path(rows).absolute())
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list(rows)) if isinstance(rows, Iterable) and not isinstance(rows, pa.Table) else rows
    pq.write_table(table, path)
    return str(path)


def _pump(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            answers.put(line)
    answers.put(None)


def _path(table: str | Path) -> str:
    return str(Path(table).absolute())


def _texts(options: Mapping[str, object] | None) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (options or {}).items()
    }
