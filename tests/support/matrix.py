"""
Every operation on every kind of table, beside real Hudi: it reads the same rows after each, and goes on.

A table is of one type, index, and with or without a metadata table; the operations of a case run on it one after
another, in this process or on Spark. `pairwise` draws few cases in which any two values meet, `whole` all of them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

import hudi_py
from hudi_py.storage.local import LocalStorage
from support.indexes import assert_true

OPERATIONS: Final = (
    "insert",
    "upsert",
    "bulk_insert",
    "delete",
    "delete_where",
    "insert_overwrite",
    "insert_overwrite_table",
    "drop_partitions",
    "update",
    "merge",
)
TYPES: Final = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXES: Final = ("BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", "BUCKET", "RECORD_INDEX")
ENGINES: Final = ("local", "spark")
REGIONS: Final = ("r0", "r1", "r2")

Row = tuple[int, int]
"""Ordering value and amount."""


@attrs.frozen
class Case:
    """
    One table and what is done to it.

    Args:
        table_type: ``hoodie.table.type``.
        index: ``hoodie.index.type``.
        metadata: Whether it has a metadata table.
        steps: Operations, each with its engine.
    """

    table_type: str
    index: str
    metadata: bool
    steps: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.table_type}-{self.index}-{'with' if self.metadata else 'without'}"

    def settings(self, table_version: int) -> dict[str, Any]:
        """What every writer of the table is told."""
        return {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": table_version,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.index.type": self.index,
            "hoodie.bucket.index.num.buckets": 2,
            "hoodie.metadata.enable": self.metadata,
            "hoodie.metadata.record.index.enable": self.metadata and self.index == "RECORD_INDEX",
            "hoodie.clean.automatic": False,
            "hoodie.compact.inline": False,
        }


def pairwise() -> list[Case]:
    """Cases in which each pair of type, index, metadata table, operation and engine is met."""
    found = []
    for (number, index), (kind, table_type) in itertools.product(enumerate(INDEXES), enumerate(TYPES)):
        mine = [name for place, name in enumerate(OPERATIONS) if (place + number + kind) % 2 == 0]
        steps = [(name, ENGINES[(place + number // 2) % 2]) for place, name in enumerate(mine)]
        random.Random(f"{number} {kind}").shuffle(steps)
        found.append(Case(table_type, index, bool((number // 2 + kind) % 2), tuple(steps)))
    return found


def whole(seed: int) -> list[Case]:
    """Each operation by each engine on each kind of table, in an order that follows from the seed."""
    found = []
    for table_type, index, metadata in itertools.product(TYPES, INDEXES, (False, True)):
        steps = list(itertools.product(OPERATIONS, ENGINES))
        random.Random(f"{seed} {table_type} {index} {metadata}").shuffle(steps)
        found.append(Case(table_type, index, metadata, tuple(steps)))
    random.Random(seed).shuffle(found)  # so that a run that ends early has seen some of everything
    return found


class Played:
    """
    A table beside a dictionary of its rows.

    Args:
        case: The table.
        peer: Real Hudi.
        spark: A session without Hudi.
        path: Folder of the table.
    """

    def __init__(self, case: Case, peer: Any, spark: Any, path: Path) -> None:
        self._case, self._peer, self._spark, self._path = case, peer, spark, path
        self._settings = case.settings(peer.table_version)
        self._rows: dict[str, Row] = {}
        self._number = self._ts = 0

    def play(self) -> None:
        """
        Do the steps of the case, and what real Hudi does between them.

        Raises:
            AssertionError: One side reads other rows than the model.
        """
        first = self._put(self._new(120))
        if len(self._case.steps[0][0]) % 2:  # either side makes the table
            self._peer.write(self._path, first, "bulk_insert", self._settings)
        else:
            hudi_py.write(self._path, first, operation="bulk_insert", settings=self._settings)
        self._agree("first")
        for number, (operation, engine) in enumerate(self._case.steps):
            told = f"{self._case} {operation} {engine}"
            self._do(operation, engine)
            self._agree(told, ours_alone=True)  # it reads once for both writes: its reads take most of the time
            self._peer.write(self._path, self._put([*self._some(6), *self._new(2)]), "upsert", self._settings)
            if number % 3 == 0:
                self._compact()
            elif number % 3 == 1:
                self._peer.clean(self._path, self._settings | {"hoodie.cleaner.commits.retained": 1})
            self._agree(f"{told}, then Hudi's upsert")
        self._do("upsert", "local")
        self._agree("last", both=True)
        table = hudi_py.open_table(self._path)
        assert not [str(each) for each in table.check() if each.severity.name != "INFO"]
        if self._case.metadata:
            assert not self._peer.validate_listing(self._path)
            assert_true(LocalStorage(str(self._path)))

    def _compact(self) -> None:
        if self._case.table_type == "MERGE_ON_READ":
            settings = self._settings | {"hoodie.compact.inline.max.delta.commits": 1}
            instant = self._peer.schedule(self._path, "COMPACT", settings)
            if instant is not None:
                self._peer.carry_out(self._path, "COMPACT", instant, settings)

    # ------------------------------------------------------------------ ours
    def _do(self, operation: str, engine: str) -> None:
        """One commit of ours; the model says what it leaves."""
        writer = self._writer(engine)
        if operation in ("insert", "bulk_insert"):
            self._given(writer, operation, self._put(self._new(7)))
        elif operation == "upsert":
            self._given(writer, operation, self._put([*self._some(20), *self._new(5)]))
        elif operation == "delete":
            gone = self._some(6)
            self._given(writer, operation, self._arrow(gone))
            for key in gone:
                del self._rows[key]
        elif operation == "delete_where":
            amount = min((row[1] for row in self._rows.values()), default=0)
            self._table().delete(where=f"amount = {amount}")
            self._rows = {key: row for key, row in self._rows.items() if row[1] != amount}
        elif operation == "insert_overwrite":
            self._rows = {key: row for key, row in self._rows.items() if _region(key) != "r1"}
            self._given(writer, operation, self._put([key for key in self._new(12) if _region(key) == "r1"]))
        elif operation == "insert_overwrite_table":
            self._rows.clear()
            self._given(writer, operation, self._put(self._new(40)))
        elif operation == "drop_partitions":
            if "r2" in self._table().partitions():  # a clean may have deleted one that was dropped before
                writer.drop_partitions(["r2"])
            self._rows = {key: row for key, row in self._rows.items() if _region(key) != "r2"}
        else:
            self._state(operation)

    def _state(self, operation: str) -> None:
        self._ts += 1
        if operation == "update":
            self._table().update({"amount": "amount + 1000", "ts": self._ts}, where="region = 'r0' and amount < 50")
            for key, (_, amount) in self._rows.items():
                if _region(key) == "r0" and amount < 50:
                    self._rows[key] = (self._ts, amount + 1000)
            return
        source = self._put([*self._some(8), *self._new(3)])
        merge = self._table().merge(source, on=["id", "region"])
        merge.when_matched_update().when_not_matched_insert().execute()

    def _writer(self, engine: str) -> Any:
        if engine == "local":
            return self._table()
        self._ts += 1  # by the driver and by tasks in turn
        return hudi_py.WriteClient(
            self._spark, self._path, self._settings | {"hoodie_py.write.driver.max.rows": 1000 * (self._ts % 2)}
        )

    def _table(self) -> Any:
        return hudi_py.open_table(self._path, settings=self._settings)

    def _given(self, writer: Any, operation: str, rows: pa.Table) -> None:
        given: Any = rows
        if isinstance(writer, hudi_py.WriteClient):
            given = self._spark.createDataFrame(rows.to_pylist(), "id string, region string, ts long, amount long")
        getattr(writer, operation)(given)

    # ------------------------------------------------------------------ rows
    def _new(self, count: int) -> list[str]:
        # No key is used again: Hudi 1.0.2 reads no slice, not of its own tables either, with a row behind its delete.
        self._number += count
        return [f"k{number:05d}" for number in range(self._number - count, self._number)]

    def _some(self, count: int) -> list[str]:
        chance = random.Random(f"{self._case} {self._number}")
        return chance.sample(sorted(self._rows), min(count, len(self._rows)))

    def _put(self, keys: list[str]) -> pa.Table:
        self._ts += 1
        self._rows |= {key: (self._ts, (int(key[1:]) * 7 + self._ts) % 97) for key in keys}
        return self._arrow(keys)

    def _arrow(self, keys: list[str]) -> pa.Table:
        rows = [self._rows[key] for key in keys]
        return pa.table(
            {
                "id": pa.array(keys, pa.string()),
                "region": pa.array(map(_region, keys), pa.string()),
                "ts": pa.array([ts for ts, _ in rows], pa.int64()),
                "amount": pa.array([amount for _, amount in rows], pa.int64()),
            }
        )

    def _agree(self, told: str, *, ours_alone: bool = False, both: bool = False) -> None:
        """Compare rows; real Hudi lists files as the table says, or with and without the metadata table."""
        expected = sorted((key, _region(key), *row) for key, row in self._rows.items())
        ours = hudi_py.open_table(self._path).rows().to_arrow().to_pylist()
        assert _plain(ours) == expected, f"ours, {told}"
        for metadata in () if ours_alone else {self._case.metadata, self._case.metadata and not both}:
            theirs = self._peer.read(self._path, metadata=metadata)
            assert _plain(theirs) == expected, f"Hudi {self._peer.version}, metadata table {metadata}, {told}"


def _region(key: str) -> str:
    return REGIONS[int(key[1:]) % len(REGIONS)]


def _plain(rows: list[Mapping[str, Any]]) -> list[tuple[str, str, int, int]]:
    return sorted((row["id"], row["region"], row["ts"], row["amount"]) for row in rows)
