"""The command ``hudi-py policy``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.maintain_command import maintenance_entry, print_maintenance
from hudi_py.inspection.options import Common, command, done, dry_run_option, tried
from hudi_py.inspection.say import say
from hudi_py.inspection.sentences import Sentences
from hudi_py.model.words import why_unread

if TYPE_CHECKING:
    from hudi_py.config.retention_policy import RetentionPolicy

_file = click.option("--file", "file", required=True, metavar="FILE", help="The policy, a TOML document.")


@click.group(cls=Sentences)
def policy() -> None:
    """
    Say in one document what a table keeps: it takes the place of the settings of every process of hudi-py.

    Apache Hudi does not read it. docs/policy.md has an example and all keys.
    """


@policy.command()
@click.argument("table")
@_file
@command
def check(common: Common, table: str, file: str) -> None:
    """Check a policy, and show what each line means and the settings that follow. Nothing is changed."""
    common.open(table)
    from hudi_py.config.retention_policy import parse_policy

    _show(common, parse_policy(_read(file), file), "checked")


@policy.command()
@click.argument("table")
@_file
@command
def explain(common: Common, table: str, file: str) -> None:
    r"""
    Show what a policy would do now: which files would be deleted, which partitions dropped. Nothing is changed.

    \b
    Example:
      hudi-py policy explain s3://lake/trips --file policy.toml --json
    """
    _explain(common, table, file)


@policy.command("apply")
@click.argument("table")
@_file
@click.option("--dry-run", is_flag=True, help="As hudi-py policy explain.")
@command
def apply_(common: Common, table: str, file: str, dry_run: bool) -> None:
    """Put a policy in force: the next clean of every process of hudi-py follows it."""
    if dry_run:
        _explain(common, table, file)
        return
    _show(common, common.open(table).apply_policy(_read(file)), "in force")


@policy.command()
@click.argument("table")
@dry_run_option
@command
def remove(common: Common, table: str, dry_run: bool) -> None:
    """Let the settings of each process decide again."""
    found = common.open_to_change(table, dry_run=dry_run).remove_policy()
    if common.as_json:
        print_json({"removed": found and not dry_run, **tried(found, dry_run=dry_run)})
    else:
        word = done("removed", dry_run=True) if dry_run else "is removed"
        say(f"the policy {word}" if found else "no policy was in force; nothing was changed")


@policy.command()
@click.argument("table")
@command
def show(common: Common, table: str) -> None:
    """Show the policy in force."""
    found = common.open(table).read_only().policy
    if found is not None:
        _show(common, found, "in force")
    elif common.as_json:
        print_json(None)
    else:
        say(f"{table} has no policy; the settings of each process decide")


@policy.command()
@click.argument("name", required=False)
@command
def profile(common: Common, name: str | None) -> None:
    r"""
    Print a policy to begin with, for a common use of a table; without NAME, what there is.

    \b
    Examples:
      hudi-py policy profile
      hudi-py policy profile incremental > policy.toml
    """
    from hudi_py.config.policy_profiles import PROFILES, purpose

    if name is None:
        if common.as_json:
            print_json([{"name": each, "purpose": purpose(text)} for each, text in PROFILES.items()])
        else:
            render.table("profiles", ("name", "for"), [(each, purpose(text)) for each, text in PROFILES.items()])
        return
    if name not in PROFILES:
        raise ConfigError(f"there is no profile {name}; use one of {', '.join(PROFILES)}")
    if common.as_json:
        from hudi_py.config.retention_policy import parse_policy

        print_json(policy_entry(parse_policy(PROFILES[name], f"profile {name}")))
    else:
        for line in PROFILES[name].splitlines():
            say(line)


def _explain(common: Common, table: str, file: str) -> None:
    # The services themselves, under that policy: what is shown is what they would do.
    looked_at = common.looks_then(common.open(table), dry_run=True)
    report = looked_at.under_policy(_read(file)).maintain(dry_run=True)
    if common.as_json:
        print_json(maintenance_entry(report))
    else:
        print_maintenance(table, report)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--file {file} cannot be read: {why_unread(error)}") from error


def policy_entry(policy: RetentionPolicy) -> dict[str, Any]:
    """Return a policy as the commands print it with ``--json``."""
    return {
        "mark": policy.mark,
        "lines": [{"line": line, "key": key, "meaning": meaning} for line, key, meaning in policy.meaning],
        "settings": dict(sorted(policy.settings.items())),
        "text": policy.text,
    }


def _show(common: Common, policy: RetentionPolicy, word: str) -> None:
    if common.as_json:
        print_json(policy_entry(policy))
        return
    rows = [(str(line), key, meaning) for line, key, meaning in policy.meaning]
    render.table(f"policy, {word}", ("line", "key", "meaning"), rows, right=(0,))
    for name, value in sorted(policy.settings.items()):
        say(f"{name}={value}")
