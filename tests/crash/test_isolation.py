"""Random writes that begin and complete while others run: each level of isolation keeps what it promises."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from hudi_py.errors import HudiError
from hudi_py.storage.base import Storage
from hudi_py.table_merge import Clause, Merge, Rows
from hudi_py.table_statements import rows_to_delete, rows_to_update
from support import writes
from support.laws import SHARE
from support.many_writers import METADATA, contents, rows, service, table
from support.simulation import SerialOrders

CASES = 12
HOMES = {"a": "eu", "b": "us", "n": "eu", "j": "us"}
CONDITIONS = ("ts > 4", "region = 'eu'", "ts < 30 and region = 'us'", "id in ('a', 'n')", "id = 'b' or ts > 20")
NEW, MATCHED, GONE = Clause(rows=Rows.NEW), Clause(rows=Rows.MATCHED), Clause(rows=Rows.MATCHED, deletes=True)
CLAUSES = ((NEW,), (MATCHED,), (MATCHED, NEW), (GONE, NEW))
MOVING = {"hoodie.simple.index.update.partition.path": True, "hoodie.record.index.update.partition.path": True}
INDEXES: dict[str, dict[str, Any]] = {
    "SIMPLE": {},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE", **MOVING},
    "RECORD_INDEX": {"hoodie.index.type": "RECORD_INDEX", **MOVING, **METADATA},
}


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    yield
    logging.getLogger("hudi_py").setLevel(logging.NOTSET)


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
        kinds = ["UPSERT", "UPSERT", "INSERT", "INSERT_OVERWRITE", "known", "merge", "merge", "update", "delete"]
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
        if self.kind in ("update", "delete"):
            is_update = self.kind == "update"
            found = rows_to_update({"ts": "ts + 100"}, self.where) if is_update else rows_to_delete(self.where)
            return writer.change(beside(found), "UPSERT" if is_update else "DELETE")
        return writer.write(beside(rows(*self.given)), "INSERT" if self.kind == "known" else self.kind)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["SERIALIZABLE", "WRITE_SERIALIZABLE"])
@pytest.mark.parametrize("index", INDEXES)
def test_writes_that_overlap_end_like_some_serial_order(index, level):
    """Of two or three; a deletion of keys that are not there counts at any moment, unless the order counts."""
    settings = {**INDEXES[index], "hoodie_py.write.isolation": level}
    chance = random.Random(f"{index} {level} {os.environ.get('HUDI_TEST_DAY', '')}")
    for _ in range(-(-CASES // SHARE)):
        kind = chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
        start = table(chance.choice((6, 8, 9)), kind, settings=settings)
        # With a global index a deletion looks everywhere.
        deletes = level == "SERIALIZABLE" or index != "SIMPLE"
        all_writes = [Write(chance, settings, deletes_keys=deletes) for _ in range(chance.choice((2, 3, 3)))]
        is_nested = chance.random() < 0.5
        storage, done = start.copy(), []

        def run(number, others=None, *, storage=storage, done=done, all_writes=all_writes):
            try:
                all_writes[number].do(storage, others)
            except HudiError:
                return
            done.append(number)

        rest = range(1, len(all_writes))
        if is_nested and len(rest) == 2:
            run(0, partial(run, 1, partial(run, 2)))
        else:
            run(0, lambda run=run, rest=rest: [run(number) for number in rest])
        expected = SerialOrders(start.copy, [each.do for each in all_writes], contents).of(done)
        assert contents(storage) in expected, (kind, is_nested, done, all_writes)
