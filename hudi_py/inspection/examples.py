"""Examples for the help texts of commands that have none in their own; ``tests/cli/test_examples.py`` runs each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

import click

_WIDTH_MAX: Final = 80
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "archive": ("TABLE --dry-run", "TABLE --keep-min 20 --keep-max 30 --json"),
    "check": ("s3://lake/trips", "TABLE --json", "--codes"),
    "clean": (
        "s3://lake/trips --commits-retained 10 --dry-run",
        "TABLE --age-retained 7d --keep-daily 30 --max-duration 15m",
        "TABLE --max-files 10000 --exit-code",
        "--tables /lake/warehouse --parallel 8 --json",
    ),
    "cluster": ("TABLE --dry-run", "TABLE --sort-by fare --partition rome", "TABLE --sort-by fare,ts --layout hilbert"),
    "compact": ("TABLE --dry-run", "TABLE", "TABLE --schedule-only"),
    "consumer delete": ("TABLE job-7",),
    "consumer list": ("TABLE",),
    "delete": ("TABLE --where 'fare > 1000' --dry-run", "TABLE --where \"city = 'Rome' and ts < 100\""),
    "deletion allow": ("TABLE",),
    "deletion show": ("TABLE --json",),
    "drop-partition": ("TABLE rome --dry-run", "TABLE rome oslo"),
    "explain": ("s3://lake/trips rome", "TABLE rome --commits-retained 3 --json"),
    "files": ("s3://lake/trips --partition rome", "TABLE --as-of 2026-11-21 --json"),
    "instant": ("TABLE 20261121063000000", "TABLE 20261121063000000 --state requested --json"),
    "lease list": ("TABLE --json",),
    "lease release": ("TABLE 4f1c",),
    "lease renew": ("TABLE 4f1c --ttl 3h",),
    "merge": (
        "TABLE new.parquet --on trip_id --when-matched update --when-not-matched insert",
        "TABLE new.parquet --on trip_id --when-matched 'delete if source.fare = 0' --dry-run",
    ),
    "overview": ("s3://lake/trips", "TABLE --json"),
    "policy apply": ("TABLE --file policy.toml", "--tables /lake/warehouse --file policy.toml"),
    "policy check": ("TABLE --file policy.toml",),
    "policy remove": ("TABLE",),
    "policy show": ("TABLE --json",),
    "read": (
        "s3://lake/trips --where 'fare > 20' --columns trip_id,fare --limit 10",
        "TABLE --as-of 2026-11-21 -o rows.parquet",
        "TABLE --from 20261121063000000 --json",
    ),
    "recover": ("TABLE --dry-run", "TABLE"),
    "restore": ("TABLE before-migration --dry-run", "TABLE before-migration"),
    "rollback": ("TABLE 20261121063000000 --dry-run", "TABLE 20261121063000000"),
    "savepoint create": ("TABLE --name before-migration --ttl 30d", "TABLE 20261121063000000 --comment 'audit 7'"),
    "savepoint delete": ("TABLE before-migration",),
    "savepoint list": ("TABLE --json",),
    "tag create": ("TABLE 20261121063000000 --name audit-7 --ttl 30d",),
    "tag delete": ("TABLE before-migration",),
    "tag list": ("TABLE",),
    "timeline": ("s3://lake/trips --limit 20", "TABLE --action clean --state completed", "TABLE --contents --json"),
    "update": ("TABLE --set 'fare = 0' --where 'fare < 0' --dry-run", "TABLE --set 'fare = fare * 2'"),
    "write": ("TABLE new.parquet", "TABLE new.parquet --operation insert --write-key nightly:17"),
}
"""Name of a command to the words behind it."""


def add_examples(command: click.Command, words: tuple[str, ...]) -> None:
    """
    Add the examples to the help text of a command, or of all commands of a group.

    Args:
        command: The command.
        words: Names of its groups, and its own.
    """
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            add_examples(each, (*words, name))
    elif " ".join(words) in EXAMPLES:
        examples = [f"  hudi-py {' '.join(words)} {example}" for example in EXAMPLES[" ".join(words)]]
        lines = "\n".join(map(_wrapped, examples))
        # The mark keeps click from joining the lines.
        command.help = f"{inspect.cleandoc(command.help or '')}\n\n\b\nExamples:\n{lines}"


def _wrapped(line: str) -> str:
    """Break a line that a terminal would break, where a shell reads on; each part can be copied with the other."""
    # Two columns more, by which the help text is indented.
    if len(line) <= _WIDTH_MAX - 2:
        return line
    at = line.rindex(" --", 0, _WIDTH_MAX - 4)
    return f"{line[:at]} \\\n     {line[at:]}"
