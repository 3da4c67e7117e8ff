"""One base file, or a row of them: layout, footer, meta columns, sizes."""

import io
import itertools
import json

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.bloom import BloomFilter, BloomKind, BloomSizing
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.model.records import RuntimeStats
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.new_files import NewFiles, write_new_files
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.writing.job import TaskIdentity

NESTED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("l", pa.list_(pa.field("element", pa.struct([("x", pa.list_(pa.int32()))])))),
        pa.field("m", pa.map_(pa.string(), pa.decimal128(9, 2))),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("d", pa.decimal128(5, 2), nullable=False),
    ]
)


def rows_of(count, start=0):
    return [{"id": f"k{number:05}", "ts": number, "v": [str(number)]} for number in range(start, start + count)]


def test_meta_columns_of_new_rows(files):
    """Commit time, running sequence number, key, partition and file name stand in front of the row."""
    table = files.write(rows_of(3), "20240101", per_batch=2, first_row_index=7)
    expected = [
        {
            "_hoodie_commit_time": "20240101",
            "_hoodie_commit_seqno": f"20240101_3_{7 + number}",
            "_hoodie_record_key": row["id"],
            "_hoodie_partition_path": "eu",
            "_hoodie_file_name": "f-0_3-1-2_20240101.parquet",
            **row,
        }
        for number, row in enumerate(rows_of(3))
    ]
    assert expected == files.read(table)


def test_parquet_layout_is_what_hudi_can_read_and_rewrite(files):
    """Lists are ``list.element``, times microseconds without INT96, decimals fixed, no trace of Arrow."""
    file = pq.ParquetFile(io.BytesIO(files.write([], schema=NESTED)))
    columns = {
        column.path: (column.physical_type, str(column.logical_type), column.max_definition_level)
        for column in (file.schema.column(index) for index in range(len(file.schema)))
    }
    assert [*META_COLUMNS, "id", "l.list.element.x.list.element", "m.key_value.key", "m.key_value.value", "t", "d"] == [
        *columns
    ]
    assert ("BYTE_ARRAY", "String", 1) == columns["_hoodie_file_name"]
    assert ("BYTE_ARRAY", "String", 0) == columns["id"]
    assert "INT64" == columns["t"][0]
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in columns["t"][1]
    assert ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=5, scale=2)", 0) == columns["d"]
    assert b"ARROW:schema" not in file.metadata.metadata


@pytest.mark.parametrize(
    ("codec", "expected"), [("GZIP", "GZIP"), ("snappy", "SNAPPY"), ("zstd", "ZSTD"), ("uncompressed", "UNCOMPRESSED")]
)
def test_codec_is_the_configured_one(files, codec, expected):
    """Under Hudi's names, in any case."""
    data = files.write(rows_of(3), options=BaseFileOptions(compression=codec, bloom=BloomSizing(entries=5)))
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    assert {expected} == {group.column(index).compression for index in range(group.num_columns)}
    assert {"RLE", "PLAIN"} == set(group.column(2).encodings), "a dictionary of record keys only costs"


def test_unknown_codec_is_refused():
    """With the ones that work."""
    with pytest.raises(ConfigError, match="gzip"):
        BaseFileOptions(compression="lzo")


@pytest.mark.parametrize("kind", BloomKind)
def test_footer_says_what_the_index_needs(files, kind):
    """Filter with its type, key range in Java's order, schema with meta columns."""
    sizing = BloomSizing(kind=kind, entries=2, entries_max=9)
    keys = ["b", "\U00010000", "a", "\ue000"]  # UTF-16 puts the second before the last, UTF-8 does not
    data = files.write([{"id": key} for key in keys], per_batch=1, options=BaseFileOptions(bloom=sizing))
    footer = {key.decode(): value.decode() for key, value in pq.ParquetFile(io.BytesIO(data)).metadata.metadata.items()}
    expected = BloomFilter.sized(sizing)
    expected.add(pa.array(keys))
    assert expected.to_text() == footer.pop("org.apache.hudi.bloomfilter")
    assert (kind.value if kind is BloomKind.DYNAMIC_V0 else None) == footer.pop("hoodie_bloom_filter_type_code", None)
    assert [*META_COLUMNS, "id", "ts", "v"] == [
        field["name"] for field in json.loads(footer.pop("parquet.avro.schema"))["fields"]
    ]
    assert {
        "hoodie_min_record_key": "a",
        "hoodie_max_record_key": "\ue000",
        "writer.model.name": "avro",
    } == footer


def test_file_without_rows_is_whole(files):
    """All rows of a group may have been deleted; such a file has no key range."""
    file = pq.ParquetFile(io.BytesIO(files.write([])))
    assert 0 == file.metadata.num_rows
    assert b"hoodie_min_record_key" not in file.metadata.metadata
    assert b"org.apache.hudi.bloomfilter" in file.metadata.metadata


def test_row_groups_bound_the_memory(files):
    """Rows leave as soon as a row group is full."""
    options = attrs.evolve(files.OPTIONS, row_group_bytes=4000)
    file = pq.ParquetFile(io.BytesIO(files.write(rows_of(500), per_batch=10, options=options)))
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    assert len(sizes) > 5
    assert max(sizes) <= 100, "4000 bytes hold no more rows of 40 bytes"
    assert 500 == sum(sizes)


def test_only_columns_with_repetitions_have_a_dictionary(files):
    """In one in which nearly each row has a value of its own, it would cost bytes and time."""
    count = 6000
    names = {
        "own": pa.int64(),
        "few": pa.int64(),
        "runs": pa.string(),
        "half": pa.float64(),
        "list": pa.list_(pa.int64()),
    }
    schema = pa.schema([("id", pa.string()), *names.items()])
    rows = [
        {"id": f"k{n}", "own": n * n, "few": n % 99, "runs": f"r{n // 4}", "half": n % (count // 2), "list": [n]}
        for n in range(count)
    ]
    encodings = {}
    for has_dictionaries in (True, False):
        options = attrs.evolve(files.OPTIONS, has_dictionaries=has_dictionaries)
        data = files.write(rows, schema=schema, options=options, per_batch=count)
        group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
        encodings[has_dictionaries] = {
            column.path_in_schema
            for column in map(group.column, range(group.num_columns))
            if "RLE_DICTIONARY" in column.encodings
        }
    with_few = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "few", "runs", "half"}
    assert {True: {*with_few, "list.list.element"}, False: set()} == encodings


@pytest.mark.parametrize("row", [{"id": "a", "v": [None]}, {"id": "", "v": []}])
def test_rows_that_hudi_could_not_carry_on_are_refused(files, row):
    """A null in a list, an empty key."""
    with pytest.raises(WriteError):
        files.write([row])


class Sinks:
    """Streams opened by `write_new_files`, with what became of them."""

    def __init__(self, files):
        self.opened = []
        self._files = files

    def __call__(self, number):
        sink = io.BytesIO()
        sink.close = lambda: sink.__setattr__("kept", sink.getvalue())
        self.opened.append(sink)
        return self._files.target("20260101000000001", file_id=f"g-{number}"), sink


def begun(files, sinks, limits, monotonic):
    task = TaskIdentity(partition_id=3, stage_id=1, attempt_id=2)
    return NewFiles(
        sinks,
        task.number_rows,
        schema=files.SCHEMA,
        avro_schema=format_record_schema(files.SCHEMA, "t"),
        options=attrs.evolve(files.OPTIONS, **limits),
        monotonic=monotonic,
    )


def roll(files, batches, **limits):
    sinks = Sinks(files)
    ticks = itertools.count()
    new_files = begun(files, sinks, limits, lambda: next(ticks) / 1000)
    results = write_new_files(new_files, batches)
    return results, [sink.kept for sink in sinks.opened]


@pytest.mark.parametrize("per_batch", [1000, 20_000])
def test_full_files_are_followed_by_new_ones(files, per_batch):
    """No row is lost, sizes are near the limit, sequence numbers stay unique, results describe the files."""
    limit = 60_000
    batches = [files.batch(rows_of(per_batch, start)) for start in range(0, 20_000, per_batch)]
    results, stored = roll(files, ((batch, batch.column(0)) for batch in batches), max_file_bytes=limit)
    assert len(results) > 2
    rows = [row for data in stored for row in files.read(data)]
    assert rows_of(20_000) == [{name: row[name] for name in files.SCHEMA.names} for row in rows]
    assert 20_000 == len({row["_hoodie_commit_seqno"] for row in rows})
    for number, (result, data) in enumerate(zip(results, stored, strict=True)):
        count = pq.ParquetFile(io.BytesIO(data)).metadata.num_rows
        assert (f"g-{number}", len(data), count, count, 0, 0) == (
            result.stat.file_id,
            result.stat.file_size_in_bytes,
            result.stat.num_writes,
            result.stat.num_inserts,
            result.stat.num_update_writes,
            result.stat.num_deletes,
        )
        assert f"eu/g-{number}_3-1-2_20260101000000001.parquet" == result.stat.path
        assert (result.stat.prev_commit, result.stat.prev_base_file) == ("null", None)
        assert result.stat.runtime_stats == RuntimeStats(total_create_time=1)
        if number + 1 < len(results):
            assert limit * 0.5 < len(data) < limit * 1.6


def test_no_rows_make_no_file(files):
    """Not even an empty one."""
    assert ([], []) == roll(files, [])
    assert ([], []) == roll(files, [(files.batch([]), pa.array([], pa.string()))])


def test_failed_write_leaves_no_footer(files):
    """The stream is closed, and what is in it cannot be taken for a file."""
    good, bad = files.batch(rows_of(50)), files.batch([{"id": "x", "v": [None]}])
    sinks = Sinks(files)
    with pytest.raises(WriteError):
        write_new_files(begun(files, sinks, {}, MONOTONIC), [(good, good.column(0)), (bad, bad.column(0))])
    (sink,) = sinks.opened
    with pytest.raises(pa.ArrowInvalid):
        pq.ParquetFile(io.BytesIO(sink.kept))
