"""``hudi-py policy`` on a table of Apache Hudi: checked, explained, applied, shown, removed."""

from __future__ import annotations

import hudi_py

POLICY = """[keep]
commits = 2
[partitions]
days = 300
format = "%Y/%m"
"""
LATER = ("--now", "2024-04-15T00:00:00")


def test_from_the_document_to_the_table_and_back(run, table, tmp_path):
    """The commands that look write nothing; maintain then does what was explained."""
    path, file = table("cow_multilevel_hive-0.15.0"), tmp_path / "policy.toml"
    file.write_text(POLICY)
    checked = run("policy", "check", path, "--file", file, "--json").json
    assert checked["settings"]["hoodie.partition.ttl.strategy.days.retain"] == "300"
    assert [line["line"] for line in checked["lines"]] == [2, 4, 5]
    explained = run("policy", "explain", path, "--file", file, "--json").json
    due = {step["step"]: step for step in explained["steps"]}
    assert len(due["partitions"]["files"]) == 3  # of its own time: all are older by now
    assert run("policy", "show", path, "--json").json is None
    assert run("policy", "apply", path, "--file", file, "--dry-run", "--json").json == explained
    assert run("policy", "show", path, "--json").json is None
    assert "in force" in run("policy", "apply", path, "--file", file).out
    assert run("policy", "show", path, "--json").json["text"] == POLICY
    assert run("expire-partitions", path, *LATER, "--dry-run", "--json").json["expired"] == [
        "year=2022/month=11",
        "year=2023/month=04",
    ]
    done = {step["step"]: step for step in run("maintain", path, "--json").json["steps"]}
    assert {each["path"] for each in done["partitions"]["files"]} == {
        each["path"] for each in due["partitions"]["files"]
    }
    assert hudi_py.open_table(path).rows().to_arrow().num_rows == 0
    assert "removed" in run("policy", "remove", path).out
    file.write_text("[keep]\ncomits = 2")
    assert run("policy", "apply", path, "--file", file).code == 2
