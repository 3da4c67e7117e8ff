"""Partition paths made of times: equal to those of Apache Hudi's own class, and to those in tables that it wrote."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_py
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.formats.joda import JodaPattern
from hudi_py.rows.keys import key_generator_of
from hudi_py.rows.partition_times import partition_time
from support.fixtures import unpack_rows, writer_settings

PREFIX = "hoodie.keygen.timebased."
RELEASES = ["0.15.0", "1.0.2", "1.1.1"]
PATTERNS = ["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS", "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "dd/MM/yyyy HH mm ss SSS ZZ"]

# Computed by `TimestampBasedAvroKeyGenerator.getPartitionPath` of Hudi 1.1.1 and 1.2.0, which agree on these, and so
# does 0.15.0, but for EPOCHMICROSECONDS, which it does not know.
NAMES = {
    "type": "timestamp.type", "unit": "timestamp.scalar.time.unit", "in": "input.dateformat", "of": "input.timezone",
    "out": "output.dateformat", "to": "output.timezone", "zone": "timezone",
}  # fmt: skip
SHORT = {"MS": "EPOCHMILLISECONDS", "TEXT": "DATE_STRING", "CLOCK": "HH-mm-ss.SSS"}
OF_HUDI = [
    ("2023/11/01", 1698800000000, "type=MS;out=yyyy/MM/dd;to=UTC"),
    ("1970/01/01", None, "type=MS;out=yyyy/MM/dd;to=UTC"),
    ("20240331 01", 1711846799999, "type=MS;out=yyyyMMdd HH;to=Europe/Rome"),
    ("20240331 03", 1711846800000, "type=MS;out=yyyyMMdd HH;to=Europe/Rome"),
    ("1970-1-1", -1, "type=MS;out=yyyy-M-d;to=Asia/Kolkata"),
    ("y=1969/m=12", 0, "type=MS;out='y='yyyy'/m='MM;to=GMT-03:30"),
    ("78/011", 253402300799, "type=MS;out=yy/DDD;to=UTC"),
    ("2020-53-5", 1609459200000, "type=MS;out=xxxx-ww-e;to=UTC"),
    ("200902132331301230", 1234567890123, "type=MS;out=yyyyMMddHHmmssSSSS;to=UTC"),
    ("1153+1100 +11:00", 1698800000000, "type=MS;out=HHmmZ ZZ;to=Australia/Lord_Howe"),
    ("24", 0, "type=MS;out=kk;to=UTC"),
    ("1970'01", 0, "type=MS;out=yyyy''MM;to=UTC"),
    ("2023-11-01 00", 1698800000, "type=UNIX_TIMESTAMP;out=yyyy-MM-dd HH;zone=UTC"),
    ("2023-11-01", 19662, "type=SCALAR;unit=DAYS;out=yyyy-MM-dd;to=UTC"),
    ("1969-12-31 23-59-59.999", -1500, "type=SCALAR;unit=MICROSECONDS;out=yyyy-MM-dd CLOCK;to=UTC"),
    ("2023-11-01 00-53-20.123", 1698800000123456, "type=EPOCHMICROSECONDS;out=yyyy-MM-dd CLOCK;to=UTC"),
    (
        "2023/11/01 10-00-00.000",
        "2023-11-01 10:00:00",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HH:mm:ss;of=Europe/Rome",
    ),
    (
        "2023/10/29 02-30-00.000",
        "2023-10-29 02:30:00",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HH:mm:ss;of=Europe/Rome",
    ),
    ("2023/01/01 01-02-03.000", "2023-1-1 1:2:3", "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HH:mm:ss;of=UTC"),
    (
        "2023/11/01 08-00-00.000",
        "2023-11-01t10:00:00+02:00",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd'T'HH:mm:ssZ;of=UTC",
    ),
    (
        "2023/11/01 10-00-00.000",
        "2023-11-01T10:00:00Z",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd'T'HH:mm:ss.SSSZ,yyyy-MM-dd'T'HH:mm:ssZ;of=UTC",
    ),
    ("1969/12/31 00-00-00.000", None, "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyyMMdd,yyyy/MM/dd;of=America/New_York"),
    ("2023/01/01 00-00-00.000", "2023/1/1", "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyyMMdd,yyyy/MM/dd;of=UTC"),
    (
        "2023/11/01 10-00-00.500",
        "2023-11-01 10:00:00.5",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HH:mm:ss.SSS;of=UTC",
    ),
    (
        "2023/11/01 10-00-00.000",
        "2023-11-01 10",
        "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HH;of=Asia/Tokyo;zone=America/New_York",
    ),
    ("2023/11/01 05-00-00.000", "2023-11-01 10+0500", "type=TEXT;out=yyyy/MM/dd CLOCK;to=UTC;in=yyyy-MM-dd HHZ"),
    ("2023/11/01 10-00-00.000", "2023-11-01 10+0500", "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HHZ"),
    ("1970/01/01 00-00-00.000", None, "type=TEXT;out=yyyy/MM/dd CLOCK;in=yyyy-MM-dd HHZ"),
    ("1970/01/01 09-00-00.000", None, "type=TEXT;out=yyyy/MM/dd CLOCK;to=Asia/Tokyo;in=yyyy-MM-dd HHZ"),
    ("2023/11/01 14-00-00.000", "2023-11-01 10+0500", "type=TEXT;out=yyyy/MM/dd CLOCK;of=Asia/Tokyo;in=yyyy-MM-dd HHZ"),
    (
        "2023/10/31 11-00-00.000",
        "20231101",
        "type=TEXT;out=yyyy/MM/dd CLOCK;of=Asia/Tokyo;to=America/New_York;in=yyyyMMdd",
    ),
]


def settings(given):
    return Settings({PREFIX + name: value for name, value in given.items()})


def path_of(given, value):
    column = pa.array([value], pa.string() if given["timestamp.type"] == "DATE_STRING" else pa.int64())
    return partition_time({}, settings(given), "t").texts(column, "t").to_pylist()[0]


@pytest.mark.parametrize(("wanted", "value", "given"), OF_HUDI)
def test_paths_are_those_of_apache_hudi(wanted, value, given):
    """Of numbers in each unit and of texts, in and out of zones, for null too."""
    for short, said in SHORT.items():
        given = given.replace(short, said)
    assert wanted == path_of(
        {NAMES[name]: said for name, said in (each.split("=", 1) for each in given.split(";"))}, value
    )


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.sampled_from(PATTERNS), st.integers(-720, 720))  # noqa: DTZ001
def test_what_is_printed_is_parsed(time, pattern, minutes):
    """Each time of the years 1 to 9999, in any zone with whole minutes."""
    zone = timezone(timedelta(minutes=minutes))
    there = time.replace(tzinfo=zone, microsecond=time.microsecond // 1000 * 1000)
    assert there == JodaPattern(pattern).parse(JodaPattern(pattern).text(there), zone)


@pytest.mark.parametrize("pattern", ["MMM", "EEE", "a", "z", "G", "ZZZ", "yyyy'x"])
def test_names_and_open_quotes_are_refused(pattern):
    """Their text depends on the machine that writes."""
    with pytest.raises(ConfigError, match="time pattern"):
        JodaPattern(pattern)


@pytest.mark.parametrize("text", ["2023-02-30", "2023-1", "x", "2023-11-01 ", "2023-11-01T", "10000000000-1-1", ""])
def test_other_texts_are_no_times(text):
    """No text is read as a time that it does not say."""
    with pytest.raises(WriteError, match="does not have the form"):
        given = {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyy"}
        path_of({**given, "timezone": "UTC"}, text)


def test_an_hour_that_was_left_out_is_no_time():
    """As in Apache Hudi, which cannot say what is meant by it either."""
    assert JodaPattern("yyyy-MM-dd HH").parse("2024-03-31 02", ZoneInfo("Europe/Rome")) is None


@pytest.mark.parametrize(
    "given",
    [
        {"output.dateformat": "yyyy"},
        {"timestamp.type": "EPOCHMILLISECONDS"},
        {"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy"},
        {"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy", "input.dateformat": "MM-dd"},
        {"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy", "input.dateformat": "yy-MM-dd"},
        {"timestamp.type": "NONE", "output.dateformat": "yyyy"},
        {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "WEEKS", "output.dateformat": "yyyy"},
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy", "output.timezone": "Atlantis"},
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy", "input.timezone": "UTC"},
        {"timestamp.type": "DATE_STRING", "output.dateformat": "yyyy", "input.dateformat": "yyyyMMdd"},
    ],
)
def test_half_settings_are_refused(given):
    """Before a row is written, with the name of the setting."""
    with pytest.raises(ConfigError, match=r"hoodie\.keygen|time pattern"):
        partition_time({}, settings(given), "t")


@pytest.mark.parametrize(
    "wrong", [{"timestamp.type": "UNIX_TIMESTAMP"}, {"output.dateformat": "yyyy"}, {"timezone": "GMT+9"}]
)
def test_settings_that_contradict_the_table_are_refused(wrong):
    """What the table stores goes for all of its writers."""
    stored = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"}
    with pytest.raises(ConfigError, match="but the table has"):
        partition_time({PREFIX + name: value for name, value in stored.items()}, settings(wrong), "t")


@pytest.fixture(params=[(kind, release) for kind in ("timestamp", "custom") for release in RELEASES], ids="-".join)
def theirs(request, tmp_path):
    """A table of Apache Hudi, the settings that wrote it, and its rows as stored."""
    kind, release = request.param
    name = f"cow_{kind}_keygen-{release}"
    path = unpack_rows(name, tmp_path)
    said = {key: value for key, value in writer_settings(name).items() if "key" in key or "partitionpath" in key}
    return str(path), said


def stored_rows(path):
    import pyarrow.parquet as pq

    table = hudi_py.open_table(path)
    files = [
        pq.read_table(f"{path}/{partition}/{each.base_file.name}", partitioning=None)
        for partition in table.partitions()
        for each in table.file_slices(partition)
    ]
    return pa.concat_tables(files)


def test_keys_and_paths_of_their_rows(theirs):
    """Computed again from the stored values, each is the one that Apache Hudi gave the row."""
    path, said = theirs
    rows = stored_rows(path).combine_chunks().to_batches()[0]
    generator = key_generator_of(
        hudi_py.open_table(path).config.properties, Settings(said), single_field_prefixed=False
    )
    assert rows.column("_hoodie_record_key").to_pylist() == generator.record_keys(rows).to_pylist()
    assert rows.column("_hoodie_partition_path").to_pylist() == generator.partition_paths(rows).to_pylist()


def test_their_tables_are_written(theirs):
    """An upsert finds each row where it is; deletes by condition need no settings; updates by condition are refused."""
    path, said = theirs
    rows = stored_rows(path)
    names = [name for name in rows.column_names if not name.startswith("_hoodie_")]
    before = hudi_py.open_table(path).rows().to_arrow()
    result = hudi_py.write(path, rows.select(names), settings=said)
    assert (before.num_rows, 0) == (result.rows_updated, result.rows_inserted)
    table = hudi_py.open_table(path)
    assert before.sort_by("id") == table.rows().to_arrow().sort_by("id")
    with pytest.raises((UnsupportedTable, ConfigError)):
        table.update({"name": "'x'"}, where="id is not null")
    assert before.num_rows == hudi_py.open_table(path).delete(where="_hoodie_record_key is not null").rows_deleted


def test_other_settings_than_those_of_the_rows_are_refused(theirs):
    """Rows of one time would lie in two folders; nothing is written."""
    path, said = theirs
    rows = stored_rows(path).select(
        [name for name in stored_rows(path).column_names if not name.startswith("_hoodie_")]
    )
    before = hudi_py.open_table(path).timeline.instants
    with pytest.raises((ConfigError, WriteError)):
        hudi_py.write(path, rows, settings={**said, PREFIX + "output.dateformat": "yyyy"})
    assert before == hudi_py.open_table(path).timeline.instants


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("fields", ["at", "region:SIMPLE,at:TIMESTAMP"])
def test_new_tables_by_time(tmp_path, version, fields):
    """Rows come into the folder of their time, an upsert finds them, and the settings hold for every later write."""
    said = {
        "hoodie.table.name": "t", "hoodie.write.table.version": version, "hoodie.table.ordering.fields": "ts",
        "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": fields,
        "hoodie.datasource.write.hive_style_partitioning": True, PREFIX + "timestamp.type": "UNIX_TIMESTAMP",
        PREFIX + "output.dateformat": "yyyy/MM/dd", PREFIX + "timezone": "UTC", "hoodie.index.bloom.num_entries": 100,
    }  # fmt: skip
    if ":" not in fields:
        said["hoodie.datasource.write.keygenerator.type"] = "TIMESTAMP"
    rows = pa.table({"id": ["a", "b", "c"], "region": ["x", "x", "y"], "at": [0, 86_400, None], "ts": [1, 1, 1]})
    path = str(tmp_path / "t")
    hudi_py.write(path, rows, settings=said)
    assert 3 == hudi_py.write(path, rows, settings=said).rows_updated
    days = ["at=1970/01/01", "at=1970/01/02", "at=1970/01/01"]
    wanted = days if ":" not in fields else [f"region={r}/{day}" for r, day in zip("xxy", days, strict=True)]
    assert sorted(set(wanted)) == sorted(hudi_py.open_table(path).partitions())
    found = hudi_py.open_table(path).rows(with_meta=True, columns=["id"]).to_arrow().sort_by("id")
    assert wanted == found.column("_hoodie_partition_path").to_pylist()
    with pytest.raises(ConfigError):
        hudi_py.write(path, rows, settings={**said, PREFIX + "output.dateformat": "yyyy-MM"})
