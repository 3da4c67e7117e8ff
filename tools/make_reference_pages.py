"""
Write the pages of the reference that say what the code says: commands, findings, metrics.

tests/tidy holds them up to date. Usage: ``python tools/make_reference_pages.py``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_py.inspection.cli import main
from hudi_py.inspection.open_metrics import FAMILIES
from hudi_py.services.check.findings import RULES as CHECK_RULES
from hudi_py.services.doctor.findings import RULES as DOCTOR_RULES

ROOT: Final = Path(__file__).resolve().parents[1]
_SHARED: Final = {
    *("as_json", "json_envelope", "storage_option", "conf", "conf_file", "allow_unknown_conf", "now", "debug"),
    *("verbose", "quiet", "log_level", "log_format", "timeout", "metrics_file"),
}
"""Options that every command has; they are shown once."""
_COMMANDS: Final = """# Commands

`hudi-py COMMAND --help` shows the same. TABLE is a local path or a URL (`s3://...`). See [exit codes](exit-codes.md)
and [settings](settings.md).
"""
_FINDINGS: Final = """# Findings

`hudi-py check` compares timeline, files and metadata table; `hudi-py doctor` judges settings and health. Both change
nothing and exit with code 3 if there are errors or warnings. Codes are stable.
"""
_METRICS: Final = """# Metrics

Ages, counts, bytes and durations of tables, for Prometheus and everything else that reads OpenMetrics text. There are
two ways:

```
hudi-py serve /lake/warehouse                                  # then let a collector call /metrics
hudi-py clean --tables tables.txt --metrics-file clean.prom    # for the text files of node_exporter
```

`--metrics-file FILE` can be given to every command. The file is replaced at once when the command ends, whether it
succeeds or fails; with `--tables` and `fleet` it has the numbers of all tables. Use one file for each scheduled
command. If a run fails, the file keeps the time of the last success: alarm if `time() -
hudi_py_command_success_timestamp_seconds` grows too large. `doctor`, `du` and `fleet` list the files of a table and
add what keeps them; other commands add the timeline, which costs one listing.

`/metrics` reads the timeline of each table at every call. Files and findings are examined again when the timeline or
the properties of a table have changed, and after an hour (a write that is stuck becomes a finding with time alone), for
at most five seconds in one call; `hudi_py_examined_timestamp_seconds` shows the state of each table. Of a table that
is gone only `hudi_py_table_up` is left.

The label `table` is the location as it was given. With a token (`--token`), let the collector send it as
`Authorization: Bearer ...`.

| metric | meaning |
|---|---|
"""


def commands() -> str:
    """The page about commands."""
    lines = [_COMMANDS, "## Options of all commands\n"]
    [first] = [command for name, command in _all(main) if name == "timeline"]
    lines += _options([each for each in first.params if each.name in _SHARED])
    for name, command in sorted(_all(main)):
        usage = " ".join(_metavar(each) for each in command.params if isinstance(each, click.Argument))
        lines += [f"\n## {name}\n", f"`hudi-py {name}{' ' + usage if usage else ''} [OPTIONS]`\n", *_help(command)]
        lines += _options([each for each in command.params if each.name not in _SHARED])
    return "\n".join(lines) + "\n"


def _all(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _all(command, f"{before}{name} ")
        elif not command.hidden:
            yield f"{before}{name}", command


def _metavar(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    plain = name.strip("[]")
    return f"[{plain}]" if not argument.required and not name.startswith("[") else name


def _help(command: click.Command) -> Iterator[str]:
    """The text of a help; its examples are code."""
    text = re.sub(r"\n {2,}", "\n", (command.help or "").replace("\b\n", ""))
    body, _, examples = re.sub(r"\nExamples?:\n", "\x00", text, count=1).partition("\x00")
    yield _escaped(body.strip()) + "\n"
    if examples.strip():
        yield f"```\n{examples.strip()}\n```\n"


def _options(params: list[Any]) -> Iterator[str]:
    rows = [each for each in params if isinstance(each, click.Option) and not each.hidden]
    if rows:
        yield "| option | |\n|---|---|"
    for each in rows:
        flags = ", ".join(f"`{flag}`" for flag in (*each.opts, *each.secondary_opts))
        kind = f" `{_value(each)}`" if _value(each) else ""
        yield f"| {flags}{kind} | {_escaped(each.help or '')} |"


def _value(option: click.Option) -> str:
    if option.is_flag or option.count:
        return ""
    if isinstance(option.type, click.Choice):
        return " or ".join(option.type.choices)
    return option.metavar or {"integer range": "N", "integer": "N"}.get(option.type.name, option.type.name.upper())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def findings() -> str:
    """The page about findings."""
    lines = [_FINDINGS]
    for command, rules in (("check", CHECK_RULES), ("doctor", DOCTOR_RULES)):
        lines += [f"## hudi-py {command}\n", "| code | severity | meaning | what to do |\n|---|---|---|---|"]
        for code, rule in sorted(rules.items()):
            lines.append(f"| `{code}` | {rule.severity.value} | {_escaped(rule.meaning)} | {_escaped(rule.fix)} |")
        lines.append("")
    return "\n".join(lines)


def metrics() -> str:
    """The page about metrics."""
    return _METRICS + "".join(f"| `{name}` | {meaning} |\n" for name, (_, meaning) in FAMILIES.items())


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "commands.md": commands,
    "findings.md": findings,
    "metrics.md": metrics,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (ROOT / "docs" / name).write_text(make(), encoding="utf-8")
        print(f"wrote docs/{name}")
