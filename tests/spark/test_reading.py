"""Reading on Spark gives the rows that are read without it, whatever is asked of whichever table."""

import json
import re
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import hudi_py
from hudi_py.errors import HudiError
from hudi_py.rows.read import plain_rows
from support import fixtures
from support.bootstrapped import unpack_bootstrapped
from support.change_logs import changes_that_hudi_reads
from support.streams import with_a_started_source
from support.trips import DRIVER_ROWS

pytestmark = pytest.mark.spark

PAGE = Path(hudi_py.__file__).parents[1] / "docs" / "reading-with-spark.md"
SOME = {
    "cow_types-1.1.1": {},
    "mor_types-0.15.0": {},
    "mor_ntz-1.1.1": {},
    "cow_evolved-0.15.0": {"columns": ["amount", "_hoodie_record_key"]},
    "mor_evolved-1.0.2": {"as_of": "first"},
    "mor_partial_update-1.1.1": {"read_optimized": True},
    "cow_custom_keygen-0.15.0": {},
    "cow_all_indexes-1.1.1": {"where": "id > 'k0004'", "columns": ["id"]},
    "mor_cdc-1.1.1": {"change_log": True},
    "mor_event_time-0.15.0": {"start": "first", "with_deletes": True},
}


@pytest.fixture
def elsewhere(spark):
    """A session in another time zone than the process."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.unset("spark.sql.session.timeZone")


def combined_reads(name):
    return json.loads((fixtures.FOLDER / "combined" / f"{name}.expected.json").read_text(encoding="utf-8"))["reads"]


def plain(value):
    """Moments as in UTC, so that rows are compared by what they hold."""
    if isinstance(value, datetime) and value.tzinfo:
        return ("moment", value.astimezone(timezone.utc).isoformat())
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def texts(batches):
    return sorted(repr(plain(row)) for batch in batches for row in batch.to_pylist())


def without_spark(table, change_log=False, **asked):
    if change_log:
        return table.change_log()
    read = table.changes if "start" in asked else table.rows
    return read(**asked, with_meta="columns" not in asked)


def assert_same(spark, name, folder, asked):
    table = hudi_py.open_table(fixtures.unpack_rows(name, folder))
    first = table.timeline.commits.completed()[0]
    for name_of, time in (("start", first.completion_time or first.requested_time), ("as_of", first.requested_time)):
        if name_of in asked:
            asked = {**asked, name_of: time}
    rows = without_spark(table, **asked)
    frame = hudi_py.read(spark, table.storage.root, **asked)
    assert frame.columns == rows.schema.names, name
    assert texts(frame._collect_as_arrow()) == texts(rows), (name, asked)
    theirs = json.loads((fixtures.FOLDER / "rows" / f"{name}.expected.json").read_text())["expected"]
    if not asked and "schema" in theirs:
        assert {field: kind for field, kind in frame.dtypes if field[0] != "_"} == theirs["schema"], name


def test_some_of_every_kind(elsewhere, tmp_path):
    """All types, widened and added columns, those of key generators, conditions, deletes, change logs."""
    for name, asked in SOME.items():
        assert_same(elsewhere, name, tmp_path / name, asked)


def test_files_of_older_types_show_the_same_values(spark, tmp_path):
    """Where Spark reads them itself, too: 0.1 of a float stays 0.1, numbers become Java's texts."""
    path, _ = fixtures.unpack_combined("widen_cow-1.1.1", tmp_path)
    assert texts(hudi_py.read(spark, path)._collect_as_arrow()) == texts(without_spark(hudi_py.open_table(path)))


def test_bootstrapped_files_are_joined(spark, tmp_path):
    """Spark's own reader would show null in all columns that are outside of the table."""
    for name in ("cow-1.1.1", "mor-1.1.1"):
        path = unpack_bootstrapped(name, tmp_path / name)
        for asked in ({}, {"columns": ["p", "v"]}, {"as_of": "00000000000001"}, {"start": "0", "where": "x > 3"}):
            frame = hudi_py.read(spark, str(path), **asked)
            assert texts(frame._collect_as_arrow()) == texts(without_spark(hudi_py.open_table(path), **asked)), asked


CASES = [(name, fixtures.unpack_rows, fixtures.expected_rows) for name in fixtures.row_fixture_names()]
CASES += [(name, lambda *of: fixtures.unpack_combined(*of)[0], combined_reads) for name in fixtures.combined_names()]


@pytest.mark.slow  # 700 reads
@pytest.mark.parametrize(("name", "unpack", "answers"), CASES, ids=[name for name, _, _ in CASES])
def test_every_answer_of_hudi_is_that_of_spark(spark, tmp_path, name, unpack, answers):
    """Snapshots, base files alone, earlier times and ranges of all that real Hudi wrote, as it read them itself."""
    path, reads = str(unpack(name, tmp_path)), answers(name)
    kept = () if name.startswith("virtual") else fixtures.HASHED_META
    questions = [({}, reads.get("snapshot")), ({"read_optimized": True}, reads.get("read_optimized"))]
    questions += [({"as_of": time}, answer) for time, answer in reads.get("as_of", {}).items()]
    for each in reads.get("incremental", ()):
        begin = each["begin"]
        if name.endswith("-1.0.2") and begin.strip("0"):  # the release takes the commit of this time in
            begin = str(int(begin) - 1)
        questions.append(({"start": begin} | ({} if each["end"] is None else {"end": each["end"]}), each))
    for asked, answer in questions:
        if answer is None or ("error" in answer and "start" in asked):
            continue
        if "error" in answer:
            with pytest.raises(HudiError):
                hudi_py.read(spark, path, **asked)
            continue
        rows = [row for batch in hudi_py.read(spark, path, **asked)._collect_as_arrow() for row in plain_rows(batch)]
        with_meta = "hash_with_meta" in answer or unpack is not fixtures.unpack_rows
        found = fixtures.row_hash(rows, kept if with_meta else ())
        assert (found, len(rows)) == (answer.get("hash_with_meta", answer["hash"]), answer["rows"]), asked


@pytest.mark.slow  # 60 reads
@pytest.mark.parametrize("name", [name for name in fixtures.row_fixture_names() if "_cdc" in name])
def test_every_change_that_hudi_reads_is_told_by_spark(spark, tmp_path, name):
    """Change logs in all three logging modes, in every range that real Hudi was asked for."""
    path = str(fixtures.unpack_rows(name, tmp_path))
    for begin, end, columns, counted, theirs in changes_that_hudi_reads(name, hudi_py.open_table(path)):
        asked = {"start": begin, "end": end, "columns": columns}
        frame = hudi_py.read(spark, path, change_log=True, **{k: v for k, v in asked.items() if v is not None})
        ours = [row for batch in frame._collect_as_arrow() for row in plain_rows(batch)]
        assert counted(ours) == theirs, (begin, end)


@pytest.mark.slow  # 250 reads
def test_every_table(elsewhere, tmp_path):
    """Snapshots, ranges with deletes, change logs of all that real Hudi wrote."""
    for name in fixtures.row_fixture_names():
        for asked in ({}, {"start": "first", "with_deletes": True}, {"change_log": True} if "_cdc" in name else {}):
            if asked and name == "mor_uncommitted_logs-0.15.0":
                continue  # refused: a write within the range is under way
            assert_same(elsewhere, name, tmp_path / name, asked)


def test_what_a_query_filters_reaches_the_files(spark, tmp_path):
    """Spark's own reader has base files without conditions; with ``columns`` it reads no others."""
    path = fixtures.unpack_rows("cow_evolved-1.1.1", tmp_path)
    frame = hudi_py.read(spark, path, columns=["id"]).where("id = 'k0001'")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(id,k0001)" in plan.partition("PushedFilters")[2]
    assert "ReadSchema: struct<id:string>" in plan


def test_examples_of_the_page_run(spark, tmp_path):
    """As they stand there, on a table of real Hudi; on Spark 3.5 those for Spark 3.5."""
    path = fixtures.unpack_rows("mor_cdc-1.1.1", tmp_path)
    names = {"spark": spark, "checkpoint": str(tmp_path / "checkpoint")}
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 4
    for code in examples:
        if "format(" not in code or not pyspark.__version__.startswith("3."):
            with_a_started_source(partial(exec, code.replace("s3://lake/trips", str(path)), names))


@pytest.mark.parametrize("count", [2, 40])
def test_rows_that_stay_in_another_partition_show_its_value(spark, tmp_path, count):
    """A record index keeps them where they are; as without Spark, and where a query filters by that column."""
    path = str(tmp_path)
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
    }
    regions = [None, "", *(f"r{number}" for number in range(count))]
    ids = [f"k{number}" for number in range(len(regions))]
    hudi_py.write(path, pa.table({"id": ids, "region": regions, "ts": [1] * len(ids)}), settings=settings)
    hudi_py.write(path, pa.table({"id": ids[:4], "region": ["r0"] * 4, "ts": [2] * 4}), settings=settings)
    for asked in ({}, {"columns": ["region", "ts"]}, {"start": "0"}):
        ours = texts(without_spark(hudi_py.open_table(path), **asked))
        assert texts(hudi_py.read(spark, path, **asked)._collect_as_arrow()) == ours, asked
    frame = hudi_py.read(spark, path, columns=["id", "region", "ts"]).where("region = 'r0' or region is null")
    assert sorted(frame.collect()) == [("k0", None, 2), ("k1", None, 2), ("k2", "r0", 2)]


def test_files_with_fewer_or_narrower_fields_show_null_and_the_same_values(spark, tmp_path):
    """Also where a query asks for the new field alone, and for whether its struct is there."""
    path, old, new = tmp_path / "t", [("a", pa.float32())], [("b", pa.int32()), ("a", pa.float64())]

    def rows(values, fields):
        inner = pa.struct(fields)
        types = [("id", pa.string()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
        flat = [
            {"id": key, "s": each, "l": [each], "m": [("k", each)]} if each else {"id": key} for key, each in values
        ]
        return pa.Table.from_pylist(flat, schema=pa.schema(types))

    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(path, rows([("1", {"a": 0.1}), ("2", None)], old), settings=settings)
    table = hudi_py.open_table(path, settings={"hoodie.parquet.small.file.limit": 0})
    table.upsert(rows([("3", {"a": 0.2, "b": 7})], new))
    frame = hudi_py.read(spark, path)
    found = {row["id"]: row.asDict(recursive=True) for row in frame.collect()}
    assert [found[key]["s"] for key in "123"] == [{"a": 0.1, "b": None}, None, {"a": 0.2, "b": 7}]
    assert [found[key]["l"] for key in "123"] == [[{"a": 0.1, "b": None}], None, [{"a": 0.2, "b": 7}]]
    assert [found[key]["m"] for key in "123"] == [{"k": {"a": 0.1, "b": None}}, None, {"k": {"a": 0.2, "b": 7}}]
    there = frame.where("s is not null and s.b is null").select("id", "s.b")
    assert [tuple(row) for row in there.collect()] == [("1", None)]
    # Executors merge the older files as the process without Spark does.
    types = "id string, s struct<c: string, b: bigint, a: double>"
    client = hudi_py.WriteClient(spark, str(path), {**settings, DRIVER_ROWS: 0})
    client.upsert(spark.createDataFrame([("2", ("new", 2**40, 0.3))], types))
    written = {row["id"]: row["s"].asDict() for row in hudi_py.read(spark, path).collect()}
    assert written == {
        "1": {"a": 0.1, "b": None, "c": None},
        "2": {"a": 0.3, "b": 2**40, "c": "new"},
        "3": {"a": 0.2, "b": 7, "c": None},
    }
    assert {row["id"]: row["s"] for row in table.refresh().rows().to_arrow().to_pylist()} == written


def test_missing_and_damaged_files_are_never_passed_over(spark, tmp_path):
    """Whatever the session says of files: rows would be left out without a word."""
    rows = pa.table({"id": ["a", "b"], "region": ["eu", "us"], "ts": [1, 1]})
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
    }
    hudi_py.write(tmp_path / "t", rows, settings=settings)
    frame = hudi_py.read(spark, tmp_path / "t").select("id")
    assert {row.id for row in frame.collect()} == {"a", "b"}
    (file,) = (tmp_path / "t" / "eu").glob("*.parquet")
    content = file.read_bytes()
    names = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    try:
        for name in names:
            spark.conf.set(name, "true")
        file.write_bytes(content[:4] + b"\xff" * 296 + content[300:])
        with pytest.raises(Exception, match=r"(?s)Parquet|parquet"):
            hudi_py.read(spark, tmp_path / "t").select("id", "_hoodie_commit_time").collect()
        file.unlink()
        with pytest.raises(Exception, match=file.name.partition("_")[0]):
            frame.collect()
    finally:
        for name in names:
            spark.conf.unset(name)
