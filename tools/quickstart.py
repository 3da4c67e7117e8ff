"""
The main job of hudi_py, as a script to run and to copy from.

A table is created and upserted a few times through PySpark. Every commit cleans up after itself; what that reclaimed is
measured on the disk, not taken from our own word. Then the timeline is shown and the table is read back and compared.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READERS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
COMMITS_RETAINED = 2
DEMO_ROWS = 3000


class Source(NamedTuple):
    """Rows to write, and what the table needs to know about them."""

    rows: DataFrame
    record_key: str
    partition_by: str | None
    ordering: str | None
    changes: bool  # whether upserts carry new values: ours do, a user's own rows are written again as they are


class Files(NamedTuple):
    """Data files of the table on disk: relative path to size in bytes."""

    size_by_path: dict[str, int]

    @property
    def total_bytes(self) -> int:
        """Size of all of them."""
        return sum(self.size_by_path.values())


@click.command(context_settings={"max_content_width": 100})
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--table-version", type=click.Choice(["6", "8", "9"]), default="9", show_default=True)
@click.option("--input", "input_file", type=click.Path(path_type=Path), help="CSV, JSON lines or Parquet.")
@click.option("--record-key", help="Column of --input that identifies a row.  [default: the first]")
@click.option("--partition-by", help="Column of --input to partition the table by.  [default: none]")
@click.option("--ordering", help="Column of --input that decides between two versions of a row.  [default: none]")
@click.option("--upserts", type=click.IntRange(1, 50), default=4, show_default=True)
def main(
    directory: Path | None,
    table_version: str,
    input_file: Path | None,
    record_key: str | None,
    partition_by: str | None,
    ordering: str | None,
    upserts: int,
) -> None:
    """Create a Hudi table in DIRECTORY (default: a new temporary one), upsert it, clean it, read it back."""
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    kind = check_input(input_file)
    if input_file is None and (record_key or partition_by or ordering):
        raise click.UsageError("--record-key, --partition-by and --ordering describe an --input FILE; none was given")
    table_path = choose_directory(directory)

    from hudi_py.errors import HudiError
    from hudi_py.spark.session import local_session

    try:
        with console.status("starting Spark"):
            spark = local_session("hudi_py quickstart", cores=2)
        try:
            if input_file is None:
                source = demo_source(spark)
            else:
                source = read_input(spark, input_file, kind, record_key, partition_by, ordering)
            same = run(console, spark, source, table_path, table_version, upserts)
        finally:
            spark.stop()
    except HudiError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(0 if same else 1)


def run(
    console: Console, spark: SparkSession, source: Source, table_path: Path, table_version: str, upserts: int
) -> bool:
    """Write, clean, show and compare; False when the table does not give back what was written."""
    import hudi_py

    console.print(f"Table {table_path}, version {table_version}; a clean keeps the last {COMMITS_RETAINED} commits")
    source.rows.cache()
    written = source.rows.count()
    client = hudi_py.WriteClient(spark, str(table_path), settings(source, table_path.name, table_version))
    commits = Table("step", "rows", "seconds", "files added", "files reclaimed", "reclaimed", "on disk", box=None)
    before = data_files(table_path)
    reclaimed_bytes = 0
    for step, rows in batches(source, upserts):
        if rows.isEmpty():  # a third of very few rows
            continue
        started = time.monotonic()
        with console.status(step):
            (client.bulk_insert if step == "bulk insert" else client.upsert)(rows)
        elapsed = time.monotonic() - started
        after = data_files(table_path)
        gone = before.size_by_path.keys() - after.size_by_path.keys()
        gone_bytes = sum(before.size_by_path[path] for path in gone)
        reclaimed_bytes += gone_bytes
        added = len(after.size_by_path.keys() - before.size_by_path.keys())
        sizes = (format_bytes(gone_bytes), format_bytes(after.total_bytes))
        commits.add_row(step, f"{rows.count():,}", f"{elapsed:.1f}", str(added), str(len(gone)), *sizes)
        before = after
    console.print(commits)
    console.print(f"Reclaimed {format_bytes(reclaimed_bytes)}; {format_bytes(before.total_bytes)} are in use")

    command = ["hudi-py", "timeline", str(table_path)]
    console.print(f"\n$ {shlex.join(command)}")
    subprocess.run([sys.executable, "-m", "hudi_py", *command[1:]], check=True)

    console.print('\n>>> hudi_py.read(spark, "…")')
    read = hudi_py.read(spark, str(table_path))
    show_rows(console, read)
    same = compare(read, source, written, upserts)
    console.print(
        f"{read.count():,} rows read back, the same as were written"
        if same
        else "[bold red]The rows read back are not those that were written; please report this[/]"
    )
    console.print(f"The table stays in {table_path}")
    return same


def check_input(path: Path | None) -> str:
    """Return Spark's name for the format of *path* before anything is started."""
    if path is None:
        return ""
    if not path.is_file():
        raise click.UsageError(f"--input {path}: there is no such file")
    if path.suffix.lower() not in READERS:
        raise click.UsageError(f"--input {path}: the name must end in one of {', '.join(READERS)}")
    return READERS[path.suffix.lower()]


def choose_directory(directory: Path | None) -> Path:
    """Return an absolute folder that is empty or absent, so that nothing of the user's is mixed with the table."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="hudi-quickstart-")) / "trips"
    if directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty; name a folder that is empty or does not exist")
    return directory.resolve()


def settings(source: Source, name: str, table_version: str) -> dict[str, str]:
    """Hudi's own settings for the table and for the clean after every commit."""
    chosen = {
        "hoodie.table.name": name.replace("-", "_"),
        "hoodie.write.table.version": table_version,
        "hoodie.datasource.write.recordkey.field": source.record_key,
        "hoodie.clean.automatic": "true",
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.commits.retained": str(COMMITS_RETAINED),
    }
    if source.partition_by is not None:
        chosen["hoodie.datasource.write.partitionpath.field"] = source.partition_by
    if source.ordering is not None:
        chosen["hoodie.table.ordering.fields"] = source.ordering
    return chosen


def demo_source(spark: SparkSession) -> Source:
    """Trips in three regions; ``version`` tells which write a row comes from."""
    rows = spark.range(DEMO_ROWS).selectExpr(
        "concat('trip-', lpad(id, 5, '0')) AS id",
        "element_at(array('eu', 'us', 'asia'), cast(id % 3 AS int) + 1) AS region",
        "cast((id * 37) % 5000 / 100.0 AS double) AS fare",
        "cast(0 AS bigint) AS version",
    )
    return Source(rows, "id", "region", "version", changes=True)


def read_input(
    spark: SparkSession, path: Path, kind: str, record_key: str | None, partition_by: str | None, ordering: str | None
) -> Source:
    """
    Read a file of the user's own.

    Raises:
        ConfigError: A column is absent, or the record key does not identify the rows.
    """
    from hudi_py.errors import ConfigError

    options = {"header": "true", "inferSchema": "true"} if kind == "csv" else {}
    rows = spark.read.format(kind).options(**options).load(path.resolve().as_uri())
    if not rows.columns or rows.isEmpty():
        raise ConfigError(f"{path} holds no rows; nothing was written")
    key = record_key or rows.columns[0]
    for option, column in (("--record-key", key), ("--partition-by", partition_by), ("--ordering", ordering)):
        if column is not None and column not in rows.columns:
            raise ConfigError(f"{option} {column}: {path} has no such column; it has {', '.join(rows.columns)}")
    quoted = "`" + key.replace("`", "``") + "`"
    total, distinct, nulls = rows.selectExpr(
        "count(*)", f"count(DISTINCT {quoted})", f"count_if({quoted} IS NULL)"
    ).first() or (0, 0, 0)
    if nulls or distinct < total:
        raise ConfigError(
            f"column {key} of {path} does not identify the rows ({total - nulls - distinct} repeated, {nulls} empty "
            f"values in {total} rows); name one that does by --record-key"
        )
    return Source(rows, key, partition_by, ordering, changes=False)


def batches(source: Source, upserts: int) -> Iterator[tuple[str, DataFrame]]:
    """Everything once, then a third of the rows at a time: changed in the demo, unchanged in a user's own file."""
    from pyspark.sql import functions as f

    yield "bulk insert", source.rows
    for number in range(1, upserts + 1):
        rows = source.rows.where(f.pmod(f.hash(source.record_key), f.lit(3)) == number % 3)
        if source.changes:
            rows = rows.withColumn("version", f.lit(number).cast("bigint")).withColumn(
                "fare", f.round(f.col("fare") + number, 2)
            )
        yield f"upsert {number}", rows


def compare(read: DataFrame, source: Source, written: int, upserts: int) -> bool:
    """Whether *read* holds exactly the newest version of every row."""
    from pyspark.sql import functions as f

    columns = source.rows.columns
    newest = source.rows
    for step, rows in batches(source, upserts):
        if step != "bulk insert":
            newest = newest.join(rows.select(source.record_key), source.record_key, "left_anti").unionByName(rows)
    found = read.select(*[f.col(f"`{column}`") for column in columns])
    expected = newest.select(*[f.col(f"`{column}`") for column in columns])
    return found.count() == written and found.exceptAll(expected).isEmpty()


def data_files(table_path: Path) -> Files:
    """List what lies on disk outside Hudi's own folder, as anyone could; hidden files are not data."""
    if not table_path.exists():
        return Files({})
    relative = ((path, path.relative_to(table_path)) for path in table_path.rglob("*.parquet"))
    return Files({str(name): path.stat().st_size for path, name in relative if ".hoodie" not in name.parts})


def format_bytes(size: int) -> str:
    """Return a size for people."""
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


def show_rows(console: Console, rows: DataFrame) -> None:
    """Print the first rows without Hudi's own columns."""
    columns = [column for column in rows.columns if not column.startswith("_hoodie_")][:8]
    shown = Table(*columns, box=None)
    for row in rows.select(*[f"`{column}`" for column in columns]).orderBy(f"`{columns[0]}`").limit(5).collect():
        shown.add_row(*[str(value) for value in row])
    console.print(shown)


if __name__ == "__main__":
    main(prog_name="tools/quickstart")
