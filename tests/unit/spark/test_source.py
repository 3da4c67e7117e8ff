"""What Spark 4 asks of the data source, asked without Spark: options, columns, offsets, tasks."""

import pickle
import random

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

from pyspark.sql.types import ArrayType, LongType, MapType, StructField, StructType

from hudi_py.errors import ConfigError, HudiError, RefusedError
from hudi_py.spark.question import Question
from hudi_py.spark.schema import spark_schema
from hudi_py.spark.source import HudiDataSource, register
from hudi_py.spark.source_options import source_options
from hudi_py.spark.stream import HudiStreamReader
from hudi_py.storage.local import LocalStorage
from support.writes import create_table, open_table, upsert


def source(folder, **options):
    """As it arrives in the process that plans."""
    made = HudiDataSource({"path": str(folder), **options})
    schema = made.schema()
    return pickle.loads(pickle.dumps(made)), schema


def rows_of(reader, partitions):
    """What the executors read, each from what is sent to it."""
    sent = pickle.loads(pickle.dumps((reader, partitions)))
    return [row for each in sent[1] for batch in sent[0].read(each) for row in batch.to_pylist()]


def read(folder, **options):
    made, schema = source(folder, **options)
    reader = made.reader(schema)
    return rows_of(reader, reader.partitions())


@pytest.fixture(params=[6, 9], ids=["version 6", "version 9"])
def storage(request, tmp_path):
    return create_table(request.param, LocalStorage(str(tmp_path / "t")))


def some_rows(rng, ts):
    ids = rng.sample("abcdefgh", rng.randint(1, 4))
    return [{"id": each, "region": "eu" if each < "e" else "us", "ts": ts} for each in ids]


@pytest.mark.parametrize("seed", range(3))
def test_what_batches_of_a_stream_hold_is_every_commit_once(storage, seed):
    """Whenever it looks and however often it is started again: no row twice, none left out, the same when repeated."""
    rng = random.Random(seed)
    upsert(storage, some_rows(rng, 0))
    made, schema = source(storage.root)
    reader = made.streamReader(schema)
    offset, seen, ranges = reader.initialOffset(), [], []
    for ts in range(1, 6):
        if rng.random() < 0.7:
            upsert(storage, some_rows(rng, ts))
        if rng.random() < 0.5:
            reader = pickle.loads(pickle.dumps(made)).streamReader(schema)
        if rng.random() < 0.7 or ts == 5:
            latest = reader.latestOffset()
            found = rows_of(reader, reader.partitions(offset, latest))
            seen += found
            ranges.append((offset, latest, found))
            offset = latest
    assert len(seen) == len({(row["id"], row["_hoodie_commit_time"]) for row in seen})
    assert {row["id"]: row["ts"] for row in seen} == {row["id"]: row["ts"] for row in read(storage.root)}
    for start, end, found in ranges:
        assert found == rows_of(reader, reader.partitions(start, end))


def test_a_read_shows_what_was_there_when_its_columns_were_asked_for(storage):
    """However often it is carried out: later commits are not seen, by snapshots and by ranges without an end."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made = [source(storage.root), source(storage.root, start="0"), source(storage.root, start="0", with_deletes="true")]
    upsert(storage, [{"id": "a", "region": "eu", "ts": 2}, {"id": "b", "region": "eu", "ts": 2}])
    for each, schema in made:
        reader = each.reader(schema)
        assert [("a", 1)] == [(row["id"], row["ts"]) for row in rows_of(reader, reader.partitions())]


def test_a_stream_begins_where_it_is_told(storage):
    """With the table, with what comes from now on, or behind a commit."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    until = open_table(storage).changed_until()
    upsert(storage, [{"id": "b", "region": "eu", "ts": 2}])
    for start, ids in (("earliest", "ab"), ("latest", ""), (until, "b")):
        made, schema = source(storage.root, start=start)
        reader = made.streamReader(schema)
        found = rows_of(reader, reader.partitions(reader.initialOffset(), reader.latestOffset()))
        assert sorted(ids) == sorted(row["id"] for row in found)
    with pytest.raises(ConfigError, match="only a stream"):
        read(storage.root, start="latest")


def test_a_stream_stops_where_the_table_went_back(storage):
    """What it told was taken back, so going on would leave that with those who were told."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, schema = source(storage.root)
    upsert(storage, [{"id": "b", "region": "eu", "ts": 2}])
    reader = made.streamReader(schema)
    offset = reader.latestOffset()
    table = open_table(storage)
    table.rollback(table.timeline.writes.completed()[-1].requested_time)
    with pytest.raises(RefusedError, match=r"which rollback .* undone since.*new checkpoint"):
        reader.partitions(offset, reader.latestOffset())


def test_a_stream_over_what_a_clean_deleted_is_an_error_that_says_how_to_go_on(storage):
    """A batch that is repeated, and one that is read while a clean runs; never fewer rows."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, schema = source(storage.root)
    reader = made.streamReader(schema)
    start = reader.latestOffset()
    upsert(storage, [{"id": each, "region": "eu", "ts": 2} for each in "ab"])
    end = reader.latestOffset()
    planned = reader.partitions(start, end)
    upsert(storage, [{"id": "b", "region": "eu", "ts": 3}])
    latest = reader.latestOffset()
    assert open_table(storage).clean(file_versions_retained=1)
    with pytest.raises(RefusedError, match=rf"clean.* deleted .*new checkpoint.*start={start['time']}"):
        reader.partitions(start, end)
    with pytest.raises(HudiError, match=r"clean.* deleted"):
        rows_of(reader, planned)
    anew, schema = source(storage.root, start=start["time"])
    reader = anew.streamReader(schema)
    found = rows_of(reader, reader.partitions(reader.initialOffset(), latest))
    assert [("a", 2), ("b", 3)] == sorted((row["id"], row["ts"]) for row in found)


@pytest.mark.parametrize("ask", ["with_deletes", "change_log"])
def test_a_stream_that_needs_what_was_before_names_the_earliest_begin(ask, tmp_path):
    """Deleted rows and single changes are in files that a clean may delete before they are read."""
    storage = create_table(9, LocalStorage(str(tmp_path / "t")), **{"hoodie.table.cdc.enabled": "true"})
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, schema = source(storage.root, **{ask: "true"})
    reader = made.streamReader(schema)
    start = reader.latestOffset()
    for ts in range(2, 6):
        upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    assert open_table(storage).clean(commits_retained=1)
    with pytest.raises(RefusedError, match=r"clean.* deleted .*begin.* \d{17}.*new checkpoint"):
        reader.partitions(start, reader.latestOffset())


def test_columns_of_another_type_are_no_columns_of_the_query(storage):
    """Spark would take the bytes for what it was told."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, schema = source(storage.root, columns="id,ts")
    other = pickle.loads(pickle.dumps(schema))
    other["ts"].dataType = other["id"].dataType
    with pytest.raises(ConfigError, match="ts is bigint, not string"):
        made.reader(other)
    reader = HudiStreamReader(source_options({"path": storage.root}), other)
    with pytest.raises(ConfigError, match="ts is bigint, not string"):
        reader.partitions({"time": ""}, reader.latestOffset())


NEVER = StructType([StructField("b", LongType(), nullable=False)])


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (NEVER, r"x\.b"),
        (ArrayType(NEVER), r"x\.element\.b"),
        (ArrayType(LongType(), containsNull=False), r"x\.element"),
        (MapType(LongType(), NEVER), r"x\.value\.b"),
        (MapType(LongType(), LongType(), valueContainsNull=False), r"x\.value"),
    ],
)
def test_columns_that_are_said_never_to_be_null_are_refused(storage, kind, path):
    """Spark would not look for nulls then: 'is null' found none, and other queries failed inside of Spark."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, _ = source(storage.root)
    schemas = [(StructType([StructField("ts", LongType(), nullable=False)]), "ts"), (StructType().add("x", kind), path)]
    for schema, name in schemas:
        for plan in (made.reader, made.streamReader):
            with pytest.raises(ConfigError, match=rf"that {name} is never null.*leave NOT NULL out"):
                plan(schema)


def test_writing_is_refused_with_the_way_to_write(storage):
    """To files, to tables of Spark's catalog, of streams: Spark's words would be a method that is not implemented."""
    made = HudiDataSource({"path": storage.root})
    for write in (made.writer, made.streamWriter):
        with pytest.raises(ConfigError, match=r"WriteClient\(spark.*nothing was created"):
            write(StructType(), overwrite=False)
    for options in ({}, {"path": storage.root, "checkpointLocation": "/nowhere"}):
        with pytest.raises(ConfigError, match=r"WriteClient\(spark"):
            HudiDataSource(options)


def test_options_ask_what_arguments_ask(storage):
    """Names in any case, lists as text, settings and options of the storage beside them."""
    upsert(storage, [{"id": each, "region": "eu", "ts": 1} for each in "abc"])
    assert [{"ts": 1, "id": "b"}] == read(storage.root, WHERE="id = 'b'", columns='["ts", "id"]')
    asked = source_options(
        {"path": "s3://lake/t", "storage.endpoint_url": "http://x", "hoodie.metadata.enable": "false"}
        | {"with_deletes": "TRUE", "start": "0"}
    )
    assert {"endpoint_url": "http://x"} == asked.storage_options
    assert {"hoodie.metadata.enable": "false"} == asked.settings
    assert asked.question.with_deletes


@pytest.mark.parametrize(
    "options",
    [{"wher": "a > 1"}, {"with_deletes": "yes"}, {"path": ""}, {"as_of": "1d", "start": "0"}, {"columns": "[1]"},
     {"change_log": "true", "where": "a > 1"}, {"columns": '["a"'}],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    """Before the table is looked at."""
    with pytest.raises(ConfigError):
        HudiDataSource({"path": "/nowhere", **options})


def test_a_stream_waits_for_columns(storage):
    """It would show none of those that the first write brings."""
    made, schema = source(storage.root)
    with pytest.raises(RefusedError, match="no columns yet"):
        made.streamReader(schema)


@pytest.mark.parametrize("option", ["as_of", "savepoint", "end"])
def test_a_stream_is_no_snapshot(option):
    """It would never end, or never begin."""
    with pytest.raises(ConfigError, match=option):
        HudiStreamReader(source_options({"path": "/nowhere", option: "20260101000000000"}), StructType())


def test_errors_of_executors_say_so(storage):
    """Whoever reads the message looks for the file there."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    made, schema = source(storage.root)
    reader = made.reader(schema)
    ((path, base),) = open_table(storage).base_files()
    storage.delete(f"{path}/{base.name}")
    with pytest.raises(HudiError, match=rf"on the Spark executor .*{base.name}"):
        rows_of(reader, reader.partitions())


def test_schemas_are_told_without_data_files(storage):
    """Spark asks for them before anything is read."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    for options in ({}, {"columns": "ts"}, {"start": "0", "with_deletes": "true"}):
        made, schema = source(storage.root, **options)
        reader = made.reader(schema)
        (partition,) = reader.partitions()
        assert schema == spark_schema(next(reader.read(partition)).schema)


def test_older_spark_is_told_what_it_lacks(monkeypatch):
    """Its own words would be an attribute that is missing."""
    monkeypatch.setattr("hudi_py.spark.source.HAS_SOURCES", False)
    with pytest.raises(ConfigError, match=r"hudi_py\.read"):
        register(type("Session", (), {"version": "3.5.9", "createDataFrame": None})())


@pytest.mark.parametrize("name", ["where", "as_of", "savepoint", "start", "end"])
def test_an_empty_option_is_named_as_empty(name):
    """It is known, so a message that calls it unknown would mislead."""
    with pytest.raises(ConfigError, match=f"the option {name} is empty"):
        source_options({"path": "t", name: ""})


@pytest.mark.parametrize("name", ["timestampAsOf", "versionAsOf", "as.of.instant"])
def test_options_of_other_sources_for_time_travel_name_ours(name):
    """Ignored, they would show the rows of today."""
    with pytest.raises(ConfigError, match=rf'{name.lower()} is called as_of here: .option\("as_of", "2026-01-01"\)'):
        source_options({"path": "t", name: "2026-01-01"})


@pytest.mark.parametrize("name", ["read_optimized", "with_deletes", "change_log"])
@pytest.mark.parametrize("value", ["false", 1, None])
def test_a_flag_is_true_or_false(name, value):
    """The text "false" counts as true in Python: another question would be answered."""
    with pytest.raises(ConfigError, match=rf"{name}={value!r} is neither"):
        Question(**{name: value})


def test_a_time_that_equals_false_is_given():
    """In Python 0 == False, and with start it was not seen that two questions are asked."""
    with pytest.raises(ConfigError, match="start asks for changes, as_of for a snapshot"):
        Question(as_of=0, start="0")


@pytest.mark.parametrize("columns", ["id", 5, [1], ["id", None], [b"id"]])
@pytest.mark.parametrize("asked", [{}, {"start": "0"}, {"start": "0", "with_deletes": True}])
def test_columns_are_a_list_of_names(storage, columns, asked):
    """For a snapshot and for changes alike; letters of a text would be taken for names."""
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    with pytest.raises(ConfigError, match=r"columns=.* give a list"):
        Question(columns=columns, **asked).batches(open_table(storage)).to_arrow()


@pytest.mark.parametrize("where", [{"path": "file:/t", "location": "file:/t"}, {"location": "file:/t"}, {}], ids=str)
def test_a_table_of_the_catalog_is_refused(where):
    """With what Spark 4.0 says when one is made: it reads such a table without any option."""
    with pytest.raises(ConfigError, match="CREATE TEMPORARY VIEW NAME USING hudi_py"):
        source_options({"owner": "root", "provider": "hudi_py", **where})
