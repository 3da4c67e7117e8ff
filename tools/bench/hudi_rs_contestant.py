#!/usr/bin/env python3
"""Contestant ``hudi-rs``: the PyPI package `hudi`, which reads only. Refuses what it cannot read by its own error."""

from __future__ import annotations

import argparse
import os
from typing import Any

from bench_common import Meter, serve
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder
from inputs import READ_COLUMNS

PARSER = argparse.ArgumentParser(description=__doc__)
PARSER.add_argument("--heap", default="2g")
PARSER.add_argument("--cores", default="2")
PARSER.parse_args()


def warm() -> dict[str, Any]:
    """Nothing has to be started."""
    return {"pid": os.getpid()}


def read(path: str, columns: list[str] | None, after: str | None = None, where: str | None = None) -> dict[str, Any]:
    """Read rows as Arrow batches."""
    if where is not None:
        raise NotImplementedError("its filters prune files only")
    options = HudiReadOptions().with_projection(columns or list(READ_COLUMNS))
    if after is not None:
        options = options.with_query_type(HudiQueryType.Incremental).with_start_timestamp(after)
    with Meter() as meter:
        table = HudiTableBuilder.from_base_uri(path).build()
        batches = table.read_stream(options) if after is None else table.read(options)
        rows = sum(batch.num_rows for batch in batches)
    return meter.dict(rows=rows)


if __name__ == "__main__":
    serve({function.__name__: function for function in (warm, read)})
