"""Rows that this process has, in all the forms in which Python programs have them."""

import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import hudi_py
from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.record_schema import storage_schema
from hudi_py.local.data import arrow_table

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS = [{"id": "a", "n": 1, "x": 0.5}, {"id": "b", "n": None, "x": None}]
TABLE = pa.Table.from_pylist(ROWS, schema=pa.schema([("id", pa.string()), ("n", pa.int64()), ("x", pa.float64())]))
SETTINGS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def file_of(folder, name):
    path = folder / name
    if name.endswith("parquet"):
        pq.write_table(TABLE, path)
    elif name.endswith("csv"):
        path.write_text('id,n,x\na,1,0.5\n"b",,\n')
    else:
        path.write_text('{"id": "a", "n": 1, "x": 0.5}\n{"id": "b", "n": null, "x": null}\n')
    return path


FORMS = {
    "table": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "reader": lambda _: TABLE.to_reader(),
    "batches": lambda _: iter(TABLE.to_batches()),
    "pandas": lambda _: pd.DataFrame(ROWS).astype({"n": "Int64"}),
    "polars": lambda _: pl.DataFrame(ROWS),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "parquet": lambda folder: file_of(folder, "a.parquet"),
    "csv": lambda folder: str(file_of(folder, "a.csv")),
    "json": lambda folder: [file_of(folder, "a.jsonl")],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_in_every_form(form, tmp_path):
    """Nulls, names and values survive."""
    assert arrow_table(FORMS[form](tmp_path)).to_pylist() == ROWS


def test_index_of_a_data_frame_is_no_column():
    """Pandas' own hand-over would add one."""
    assert arrow_table(pd.DataFrame(ROWS, index=[7, 9])).column_names == ["id", "n", "x"]


def test_types_widen_only_without_loss():
    """Categories, small unsigned integers and times with seconds can be stored; nanoseconds that count cannot."""
    nanos = pa.array([1_000], pa.timestamp("ns"))
    given = pa.table({"c": pa.array(["a"]).dictionary_encode(), "u": pa.array([7], pa.uint16()), "t": nanos})
    stored = arrow_table(given)
    assert stored.schema.types == [pa.string(), pa.int32(), pa.timestamp("us")]
    assert stored.column("u").to_pylist() == [7]
    for value in (
        pa.array([1_001], pa.timestamp("ns")),
        pa.array([2**63], pa.uint64()),
        pa.array([1], pa.int64()).view(pa.date64()),
    ):
        with pytest.raises(WriteError, match="column 't'"):
            arrow_table(given.set_column(2, "t", value))


def test_text_files_are_read_as_the_types_of_the_table(tmp_path):
    """What CSV and JSON cannot say, the table says."""
    stored = pa.schema(
        [("id", pa.string()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("m", pa.decimal128(9, 2))]
    )
    expected = {
        "id": "7",
        "d": date(2026, 1, 2),
        "t": datetime(2026, 1, 2, 3, tzinfo=timezone.utc),
        "m": Decimal("1.50"),
    }
    (tmp_path / "a.csv").write_text("id,d,t,m\n7,2026-01-02,2026-01-02T03:00:00Z,1.50\n")
    (tmp_path / "a.json").write_text('{"id": "7", "d": "2026-01-02", "t": "2026-01-02T03:00:00Z", "m": "1.50"}\n')
    for name in ("a.csv", "a.json"):
        assert arrow_table(tmp_path / name, lambda: stored).to_pylist() == [expected]


def test_binary_values_of_json_are_base64(tmp_path):
    """As hudi-py read prints them."""
    (tmp_path / "a.json").write_text('{"b": "AP8="}\n')
    assert arrow_table(tmp_path / "a.json", lambda: pa.schema([("b", pa.binary())])).to_pylist() == [{"b": b"\x00\xff"}]
    (tmp_path / "a.json").write_text('{"b": "no!"}\n')
    with pytest.raises(WriteError, match="base64"):
        arrow_table(tmp_path / "a.json", lambda: pa.schema([("b", pa.binary())]))


def test_numbers_are_no_times_in_json(tmp_path):
    """Nobody knows whether they are seconds, milliseconds or microseconds."""
    (tmp_path / "a.json").write_text('{"t": 1767225600}\n')
    for arrow in (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()):
        with pytest.raises(WriteError, match=r"'t'.*text"):
            arrow_table(tmp_path / "a.json", lambda arrow=arrow: pa.schema([("t", arrow)]))
    (tmp_path / "a.json").write_text('{"t": null}\n')
    assert arrow_table(tmp_path / "a.json", lambda: pa.schema([("t", pa.date32())])).to_pylist() == [{"t": None}]


def test_columns_that_a_json_file_lacks_are_absent(tmp_path):
    """Else a merge, which sets the columns of the source, would set them to null. A null that is given counts."""
    schema = pa.schema([("id", pa.string()), ("é", pa.int64()), ("x", pa.float64()), ("d", pa.date32())])
    path = tmp_path / "a.json"
    path.write_text('{"id": "x"}\n')
    assert arrow_table(path, lambda: schema).to_pylist() == [{"id": "x"}]
    for name in ("é", "\\u00e9"):
        path.write_text(f'{{"id": "a"}}\n\n{{"id": "b", "{name}": null}}\n', encoding="utf-8")
        assert arrow_table(path, lambda: schema).column_names == ["id", "é"]
    path.write_text('{"id":\n"x"\n}\n{"id": "b",\n"x": null}\n')
    assert arrow_table(path, lambda: schema).column_names == ["id", "x"]


@pytest.mark.parametrize("data", [7, b"rows", {"a": [1]}, [{"a": 1}], "rows.xlsx", "absent.csv", []])
def test_other_forms_are_refused(data):
    """The message says what can be given."""
    with pytest.raises(ConfigError):
        arrow_table(data)


def test_a_generator_without_batches_is_refused_as_such(tmp_path):
    """Its columns are not known; the refusal named the type of the generator."""
    with pytest.raises(ConfigError, match="generator gave no batch"):
        hudi_py.write(tmp_path / "t", (batch for batch in ()), settings=SETTINGS)


def test_damaged_file_is_named(tmp_path):
    """An error names the file, not only what Arrow thinks of it."""
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(WriteError, match=r"a\.parquet"):
        arrow_table(tmp_path / "a.parquet")


def test_writes_and_numbers(tmp_path):
    """A table from nothing, changed by all four operations, each of which says what it did."""
    done = hudi_py.write(tmp_path / "t", TABLE, settings=SETTINGS)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted, done.files_written) == (2, 0, 0, 1)
    table = hudi_py.open_table(tmp_path / "t")
    done = table.upsert([file_of(tmp_path, "a.csv")])
    assert (done.rows_inserted, done.rows_updated) == (0, 2)
    assert list(done.seconds) == ["begin", "write", "commit", "services"]
    table.insert(pa.table({"id": ["c"], "n": [3], "x": [1.5]}))
    table.bulk_insert(pa.table({"id": ["d"], "n": [4], "x": [2.5]}))
    done = table.delete(pa.table({"id": ["a", "d", "z"]}))
    assert done.rows_deleted == 2
    assert sorted(row["id"] for row in table.rows().to_arrow().to_pylist()) == ["b", "c"]
    with pytest.raises(ConfigError, match="upsert"):
        hudi_py.write(tmp_path / "t", TABLE, "replace")


def test_writing_loads_no_spark(tmp_path):
    """A machine without a JVM, and without pyspark, can write."""
    program = (
        "import sys, pyarrow as pa, hudi_py\n"
        f"hudi_py.write({str(tmp_path / 't')!r}, pa.table({{'id': ['a']}}), settings={SETTINGS!r})\n"
        "assert not {'pyspark', 'py4j'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


DOUBTFUL = {  # values of a new column as a CSV file has them, and as they are stored
    "codes": (["007", "12"], ["007", "12"]),
    "whole numbers": (["7", "-12"], [7, -12]),
    "large numbers": (["12345678901234567890", "1"], [Decimal(12345678901234567890), Decimal(1)]),
    "too large numbers": (["1" * 40, "1"], ["1" * 40, "1"]),
    "fractions": (["1.10", ".5"], [1.1, 0.5]),
    "long fractions": (["1.23456789012345678", "1"], [Decimal("1.23456789012345678"), Decimal(1)]),
    "fractions as programs print them": (["0.30000000000000004", "1e30"], [0.30000000000000004, 1e30]),
    "numbers with zeros in front": (["01.5", "2"], ["01.5", "2"]),
    "truths": (["true", "FALSE"], [True, False]),
    "truths and digits": (["true", "1"], ["true", "1"]),
    "times of day": (["12:30", "12:31"], ["12:30", "12:31"]),
    "days": (["2026-01-02", "2026-01-03"], [date(2026, 1, 2), date(2026, 1, 3)]),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_no_value_of_a_new_csv_column_changes(case, tmp_path):
    """What a number or a truth would not hold as it stands is a decimal or a text."""
    given, stored = DOUBTFUL[case]
    (tmp_path / "a.csv").write_text("\n".join(["n,x", *(f"{n},{text}" for n, text in enumerate(given)), "9,"]))
    column = arrow_table(str(tmp_path / "a.csv")).column("x")
    assert column.to_pylist() == [*stored, None]
    assert {type(value) for value in column.to_pylist()} == {type(value) for value in [*stored, None]}


def test_no_value_of_a_new_json_column_changes(tmp_path):
    """Large numbers are decimals; days are texts, for Arrow knows them as points in time only."""
    rows = [
        '{"a": 12345678901234567890, "b": "2026-01-02", "c": 0.1, "d": "2026-01-02T03:04:05Z", "e": 1e-40}',
        '{"a": 1}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join([*rows, '{"a": 1}']))
    first = arrow_table(str(tmp_path / "a.jsonl")).to_pylist()[0]
    assert (first["a"], first["b"], first["c"], first["e"]) == (Decimal(12345678901234567890), "2026-01-02", 0.1, 1e-40)
    assert first["d"].isoformat() == "2026-01-02T03:04:05"


NESTED = {
    "list of a fixed size": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2)),
    "list of bytes": pa.array([[b"1"], None, [None]], pa.list_(pa.binary_view())),
    "list of lists": pa.array([[["a"]], [None], None], pa.list_(pa.list_(pa.string_view(), 1))),
    "large list": pa.array([[{"a": 1}], None, []], pa.large_list(pa.struct([("a", pa.uint8())]))),
    "struct of categories": pa.array(
        [{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))])
    ),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string_view(), pa.uint16())),
    "list of times": pa.array([[1], None, [2]], pa.list_(pa.timestamp("ms"))),
    "decimal": pa.array([Decimal("1.25"), None, Decimal(3)], pa.decimal256(38, 2)),
    "small decimal": pa.array([Decimal("1.25"), None, Decimal(3)], pa.decimal32(5, 2)),
    "decimal of hundreds": pa.array([Decimal(100), None, Decimal(300)], pa.decimal128(5, -2)),
    "date of milliseconds": pa.array([date(2024, 1, 2), None, date(1900, 1, 1)], pa.date64()),
    "bytes of a fixed size": pa.array([b"abcd", None, b"efgh"], pa.binary(4)),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 3], ["x", None]),
    "unsigned": pa.array([2**63 - 1, None, 0], pa.uint64()),
    "views of lists": pa.array([[{"a": 1}], None, [], [{"a": 2}, None]], pa.list_view(pa.struct([("a", pa.uint8())]))),
    "large views of lists": pa.array([None, [b"1", None], [b"2"]], pa.large_list_view(pa.binary_view())),
    "list of extensions": pa.array([[0], None, [1, None]], pa.list_(pa.int8())).cast(pa.list_(pa.bool8())),
}


@pytest.mark.parametrize("case", NESTED)
def test_values_inside_of_others_get_types_that_can_be_stored(case):
    """As those of columns; no value changes, of slices either."""
    array = NESTED[case]
    for some in (array, array.slice(1), array.slice(0, 1), array.slice(1, 0)):
        column = arrow_table(pa.table({"v": some})).column("v")
        column.validate(full=True)
        assert column.to_pylist() == some.to_pylist()
        storage_schema(pa.schema([pa.field("v", column.type)]))


HIDDEN = {
    "index of no category": pa.DictionaryArray.from_arrays(pa.array([0, 9, 0], pa.int8()), pa.array(["x"]), safe=False),
    "no category at all": pa.array([None, None, None], pa.dictionary(pa.int8(), pa.string())),
    "nanoseconds": pa.array([1000, 1, 2000], pa.timestamp("ns")),
    "large unsigned": pa.array([1, 2**64 - 1, 2], pa.uint64()),
    "part of a day": pa.array([0, 5, 0], pa.date64()),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 3], ["x", "y"]),
    "views of lists": pa.array([[1000], [1], [2000]], pa.list_view(pa.timestamp("ns"))),
    "map": pa.array([[("a", 1000)], [("b", 1)], []], pa.map_(pa.string(), pa.timestamp("ns"))),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_is_hidden_below_a_null_is_no_value(case):
    """Other libraries leave anything in the fields of null structs and in the elements of null lists."""
    values, is_null = HIDDEN[case], pa.array([False, True, False])
    offsets = pa.array([0, 1, 2, 3], pa.int32())
    struct = pa.StructArray.from_arrays([values], ["p"], mask=is_null)
    around = pa.StructArray.from_arrays([pa.array([[each] for each in (1, 2, 3)]), struct], ["q", "s"], mask=is_null)
    for array in (struct, around, pa.ListArray.from_arrays(offsets, struct, mask=is_null)):
        for some in (array, pa.concat_arrays([array, array]).slice(2, 3)):
            column = arrow_table(pa.table({"v": some})).column("v")
            column.validate(full=True)
            assert column.to_pylist() == some.to_pylist()
            storage_schema(pa.schema([pa.field("v", column.type)]))


BROKEN = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"a"]).buffers())
NOT_READ_AGAIN = {
    "text that is none": (BROKEN, "'x'.*UTF-8"),
    "text that is none in lists": (pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), BROKEN), "'x'.*UTF-8"),
    "deep": (pa.nulls(2, reduce(lambda inner, _: pa.struct([("a", inner)]), range(70), pa.int64())), "nested too deep"),
    "very deep": (
        pa.nulls(2, reduce(lambda inner, _: pa.struct([("a", inner)]), range(2000), pa.int64())), "nested too deep"
    ),
    "map with a key twice": (pa.array([[("k", 1), ("k", 2)], None], pa.map_(pa.string(), pa.int32())), "key 'k' twice"),
    "wide": (pa.nulls(2, pa.struct([(f"c{number}", pa.int8()) for number in range(20_000)])), "more than 20000"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("case", NOT_READ_AGAIN)
def test_what_no_reader_could_read_again_is_refused_before_anything_is_touched(case, is_new, kind, tmp_path):
    """Bytes that are no text were committed and made the table unreadable; too many columns left a pending write."""
    column, why = NOT_READ_AGAIN[case]
    rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
    path, settings = tmp_path / "t", SETTINGS | {"hoodie.datasource.write.table.type": kind}
    if not is_new:
        hudi_py.write(path, rows, settings=settings)
    before = sorted(path.rglob("*"))
    with pytest.raises((WriteError, ConfigError), match=why):
        hudi_py.write(path, rows.append_column("x", column), settings=settings)
    assert sorted(path.rglob("*")) == before


def test_categories_of_polars_are_texts(tmp_path):
    """Also where they are keys or partitions, and in lists: polars hands out dictionaries of views."""
    frame = pl.DataFrame({"id": ["a", "b"], "p": ["x", "y"], "v": ["u", None], "w": [["q"], []]})
    kinds = {"id": pl.Categorical, "p": pl.Enum(["x", "y"]), "v": pl.Categorical, "w": pl.List(pl.Categorical)}
    path = tmp_path / "t"
    for _ in range(2):
        settings = SETTINGS | {"hoodie.datasource.write.partitionpath.field": "p"}
        hudi_py.write(path, frame.cast(kinds), operation="upsert", settings=settings)
    rows = hudi_py.open_table(path).rows().to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == frame.to_dicts()


EXTENSIONS = {
    "uuid": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), [b"0" * 16, None]),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])), ['{"a": 1}', None]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), [True, None]),
}


@pytest.mark.parametrize("case", EXTENSIONS)
def test_extensions_are_what_they_are_made_of(case, tmp_path):
    """Their values as Parquet stores them; a Hudi table has no room for more."""
    array, values = EXTENSIONS[case]
    hudi_py.write(tmp_path / "t", pa.table({"id": ["a", "b"], "v": array}), settings=SETTINGS)
    rows = hudi_py.open_table(tmp_path / "t").rows().to_arrow().sort_by("id")
    assert rows.column("v").to_pylist() == values


WITHOUT_TYPE = {
    "pandas": lambda: pd.DataFrame({"id": ["b"], "p": ["x"], "ts": [2], "n": [None], "s": [None], "l": [[]]}),
    "polars": lambda: pl.DataFrame({"id": ["b"], "p": ["x"], "ts": [2], "n": [None], "s": [{"a": None}], "l": [[]]}),
    "duckdb": lambda: duckdb.from_arrow(WITHOUT_TYPE["reader"]()),
    "table": lambda: pa.table(
        {"id": ["b"], "p": ["x"], "ts": [2], "n": pa.nulls(1), "s": pa.nulls(1), "m": pa.nulls(1)}
    ),
    "reader": lambda: pa.table(
        {"id": ["b"], "p": ["x"], "ts": [2], "n": pa.nulls(1), "m": pa.array([[]], pa.map_(pa.string(), pa.null()))}
    ).to_reader(),
}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "merge", "delete"])
@pytest.mark.parametrize("form", WITHOUT_TYPE)
def test_a_column_without_a_value_has_the_type_of_the_table(form, operation, tmp_path):
    """Its type is only that of null; the table's is not changed, and a spilled write is no other."""
    inner = pa.struct([("a", pa.int32())])
    types = {"n": pa.int32(), "s": inner, "l": pa.list_(inner), "m": pa.map_(pa.string(), inner)}
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), *types.items()])
    first = {"id": "a", "p": "x", "ts": 1, "n": 7, "s": {"a": 1}, "l": [{"a": 1}], "m": [("k", {"a": 1})]}
    settings = SETTINGS | {"hoodie.datasource.write.partitionpath.field": "p", "hoodie.table.ordering.fields": "ts"}
    settings |= {"hoodie.memory.merge.max.size": 1} if form == "reader" else {}
    hudi_py.write(tmp_path / "t", pa.Table.from_pylist([first], schema), settings=settings)
    table = hudi_py.open_table(tmp_path / "t", settings=settings)
    rows = WITHOUT_TYPE[form]()
    if operation == "merge":
        table.merge(rows, on="id").when_matched_update().when_not_matched_insert().execute()
    else:
        getattr(table, operation)(rows)
    found = {row["id"]: row for row in table.refresh().rows().to_arrow().to_pylist()}
    assert found.keys() == {"insert_overwrite": {"b"}, "delete": {"a"}}.get(operation, {"a", "b"})
    assert found.get("a", first) == first
    assert all(not value or value == {"a": None} for name, value in found.get("b", {}).items() if name in types)
    assert table.rows().schema.types[-4:] == list(types.values())


def test_a_batch_without_a_value_has_the_type_of_the_first(tmp_path):
    """A generator makes each batch of the values that it has."""
    batches = [pa.record_batch({"id": ["a"], "v": [1]}), pa.record_batch({"id": ["b"], "v": pa.nulls(1)})]
    hudi_py.write(tmp_path / "t", iter(batches), settings=SETTINGS)
    rows = hudi_py.open_table(tmp_path / "t").rows().to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {"a": 1, "b": None}


REFUSED = {
    "mixed": lambda: pd.DataFrame({"id": ["a", "b"], "v": [1, "x"]}),
    "too large": lambda: pd.DataFrame({"id": ["a"], "v": [2**70]}),
    "sparse": lambda: pd.DataFrame({"id": ["a", "b"], "v": pd.arrays.SparseArray([0, 1])}),
    "twice": lambda: pd.DataFrame([["a", 1, 2]], columns=["id", "v", "v"]),
    "series": lambda: pl.Series("id", ["a"]),
    "128 bits": lambda: pl.DataFrame({"id": ["a"], "v": pl.Series([1], dtype=pl.Int128)}),
    "union": lambda: duckdb.sql("select 'a' as id, union_value(v := 2) as v"),
    "fields twice": lambda: pa.table(
        {"id": ["a"], "v": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["v", "V"])}
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_stored_is_refused_as_such(case, tmp_path):
    """By an error of ours that says what it is, before a table is made; not by one of the library that has the rows."""
    with pytest.raises((ConfigError, WriteError), match=r"v|Series|128"):
        hudi_py.write(tmp_path / "t", REFUSED[case](), settings=SETTINGS)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_files_that_do_not_fit_together_are_named(end, tmp_path):
    """With the column and both types; numbers of one kind after the other are no fault of the rows."""
    write = pq.write_table if end == "parquet" else pc.write_csv
    first, second = tmp_path / f"a.{end}", tmp_path / f"b.{end}"
    write(pa.table({"id": ["a"], "n": [1]}), first)
    write(pa.table({"id": ["b"], "n": [0.5]}), second)
    message = rf"column 'n' is int64 in .*a\.{end} and double in .*b\.{end}; write the files one after the other"
    with pytest.raises(WriteError, match=message):
        hudi_py.write(tmp_path / "t", [first, second], settings=SETTINGS)
    if end == "csv":
        return  # numbers of text files are read as those of the table
    for path in (first, second):
        hudi_py.write(tmp_path / "t", path, settings=SETTINGS)
    assert sorted(row["n"] for row in hudi_py.open_table(tmp_path / "t").rows().to_arrow().to_pylist()) == [0.5, 1.0]


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_file_with_two_columns_of_one_name_is_named(end, tmp_path):
    """Alone, and beside another one."""
    write = pq.write_table if end == "parquet" else pc.write_csv
    first, twice = tmp_path / f"a.{end}", tmp_path / f"c.{end}"
    write(pa.table({"id": ["a"], "n": [1]}), first)
    write(pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([2])], ["id", "n", "n"]), twice)
    for paths in ([twice], [first, twice]):
        with pytest.raises(ConfigError, match=rf"c\.{end}: several columns are called 'n'"):
            hudi_py.write(tmp_path / "t", paths, settings=SETTINGS)


def test_objects_of_python_are_refused():
    """A frame has nothing but their addresses in this process."""
    with pytest.raises(ConfigError, match="column 'o' has objects of Python"):
        arrow_table(pl.DataFrame({"id": ["a"], "o": [object()]}))
