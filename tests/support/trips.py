"""A table beside the dict that says what it must hold."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import hudi_py

COMMON = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.index.bloom.num_entries": "500",  # the default makes files of 430 KB
}
PARTITIONED = {**COMMON, "hoodie.datasource.write.partitionpath.field": "region"}
TWO_PASSES = {"hoodie_py.write.single.pass.max.bytes": "0"}
_HUDI_RS_NAMES = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "endpoint_url": "aws_endpoint",
    "region": "aws_region",
}
DRIVER_ROWS = "hoodie_py.write.driver.max.rows"
ROWS = "id string, region string, ts bigint, amount double, name string"


class Trips:
    """
    A table and what must be in it.

    Args:
        spark: The session.
        path: Of the table.
        settings: Of every client.
        storage_options: For a path on S3.
    """

    def __init__(
        self, spark: Any, path: str, settings: dict[str, str], storage_options: dict[str, str] | None = None
    ) -> None:
        self.spark, self.path, self.settings, self.storage_options = spark, path, settings, storage_options
        # Few rows are written by the driver or by a task: each test goes both ways in turn, unless it chooses.
        ways = [settings | {DRIVER_ROWS: rows} for rows in ("0", "1000") if DRIVER_ROWS not in settings] or [settings]
        self._clients = itertools.cycle(
            [hudi_py.WriteClient(spark, path, way, storage_options=storage_options) for way in ways]
        )
        self.model: dict[tuple[str, str], dict[str, Any]] = {}
        self.is_partitioned = "hoodie.datasource.write.partitionpath.field" in settings
        self.latest_wins = settings["hoodie.write.table.version"] == "6"

    @property
    def client(self) -> Any:
        """One of several clients of the table."""
        return next(self._clients)

    def frame(self, rows: list[dict[str, Any]], schema: str = ROWS) -> Any:
        """A DataFrame that Spark knows the size of."""
        import pandas as pd

        names = [part.split()[0] for part in schema.split(", ")]
        frame = pd.DataFrame([[row.get(name) for name in names] for row in rows], columns=names, dtype=object)
        return self.spark.createDataFrame(frame, schema)

    def upsert(self, rows: list[dict[str, Any]]) -> Any:
        """Rows, of which ``deleted`` ones are deletes by ``_hoodie_is_deleted``."""
        best: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            key = self.key(row)
            if key not in best or row["ts"] >= best[key]["ts"]:
                best[key] = row
        for key, row in best.items():
            stored = self.model.get(key)
            if stored is not None and not self.latest_wins and stored["ts"] > row["ts"]:
                continue
            if row.get("_hoodie_is_deleted"):
                self.model.pop(key, None)
            else:
                self.model[key] = row
        deletes = any("_hoodie_is_deleted" in row for row in rows)
        return self.client.upsert(self.frame(rows, f"{ROWS}, _hoodie_is_deleted boolean" if deletes else ROWS))

    def delete(self, rows: list[dict[str, Any]]) -> Any:
        """Rows by their key."""
        for row in rows:
            self.model.pop(self.key(row), None)
        return self.client.delete(self.frame(rows, "id string, region string"))

    def insert(self, rows: list[dict[str, Any]], operation: str = "insert") -> Any:
        """Rows with keys that the table does not hold."""
        self.model.update((self.key(row), row) for row in rows)
        return getattr(self.client, operation)(self.frame(rows))

    def key(self, row: dict[str, Any]) -> tuple[str, str]:
        """A key is unique within its partition."""
        return (row["region"] if self.is_partitioned else "", row["id"])

    def expected(self) -> list[tuple[Any, ...]]:
        """The model's rows, sorted."""
        return sorted((row["id"], row["region"], row["ts"], row["amount"], row["name"]) for row in self.model.values())

    def stored(self, **which: str) -> list[tuple[Any, ...]]:
        """Our own reader's rows, sorted; *which* snapshot is for `hudi_py.read`."""
        frame = hudi_py.read(self.spark, self.path, storage_options=self.storage_options, **which)
        return sorted(tuple(row) for row in frame.select("id", "region", "ts", "amount", "name").collect())

    def stored_by_hudi_rs(self) -> list[tuple[Any, ...]]:
        """The rows as the package ``hudi`` sees them, sorted."""
        return sorted(
            (row["id"], row["region"], row["ts"], row["amount"], row["name"])
            for row in hudi_rs_rows(self.path, self.storage_options)
        )

    def check(self) -> None:
        """Both readers see the model."""
        assert self.expected() == self.stored()
        assert self.expected() == self.stored_by_hudi_rs()


def hudi_rs_rows(path: str, storage_options: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """What a second, independent reader sees."""
    import pyarrow as pa

    hudi = pytest.importorskip("hudi", reason="the package hudi (hudi-rs) is not installed")
    builder = hudi.HudiTableBuilder.from_base_uri(path)
    if storage_options is not None:
        named = {_HUDI_RS_NAMES[key]: value for key, value in storage_options.items()}
        builder = builder.with_storage_options({**named, "aws_allow_http": "true"})
    batches = builder.build().read()
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist(maps_as_pydicts="strict")]


def trip(number: int, ts: int = 1, region: str | None = None, **more: Any) -> dict[str, Any]:
    """One row; the number decides its key and, unless given, its region."""
    return {
        "id": f"k{number:05d}",
        "region": f"r{number % 3}" if region is None else region,
        "ts": ts,
        "amount": number + ts / 8,
        "name": f"n{ts} ü𝄞"[: 3 + number % 3],
        **more,
    }
