"""Inserts that look at the keys of the table leave the rows that those of real Hudi leave."""

import pyarrow as pa
import pytest
from real_hudi import RealHudiError

import hudi_py

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}
DROP = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
POLICY, COMBINE = "hoodie.datasource.insert.dup.policy", "hoodie.combine.before.insert"
CASES = [DROP, DROP | {COMBINE: "false"}, {POLICY: "drop"}, {POLICY: "none", COMBINE: "true"}]
NAMES = ("id", "region", "ts", "v")


def rows(*listed):
    return pa.Table.from_pylist([dict(zip(NAMES, each, strict=True)) for each in listed])


FIRST = rows(("a", "eu", 1, 1), ("b", "eu", 1, 2), ("c", "us", 1, 3))
SECOND = rows(("a", "eu", 2, 10), ("a", "us", 2, 11), ("d", "eu", 2, 12), ("d", "eu", 1, 13), ("c", "us", 0, 14))


def told(listed):
    return sorted(tuple(row[name] for name in NAMES) for row in listed)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_known_keys_are_dropped_as_by_real_hudi(peer, ours, tmp_path, kind):
    """Each setting, on Spark and without; real Hudi reads what we wrote, and fails on known keys as we do."""
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind}
    version = {"hoodie.write.table.version": peer.table_version}
    # 0.15.0 knows the policy for SQL only, and passes over it here.
    has_policy = not peer.version.startswith("0.")
    for number, case in enumerate(each for each in CASES if has_policy or each.get(POLICY) in (None, "none")):
        theirs, local, spark = (tmp_path / f"{who}{number}" for who in ("theirs", "local", "spark"))
        peer.write(theirs, FIRST, "insert", settings)
        peer.write(theirs, SECOND, "insert", settings | case)
        expected = told(peer.read(theirs))
        hudi_py.write(local, FIRST, operation="insert", settings=settings | version)
        hudi_py.write(local, SECOND, operation="insert", settings=settings | version | case)
        ours(spark, settings | version).write(FIRST, "insert")
        # Beyond the size of a single pass, too, where Spark shuffles the rows by their keys.
        ours(spark, settings | version).write(SECOND, "insert", **case, **{"hoodie_py.write.single.pass.max.bytes": 0})
        assert told(peer.read(local)) == told(peer.read(spark)) == expected, case
    fails = settings | version | {POLICY: "fail"}
    if has_policy:
        with pytest.raises(RealHudiError, match="Duplicate"):
            peer.write(theirs, SECOND, "insert", fails)
    with pytest.raises(hudi_py.HudiError, match="rows to insert have keys"):
        hudi_py.write(local, SECOND, operation="insert", settings=fails)
    with pytest.raises(hudi_py.HudiError, match="rows to insert have keys"):
        ours(spark, fails).write(SECOND, "insert")
    assert told(peer.read(local)) == told(peer.read(spark)) == expected
