"""``hudi-py read``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import render
from hudi_py.inspection.options import Common, command, print_json

if TYPE_CHECKING:
    import pyarrow as pa


@click.command()
@click.argument("table")
@click.option("--as-of", help="As the table was at that time; a savepoint's name will do.")
@click.option("--columns", help="Only these, comma separated.")
@click.option("--limit", type=click.IntRange(min=0), help="At most N rows.")
@click.option("--meta", is_flag=True, help="The _hoodie_ columns too.")
@click.option("-o", "output", type=click.Path(), help="Write the rows to a .parquet, .csv or .jsonl file.")
@command
def read(
    common: Common,
    table: str,
    as_of: str | None,
    columns: str | None,
    limit: int | None,
    meta: bool,
    output: str | None,
) -> None:
    """Rows of a copy-on-write table, without Spark."""
    from hudi_py.reading.snapshot import plain_rows, read_batches

    opened = common.open(table)
    files = opened.base_files(None if as_of is None else opened.resolve_time(as_of))
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    batches = _limited(read_batches(opened.storage, files, columns=wanted, with_meta=meta), limit)
    if output is not None:
        count = _write(output, batches)
        if common.as_json:
            print_json({"rows": count, "output": output})
        else:
            print(f"{count} rows written to {output}")
        return
    rows = [row for batch in batches for row in plain_rows(batch)]
    if common.as_json:
        print_json({"rows": len(rows), "data": rows})
        return
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        render.table(opened.config.name, names, [[_text(row.get(name)) for name in names] for row in rows])
    print(f"{len(rows)} rows")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        if left <= 0:
            return
        yield batch.slice(0, left)
        left -= batch.num_rows


def _write(path: str, batches: Iterator[pa.RecordBatch]) -> int:
    """Write all rows; the columns are those of the first batch."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    from hudi_py.reading.snapshot import plain_rows

    count = 0
    if path.endswith(".jsonl"):
        with open(path, "w", encoding="utf-8") as file:
            for batch in batches:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in plain_rows(batch))
                count += batch.num_rows
        return count
    openers: dict[str, Any] = {"parquet": pq.ParquetWriter, "csv": pyarrow.csv.CSVWriter}
    opener = openers.get(path.rpartition(".")[2])
    if opener is None:
        raise ConfigError(f"-o {path}: the name has to end in .parquet, .csv or .jsonl")
    first = next(batches, None)
    if first is None:
        raise ConfigError(f"the table has no rows; {path} was not written")
    with opener(path, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch.cast(first.schema))
            count += batch.num_rows
    return count
