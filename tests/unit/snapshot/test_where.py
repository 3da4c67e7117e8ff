"""Conditions: exact on every row, and no statistics change which rows come back."""

from __future__ import annotations

import io
import math
import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.mdt.statistics import column_prefix, key_suffix
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.model.files import FileSlice, format_base_file, parse_base_file
from hudi_py.rows.bounds import PathBounds, bounds_of_chunk
from hudi_py.rows.predicate import Bounds
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.where_model import SCHEMA, some_condition, some_rows

UTC = timezone.utc
NAN = float("nan")
OLD_TYPES = {"l": pa.int32(), "d": pa.float32(), "dec": pa.decimal128(7, 2)}
KINDS = {"s": "string", "i": "int", "l": "long", "f": "float", "d": "double", "b": "boolean", "day": "date",
         "t": "timestamp-micros", "local": "local-timestamp-micros", "dec": "decimal", "nest.n": "int",
         "nest.deep.s": "string", "n.i": "int", "n.t": "string"}  # fmt: skip


def slices(files):
    """File slices of base files alone."""
    return [FileSlice(path, base.file_id, base.instant_time, base) for path, base in files]


def write(storage, rng, number, columns):
    """A base file, in the types of today or of before; row groups of few rows; sometimes without statistics."""
    name = format_base_file(f"f{number}-0", "0-0-0", f"202601010000000{number:02}")
    fields = [
        pa.field(field.name, OLD_TYPES.get(field.name, field.type) if rng.random() < 0.3 else field.type)
        for field in SCHEMA
        if field.name in columns and rng.random() > 0.1
    ]
    keys = [str(at) for at in range(len(next(iter(columns.values()))))]
    data = pa.table({"_hoodie_record_key": keys, **{f.name: pa.array(columns[f.name], f.type) for f in fields}})
    sink = io.BytesIO()
    stored = rng.choice([True, True, False, ["i", "s"]])
    pq.write_table(data, sink, row_group_size=rng.choice([2, 5, 100]), write_statistics=stored)
    storage.create_new(name, sink.getvalue())
    return ("", parse_base_file(name)), data


class Told:
    """A stand-in for the metadata table: what Hudi derives from the footers, as `of_column` gives it."""

    def __init__(self, tables):
        self._tables = tables

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def of_column(self, column):
        found = {}
        for name, data in self._tables.items():
            path = column.split(".")
            if path[0] in data.column_names and column in KINDS:
                values = data[path[0]]
                values = pa.compute.struct_field(values, path[1:]) if path[1:] else values
                statistics = self._statistics(column, name, values)
                found[column_prefix(column) + key_suffix("", name)] = statistics
        return found

    def _statistics(self, column, name, values):
        known = [each for each in values.to_pylist() if each is not None]
        if any(isinstance(each, float) and math.isnan(each) for each in known):
            known = [0.0]  # as Hudi does
        order = (lambda text: text.encode("utf-16-be")) if KINDS[column] == "string" else None  # as Java does
        bounds = [min(known, key=order), max(known, key=order)] if known else [None, None]
        if column in ("t", "local") and known:
            bounds = [(each.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(0, 0, 1)
                      for each in bounds]  # fmt: skip
        return ColumnStatistics(
            column=column, where=name, kind=KINDS[column], minimum=bounds[0], maximum=bounds[1],
            value_count=len(values), null_count=values.null_count, size_bytes=1, uncompressed_bytes=1,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_statistics_change_no_row(seed):
    """Of files old and new, with nulls, NaN, widened types and missing columns: what a look at every row gives."""
    rng = random.Random(seed)
    storage = MemoryStorage("/lake/trips")
    names = [*rng.sample(SCHEMA.names, 2), *rng.sample(["s", "f", "d", "i", "nest"], 1)]
    schema = pa.schema([field for field in SCHEMA if field.name in names])
    files, tables = [], {}
    for number in range(rng.randrange(2, 6)):
        file, data = write(storage, rng, number, some_rows(rng, schema.names))
        files.append(file)
        tables[file[1].name] = data
    everything = [row for batch in Rows(storage, slices(files), schema) for row in batch.to_pylist()]
    skipped = 0
    for _ in range(14):
        asked = [some_condition(rng, schema.names) for _ in range(rng.choice([1, 1, 2]))]
        expected = [row for row in everything if all(each.of(row) for each in asked)]
        for statistics in (None, lambda: Told(tables), _broken):
            rows = Rows(storage, slices(files), schema, where=[each.text for each in asked], statistics=statistics)
            found = [row for batch in rows for row in batch.to_pylist()]
            assert repr(expected) == repr(found), [each.text for each in asked]
            assert rows.count.read + rows.count.skipped == len(files)
            assert rows.count.by_metadata_table <= rows.count.skipped
            skipped += rows.count.skipped
    assert skipped, "nothing was ever skipped"


def _broken():
    raise CorruptMetadata("the metadata table is damaged")


# --- what is opened ---------------------------------------------------------------------------------------------------
def numbered(storage, count):
    """Files of ten rows each, in order."""
    files, tables = [], {}
    for number in range(count):
        name = format_base_file(f"f{number}-0", "0-0-0", f"202601010000000{number:02}")
        numbers = pa.array(range(10 * number, 10 * number + 10), pa.int32())
        nested = pa.StructArray.from_arrays([numbers, numbers.cast(pa.string())], names=["i", "t"])
        data = pa.table({"i": numbers, "n": nested})
        sink = io.BytesIO()
        pq.write_table(data, sink, row_group_size=5)
        storage.create_new(name, sink.getvalue())
        files.append(("", parse_base_file(name)))
        tables[name] = data
    return files, tables


def test_files_that_the_metadata_table_rules_out_are_not_opened():
    """One that is gone is not missed; without the metadata table it is."""
    storage = MemoryStorage("/lake/trips")
    files, tables = numbered(storage, 5)
    storage.delete(files[0][1].name)
    schema = pa.schema([("i", pa.int32())])
    rows = Rows(storage, slices(files), schema, where=["i >= 23", "i < 31"], statistics=lambda: Told(tables))
    assert [row["i"] for batch in rows for row in batch.to_pylist()] == list(range(23, 31))
    assert (rows.count.read, rows.count.skipped, rows.count.by_metadata_table, rows.file_count) == (2, 3, 3, 5)


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("i < 5 or i in (31, 44)", 3),
        ("i in (1, 2, null)", 1),
        ("i not in (1, 2)", 5),
        ("not (i >= 10 and i < 50)", 1),
        ("not (i < 40 or i is null)", 1),
        ("i between 8 and 12", 2),
        ("i not between 0 and 39", 1),
        ("i is null or i = 1", 1),
        ("i not in (1, null)", 0),
        ("i > 38.5", 2),
        ("i > 4e1", 1),
        ("n.i = 23", 1),
        ("n.t like '2%'", 2),
        ("n.t like '1_' and i > 0", 2),
        ("not (n.t >= '2')", 2),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_each_kind_of_condition_leaves_files_closed(where, read, told):
    """By the metadata table, and by footers as well: of both sides of `or`, under `not`, of fields of structs."""
    storage = MemoryStorage("/lake/trips")
    files, tables = numbered(storage, 5)
    schema = pa.schema([("i", pa.int32()), ("n", pa.struct([("i", pa.int32()), ("t", pa.string())]))])
    rows = Rows(storage, slices(files), schema, where=where, statistics=(lambda: Told(tables)) if told else None)
    assert sum(batch.num_rows for batch in rows) > 0 or not read
    assert (rows.count.read, rows.count.skipped) == (read, 5 - read)
    assert rows.count.by_metadata_table == (rows.count.skipped if told else 0)


def test_columns_asked_for_and_columns_of_conditions_are_apart():
    """A condition may be on a column that is not shown, meta columns too."""
    storage = MemoryStorage("/lake/trips")
    file, data = write(storage, random.Random(1), 0, {"s": ["x", "y", "z"]})
    rows = Rows(storage, slices([file]), SCHEMA, columns=["s"], where=["_hoodie_record_key = 1"])
    assert [{"s": "y"}] == [row for batch in rows for row in batch.to_pylist()]
    assert data.num_rows == 3
    rows = Rows(storage, slices([file]), SCHEMA, columns=["s"], where=["s > x"], with_meta=True)
    assert [*META_COLUMNS, "s"] == rows.schema.names


# --- bounds -----------------------------------------------------------------------------------------------------------
def told(kind, low, high, nulls=0):
    return ColumnStatistics(column="c", where="f", kind=kind, minimum=low, maximum=high, value_count=9,
                            null_count=nulls, size_bytes=1, uncompressed_bytes=1)  # fmt: skip


@pytest.mark.parametrize(
    ("statistics", "arrow"),
    [
        (told("double", 0.0, 0.0), pa.float64()),  # NaN among them
        (told("int", 1, 2), pa.string()),  # retyped
        (told("int", 1, 2), pa.date32()),  # 0.15.0 after a compaction
        (told("bytes", b"1", b"2"), pa.decimal128(9, 2)),  # the same
        (told("long", 1, 2), pa.timestamp("us", "UTC")),  # of what unit
        (told("decimal", Decimal(1), Decimal(2)), pa.decimal128(38, 18)),  # rounded
        (told("string", "a", "\uff00"), pa.string()),  # UTF-16 has another maximum
        (told("bytes", b"1", b"2"), pa.binary()),
        (told("int", 2, 1), pa.int32()),  # makes no sense
        (told("string", None, None, nulls=9), pa.string()),  # so does Hudi tell of a file without statistics
        (told("timestamp-micros", 1, 2), pa.timestamp("us")),
        (told("int", 1, None), pa.int32()),
    ],
)
def test_statistics_that_may_be_inexact_rule_nothing_out(statistics, arrow):
    """No bounds come of them."""
    found = PathBounds(("c",), arrow).of(statistics)
    assert (found.minimum, found.maximum, found.has_only_nulls) == (None, None, False)


def test_bounds_of_a_footer_that_are_not_numbers_rule_nothing_out():
    """Java's Parquet writes a NaN as the maximum."""
    statistics = SimpleNamespace(has_null_count=True, null_count=0, has_min_max=True, min=0.5, max=NAN)
    chunk = SimpleNamespace(statistics=statistics, num_values=2)
    assert bounds_of_chunk(chunk, pa.float64(), pa.float64()) == Bounds(has_nulls=False)


def test_a_maximum_that_a_footer_leaves_out_for_its_length_rules_nothing_out():
    """Some releases of pyarrow give an empty text for it, beside a minimum that is one."""
    statistics = SimpleNamespace(has_null_count=True, null_count=0, has_min_max=True, min="", max="")
    chunk = SimpleNamespace(statistics=statistics, num_values=2)
    assert bounds_of_chunk(chunk, pa.string(), pa.string()) == Bounds(has_nulls=False)
    out = io.BytesIO()
    pq.write_table(pa.table({"s": ["", "x" * 5000]}), out)
    written = pq.ParquetFile(out).metadata.row_group(0).column(0)
    assert bounds_of_chunk(written, pa.string(), pa.string()) == Bounds(has_nulls=False)


# --- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    ["i = x", "i = '1.5'", f"l = '{2**63}'", "f = one", "b = 1", "day = 2024", "t = noon", "dec = NaN", "bin = a",
     f"dec = {10**80}", "nest = 1", "nowhere = 1", "local = 2024-01-01T00:00:00Z", "s = 7", "s in ('a', 7)", "s = 007",
     "s = true", "s > date '2024-01-01'", "i = true", "day = timestamp '2024-01-01 00:00:00'", "i like '1%'",
     "s like 'a\\'", "s like '\\a'", "nest.m = 1", "nest.n.x = 1", "i.x = 1", "s = s", "s = i", "nest.deep = 1"],
)  # fmt: skip
def test_values_of_another_type_are_refused(text):
    """Before a file is opened; the message names the column."""
    with pytest.raises(ConfigError, match=text.split()[0].split(".")[0]):
        Rows(MemoryStorage("/lake/trips"), [], SCHEMA, where=[text])


def test_numbers_without_quotes_are_text_of_meta_columns():
    """Instants and record keys look like numbers; zeros before them count."""
    storage = MemoryStorage("/lake/trips")
    file, _ = write(storage, random.Random(1), 0, {"s": ["x"] * 12})
    for where, count in (("_hoodie_record_key = 7", 1), ("_hoodie_record_key = 07", 0), ("_hoodie_record_key > 8", 1)):
        assert sum(batch.num_rows for batch in Rows(storage, slices([file]), SCHEMA, where=where)) == count


def test_one_text_in_the_place_of_a_list_of_columns_is_refused_as_that():
    """It is not taken for a list of letters; the message shows the list."""
    with pytest.raises(ConfigError, match=r"give a list: columns=\['s'\]"):
        Rows(MemoryStorage(), [], SCHEMA, columns="s")


def schema_of_frame(table, columns):
    from hudi_py.spark.question import Question  # apart: most environments of these tests lack Spark

    return Question(columns=columns).schema(table.snapshot())


DOORS = {
    "rows": lambda table, columns: table.rows(columns=columns),
    "earlier rows": lambda table, columns: table.rows(columns=columns, as_of="0m"),
    "changes": lambda table, columns: table.changes(columns=columns),
    "deleted rows, too": lambda table, columns: table.changes(columns=columns, with_deletes=True),
    "change log": lambda table, columns: table.change_log(columns=columns),
    "shown schema": lambda table, columns: table.snapshot().shown_schema(columns),
    "dataset": lambda table, columns: table.rows().to_dataset().to_table(columns),
    "empty dataset": lambda table, columns: table.rows(where="ts > 9").to_dataset().scanner(columns=columns),
    "DataFrame": schema_of_frame,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_column_that_is_named_twice_is_refused_by_name(door):
    """In place of one column in silence, or of two that most readers cannot tell apart."""
    table = writes.open_table(
        writes.create_table(9, **{"hoodie.table.cdc.enabled": True, "hoodie.metadata.enable": False})
    )
    writes.upsert(table.storage, writes.OLD)
    table.refresh()
    DOORS[door](table, ["id", "ts"])
    with pytest.raises(ConfigError, match="columns name id more than once"):
        DOORS[door](table, ["id", "ts", "id"])
