"""Writing, cleaning and reading a table on S3, where Spark has no jar of Hadoop's for it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest

import hudi_py
from hudi_py.storage.remote import RemoteStorage
from support.trips import COMMON, PARTITIONED, Trips, trip

pytestmark = [pytest.mark.spark, pytest.mark.s3]
KEEPING = PARTITIONED | {"hoodie.clean.commits.retained": "1", "hoodie.metadata.enable": "true"}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_on_s3_looks_after_itself(spark, s3_options, version):
    """Three writes, each cleaned up behind; both readers see the rows, and no finding is left."""
    url = f"s3://contract/{uuid4()}"
    settings = KEEPING | {"hoodie.write.table.version": str(version)}
    table = Trips(spark, url, settings, s3_options)
    table.insert([trip(number) for number in range(30)], "bulk_insert")
    table.upsert([trip(number, 2) for number in range(20, 40)])
    table.delete([trip(number) for number in range(5)])
    table.check()
    opened = hudi_py.open_table(url, storage_options=s3_options)
    assert opened.timeline.completed("clean")
    assert not opened.timeline.pending()
    assert opened.check() == ()
    assert {len(opened.partition(path).groups[0].slices) for path in opened.partitions()} == {2}


def test_rows_read_through_our_storage_are_those_of_sparks_reader(spark, s3_options, tmp_path):
    """Every type, nulls, days and instants before calendars changed, and a column that older files lack."""
    place = tmp_path / "t"
    client = hudi_py.WriteClient(spark, str(place), COMMON)
    schema = (
        "id string, ts bigint, flag boolean, small int, real float, amount decimal(20,4), day date, moment timestamp, "
        "raw binary, tags array<string>, sizes map<string,int>, place struct<x: double, deep: array<struct<y: int>>>"
    )
    rows = [
        (
            *("a", 1, True, 1, 0.5, Decimal("-1.2345"), dt.date(1500, 1, 1)),
            *(dt.datetime(1800, 1, 1, tzinfo=dt.timezone.utc), b"\0", ["x", "y"]),
            *({"k": 1, "n": None}, (1.5, [(1,), (None,)])),
        ),
        ("b", 1, None, None, float("nan"), None, None, None, None, None, None, None),
    ]
    client.upsert(spark.createDataFrame(rows, schema))
    client.upsert(spark.createDataFrame([("c", 2, "new")], "id string, ts bigint, later string"))
    url = f"s3://contract/{uuid4()}"
    _copy(place, RemoteStorage(url, s3_options))
    local = hudi_py.read(spark, str(place)).orderBy("id")
    remote = hudi_py.read(spark, url, storage_options=s3_options).orderBy("id")
    assert remote.schema == local.schema
    assert str(remote.collect()) == str(local.collect())
    assert remote.where("id = 'a'").select("place.deep", "day").collect() == [
        *local.where("id = 'a'").select("place.deep", "day").collect()
    ]


def _copy(place: Path, storage: RemoteStorage) -> None:
    for file in place.rglob("*"):
        if file.is_file() and not file.name.endswith(".crc"):
            storage.create_new(file.relative_to(place).as_posix(), file.read_bytes())
