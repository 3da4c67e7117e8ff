"""Sessions in other time zones than the writer's: both sides show the same moments, and find them by the same texts."""

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from real_hudi import canonical_rows

import hudi_py

pytestmark = pytest.mark.oracle

ZONE = "spark.sql.session.timeZone"
FIRST = datetime(
    2024, 3, 10, 9, 30, 0, 123000, timezone.utc
)  # clocks in Los Angeles are set forward half an hour later
EARLY = "at <= timestamp '2024-03-10 04:00:00' and day >= '2024-03-10'"
"""One row in Los Angeles, none in Kolkata."""
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": False,
    "hoodie.metadata.enable": False,
}
BY = {
    "day": {"hoodie.datasource.write.partitionpath.field": "day"},
    "hour": {
        "hoodie.datasource.write.partitionpath.field": "clock",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss",
        "hoodie.keygen.timebased.input.timezone": "UTC",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH",
        "hoodie.keygen.timebased.output.timezone": "America/Los_Angeles",
    },
}


@pytest.fixture
def sessions(spark, peer):
    """``sessions(zone)`` puts both sides there."""

    def put(zone):
        peer.sql(f"SET {ZONE}={zone}")
        spark.conf.set(ZONE, zone)

    yield put
    put("UTC")
    spark.conf.unset(ZONE)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_moments_are_the_same_in_every_session(peer, sessions, spark, tmp_path, kind, by):
    """Snapshots, earlier times and conditions of Spark, partitions by day and by formatted hours."""
    path = tmp_path / "t"
    settings = SETTINGS | BY[by] | {"hoodie.datasource.write.table.type": kind}
    settings["hoodie.write.table.version"] = peer.table_version
    sessions("Asia/Kolkata")
    commits = [peer.write(path, rows(count, ts), "upsert", settings) for ts, count in enumerate((6, 2))]
    first = commits[0]["requested_time"]
    text = f"{first[:4]}-{first[4:6]}-{first[6:8]} {first[8:10]}:{first[10:12]}:{first[12:14]}.{first[14:]}"
    for zone in ("America/Los_Angeles", "Asia/Kolkata"):
        sessions(zone)
        assert shown(hudi_py.read(spark, str(path))) == peer.read(path), zone
        assert shown(hudi_py.read(spark, str(path), as_of=text)) == peer.read(path, as_of=text), zone
        found = shown(hudi_py.read(spark, str(path)).where(EARLY))
        assert found == peer.find(path, EARLY)["rows"], zone
        assert len(found) == (zone == "America/Los_Angeles")


def rows(count, ts):
    moments = [FIRST + timedelta(hours=5 * number) for number in range(count)]
    return pa.table(
        {
            "id": [f"k{number}" for number in range(count)],
            "ts": [ts] * count,
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "day": pa.array([each.date() for each in moments]),
            "clock": [f"{each:%Y-%m-%d %H:%M:%S}" for each in moments],
        }
    )


def shown(frame):
    """As moments: whatever the zone of the session, Python gets them in that of the process."""
    return canonical_rows(row.asDict(True) for row in frame.collect())
