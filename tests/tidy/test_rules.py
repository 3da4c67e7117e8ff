"""Every rule that is named stands in docs/rules, and every rule of the services here has a test that names it."""

import re
from collections import Counter

import pytest

from support.repository import ROOT
from support.rules import DOCUMENTS, FOLDER, LETTERED, defined, other_spellings, references

SECTIONS = "ABCDGK"
"""Of docs/rules/table-services.md: cleaning, rollback, savepoints, archival, sequences, and what went wrong before."""

WITHOUT_TEST = {  # what cannot be tested yet, and why
    "A-3": "writing rows for several writers is not there yet",
    "A-6": "there is no background clean",
    "B-24": "tables with indexes that a rollback would have to tell are refused for writing",
    "G-5": "compaction, clustering and partition lifetimes are not there yet",
}
_NAMED = re.compile(r"\b([A-DGK])-(\d+)([a-z]?)(?: to [A-DGK]-(\d+))?")
_IN_NAMES = re.compile(r"(?<=[_])([abcdgk])(\d+)(?=_)")
_FUNCTION = re.compile(r"^ *def (test_\w+)", re.MULTILINE)


def named() -> set[str]:
    """Rules in the docstrings and the names of tests."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path.parent.name == "tidy":
            continue
        text = path.read_text(encoding="utf-8")
        for letter, first, suffix, last in _NAMED.findall(text):
            found.update({f"{letter}-{number}" for number in range(int(first), int(last or first) + 1)})
            found.add(f"{letter}-{first}{suffix}")
        for function in _FUNCTION.findall(text):
            found.update(f"{letter.upper()}-{number}" for letter, number in _IN_NAMES.findall(function))
    return found


def test_every_document_of_rules_is_known():
    """A new one joins the others in ``tidy.rules``, so that references to it are held too."""
    assert {path.stem for path in FOLDER.glob("*.md")} == {*DOCUMENTS, "README"}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_rule_has_the_id_of_another(document):
    """An id names one rule: within its document, and with a letter anywhere."""
    others = {rule for other in DOCUMENTS if other != document for rule in defined(other) if not rule[0].isdigit()}
    repeated = [rule for rule, count in Counter(defined(document)).items() if count > 1 or rule in others]
    assert repeated == []


def test_every_reference_to_a_rule_leads_somewhere():
    """Whoever reads A-12, F.1 or rules/timeline 9.4 finds it in docs/rules."""
    known = {document: set(defined(document)) for document in DOCUMENTS}
    lost = [f"{ref.place}: {ref.document} {ref.rule}" for ref in references() if ref.rule not in known[ref.document]]
    assert lost == []


def test_rules_are_named_in_one_way():
    """A-12 and F.1 by their letters; what has only a number with its document: rules/timeline 9.4."""
    assert other_spellings() == []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_rule_is_named_by_a_test(section):
    """What no test names has a reason that still holds, and nothing else has one."""
    rules = {rule for rule in defined(LETTERED) if rule.startswith(f"{section}-")}
    excused = {rule for rule in WITHOUT_TEST if rule.startswith(f"{section}-")}
    assert sorted(rules - named()) == sorted(excused)
