"""One line a table says what was found or done there, and a dry run of what deletes says all that would go."""

from __future__ import annotations

import re

import pytest

from hudi_py.inspection.fleet_budget import budget_of
from hudi_py.inspection.maintain_command import maintain

ALONE = ("--parallel", "1")
LAZY = ("--conf", "hoodie.clean.failed.writes.policy=LAZY")


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("cow_cleaned-1.1.1", ("maintain", "--dry-run"), "nothing is due"),
        ("cow_clean_requested-1.1.1", ("maintain", "--dry-run"), r"due: clean \(\d+\)"),
        ("cow_cleaned-1.1.1", ("maintain",), "nothing was due"),
        ("cow_clean_requested-1.1.1", ("maintain",), r"done: clean \(\d+\)"),
        ("cow_cleaned-1.1.1", ("expire-partitions",), r"nothing: no partition expires, .*"),
        ("mor_pending_compaction-1.0.2", ("compact", "--dry-run"), "1 pending, which would be carried out"),
        ("mor_pending_compaction-1.0.2", ("recover", "--dry-run"), "1 finding, 0 done; left: planned, not carried out"),
        ("mor_pending_compaction-1.0.2", ("read",), r"\d+ rows"),
        ("mor_cleaned-1.1.1", ("simulate",), r"\d+ commits, \d+ files? deleted, [\d.]+ .B in the end"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)  # fmt: skip
def test_a_line_says_what_there_is_to_do(run, table, tmp_path, name, words, said):
    """A number of steps or partitions that were looked at would read as if something had been done to them."""
    path = table(name)
    (tmp_path / "one.txt").write_text(str(path))
    [line] = run(*words, "--tables", tmp_path / "one.txt", *ALONE).out.splitlines()
    assert re.fullmatch(rf"ok      {re.escape(str(path))}  {said}", line), line


TIME = r"\d{17}"


def test_a_line_says_what_was_made(run, table, tmp_path):
    """Where a command's document has no list, too: an empty line reads as if nothing had been done."""
    path = table("cow_cleaned-1.1.1")
    (tmp_path / "one.txt").write_text(str(path))

    def line(*words):
        [said] = run(*words, "--tables", tmp_path / "one.txt", *ALONE).out.splitlines()
        before = f"ok      {path}  "
        assert said.startswith(before)
        return said.removeprefix(before)

    assert line("policy", "show") == "nothing"
    assert re.fullmatch(rf"{TIME} would keep \d+ files", line("savepoint", "create", "--dry-run"))
    assert line("savepoint", "list") == "nothing"
    kept = re.fullmatch(rf"({TIME}) keeps (\d+) files, until .*Z", line("tag", "create", "--name", "k", "--ttl", "3d"))
    [tag] = run("tag", "list", path, "--json").json
    files = sum(len(each["savepointDataFile"]) for each in tag["content"]["partitionMetadata"].values())
    assert kept.groups() == (tag["requested_time"], str(files))
    assert line("tag", "list") == "1 savepoint"
    assert re.fullmatch(rf"a lease would keep {TIME} until .*Z", line("lease", "create", "--ttl", "1h", "--dry-run"))
    assert re.fullmatch(rf"lease \w+ keeps {TIME} until .*Z", line("lease", "create", "--ttl", "1h"))
    assert line("lease", "list") == "1 lease"
    assert re.fullmatch(rf"name c, instant {TIME}, expires .*Z", line("consumer", "set", "c", tag["requested_time"]))
    assert line("consumer", "list") == "1 consumer"
    assert line("deletion", "forbid", "--dry-run") == "deletion forbidden (would be new)"
    assert [line("deletion", "forbid"), line("deletion", "forbid")] == [
        "deletion forbidden", "deletion forbidden already",
    ]  # fmt: skip
    assert line("deletion", "show").startswith("deletion forbidden: ")
    assert line("deletion", "allow") == "deletion allowed"
    policy = run("policy", "profile", "incremental").out
    (tmp_path / "policy.toml").write_text(policy)
    assert run("policy", "apply", path, "--file", tmp_path / "policy.toml").code == 0
    said = line("policy", "show")
    for each in run("policy", "show", path, "--json").json["lines"]:
        assert f"{each['key']}: {each['meaning']}" in said


@pytest.mark.parametrize("name", ["cow_failed_write-0.15.0", "cow_failed_write-1.1.1", "mor_failed_write-1.0.2"])
def test_dry_runs_tell_of_failed_writes(run, table, name):
    """Under LAZY they are rolled back before a clean, which deletes their files; a budget counts each file."""
    path = table(name)
    cleans = run("clean", path, "--dry-run", "--json", *LAZY).json["failed_writes"]
    told = run("clean", path, "--dry-run", *LAZY).out
    steps = run("maintain", path, "--dry-run", "--json", *LAZY).json["steps"]
    due = {each["step"]: each for each in steps}["failed_writes"]
    files = (each for each in path.rglob("*") if each.is_file() and each.suffix != ".crc")
    before = {each for each in files if ".hoodie" not in each.parts}
    document = run("maintain", path, "--json", *LAZY).json
    done = {each["step"]: each for each in document["steps"]}["failed_writes"]
    gone = [each for each in before if not each.exists()]
    assert [each["path"] for each in due["files"]] == [each["path"] for each in done["files"]] == cleans
    assert due["due"] and done["done"]
    assert f"1 write would be rolled back first: {cleans[0]}" in told
    assert run("clean", path, "--dry-run", "--json", *LAZY).json["failed_writes"] == []
    budget = budget_of("total-files", 100, maintain, {})
    budget.settle(budget.share(1), document, has_failed=False)
    assert gone
    assert budget.left == 100 - len(gone)


@pytest.mark.parametrize(
    "words", [("policy", "check", "--file"), ("orphans", "--inventory"), ("approve",)], ids=lambda each: each[0]
)
def test_a_file_that_is_not_there_is_told_in_words(run, table, tmp_path, words):
    """No error number, and the path once."""
    path = table("cow_cleaned-1.1.1")
    missing = str(tmp_path / "missing")
    given = (*words[:-1], path, words[-1], missing) if len(words) > 1 else (words[0], path, missing)
    result = run(*given)
    assert result.code == 2
    assert "No such file or directory" in result.err
    assert "Errno" not in result.err
    assert result.err.count(missing) == 1
