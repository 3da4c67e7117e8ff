"""Advice names the table in its commands."""

import re
import shlex

import pytest

from hudi_py.inspection.fix_commands import with_table
from hudi_py.services.check.findings import RULES as CHECK
from hudi_py.services.doctor.findings import RULES as DOCTOR

ADVICE = sorted({rule.fix for rule in (*CHECK.values(), *DOCTOR.values())})


@pytest.mark.parametrize("table", ["s3://lake/trips", "/lake/it's a table"])
def test_each_command_of_all_advice_gets_the_table(table):
    """Whatever is advised, each command names the table once, as one word of a shell, and nothing else is changed."""
    for fix in ADVICE:
        told = with_table(fix, table)
        word = shlex.quote(table)
        assert told.count(word) == len(re.findall("hudi-py ", fix)), fix
        assert " TABLE" not in told
        assert told.replace(f" {word}", "") == fix.replace(" TABLE", "")


def test_a_table_comes_before_the_options():
    """As the usage of every command has it."""
    assert with_table("run hudi-py clean --full once", "/t") == "run hudi-py clean /t --full once"
    assert with_table("run hudi-py lease release TABLE ID", "/t") == "run hudi-py lease release /t ID"
