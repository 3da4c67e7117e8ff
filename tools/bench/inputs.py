"""Rows of the write workloads: Parquet files made once per run, read by every contestant."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS = 20
FILES = 4
LOCAL_PARTITIONS = 2
WRITE_SHARES = {"spread": 0.2, "local": 0.2, "fresh": 0.2, "gone": 0.1}
"""Rows of the batches, as shares of the base rows."""
KEY = "key-%012d"
READ_COLUMNS = ("id", "ts", "region", "a", "b", "c")
SETTINGS = {
    "hoodie.table.name": "bench",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}


def key_of(number: int) -> str:
    """Record key of a row."""
    return KEY % number


def rows(numbers: list[int], version: int) -> pa.Table:
    """One row for each number, which decides the key and the partition."""
    chance = random.Random(version)  # noqa: S311  (reproducible rows)
    return pa.table(
        {
            "id": [key_of(number) for number in numbers],
            "ts": pa.array([version] * len(numbers), pa.int64()),
            "region": [f"r{number % PARTITIONS:02d}" for number in numbers],
            "a": pa.array([chance.getrandbits(40) for _ in numbers], pa.int64()),
            "b": [chance.random() for _ in numbers],
            "c": [f"word{chance.randrange(20000):05d}" for _ in numbers],
        }
    )


def make_inputs(folder: Path, base_rows: int) -> None:
    """
    ``base`` and the batches of the writing workload.

    ``spread``: half of it replaces keys all over the base, half is new; ``local``: the same in two partitions;
    ``fresh``: new keys; ``gone``: keys of the base.
    """
    chance = random.Random(11)  # noqa: S311  (reproducible rows)
    sizes = {name: int(base_rows * share) for name, share in WRITE_SHARES.items()}
    two_partitions = [number for number in range(base_rows) if number % PARTITIONS < LOCAL_PARTITIONS]
    fresh = [number for number in range(base_rows, base_rows * PARTITIONS) if number % PARTITIONS < LOCAL_PARTITIONS]
    half, local = sizes["spread"] // 2, sizes["local"] // 2
    batches = {
        "base": (list(range(base_rows)), 1),
        "spread": ([*chance.sample(range(base_rows), half), *range(base_rows, base_rows + half)], 2),
        "local": ([*chance.sample(two_partitions, local), *fresh[:local]], 2),
        "fresh": (list(range(base_rows, base_rows + sizes["fresh"])), 2),
        "gone": (chance.sample(range(base_rows), sizes["gone"]), 2),
    }
    for name, (numbers, version) in batches.items():
        if name != "base":
            chance.shuffle(numbers)
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


def make_reading_inputs(folder: Path, count: int) -> None:
    """
    Batches of the reading workload.

    ``base``: *count* rows; ``fifth``: new versions of a fifth of them, ``spread`` of a hundredth, both all over the
    table; ``local``: new versions of a hundredth, all in one partition.
    """
    chance = np.random.default_rng(13)
    numbers = np.arange(count)
    local = numbers[numbers % PARTITIONS == 0]
    batches = {
        "base": (numbers, 1),
        "fifth": (np.sort(chance.choice(numbers, count // 5, replace=False)), 2),
        "spread": (np.sort(chance.choice(numbers, count // 100, replace=False)), 2),
        "local": (np.sort(chance.choice(local, min(count // 100, len(local)), replace=False)), 2),
    }
    for name, (chosen, version) in batches.items():
        (folder / name).mkdir(parents=True)
        for part, chunk in enumerate(np.array_split(chosen, FILES)):
            pq.write_table(_reading_rows(chunk, version, chance), folder / name / f"part-{part}.parquet")


def _reading_rows(numbers: np.ndarray, version: int, chance: np.random.Generator) -> pa.Table:
    """As `rows`, for millions of them."""
    words = pa.array([f"word{number:05d}" for number in range(20_000)])
    regions = pa.array([f"r{number:02d}" for number in range(PARTITIONS)])
    count = len(numbers)
    return pa.table(
        {
            "id": pa.array(np.char.mod(KEY, numbers)),
            "ts": pa.array(np.full(count, version), pa.int64()),
            "region": regions.take(pa.array(numbers % PARTITIONS)),
            "a": pa.array(chance.integers(0, 1 << 40, count), pa.int64()),
            "b": pa.array(chance.random(count)),
            "c": words.take(pa.array(chance.integers(0, len(words), count))),
        }
    )
