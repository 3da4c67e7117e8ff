"""Look-ups by keys that are times, in tables of real Hudi, which stores one time as different texts."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

import hudi_py
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

BEGIN = datetime(2024, 3, 30, 23, 59, 58, 120_345, tzinfo=timezone.utc)
WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "v",
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.metadata.enable": True,
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.clean.automatic": False,
}
FILES = 4
UNLIKE = {
    "number": {},
    "clock": {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": True},
}
"""The texts of a time, and how they are asked for."""


def moment(number):
    return BEGIN + timedelta(seconds=number * 0.25)


def rows(file):
    """Each file has times from begin to end of all, so that the statistics of the column rule none of them out."""
    listed = [
        (moment(number), f"a{number % 3}", number, f"p{number // FILES % 3}") for number in range(file, 400, FILES)
    ]
    kinds = (pa.timestamp("us", "UTC"), pa.string(), pa.int64(), pa.string())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*listed, strict=True), kinds, strict=True)]
    return pa.Table.from_arrays(columns, ["t", "a", "v", "p"])


def assert_found_by(way, table, number, where):
    rows = table.rows(where=where)
    assert [row["v"] for row in rows.to_arrow().to_pylist()] == [number]
    assert (rows.count.read, rows.file_count) == (1, 3 * FILES)
    assert rows.skipped[way] > 0, rows.skipped


@pytest.mark.parametrize("fields", ["t", "t,a"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_time_is_found_in_its_file_alone(peer, tmp_path, kind, fields):
    """Whichever text it has there, by the record index, by Bloom filters, and by those in the files."""
    path = tmp_path / "t"
    settings = WRITE | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": fields,
    }
    for file in range(FILES):
        operation = ("upsert", "bulk_insert")[file % 2]
        peer.write(path, rows(file), operation, settings | UNLIKE[("number", "clock")[file // 2]])
    stored = [row["_hoodie_record_key"] for row in peer.read(path, meta=True)]
    assert len([key for key in stored if "2024-03-3" in key]) == 300  # all but those of the first upsert
    latest = hudi_py.open_table(path)
    by_files = hudi_py.open_table(path, settings={"hoodie.metadata.enable": False})
    ways = [
        ("record_index", latest),
        ("bloom_filters", latest.as_of(latest.timeline.writes.completed()[-1].requested_time)),
        ("bloom_filters", by_files),
    ]
    for number in (150, 201, 250, 251):
        where = [("t", "=", moment(number))] + [("a", "=", f"a{number % 3}")] * ("a" in fields)
        for way, table in ways:
            assert_found_by(way, table, number, where)


@pytest.mark.parametrize("fields", ["t", "t,a"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("operation", "unlike"), [("upsert", "number"), ("upsert", "clock"), ("bulk_insert", "number")]
)
def test_rows_are_deleted_as_they_were_read_or_refused(peer, tmp_path, kind, fields, operation, unlike):
    """With times stored as numbers they are found; stored as what a clock showed, changes and deletes are refused."""
    path = tmp_path / "t"
    settings = WRITE | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": fields,
    }
    peer.write(path, rows(0), operation, settings | UNLIKE[unlike])
    keys = {row["_hoodie_record_key"] for row in peer.read(path, meta=True)}
    table = hudi_py.open_table(path)
    read = table.rows().to_arrow()
    if any("2024-03-3" in key for key in keys):
        for change in (table.delete, table.upsert):
            with pytest.raises(hudi_py.errors.ConfigError, match="stored times as another text"):
                change(read.slice(0, 10))
        table.delete(where=[("v", "in", read["v"].slice(0, 10).to_pylist())])
    else:
        table.delete(read.slice(0, 10))
    assert sorted(row["v"] for row in peer.read(path)) == sorted(read["v"].slice(10).to_pylist())


@pytest.mark.parametrize("peer", releases(9), indirect=True)
def test_partitions_of_times_by_both(peer, tmp_path):
    """A time-based key generator over a column of times: both find the rows of the other, in the same folders."""
    day = datetime(2026, 3, 1, 23, 30, tzinfo=timezone.utc)
    schema = pa.schema([("id", pa.string()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "t",
        "hoodie.datasource.write.precombine.field": "v",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.keygen.timebased.timezone": "GMT",
    }
    expected = {}

    def some(*given):
        rows = {key: {"id": key, "t": day + timedelta(hours=hours), "v": v} for key, hours, v in given}
        expected.update(rows)
        return pa.Table.from_pylist([*rows.values()], schema)

    peer.write(tmp_path / "t", some(("a", 0, 1), ("b", 1, 1)), "upsert", settings)
    hudi_py.write(tmp_path / "t", some(("a", 0, 2), ("c", 2, 2)), settings=settings)
    peer.write(tmp_path / "t", some(("c", 2, 3), ("b", 1, 3), ("d", -24, 3)), "upsert", settings)
    table = hudi_py.open_table(tmp_path / "t")
    shown = table.rows(columns=["id", "t", "v"]).to_arrow().to_pylist()
    assert sorted(shown, key=str) == sorted(expected.values(), key=str)  # Hudi 1.1.1 cannot read its own such table
    assert sorted(table.partitions()) == ["2026/02/28", "2026/03/01", "2026/03/02"]
