"""Settings and tables that the write client refuses, before a byte of a table is there or changed."""

import re
from types import SimpleNamespace

import pytest

import hudi_py
from hudi_py.config.refused import REFUSED
from hudi_py.config.uses import Use
from support import fixtures

pytestmark = pytest.mark.spark

BASE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
WRITER = [rule for rule in REFUSED if rule.uses & (Use.WRITE | Use.SERVICES)]


def files_of(path):
    return {each: each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def test_every_refused_setting_stops_the_client(spark, tmp_path):
    """By its name, for a new table as for one that is there; no session is asked for anything."""
    there = fixtures.unpack("cow_partitioned-1.1.1", tmp_path)
    before = files_of(there)
    for rule in WRITER:
        name = rule.name.replace("*", "x")
        for path, settings in ((tmp_path / "new", BASE), (there, {})):
            with pytest.raises(hudi_py.ConfigError, match=f"{re.escape(name)}=other is refused"):
                hudi_py.WriteClient(spark, path, {**settings, name: "other"})
    assert not (tmp_path / "new").exists()
    assert before == files_of(there)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hoodie.parquet.compression.codec": "lz4"},
        {"hoodie.keep.min.commits": "9", "hoodie.keep.max.commits": "8"},
        {"hoodie_py.clean.max.commits": "1", "hoodie_py.clean.min.commits": "2"},
        {"hoodie.compact.inline.trigger.strategy": "SOMETIMES"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_value_that_would_fail_in_the_middle_stops_the_client(spark, wrong, tmp_path):
    """Not when the write has begun, and not after its commit."""
    with pytest.raises(hudi_py.ConfigError, match=re.escape(next(iter(wrong)))):
        hudi_py.WriteClient(spark, tmp_path / "new", BASE | wrong)
    assert not (tmp_path / "new").exists()


def test_a_table_of_buckets_is_not_written(spark, tmp_path):
    """Neither its first write nor a later one gets as far as asking for the rows."""
    there = fixtures.unpack("cow_partitioned-1.1.1", tmp_path)
    folder = there / ".hoodie" / ".bucket_index" / "consistent_hashing_metadata"
    folder.mkdir(parents=True)
    (folder / "00000000000000.hashing_meta").write_bytes(b"{}")
    before = files_of(there)
    client = hudi_py.WriteClient(spark, there)
    for _ in range(2):
        with pytest.raises(hudi_py.UnsupportedTable, match="bucket index"):
            client.upsert(SimpleNamespace(mapInArrow=None))
    assert before == files_of(there)


def test_a_misspelled_setting_stops_the_client(spark, tmp_path):
    """Its default would have deleted more than wanted after the first commit; as an argument, so for reading."""
    typo = {"hoodie.cleaner.commits.retaned": "24"}
    with pytest.raises(hudi_py.ConfigError, match=r"did you mean hoodie\.cleaner\.commits\.retained"):
        hudi_py.WriteClient(spark, tmp_path / "new", BASE | typo)
    assert not (tmp_path / "new").exists()
    with pytest.raises(hudi_py.ConfigError, match="retaned"):
        hudi_py.read(spark, fixtures.unpack("cow_partitioned-1.1.1", tmp_path), settings=typo)


def test_a_table_with_change_logs_of_an_unknown_kind_is_not_written(spark, tmp_path):
    """Its change queries would miss what we write."""
    there = fixtures.unpack("cow_partitioned-1.1.1", tmp_path)
    properties = there / ".hoodie" / "hoodie.properties"
    enabled = "cdc.enabled=true\nhoodie.table.cdc.supplemental.logging.mode=ROWS"
    properties.write_text(properties.read_text().replace("cdc.enabled=false", enabled))
    before = files_of(there)
    with pytest.raises(hudi_py.UnsupportedTable, match=r"logging\.mode=rows is not known"):
        hudi_py.WriteClient(spark, there)
    assert before == files_of(there)
    assert hudi_py.open_table(there).clean(commits_retained=1) is not None


def test_what_is_no_session_is_refused_by_name(tmp_path):
    """Before a table is made, instead of with what Python says of an attribute that a text lacks."""
    there = fixtures.unpack("cow_partitioned-1.1.1", tmp_path)
    for wrong in (None, "local[2]", object()):
        for call in (hudi_py.WriteClient, hudi_py.read):
            with pytest.raises(hudi_py.ConfigError, match=r"spark=.*give a SparkSession"):
                call(wrong, there)
        with pytest.raises(hudi_py.ConfigError, match=r"spark=.*give a SparkSession"):
            hudi_py.register(wrong)
