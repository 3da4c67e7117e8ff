"""``hudi-py overview``: every number of the page counted another way, on tables of real Hudi."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_py
from hudi_py.mdt.statistics import column_prefix, key_suffix
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.snapshot.overview import ranges_of
from support import fixtures

NAMES = [
    f"{table}-{version}"
    for version in ("0.15.0", "1.1.1")
    for table in (
        "cow_partitioned", "cow_nonpartitioned", "cow_empty", "cow_archived", "cow_savepoints", "cow_partition_dropped",
        "cow_failed_write", "mor_logs", "mor_compacted_pending", "mor_failed_write", "cow_clean_inflight",
    )
]  # fmt: skip
FOLDERS = ("--conf", "hoodie.metadata.enable=false")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_counts_what_hudi_lists(run, table, name):
    """Files and bytes on disk, latest slices, partitions and instants are those of Hudi's own answers."""
    path = table(name)
    answers = fixtures.expected(name)["expected"]
    page = run("overview", path, "--json", *FOLDERS).json
    on_disk = {p: s for p, s in answers["data_files"].items() if not p.rpartition("/")[2].startswith(".hoodie")}
    kinds = page["files"].values()
    assert (sum(each["files"] for each in kinds), sum(each["bytes"] for each in kinds)) == (
        len(on_disk), sum(on_disk.values()),
    )  # fmt: skip
    views = answers["file_slices"]["partitions"]
    latest = {
        file
        for view in views.values()
        for each in view["latest_slices"]
        for file in (each["base_file"], *each["log_files"])
        if file is not None
    }
    # Hudi's slices leave out what was logged behind a pending compaction, though every reader needs it.
    sliced = {
        log
        for view in views.values()
        for group in view["file_groups"]
        for each in group["slices"]
        for log in each["log_files"]
    }
    compacted = tuple(
        f"{each['partition']}/.{each['file_id']}_" for each in answers["file_slices"]["pending_compaction"]
    )
    latest |= {p.rpartition("/")[2] for p in on_disk if p.startswith(compacted)} - sliced
    assert page["files"]["latest"]["files"] == len(latest)
    assert page["files"]["latest"]["bytes"] == sum(s for p, s in on_disk.items() if p.rpartition("/")[2] in latest)
    assert (page["files"]["uncommitted"]["files"] > 0) is ("failed_write-1" in name or name.startswith("cow_failed"))
    assert page["partitions"] == len(answers["partitions"])
    listed = answers["timeline"]["instants"]
    counted = Counter((each["action"], each["state"]) for each in listed)
    assert counted == {(a, s): n for a, states in page["instants"].items() for s, n in states.items()}
    assert len(page["pending"]) == sum(each["state"] != "COMPLETED" for each in listed)
    assert page["savepoints"] == [each["requested_time"] for each in listed if each["action"] == "savepoint"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_through_the_metadata_table_is_the_same(run, table, name):
    """Files of failed writes apart, which the metadata table does not know; and it fits without a terminal."""
    path = table(name)
    page, through_folders = (run("overview", path, "--json", *options).json for options in ((), FOLDERS))
    is_listed = page["metadata_table"] and page["files"]["uncommitted"] is None
    text = run("overview", path)
    assert ("not listed by the metadata table" in text.out) is bool(is_listed)
    assert page["files"]["uncommitted"] in (None, through_folders["files"]["uncommitted"])
    for each in (page, through_folders):
        each["files"].pop("uncommitted")
        for last in each["last"].values():
            last.pop("age_seconds")
    if not name.startswith("cow_clean_inflight"):  # which lists what the clean has deleted already
        assert {**page, "columns": None} == {**through_folders, "columns": None}
    assert text.code == 0
    assert f"version {page['version']}" in text.out
    assert "\x1b" not in text.out


@pytest.mark.parametrize("version", ["1.0.2", "1.1.1"])
def test_ranges_are_those_of_the_rows(run, table, version):
    """Of every column that has statistics, by reading the rows."""
    path = table(f"cow_partitioned-{version}")
    columns = run("overview", path, "--json").json["columns"]
    rows = pa.Table.from_batches(hudi_py.open_table(str(path)).rows(with_meta=True))
    assert {"name", "qty", "amount", "ts", "region"} < set(columns)
    for name, found in columns.items():
        bounds = pc.min_max(rows[name]).as_py()
        assert (found["min"], found["max"], found["nulls"]) == (bounds["min"], bounds["max"], rows[name].null_count)
    assert run("overview", path, "--json", "--no-columns").json["columns"] is None
    assert run("overview", path, "--json", *FOLDERS).json["columns"] is None


def test_columns_are_left_out_where_a_file_has_no_statistics(run, table):
    """What holds for some files is not told of all."""
    path = table("cow_partitioned-1.1.1")
    opened = hudi_py.open_table(str(path))
    whole = opened.overview()
    partition, base = opened.base_files()[0]
    with opened.snapshot().column_statistics() as reader:
        records = [(key, each) for key, each in reader.scan() if (each.where, each.column) != (base.name, "qty")]
    assert {each.column for each in whole.columns} - {"qty"} == {
        each.column for each in ranges_of(records, whole.files.suffixes)
    }
    assert ranges_of(records, whole.files.suffixes | {key_suffix(partition, "new.parquet")}) is None


def told(file, low, high, nulls=0, kind="double"):
    each = ColumnStatistics(column="c", where=file, kind=kind, minimum=low, maximum=high, value_count=9,
                            null_count=nulls, size_bytes=1, uncompressed_bytes=1)  # fmt: skip
    return column_prefix("c") + key_suffix("", file), each


def test_bounds_that_may_be_wrong_are_not_told():
    """A NaN, a file without bounds, another kind; files of nulls alone do not matter."""
    suffixes = frozenset(key_suffix("", file) for file in "ab")
    for other in (told("b", 0.0, 0.0), told("b", None, None), told("b", 1, 2, kind="int")):
        (found,) = ranges_of([told("a", 1.0, 2.0), other], suffixes)
        assert (found.minimum, found.maximum, found.null_count) == (None, None, 0)
    (found,) = ranges_of([told("a", 1.0, 2.0), told("b", None, None, nulls=9)], suffixes)
    assert (found.minimum, found.maximum, found.null_count) == (1.0, 2.0, 9)


def test_damaged_statistics_take_the_columns_alone(run, table, caplog):
    """The page is there, and why it lacks them is in the log."""
    path = table("cow_partitioned-1.1.1")
    for each in (path / ".hoodie" / "metadata").glob("column_stats/.col-stats-*.log.*"):
        each.write_bytes(each.read_bytes()[:-30])
    page = run("overview", path, "--json").json
    assert page["columns"] is None
    assert page["files"]["latest"]["files"] == 4
    assert "column_stats" in caplog.text
