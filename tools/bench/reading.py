"""
The reading workload: tables that Apache Hudi made once per run, read by every contestant in turn.

What each has to give back is reckoned from the rows that were written, so a contestant that misses rows shows an error
and no figure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from inputs import PARTITIONS, key_of, make_reading_inputs

FEW: Final = ["ts", "a"]
COW: Final = "COPY_ON_WRITE"
MOR: Final = "MERGE_ON_READ"
OPENED_MAX: Final = 3  # base files for one key


@attrs.frozen
class Made:
    """
    One table.

    Args:
        kind: Table type.
        batches: Names of the inputs, the first one bulk-inserted, the others upserted.
        is_indexed: With a record index, and of many files.
    """

    kind: str
    batches: tuple[str, ...]
    is_indexed: bool = False


TABLES: Final = {
    "cow": Made(COW, ("base",)),
    "mor": Made(MOR, ("base", "fifth")),
    "cow-local": Made(COW, ("base", "local")),
    "cow-spread": Made(COW, ("base", "spread")),
    "mor-spread": Made(MOR, ("base", "spread")),
    "indexed": Made(COW, ("base",), is_indexed=True),
}


@attrs.frozen
class Case:
    """
    One question.

    Args:
        name: In the report.
        table: Which of `TABLES`.
        changed: Read only what its last commit changed; else the snapshot.
        columns: Names; None for all of the rows.
        limit: Bare PyArrow reads the same files.
        key: Look this record key up.
    """

    name: str
    table: str
    changed: bool = False
    columns: list[str] | None = None
    limit: bool = False
    key: str | None = None


CASES: Final = (
    Case("merge-on-read, 20 % in logs", "mor"),
    Case("copy-on-write, all columns", "cow", limit=True),
    Case("copy-on-write, 2 of 6 columns", "cow", columns=FEW, limit=True),
    Case("1 % changed, in one partition", "cow-local", changed=True),
    Case("1 % changed, in all files (copy-on-write)", "cow-spread", changed=True),
    Case("1 % changed, in all files (merge-on-read)", "mor-spread", changed=True),
    Case("one key among many files", "indexed", key=key_of(42)),
)


class Reading:
    """
    The tables and what was asked of them.

    Args:
        scratch: Where tables may be made.
        rows: Of each table.
        files: Of the table in which keys are looked up.
        ask: Sends an operation to the contestant named first.
    """

    def __init__(self, scratch: Path, rows: int, files: int, ask: Callable[..., dict[str, Any]]) -> None:
        self._scratch, self._rows, self._ask = scratch / "reading", rows, ask
        self._tasks = max(1, files // PARTITIONS)
        self._after: dict[str, str] = {}

    def close(self) -> None:
        """Remove the tables."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def prepare(self, maker: str) -> None:
        """Have a contestant make the tables."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        inputs = self._scratch / "inputs"
        make_reading_inputs(inputs, self._rows)
        for name, made in TABLES.items():
            answer = self._ask(
                maker, "write_table", inputs=str(inputs), path=self.path(name), table_type=made.kind,
                batches=list(made.batches), index=made.is_indexed, tasks=self._tasks if made.is_indexed else None,
            )  # fmt: skip
            if "commits" not in answer:
                raise RuntimeError(f"{maker} made no table {name}: {answer}")
            first = answer["commits"][0]
            self._after[name] = str(int(max(first)) + 1)  # behind it both as requested and as completed

    def path(self, table: str) -> str:
        """Of a table."""
        return str(self._scratch / table)

    def ask(self, who: str, case: Case) -> dict[str, Any]:
        """The figures of one repetition of a case, of the whole read of its table for those who read changes too."""
        asked: dict[str, Any] = {"path": self.path(case.table), "columns": case.columns}
        if case.key is not None:
            found = self._ask(who, "read", **asked, where=f"id = '{case.key}'")
            if found.get("opened", 0) > OPENED_MAX:
                return {"err": f"{found['opened']} files opened for one key"}
            return {"look-up": self._checked(found, 1)}
        whole = self._checked(self._ask(who, "read", **asked), self._rows)
        if not case.changed:
            return {"read": whole}
        changed = self._ask(who, "read", **asked, after=self._after[case.table])
        return {"changes": self._checked(changed, self._changed(case)), "whole table": whole}

    def _changed(self, case: Case) -> int:
        count = self._rows // 100
        is_local = TABLES[case.table].batches[-1] == "local"
        return min(count, -(-self._rows // PARTITIONS)) if is_local else count

    @staticmethod
    def _checked(answer: Mapping[str, Any], expected: int) -> dict[str, Any]:
        if "rows" in answer and answer["rows"] != expected:
            return {"err": f"{answer['rows']} rows, expected {expected}"}
        return dict(answer)
