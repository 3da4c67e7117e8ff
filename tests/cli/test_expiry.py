"""``hudi-py expire-partitions`` on a table of Apache Hudi."""

from __future__ import annotations

import hudi_py

PATHS = ("year=2022/month=11", "year=2023/month=04", "year=2023/month=12")
LATER = ("--now", "2024-04-15T00:00:00")


def test_by_value_with_and_without_dry_run(run, table):
    """The paths are dates in Hive's style on two levels; the dry run tells what the run does."""
    path = table("cow_multilevel_hive-0.15.0")
    assert hudi_py.open_table(path).partitions() == PATHS
    by_year = ("expire-partitions", path, *LATER, "--format", "%Y", "--field", "year", "--days", "300")
    shown = run(*by_year, "--dry-run", "--json").json
    assert (shown["expired"], shown["commit"]) == ([PATHS[0]], None)
    by_month = ("expire-partitions", path, *LATER, "--format", "%Y/month=%m", "--field", "year", "--days", "300")
    assert run(*by_month, "--dry-run", "--json").json["expired"] == []
    by_path = ("expire-partitions", path, *LATER, "--format", "%Y/%m", "--days", "300")
    assert "2 partitions would be dropped" in run(*by_path, "--dry-run").out
    assert run(*by_path, "--partition", f"{PATHS[1]}/", "--dry-run", "--json").json["expired"] == [PATHS[1]]
    done = run(*by_path, "--json").json
    assert done["expired"] == list(PATHS[:2])
    opened = hudi_py.open_table(path)
    assert [each for each in PATHS if opened.file_slices(each)] == [PATHS[2]]
    assert opened.timeline.find(done["commit"]).action.value == "replacecommit"
    assert "nothing was dropped" in run(*by_path).out
    assert run("expire-partitions", path, "--by", "value", "--days", "1").code == 2
