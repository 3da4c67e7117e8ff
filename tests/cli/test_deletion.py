"""``hudi-py deletion`` on a table of Apache Hudi: what is refused, with which exit code, and how it ends."""

from __future__ import annotations

import pytest

import hudi_py


def test_forbidden_shown_refused_and_allowed(run, table):
    """Exit code 1 for what is refused; `maintain` and the dry run say why, and nothing is lost."""
    path = table("cow_nonpartitioned-1.1.1")
    assert run("deletion", "show", path, "--json").json == {"forbidden": False, "why": None}
    assert "Apache Hudi does not know" in run("deletion", "forbid", path).out
    assert run("deletion", "forbid", path, "--json").json == {"forbidden": True, "changed": False}
    assert "hoodie_py.gc.enabled=false in .hoodie/hoodie.properties" in run("deletion", "show", path).out
    files = {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
    refused = run("clean", path, "--commits-retained", "1", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "RefusedError")
    assert run("orphans", path).code == 1
    for options in (("--dry-run",), ()):
        done = run("maintain", path, *options, "--json")
        assert done.code == 0
        assert "hoodie_py.gc.enabled=false" in next(s["why"] for s in done.json["steps"] if s["step"] == "clean")
    assert "no data is deleted from this table" in run("clean", path, "--dry-run", "--commits-retained", "1").out
    assert files == {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
    assert run("deletion", "allow", path, "--json").json == {"forbidden": False, "changed": True}
    assert run("clean", path, "--commits-retained", "1").code == 0
    assert files > {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}


def test_what_only_shows_removals_says_that_they_would_be_refused(run, table, tmp_path):
    """Dry runs and lists for approval show what is there all the same."""
    path = table("cow_nonpartitioned-1.1.1")
    lists = {kind: tmp_path / kind for kind in ("clean", "orphans")}
    shown = {
        "the clean": [("clean", path, "--list", lists["clean"], "--commits-retained", "1")],
        "the removal": [
            ("orphans", path, "--dry-run"),
            ("orphans", path, "--list", lists["orphans"]),
            ("approve", path, lists["clean"], "--dry-run"),
        ],
    }
    again = ("clean", path, "--list", tmp_path / "before", "--commits-retained", "1")
    assert "refused" not in run(*again).err
    run("deletion", "forbid", path)
    for what, commands in shown.items():
        for words in commands:
            done = run(*words, "--json")
            assert done.code == 0
            assert f"warning: {what} would be refused, no data is deleted from this table" in done.err
            assert done.json is not None


def test_the_emptying_of_the_quarantine_is_refused_by_its_name(run, table):
    """It is no clean."""
    path = table("cow_nonpartitioned-1.1.1")
    run("deletion", "forbid", path)
    with pytest.raises(hudi_py.RefusedError, match="the emptying of the quarantine is refused"):
        hudi_py.open_table(path).empty_quarantine()
