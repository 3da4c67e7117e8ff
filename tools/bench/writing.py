"""
The writing workload: a base table for every contestant and kind of table, then one commit each on fresh copies of it.

The rows that must be there afterwards are counted once per contestant and commit, so that one who loses rows shows an
error and no figure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from inputs import WRITE_SHARES, make_inputs

COW: Final = "COPY_ON_WRITE"
MOR: Final = "MERGE_ON_READ"


@attrs.frozen
class Made:
    """
    One kind of table.

    Args:
        kind: Table type.
        mdt: Whether it has a metadata table.
    """

    kind: str
    mdt: bool


TABLES: Final = {
    "cow": Made(COW, mdt=False),
    "cow-mdt": Made(COW, mdt=True),
    "mor": Made(MOR, mdt=False),
    "mor-mdt": Made(MOR, mdt=True),
}


@attrs.frozen
class Commit:
    """
    One commit.

    Args:
        name: In the report.
        operation: Of the write.
        batch: Which of the inputs.
        added: Rows that the table has more, as a share of the base rows.
        limit: Bare PyArrow rewrites the same files of a copy-on-write table.
    """

    name: str
    operation: str
    batch: str
    added: float
    limit: bool = False


COMMITS: Final = (
    Commit("upsert", "upsert", "spread", WRITE_SHARES["spread"] / 2, limit=True),
    Commit("upsert, 2 partitions", "upsert", "local", WRITE_SHARES["local"] / 2),
    Commit("insert", "insert", "fresh", WRITE_SHARES["fresh"]),
    Commit("delete", "delete", "gone", -WRITE_SHARES["gone"]),
)


class Writing:
    """
    The base tables and the commits on them.

    Args:
        scratch: Where tables may be made.
        rows: Of the base tables.
        ask: Sends an operation to the contestant named first.
        count: Asks a contestant for the rows of a table.
    """

    def __init__(
        self, scratch: Path, rows: int, ask: Callable[..., dict[str, Any]], count: Callable[[str, str], int | None]
    ) -> None:
        self._scratch, self._rows, self._ask, self._count = scratch / "writing", rows, ask, count

    def close(self) -> None:
        """Remove the tables."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def prepare(self) -> None:
        """Make the rows."""
        self.close()
        make_inputs(self._inputs, self._rows)

    def make(self, who: str, table: str) -> dict[str, Any]:
        """Make the base table of a contestant; its figures."""
        made = TABLES[table]
        answer = self._ask(
            who, "write_base", inputs=str(self._inputs), path=str(self._base(who, table)), mdt=made.mdt,
            table_type=made.kind,
        )  # fmt: skip
        return self._checked(answer, who, self._base(who, table), self._rows)

    def commit(self, who: str, table: str, commit: Commit, *, counted: bool) -> dict[str, Any]:
        """The figures of one commit on a fresh copy of the base table."""
        base, copy = self._base(who, table), self._scratch / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if not base.exists():
            return {"na": "no base table"}
        shutil.copytree(base, copy)
        answer = self._ask(
            who, "write", inputs=str(self._inputs), path=str(copy), op=commit.operation, batch=commit.batch,
            mdt=TABLES[table].mdt,
        )  # fmt: skip
        return self._checked(answer, who, copy, self._rows + int(self._rows * commit.added)) if counted else answer

    def limit_base(self, who: str) -> dict[str, Any]:
        """As `make`, without any table format."""
        return self._ask(who, "base", inputs=str(self._inputs), path=str(self._base(who, "files")))

    def limit_commit(self, who: str, commit: Commit) -> dict[str, Any]:
        """As `commit`, without any table format."""
        path = str(self._base(who, "files"))
        return self._ask(who, "upsert", inputs=str(self._inputs), path=path, batch=commit.batch)

    @property
    def _inputs(self) -> Path:
        return self._scratch / "inputs"

    def _base(self, who: str, table: str) -> Path:
        return self._scratch / f"{table}-{who.replace(':', '_')}"

    def _checked(self, answer: Mapping[str, Any], who: str, path: Path, expected: int) -> dict[str, Any]:
        if "s" in answer and (found := self._count(who, str(path))) != expected:
            return {"err": f"{found} rows afterwards, expected {expected}"}
        return dict(answer)


def title(table: str, rows: int) -> str:
    """Of a kind of table, in the report."""
    made = TABLES[table]
    name = "copy-on-write" if made.kind == COW else "merge-on-read"
    return f"{rows} rows, {name}, metadata table {'on' if made.mdt else 'off'}"


def turns(repetitions: int, names: Sequence[str]) -> Iterator[tuple[int, Commit, str]]:
    """Who makes which commit, in turn, so that slow minutes of the machine hit all of them."""
    for repetition in range(repetitions):
        for commit in COMMITS:
            for name in names:
                yield repetition, commit, name
