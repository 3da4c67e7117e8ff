"""What commands print: plurals agree with their number."""

from __future__ import annotations

import ast
import re

import pytest

from support.repository import ROOT

NOUNS = "files|rows|commits|partitions|instants|groups|records|findings|writes|tables|savepoints|tags"
PLURAL = re.compile(rf" (?:(?:file|log|base|more|planned) )*(?:{NOUNS})\b")
MODULES = sorted((ROOT / "hudi_py" / "inspection").glob("*.py"))
# Names in front of a verb or a noun, the value of a setting as it stands there, and "3 of 7 groups".
NO_NUMBERS = {"clean.instant", "report.rollback", "action", "required", "total"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_noun_in_the_plural_stands_behind_a_bare_number(module):
    """``counted(1, "row")`` says "1 row"; ``f"{number} rows"`` would say "1 rows"."""
    wrong = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and PLURAL.match(str(text.value))
            ):
                said = ast.unparse(value.value)
                if said not in NO_NUMBERS:
                    wrong.append(said)
    assert wrong == []
