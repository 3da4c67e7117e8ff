"""Every rule of cleaning, rollback, savepoints, archival and their sequences has a test that names it."""

import re

import pytest

from tidy.repository import ROOT

RULES = {"A": 75, "B": 33, "C": 9, "D": 20, "G": 8, "K": 25}
"""Section to its last number."""

ELSEWHERE = {  # what cannot be tested yet, and why
    "A-3": "several writers with a lock are not there yet",
    "A-6": "there is no background clean",
    "B-24": "tables with indexes that a rollback would have to tell are refused for writing",
    "C-9": "there are no locks yet that a savepoint could wait for",
    "D-18": "there are no locks yet; the archive service tells its callers",
    "G-5": "compaction, clustering and partition lifetimes are not there yet",
    "K-12": "what refuses to go is the deleting tasks' business",
    "K-14": "several writers with a lock are not there yet",
}
_NAMED = re.compile(r"\b([A-DGK])-(\d+)(?: to [A-DGK]-(\d+))?")
_IN_NAMES = re.compile(r"(?<=[_])([abcdgk])(\d+)(?=_)")
_FUNCTION = re.compile(r"^ *def (test_\w+)", re.MULTILINE)


def named() -> set[str]:
    """Rules in the docstrings and the names of tests."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path.parent.name == "tidy":
            continue
        text = path.read_text(encoding="utf-8")
        for letter, first, last in _NAMED.findall(text):
            found.update(f"{letter}-{number}" for number in range(int(first), int(last or first) + 1))
        for function in _FUNCTION.findall(text):
            found.update(f"{letter.upper()}-{number}" for letter, number in _IN_NAMES.findall(function))
    return found


@pytest.mark.parametrize("section", RULES)
def test_every_rule_is_named_by_a_test(section):
    """What is missing is missing for a reason that still holds."""
    missing = {f"{section}-{number}" for number in range(1, RULES[section] + 1)} - named()
    assert sorted(missing - set(ELSEWHERE)) == []
