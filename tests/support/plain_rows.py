"""Rows of plain base files in memory, for what reads them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.model.files import FileSlice, format_base_file, parse_base_file
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.memory import MemoryStorage


def rows_of_files(table: Callable[[random.Random], pa.Table], schema: pa.Schema, files: int, group_rows: int) -> Rows:
    """Return the rows of a number of files, each with a table at random in row groups of *group_rows* rows."""
    storage, rng, slices = MemoryStorage("/lake/trips"), random.Random(5), []
    for number in range(files):
        name = format_base_file(f"f{number}-0", "0-0-0", f"2026010100000000{number}")
        sink = pa.BufferOutputStream()
        pq.write_table(table(rng), sink, row_group_size=group_rows)
        storage.create_new(name, sink.getvalue().to_pybytes())
        slices.append(FileSlice("", f"f{number}-0", name[-25:-8], parse_base_file(name)))
    return Rows(storage, slices, schema)
