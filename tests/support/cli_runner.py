"""Runs commands in this process, with both outputs apart, on every click that is allowed."""

import json
from inspect import signature

from click.testing import CliRunner

# Before 8.2, click mixed both outputs unless it was told not to; since then it takes no such argument.
RUNNER = CliRunner(**({"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}))


def lines_of_tables(result):
    """Location to line; each table has one."""
    found = [json.loads(line) for line in result.out.splitlines()]
    assert len({each["table"] for each in found}) == len(found)
    return {each["table"]: each for each in found}
