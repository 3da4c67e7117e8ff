"""Random writes, each with others in its middle: for the laws of writers that run at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_py.storage.base import Storage
from hudi_py.table_merge import Clause, Merge, Rows
from hudi_py.table_statements import expressions_of, rows_to_delete, rows_to_update
from support import writes
from support.many_writers import METADATA, rows, service

HOMES = {"a": "eu", "b": "us", "n": "eu", "j": "us"}
CONDITIONS = ("ts > 4", "region = 'eu'", "ts < 30 and region = 'us'", "id in ('a', 'n')", "id = 'b' or ts > 20")
NEW, MATCHED, GONE = Clause(rows=Rows.NEW), Clause(rows=Rows.MATCHED), Clause(rows=Rows.MATCHED, deletes=True)
LEFT_GONE = Clause(rows=Rows.LEFT, deletes=True)
LEFT_LATER = Clause(rows=Rows.LEFT, values=expressions_of({"ts": "ts + 100"}), where="ts < 30")
CLAUSES = (
    *((NEW,), (MATCHED,), (MATCHED, NEW), (GONE, NEW)),
    *((LEFT_GONE,), (LEFT_LATER,), (NEW, LEFT_GONE), (MATCHED, LEFT_LATER)),
)
MOVING = {"hoodie.simple.index.update.partition.path": True, "hoodie.record.index.update.partition.path": True}
INDEXES: dict[str, dict[str, Any]] = {
    "SIMPLE": {},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE", **MOVING},
    "RECORD_INDEX": {"hoodie.index.type": "RECORD_INDEX", **MOVING, **METADATA},
}


class Beside:
    """Rows or a statement, before or after whose search for files others do something; they do it once."""

    def __init__(self, inner: Any, others: Callable[[], object] | None, *, is_before: bool) -> None:
        self.inner, self.others, self.is_before = inner, others, is_before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def shaped(self, *_: Any, **__: Any) -> Beside:
        return self

    def checked(self, *_: Any, **__: Any) -> Beside:
        return self

    def write(self, job: Any) -> Any:
        return self._beside(lambda: self.inner.write(job))

    def find(self, *given: Any) -> Any:
        return self._beside(lambda: self.inner.find(*given))

    def _beside(self, call: Callable[[], Any]) -> Any:
        others, self.others = self.others or (lambda: None), None
        found = None if self.is_before else call()
        others()
        return call() if self.is_before else found


class Write:
    """One random write; the same each time it is done."""

    def __init__(self, chance: random.Random, settings: dict[str, Any], *, deletes_keys: bool) -> None:
        self.is_before = chance.random() < 0.4
        given = [(key, HOMES[key] if chance.random() < 0.8 else None) for key in chance.sample([*HOMES], 2)]
        self.given = [(key, home or chance.choice(("eu", "us")), chance.randint(2, 60)) for key, home in given]
        kinds = ["UPSERT", "UPSERT", "INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "drop"]
        kinds += ["known", "merge", "merge", "merge", "update", "delete"]
        self.kind = chance.choice([*kinds, *["DELETE"] * (2 * deletes_keys)])
        self.where, self.clauses = chance.choice(CONDITIONS), chance.choice(CLAUSES)
        self.on = chance.choice((("id", "region"), ("id",))) if self.clauses == (NEW,) else ("id", "region")
        self.settings = settings

    def __repr__(self) -> str:
        return f"{self.kind} {self.given} {self.where} {self.clauses} {self.on}"

    def do(self, storage: Storage, others: Callable[[], object] | None = None) -> Any:
        """Do it, and *others* in the middle."""
        beside = partial(Beside, others=others, is_before=self.is_before)
        drops = {"hoodie.datasource.write.insert.drop.duplicates": True} if self.kind == "known" else {}
        writer = service(storage, **{**self.settings, **drops})
        if self.kind == "merge":
            source = pa.Table.from_pylist([dict(zip(writes.SCHEMA.names, row, strict=True)) for row in self.given])
            return writer.change(beside(Merge(source=source, on=self.on, clauses=self.clauses)), "UPSERT")
        if self.kind == "drop":
            return writer.drop_partitions([self.given[0][1]], check=others or (lambda: None))
        if self.kind in ("update", "delete"):
            is_update = self.kind == "update"
            found = rows_to_update({"ts": "ts + 100"}, self.where) if is_update else rows_to_delete(self.where)
            return writer.change(beside(found), "UPSERT" if is_update else "DELETE")
        return writer.write(beside(rows(*self.given)), "INSERT" if self.kind == "known" else self.kind)


def overlap(all_writes: list[Write], run: Callable[..., None], *, is_nested: bool) -> None:
    """Let *run* do the first write with all others in its middle; nested: each in that of the one before."""
    last = len(all_writes) - 1
    if is_nested and last == 2:
        run(0, partial(run, 1, partial(run, 2)))
    else:
        run(0, lambda: [run(number) for number in range(1, last + 1)])
