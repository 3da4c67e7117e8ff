"""docs/decisions/pairs.md has a row for every two actions, and each row names a test that exists."""

import re
from collections import Counter
from itertools import combinations_with_replacement

import pytest

from support.repository import ROOT

PAGE = ROOT / "docs/decisions/pairs.md"
ACTIONS = ("insert", "change", "drop", "columns", "properties", "compaction", "log compaction", "clustering", "clean",
           "rollback", "restore", "savepoint", "archival", "indexing", "lease", "orphans", "undo", "switch",
           "emptying")  # fmt: skip


def rows():
    """The table's rows: the actions of the first and the second column, and the tests of the last one."""
    section = PAGE.read_text(encoding="utf-8").partition("## Every two actions")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return [([each.strip() for each in a.split(",")], [each.strip() for each in b.split(",")], rest[-1])
            for a, b, *rest in lines]  # fmt: skip


def test_every_two_actions_have_one_row():
    """No pair is left to chance, and none has two answers. Two builders of an index are both Apache Hudi's."""
    found = Counter(
        pair for ours, theirs, _ in rows() for pair in {tuple(sorted((a, b))) for a in ours for b in theirs}
    )
    wanted = {tuple(sorted(pair)) for pair in combinations_with_replacement(ACTIONS, 2)} - {("indexing", "indexing")}
    assert found == Counter(wanted)


@pytest.mark.parametrize("tests", sorted({tests for _, _, tests in rows()}))
def test_each_row_names_tests_that_exist(tests):
    """As file::function."""
    named = re.findall(r"`([^`]+)`", tests)
    assert named
    for each in named:
        path, _, name = each.partition("::")
        assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), each
