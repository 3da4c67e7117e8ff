"""``hudi-py du``: sums that equal the listing, reasons that equal those of the planner and of explain."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.services.usage.facts import Holder
from hudi_py.services.usage.service import UsageService

NAMES = ["cow_mixed-0.15.0", "cow_archived-1.1.1", "cow_partition_dropped-1.1.1", "cow_failed_write-1.1.1",
         "mor_compacted_pending-0.15.0", "mor_failed_write-0.15.0", "mor_failed_write-1.1.1",
         "mor_logs-1.1.1"]  # fmt: skip
FOLDERS = ("--conf", "hoodie.metadata.enable=false")


def uses(path, **options):
    """Every file of the table with what holds it, by path."""
    opened = hudi_py.open_table(path).read_only()
    found = list(UsageService(opened.services.clean(opened.services.clean_config(**options)), 1 << 20).files())
    assert len({each.path for each in found}) == len(found)
    return {each.path: each for each in found}


@pytest.mark.parametrize("name", NAMES)
def test_all_sums_equal_the_listing(run, table, name):
    """By reason, by partition and by commit: the same total, that of the files on disk."""
    path = table(name)
    (path / "stray").mkdir()
    (path / "stray" / "notes.txt").write_bytes(b"12345")
    files = [each for each in path.rglob("*") if each.is_file() and not each.name.endswith(".crc")]
    page = run("du", path, "--by-reason", "--by-partition", "--by-commit", "--json").json
    assert page["total"] == {"files": len(files), "bytes": sum(each.stat().st_size for each in files)}
    for view in ("by_reason", "by_partition", "by_commit"):
        for unit in ("files", "bytes"):
            assert sum(each[unit] for each in page[view]) == page["total"][unit], view
            shares = [share for each in page[view] for share in each.get("reasons", {}).values()]
            assert view == "by_reason" or sum(share[unit] for share in shares) == page["total"][unit]
    assert set(run("du", path, "--json").json) == {"total", "by_reason"}
    text = run("du", path, "--by-reason", "--by-partition", "--by-commit").out
    assert f"{len(files):,} files" in text


@pytest.mark.parametrize("name", NAMES)
def test_reasons_are_those_of_explain_and_of_the_plan(table, name):
    """Each file has explain's rule; removable is exactly what a clean would delete, live what readers open."""
    path = table(name)
    opened = hudi_py.open_table(path)
    for options in ({"commits_retained": 1}, {"file_versions_retained": 1}, {}):
        found = uses(path, **options)
        explained = [each for part in opened.partitions() for each in opened.explain(part or ".", **options).files]
        assert {each.path: each.rule for each in explained} == {
            each.path: each.rule for each in found.values() if each.partition_path is not None
        }
        removable = {each.path for each in found.values() if each.holder is Holder.REMOVABLE}
        assert removable == {each.path for each in explained if each.removable}
        planned = opened.plan_clean(**options)
        assert removable == {file.path for files in planned.files.values() for file in files}
        live = {each.path.rpartition("/")[2] for each in found.values() if each.holder is Holder.LIVE}
        slices = [each for part in opened.partitions() for each in opened.file_slices(part)]
        assert {name for each in slices for name in each.file_names} <= live


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("0.15.0")])
def test_what_is_not_committed_is_told_as_by_the_overview(run, table, name):
    """A log file that a failed write added to the newest slice, too: no reader reads it, and no clean deletes it."""
    path = table(name)
    page = run("du", path, "--json", *FOLDERS).json
    found = [each for each in page["by_reason"] if each["reason"] == "uncommitted"]
    overview = run("overview", path, "--json", *FOLDERS).json["files"]["uncommitted"]
    assert {unit: sum(each[unit] for each in found) for unit in ("files", "bytes")} == overview
    assert bool(found) == name.partition("-")[0].endswith("failed_write")


def test_commits_are_those_that_wrote_the_files(table):
    """``by_commit`` has what the completed commits recorded, as far as it is still there."""
    path = table("cow_partitioned-1.1.1")
    opened = hudi_py.open_table(path)
    found = uses(path)
    recorded = {
        stat.path: instant.requested_time
        for instant in opened.timeline.completed("commit")
        for stats in opened.contents.commit(instant).partition_to_write_stats.values()
        for stat in stats
    }
    there = {path: each.commit for path, each in found.items() if each.is_base_file}
    assert there
    assert there == {path: time for path, time in recorded.items() if path in there}


def test_a_log_file_of_layout_1_belongs_to_its_delta_commit(table):
    """Its name has the time of the base file; the delta commits tell which of them wrote it."""
    path = table("mor_logs-0.15.0")
    opened = hudi_py.open_table(path)
    found = uses(path)
    recorded = {
        stat.path: instant.requested_time
        for instant in opened.timeline.completed("deltacommit")
        for stats in opened.contents.commit(instant).partition_to_write_stats.values()
        for stat in stats
        if ".log." in (stat.path or "")
    }
    assert recorded
    assert {path: found[path].commit for path in recorded} == recorded


@pytest.mark.parametrize("name", ["cow_mixed-1.1.1", "mor_compacted-1.1.1", "cow_partitioned-1.2.0"])
def test_the_metadata_table_tells_the_same(run, table, name):
    """Listed through the metadata table or through the folders, what holds the bytes is the same."""
    path = table(name)
    through, folders = run("du", path, "--json"), run("du", path, "--json", *FOLDERS)
    assert [e for e in through.json["by_reason"] if e["reason"] in ("live", "retained", "savepoint")] == [
        e for e in folders.json["by_reason"] if e["reason"] in ("live", "retained", "savepoint")
    ]


def test_partitions_inside_of_partitions_count_once(run, table):
    """A folder below a partition that nothing lists as one: its files are in no partition, and are counted."""
    path = table("cow_partitioned-0.15.0")
    inner = next(each.parent for each in path.rglob(".hoodie_partition_metadata")) / "inner"
    inner.mkdir()
    (inner / ".hoodie_partition_metadata").write_bytes(b"partitionDepth=2\n")
    page = run("du", path, "--json").json
    assert page["total"]["files"] == sum(e.is_file() and not e.name.endswith(".crc") for e in path.rglob("*"))
    assert {"foreign"} <= {each["reason"] for each in page["by_reason"]}
