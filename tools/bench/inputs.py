"""Rows of the write workloads: Parquet files made once per run, read by every contestant."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS = 20
FILES = 4
SETTINGS = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(numbers: list[int], version: int) -> pa.Table:
    """One row for each number, which decides the key and the partition."""
    chance = random.Random(version)  # noqa: S311  (reproducible rows)
    return pa.table(
        {
            "id": [f"key-{number:012d}" for number in numbers],
            "ts": pa.array([version] * len(numbers), pa.int64()),
            "region": [f"r{number % PARTITIONS:02d}" for number in numbers],
            "a": pa.array([chance.getrandbits(40) for _ in numbers], pa.int64()),
            "b": [chance.random() for _ in numbers],
            "c": [f"word{chance.randrange(20000):05d}" for _ in numbers],
        }
    )


def make_inputs(folder: Path, base_rows: int, batch_rows: int) -> None:
    """``base``, and ``spread``: half of it replaces keys all over the base, half is new."""
    chance = random.Random(11)  # noqa: S311  (reproducible rows)
    half = min(batch_rows // 2, base_rows)
    spread = [*chance.sample(range(base_rows), half), *range(base_rows, base_rows + half)]
    chance.shuffle(spread)
    for name, numbers, version in (("base", list(range(base_rows)), 1), ("spread", spread, 2)):
        (folder / name).mkdir(parents=True)
        size = -(-len(numbers) // FILES)
        for part in range(FILES):
            chunk = numbers[part * size : (part + 1) * size]
            pq.write_table(rows(chunk, version), folder / name / f"part-{part}.parquet")


def small_batch(folder: Path, commit: int, count: int) -> Path:
    """A batch of *count* rows in one partition, for the workload of small commits."""
    path = folder / f"small-{commit}.parquet"
    pq.write_table(rows([number * PARTITIONS for number in range(count)], commit), path)
    return path
