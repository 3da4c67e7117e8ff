"""Our side of a table, through the public contract only."""

from __future__ import annotations

import io
import json
import runpy
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from real_hudi import canonical_rows

import hudi_py


class Ours:
    """
    Args:
        spark: A session without Hudi.
        path: Of the table.
        settings: Hudi settings of every client.
        scratch: Folder for batches.
    """

    def __init__(self, spark: Any, path: Path, settings: Mapping[str, Any], scratch: Path) -> None:
        self._spark = spark
        self.path = str(path)
        self._settings = dict(settings)
        self._scratch = scratch
        self._batches = 0
        self.clock: Any = None  # replaces the machine's clock in every client made from now on

    def write(self, rows: pa.Table, operation: str = "upsert", **settings: Any) -> None:
        """One commit of ``upsert``, ``insert``, ``bulk_insert`` or ``delete``."""
        self._batches += 1
        file = self._scratch / f"{self._batches}.parquet"
        pq.write_table(rows, file)
        getattr(self.client(settings), operation)(self._spark.read.parquet(str(file)))

    def client(self, settings: Mapping[str, Any] | None = None) -> Any:
        """A fresh `WriteClient`, as another process would make one."""
        # Few rows are written by the driver or by a task: both ways in turn.
        way = {"hoodie_py.write.driver.max.rows": 1000 * (self._batches % 2)}
        texts = {key: _text(value) for key, value in {**way, **self._settings, **(settings or {})}.items()}
        return hudi_py.WriteClient(self._spark, self.path, texts, clock=self.clock)

    def clean(self, **arguments: Any) -> Any:
        """A clean without Spark: ``table.clean(commits_retained=...)``."""
        return hudi_py.open_table(self.path).clean(**arguments)

    def read(self, as_of: str | None = None, *, meta: bool = False) -> list[dict[str, Any]]:
        """Canonical rows as our reader sees them."""
        frame = hudi_py.read(self._spark, self.path, **({} if as_of is None else {"as_of": as_of}))
        return canonical_rows((row.asDict(True) for row in frame.collect()), meta=meta)

    def commit_times(self) -> list[str]:
        """Requested times of the completed commits, oldest first."""
        return [instant.requested_time for instant in hudi_py.open_table(self.path).timeline.completed("commit")]


def hudi_py_json(*arguments: str) -> Any:
    """What ``python -m hudi_py ARGUMENTS --json`` prints; in this process, because a start costs as much as a plan."""
    out, code = io.StringIO(), None
    with mock.patch.object(sys, "argv", ["hudi-py", *arguments, "--json"]), redirect_stdout(out):
        try:
            runpy.run_module("hudi_py", run_name="__main__")
        except SystemExit as end:
            code = end.code
    assert code in (0, None), f"hudi-py {' '.join(arguments)} ended with {code}: {out.getvalue()}"
    return json.loads(out.getvalue())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
