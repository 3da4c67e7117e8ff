"""The command check: findings on tables of real Hudi, their codes, and what to do about them."""

import re

import pytest

from hudi_py.config.keys import ALL_KEYS
from hudi_py.inspection.cli import main
from hudi_py.services.check.findings import RULES

EVERY = pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1"])


@EVERY
def test_check_of_a_whole_table_finds_nothing(run, table, version):
    """An empty list and exit code 0; in words, one line."""
    path = table(f"cow_cleaned-{version}")
    done = run("check", path, "--json")
    assert (done.code, done.json) == (0, [])
    assert run("check", path).out.count("\n") == 1


@EVERY
def test_check_lists_what_it_finds(run, table, version):
    """Entries of the contract's shape, exit code 3; news alone are no problem."""
    path = table(f"cow_failed_write-{version}")
    done = run("check", path, "--json")
    (entry,) = done.json
    assert (done.code, entry["severity"], entry["code"]) == (3, "warning", "instant-stale")
    assert set(entry) == {"severity", "code", "where", "message", "fix"}
    said = run("check", path)
    assert said.code == 3
    assert entry["fix"] in said.out
    news = table(f"mor_pending_compaction-{version}")
    done = run("check", news, "--json")
    assert (done.code, {each["severity"] for each in done.json}) == (0, {"info"})


def test_check_of_a_table_without_usable_properties(run, table):
    """A finding, not a failure: that is what a check is for."""
    path = table("cow_cleaned-1.1.1")
    (path / ".hoodie" / "hoodie.properties").write_bytes(b"")
    done = run("check", path, "--json")
    assert (done.code, [each["code"] for each in done.json]) == (3, ["properties-damaged"])


def test_check_lists_its_codes(run, table):
    """All of them, with what to do, in words and as JSON; a table beside them is a mistake, and so is none without."""
    done = run("check", "--codes", "--json")
    assert [(each["code"], each["severity"], each["meaning"], each["fix"]) for each in done.json] == [
        (code, rule.severity.value, rule.meaning, rule.fix) for code, rule in RULES.items()
    ]
    said = run("check", "--codes").out
    assert all(code in said and rule.fix in said for code, rule in RULES.items())
    assert run("check").code == run("check", table("cow_cleaned-1.1.1"), "--codes").code == 2


def test_the_ways_out_of_a_check_name_commands_and_settings_that_exist():
    """What to do is something that can be done."""
    said = " ".join(rule.fix for rule in RULES.values())
    assert set(re.findall(r"hudi-py (\w+)", said)) <= set(main.commands)
    assert set(re.findall(r"hoodie\.[a-z.]+(?==)", said)) <= {name for key in ALL_KEYS for name in key.names}
