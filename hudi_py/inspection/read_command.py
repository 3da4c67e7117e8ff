"""``hudi-py read``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, at_most_one, command
from hudi_py.inspection.output_file import check_outside, whole_file
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.snapshot.batches import Batches

_WHERE: Final = """Show only rows that meet CONDITION, as in Spark SQL: = != < <= > >=, in, like, between, is null; and,
    or, not, parentheses. Fields of structs: a.b; text in quotes. Repeatable: rows have to meet all conditions. Files
    that cannot have such a row are not opened."""

_RULED_OUT_BY: Final = {
    "partitions": "their partitions",
    "record_index": "the record index",
    "metadata_table": "column statistics",
    "bloom_filters": "Bloom filters",
    "footers": "the files' footers",
}


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--as-of", metavar="TIME", help="Read the table as it was at this time, or name of a savepoint.")
@click.option("--savepoint", help="Read this savepoint, given by instant or name; cleans keep its files.")
@click.option("--from", "start", metavar="TIME", help="Show only rows that commits after TIME changed; 0 for all.")
@click.option("--to", "end", metavar="TIME", help="Show rows as they were after the last commit up to TIME.")
@click.option("--with-deletes", is_flag=True, help="With --from: show deleted rows too, as they were before.")
@click.option("--cdc", is_flag=True, help="Show each single change from --from to --to: operation, row before, after.")
@click.option("--read-optimized", is_flag=True, help="Read base files only; rows in log files are left out.")
@click.option("--columns", help="Show only these columns, separated by commas.")
@click.option("--where", multiple=True, metavar="CONDITION", help=_WHERE)
@click.option("--limit", type=click.IntRange(min=0), help="Show at most N rows.")
@click.option("--meta", is_flag=True, help="Show the _hoodie_* columns too.")
@click.option("-o", "output", type=click.Path(), help="Write the rows to a .parquet, .csv or .jsonl file.")
@command
def read(
    common: Common,
    table: str,
    as_of: str | None,
    savepoint: str | None,
    start: str | None,
    end: str | None,
    with_deletes: bool,
    cdc: bool,
    read_optimized: bool,
    columns: str | None,
    where: tuple[str, ...],
    limit: int | None,
    meta: bool,
    output: str | None,
) -> None:
    """Read the rows of a table, or those that changed in a range of time (--from, --to). Log files are merged."""
    from hudi_py.rows.read import plain_rows

    at_most_one({"--as-of": as_of, "--savepoint": savepoint, "--from or --to": end if start is None else start})
    # One by one, so that the message names the two options that do not go together.
    for other, value in {"--as-of": as_of, "--savepoint": savepoint, "--where": where, "--meta": meta,
                         "--with-deletes": with_deletes, "--read-optimized": read_optimized}.items():  # fmt: skip
        at_most_one({"--cdc": cdc, other: value})
    opened = common.open(table)
    if output is not None:
        # A file of rows inside the table would be a data file that no instant knows.
        check_outside(output, opened.storage.root)
    # Empty names are left out: a comma at the end does not stand for a column.
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    if with_deletes and start is None:
        raise ConfigError("--with-deletes shows rows deleted after a time; give it with --from")
    rows_read: Batches
    if cdc:
        rows_read = opened.change_log(start, end, columns=wanted)
    elif start is None and end is None:
        at = {"as_of": as_of} if savepoint is None else {"savepoint": savepoint}
        rows_read = opened.rows(where=where, columns=wanted, with_meta=meta, read_optimized=read_optimized, **at)
    else:
        if read_optimized:
            raise ConfigError("--read-optimized reads a snapshot; it cannot be used with --from or --to")
        rows_read = opened.changes(start, end, with_deletes=with_deletes, where=where, columns=wanted, with_meta=meta)
    batches = _limited(iter(rows_read), limit)
    if output is not None:
        count = _write(output, batches, rows_read.schema)
        if common.as_json:
            print_json({"rows": count, "output": output} | _counts(rows_read, where))
        else:
            say(f"{counted(count, 'row')} written to {output}{_of_files(rows_read, where)}")
        return
    # All rows: a table on the terminal needs the width of each column.
    rows = [row for batch in batches for row in plain_rows(batch)]
    if common.as_json:
        print_json({"rows": len(rows), "data": rows} | _counts(rows_read, where))
        return
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        render.table(opened.config.name, names, [[_text(row.get(name)) for name in names] for row in rows])
    say(f"{counted(len(rows), 'row')}{_of_files(rows_read, where)}")


def _counts(rows: Batches, where: tuple[str, ...]) -> dict[str, Any]:
    """Number of files that were read, and that were skipped, by what ruled them out; empty without conditions."""
    from hudi_py.snapshot.rows import Rows

    # Ranges and change logs read what their commits wrote, and skip nothing.
    if not where or not isinstance(rows, Rows):
        return {}
    count = rows.count
    return {"files_read": count.read, "files_skipped": count.skipped, "files_skipped_by": dict(rows.skipped)}


def _of_files(rows: Batches, where: tuple[str, ...]) -> str:
    from hudi_py.snapshot.rows import Rows

    if not where or not isinstance(rows, Rows):
        return ""
    # Named by what ruled them out, so that a missing index is noticed.
    skipped = ", ".join(f"{number} by {_RULED_OUT_BY[by]}" for by, number in rows.skipped.items() if number)
    return f", from {rows.count.read} of {counted(rows.file_count, 'file')}" + (
        f" (skipped: {skipped})" if skipped else ""
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    while left is None or left > 0:
        batch = next(batches, None)
        if batch is None:
            return
        # Batch by batch: a limit of ten rows must not read a whole table.
        yield batch if left is None else batch.slice(0, left)
        left = None if left is None else left - batch.num_rows


def _write(path: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write all rows to a file, and return their number."""
    write = _WRITERS.get(path.rpartition(".")[2])
    if write is None:
        raise ConfigError(f"-o {path}: the name has to end in .parquet, .csv or .jsonl")
    with whole_file(path) as file:
        return write(file, batches, schema)


def _write_parquet(file: BinaryIO, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> int:
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _write_csv(file: BinaryIO, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> int:
    import pyarrow as pa
    import pyarrow.csv

    from hudi_py.rows.read import flat_batch

    count = 0
    with pyarrow.csv.CSVWriter(file, flat_batch(pa.RecordBatch.from_pylist([], schema=schema)).schema) as writer:
        for batch in batches:
            writer.write_batch(flat_batch(batch))
            count += batch.num_rows
    return count


def _write_jsonl(file: BinaryIO, batches: Iterator[pa.RecordBatch], _: pa.Schema) -> int:
    from hudi_py.rows.read import plain_rows

    count = 0
    for batch in batches:
        file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in plain_rows(batch))
        count += batch.num_rows
    return count


_WRITERS: Final[Mapping[str, Callable[[BinaryIO, Iterator[pa.RecordBatch], pa.Schema], int]]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}
