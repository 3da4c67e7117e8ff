"""Rows as a dataset of Arrow: its answers, what of the filters reaches the reader, and what is refused."""

from __future__ import annotations

import pickle
import random
import threading
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest

import hudi_py
from hudi_py.snapshot.arrow_filter import understood
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.wrappers import RecordingStorage
from support.fixtures import unpack_rows
from support.plain_rows import rows_of_files
from support.writes import create_table, open_table

UTC = timezone.utc
SCHEMA = pa.schema([
    ("s", pa.string()), ("n", pa.int64()), ("i", pa.int32()), ("f", pa.float64()), ("b", pa.bool_()),
    ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("w", pa.timestamp("us")), ("c", pa.decimal128(9, 2)),
    ("st", pa.struct([("z", pa.int64()), ("s", pa.string())])),
])  # fmt: skip
MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 5, UTC), datetime(2026, 1, 2, tzinfo=UTC)]
VALUES = {
    "s": ["", "a", "b", "c", "ü", 'a"b\\'],
    "n": [-(2**63), -1, 0, 1, 2, 2**63 - 1],
    "i": [-(2**31), -2, 0, 1, 2],
    "f": [0.1, -0.0, 1.5, float("nan"), float("inf")],
    "b": [True, False],
    "d": [date(1969, 12, 31), date(1970, 1, 1), date(2026, 1, 2)],
    "t": MOMENTS,
    "w": [moment.replace(tzinfo=None) for moment in MOMENTS],
    "c": [Decimal("-1.25"), Decimal("0.00"), Decimal("3.10")],
}
F = ds.field
MOMENT = datetime(2026, 1, 2, 5, tzinfo=UTC)


def some_table(rng, count=12):
    def some(name):
        if name == "st":
            return rng.choice([None, {"z": rng.choice([None, 1, 2, 3]), "s": rng.choice([None, "a", "b"])}])
        # Neighbours are alike, so that bounds of row groups rule something out.
        return rng.choice([None, *few[name]])

    few = {name: rng.sample(values, 2) for name, values in VALUES.items()}
    return pa.table([[some(name) for _ in range(count)] for name in SCHEMA.names], schema=SCHEMA)


@pytest.fixture
def rows():
    return rows_of_files(some_table, SCHEMA, files=4, group_rows=3)


def is_same(found, expected):
    # As text, because NaN is no value's equal.
    return found.schema == expected.schema and repr(found.to_pylist()) == repr(expected.to_pylist())


UNDERSTOOD = [
    (F("s") == "a", "s = 'a'"),
    (pc.scalar("b") < F("s"), "s > 'b'"),
    ((F("n") > -5) & (F("n") <= 3), "n > -5 and n <= 3"),
    (F("i") != 3, "i != 3"),
    (F("n").isin([1, -3]), "n in (1, -3)"),
    (F("s").isin(["a", "q"]), "s in ('a', 'q')"),
    (pc.if_else(F("n").is_valid(), F("n").isin([1]), pa.scalar(None, pa.bool_())), "n in (1)"),
    (F("n").is_null(), "n is null"),
    (F("s").is_valid() & (F("n") >= 2), "s is not null and n >= 2"),
    ((F("s") == "a") | (F("n") == 1), "s = 'a' or n = 1"),
    (F("b") == True, "b = true"),  # noqa: E712
    (F("d") > date(1969, 1, 1), "d > date '1969-01-01'"),
    (F("t") == MOMENT, "t = timestamp '2026-01-02T05:00:00+00:00'"),
    (F("w") <= MOMENT.replace(tzinfo=None), "w <= timestamp '2026-01-02T05:00:00'"),
    (F("c") < pa.scalar(Decimal("-1.25"), pa.decimal128(9, 2)), "c < -1.25"),
    (F("st", "s") == "a", "st.s = 'a'"),
    (F(1) > 3, "n > 3"),
    (~((F("s") == "a") & (F("n") > 1)), "not (s = 'a' and n > 1)"),
    ((F("n") > 1) & (F("f") > 0.5), "n > 1"),
    ((F("n") > 1) | (F("f") > 0.5), None),
    (~((F("n") > 1) & (F("f") > 0.5)), None),  # what is dropped of an "and" is more rows, and below a "not" fewer
    (~F("n").isin([1]), None),  # true for null, other than "not in"
    (F("n").isin([1, None]), None),
    (F("f") == 0.1, None),
    (F("f").is_null(nan_is_null=True), None),
    (F("f").is_null(), None),
    (F("i").cast("int64") + 1 > 2, None),
    (F("n") > F("i").cast("int64"), None),
    (F("b"), None),
    (pc.starts_with(F("s"), "a"), None),
]


@pytest.mark.parametrize(("expression", "expected"), UNDERSTOOD, ids=lambda each: str(each)[:40])
def test_filters_are_answered_by_arrow_and_understood_where_they_can_be(rows, expression, expected):
    """The answer is Arrow's on all rows; what is understood only spares reading."""
    found = understood(expression, SCHEMA)
    assert expected == (None if found is None else str(found))
    assert is_same(rows.to_dataset().to_table(filter=expression), rows.to_arrow().filter(expression))


def some_filter(rng, depth=3):
    kind = rng.random()
    if depth and kind < 0.6:
        left, right = some_filter(rng, depth - 1), some_filter(rng, depth - 1)
        return left & right if kind < 0.25 else left | right if kind < 0.45 else ~left
    name = rng.choice([*VALUES, "st"])
    column, known, arrow = (
        (F("st", "z"), [1, 2, 3], pa.int64()) if name == "st" else (F(name), VALUES[name], SCHEMA.field(name).type)
    )
    if kind < 0.7:
        return rng.choice([column.is_null(), column.is_valid(), F(name).is_null(), column.is_null(nan_is_null=True)])
    if kind < 0.8 and name != "c":
        return column.isin(pa.array(rng.choices([None, *known] if kind < 0.72 else known, k=2), arrow))
    value = pa.scalar(rng.choice(known), arrow)
    return rng.choice([
        column == value, column != value, column < value, column <= value, column > value, column >= value,
        pc.scalar(value) < column,
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_filters_choose_the_rows_that_arrow_chooses_among_all(rows, seed):
    """Nulls, NaN, extreme values, lists and negations, in files and row groups with statistics."""
    rng, whole, dataset, used = random.Random(seed), rows.to_arrow(), rows.to_dataset(), 0
    for _ in range(25):
        chosen = some_filter(rng)
        columns = rng.sample(SCHEMA.names, rng.randrange(4))
        assert is_same(dataset.to_table(columns, chosen), ds.dataset(whole).to_table(columns, chosen)), str(chosen)
        assert dataset.count_rows(chosen) == whole.filter(chosen).num_rows, str(chosen)
        used += understood(chosen, SCHEMA) is not None
    assert used >= 5


def test_a_filter_that_is_too_deep_costs_time_only(rows):
    """As a program may write a list of values: pyarrow would take hours to say what it consists of."""
    chosen = F("n") == 1
    for number in range(10):
        chosen |= F("n") == number
    assert understood(chosen & (F("s") != "(((((((("), SCHEMA) is not None
    for number in range(100):
        chosen |= (F("n") == number) | (F("s") == ")")
    assert understood(chosen, SCHEMA) is None
    assert rows.to_dataset().count_rows(chosen) == rows.to_arrow().filter(chosen).num_rows


def test_the_methods_of_a_dataset_answer_as_those_of_arrow(rows):
    """Columns by name, computed and twice; first rows, single rows, batches; filters one after the other."""
    ours, arrow = rows.to_dataset(), ds.dataset(rows.to_arrow())
    assert isinstance(ours, ds.Dataset)
    assert ours.schema == arrow.schema
    computed = {"more": F("i") / 2, "place": F(0), "z": F("st", "z")}
    for of in (
        lambda each: each.to_table(),
        lambda each: each.to_table(columns={"i": F("i"), "s": F("s"), "again": F("i")}),
        lambda each: each.to_table(columns=[]),
        lambda each: each.to_table(columns=computed, filter=F("f") > 0),
        lambda each: each.to_table(filter=F(1) > 0, columns=["s"]),
        lambda each: each.head(5),
        lambda each: each.head(0),
        lambda each: each.head(3, columns=["n"], filter=F("i") > 0),
        lambda each: each.take([7, 0, 30, 7], columns=["s"]),
        lambda each: each.take([]),
        lambda each: each.scanner(columns=["n"]).to_reader().read_all(),
        lambda each: each.filter(F("i") > 0).filter(F("n") < 2).to_table(filter=F("s") != "a"),
    ):
        assert is_same(of(ours), of(arrow))
    assert ours.filter(F("i") > 0).count_rows() == arrow.filter(F("i") > 0).count_rows()
    assert ours.scanner(["n"]).projected_schema == arrow.scanner(["n"]).projected_schema
    assert max(batch.num_rows for batch in ours.to_batches(batch_size=2, use_threads=False)) == 2
    with pytest.raises(IndexError):
        ours.take([48])


def test_a_scanner_reads_again_in_the_thread_that_asks(rows):
    """Else scans at the same time would wait for each other in Arrow's pool of threads, which reading needs, too."""
    threads = []

    class Told(Rows):
        def narrowed(self, *_):
            return self

        def __iter__(self):
            threads.append(threading.get_ident())
            return super().__iter__()

    told = Told(rows._storage, rows._slices, SCHEMA)
    scanner = told.to_dataset().scanner(["n"], F("n") >= 0)
    assert scanner.to_table() == pa.table(scanner) == scanner.to_reader().read_all()
    assert set(threads) == {threading.get_ident()}
    assert len(threads) == 3


REFUSED = {
    "get_fragments": lambda d: d.get_fragments(),
    "get_fragments of a filter": lambda d: d.get_fragments(F("n") > 1),
    "replace_schema": lambda d: d.replace_schema(SCHEMA),
    "sort_by": lambda d: d.sort_by("n"),
    "join": lambda d: d.join(d, "n"),
    "join_asof": lambda d: d.join_asof(d, "n", "s", 1),
    "scan by pyarrow's C": lambda d: ds.Scanner.from_dataset(d).to_table(),
    "scan by pyarrow's C++": lambda d: d.children[0].count_rows(),
    "replace_schema; cast": lambda d: ds.dataset([d, d]),
    "__filename": lambda d: d.to_table(columns=["n", "__filename"]),
    "__batch_index": lambda d: d.to_table(columns={"at": F("__batch_index")}),
    "fragment_scan_options": lambda d: d.to_table(fragment_scan_options=ds.ParquetFragmentScanOptions()),
    "not an expression": lambda d: d.filter("n > 1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_served_is_refused_by_name(rows, what):
    """In place of an empty answer, or of one that leaves something out."""
    with pytest.raises(hudi_py.ConfigError, match=what.partition(" of ")[0].replace("+", r"\+")):
        REFUSED[what](rows.to_dataset())


def test_mistakes_are_told_by_arrow_before_anything_is_read(rows):
    """A column that does not exist, a filter that does not fit, an option that pyarrow does not have."""
    dataset = rows.to_dataset()
    for wrong in ({"columns": ["q"]}, {"filter": F("q") > 1}, {"columns": ["n"], "filter": F("__filename") == "q"}):
        with pytest.raises(pa.ArrowInvalid, match=r"No match for FieldRef.Name\((q|__filename)\)"):
            dataset.scanner(**wrong)
    with pytest.raises(hudi_py.ConfigError, match="not an expression"):
        dataset.scanner(filter="n > 1")
    with pytest.raises(TypeError, match="readahead"):
        dataset.scanner(readahead=1)
    with pytest.raises(pa.ArrowInvalid, match="BatchSize"):
        dataset.scanner(batch_size=0)
    with pytest.raises(TypeError, match="Scanner"):
        ds.write_dataset(dataset, "/nowhere", format="parquet")


def opened(storage):
    return {path.rpartition("/")[2] for verb, path in storage.calls if verb == "open_read" and ".parquet" in path}


def by_duckdb(dataset, key, text):
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.from_arrow(dataset).filter(f"{key} = '{text}'").select(key)
    return [row[0] for row in found.fetchall()]


def by_polars(dataset, key, text):
    polars = pytest.importorskip("polars")
    frame = polars.scan_pyarrow_dataset(dataset).filter(polars.col(key) == text).select(key)
    return frame.collect()[key].to_list()


def by_pyarrow(dataset, key, text):
    return dataset.to_table([key], F(key) == text).column(0).to_pylist()


@pytest.mark.parametrize("reader", [by_duckdb, by_polars, by_pyarrow])
def test_a_key_of_a_query_is_looked_up_in_the_record_index(tmp_path, reader):
    """From the filter of the query to the one file that holds the row."""
    table = hudi_py.open_table(unpack_rows("cow_record_index-1.1.1", tmp_path))
    row = table.rows(with_meta=True).to_arrow().to_pylist()[-1]
    storage = RecordingStorage(table.storage)
    dataset = hudi_py.Table(storage).rows().to_dataset()
    storage.clear()

    assert reader(dataset, "id", row["id"]) == [row["id"]]
    assert opened(storage) == {row["_hoodie_file_name"]}


def test_partitions_leave_files_out(tmp_path):
    """By their paths; counted in files that are opened."""
    numbers = pa.table({"id": [f"k{n}" for n in range(40)], "n": range(40), "p": [f"p{n // 4}" for n in range(40)]})
    settings = {
        "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }  # fmt: skip
    hudi_py.write(str(tmp_path / "t"), numbers, settings=settings)
    storage = RecordingStorage(hudi_py.open_table(tmp_path / "t").storage)
    dataset = hudi_py.Table(storage).rows(columns=["id", "n", "p"]).to_dataset()
    for chosen, files in ((F("p") > "p7", 2), (F("p") == "p3", 1), (F("p").isin(["p1", "p9"]), 2), (F("p") < "p", 0)):
        storage.clear()
        assert dataset.count_rows(chosen) == numbers.filter(chosen).num_rows
        assert len(opened(storage)) == files, str(chosen)


def test_a_dataset_is_one_snapshot_and_travels(tmp_path):
    """A later write is not in it, also where it is sent to another process."""
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(str(tmp_path / "t"), pa.table({"id": ["a", "b"]}), settings=settings)
    table = hudi_py.open_table(tmp_path / "t", settings=settings)
    dataset = table.rows(columns=["id"]).to_dataset().filter(F("id") != "b")
    table.insert(pa.table({"id": ["c"]}))

    assert dataset.to_table().to_pylist() == [{"id": "a"}]
    assert pickle.loads(pickle.dumps(dataset)).to_table().to_pylist() == [{"id": "a"}]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_without_commits_is_a_dataset_without_columns(version):
    """Created, and nothing completed yet."""
    dataset = open_table(create_table(version)).rows().to_dataset()
    assert (dataset.to_table().shape, dataset.count_rows()) == ((0, 0), 0)


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.1.1"])
def test_statistics_of_the_metadata_table_leave_files_out(release, tmp_path):
    """Exactly those whose values lie outside, which are not opened and are told of; the rows are the same."""
    path = unpack_rows(f"cow_all_indexes-{release}", tmp_path)
    plain = hudi_py.open_table(path, settings={"hoodie.metadata.enable": False}).rows(with_meta=True).to_arrow()
    storage = RecordingStorage(hudi_py.open_table(path).storage)
    dataset = hudi_py.Table(storage).rows(columns=["id", "ts", "qty"]).to_dataset()
    files = {}
    for row in plain.to_pylist():
        files.setdefault(row["_hoodie_file_name"], []).append(row)
    pruned = 0
    for column in ("ts", "id"):  # those that the table has statistics of
        ranges = {name: [row[column] for row in rows] for name, rows in files.items()}
        for value in sorted(set(plain.column(column).to_pylist())):
            for operator, chosen, needed in (
                (">", F(column) > value, {name for name, each in ranges.items() if max(each) > value}),
                ("<=", F(column) <= value, {name for name, each in ranges.items() if min(each) <= value}),
            ):
                storage.clear()
                found = dataset.to_table(columns=["qty", column], filter=chosen)
                assert opened(storage) == needed, str(chosen)
                assert found.sort_by(column) == plain.filter(chosen).select(["qty", column]).sort_by(column)
                told = hudi_py.Table(storage).rows(where=(column, operator, value))
                assert told.to_arrow().num_rows == found.num_rows
                assert told.skipped["metadata_table"] == len(files) - len(needed), str(chosen)
                pruned += len(files) - len(needed)
    assert pruned
