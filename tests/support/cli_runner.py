"""Runs commands in this process, with both outputs apart, on every click that is allowed."""

from inspect import signature

from click.testing import CliRunner

# Before 8.2, click mixed both outputs unless it was told not to; since then it takes no such argument.
RUNNER = CliRunner(**({"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}))
