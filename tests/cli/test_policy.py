"""``hudi-py policy`` on a table of Apache Hudi: checked, explained, applied, shown, removed."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.config.policy_profiles import PROFILES
from hudi_py.runtime.who import who_runs_this

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


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_a_policy_that_can_be_applied(run, table, tmp_path, name):
    """As it is printed; each of its lines has a meaning, and no two profiles keep the same."""
    path, file = table("cow_cleaned-1.1.1"), tmp_path / "policy.toml"
    file.write_text(run("policy", "profile", name).out)
    assert file.read_text() == PROFILES[name]
    entry = run("policy", "profile", name, "--json").json
    assert entry == run("policy", "check", path, "--file", file, "--json").json
    assert {each["name"] for each in run("policy", "profile", "--json").json} == set(PROFILES)
    assert name in run("policy", "profile").out
    others = [run("policy", "profile", other, "--json").json["settings"] for other in PROFILES if other != name]
    assert entry["settings"] not in others
    assert run("policy", "apply", path, "--file", file).code == 0
    assert run("maintain", path, "--dry-run").code == 0


def test_an_unknown_profile_is_refused_by_name(run):
    """With those that there are."""
    refused = run("policy", "profile", "fast")
    assert refused.code == 2
    assert "streaming" in refused.err


def test_history_says_who_ran_a_clean_under_a_policy(run, table, tmp_path):
    """Before the other entries of a clean, of which a line shows three."""
    path, file = table("cow_cleaned-1.1.1"), tmp_path / "policy.toml"
    assert "run by" not in run("history", path, "--action", "clean").out
    file.write_text("[keep]\ncommits = 1\n")
    assert run("policy", "apply", path, "--file", file).code == 0
    assert run("clean", path, "--commits-retained", 1).code == 0
    last = run("history", path, "--action", "clean").out.splitlines()[-1]
    assert f"run by {who_runs_this()}".split(" process")[0] in last
