"""Options for cleaning that ``hudi-py clean`` and ``hudi-py explain`` share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.model.words import parse_bytes

if TYPE_CHECKING:
    from hudi_py.table import Table


def size(text: str) -> int:
    """Return the number of bytes that a size with or without a unit stands for, at least 1."""
    found = parse_bytes(text)
    if found is None or found < 1:
        raise click.BadParameter(f"{text!r} is not a size; give a number of bytes, or one with a unit: 500MB, 2GiB")
    return found


_POLICIES: Final = "KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS"
_AT_LEAST_ONE: Final = click.IntRange(min=1)
_AT_LEAST_ZERO: Final = click.IntRange(min=0)
_RETENTION: Final[Mapping[str, Mapping[str, Any]]] = {
    "policy": {"help": f"{_POLICIES}. Default: that of the --*-retained option given, else as the settings say."},
    "commits_retained": {"type": _AT_LEAST_ONE, "help": "Keep the files that the last N commits need."},
    "file_versions_retained": {"type": _AT_LEAST_ONE, "help": "Keep the last N slices of each file group."},
    "hours_retained": {"type": _AT_LEAST_ONE, "help": "Keep the files that commits of the last N hours need."},
    "age_retained": {"metavar": "SPAN", "help": "Keep the files that commits of this SPAN need: 90m, 36h, 7d."},
    "min_commits": {"type": _AT_LEAST_ONE, "help": "Keep at least the files that the last N commits need."},
    "max_commits": {"type": _AT_LEAST_ONE, "help": "Retention by time keeps the files of at most N commits."},
    "min_file_versions": {"type": _AT_LEAST_ONE, "help": "Keep at least the last N slices of each file group."},
    "keep_daily": {"type": _AT_LEAST_ZERO, "help": "Also keep the newest snapshot of each of the last N days."},
    "keep_weekly": {"type": _AT_LEAST_ZERO, "help": "Also keep the newest snapshot of each of the last N weeks."},
    "keep_monthly": {"type": _AT_LEAST_ZERO, "help": "Also keep the newest snapshot of each of the last N months."},
    "instants": {
        "flag": "--instant",
        "multiple": True,
        "metavar": "INSTANT",
        "help": "In this run, do not keep the snapshot of this instant. Repeatable.",
    },
    "older_than": {
        "metavar": "TIME",
        "help": "In this run, keep what is needed from TIME on, instead of the policy's retention.",
    },
}
_LEAST: Final = "One file slice goes in any case, even a larger one, and with file versions all replaced file groups."
_LIKEWISE: Final = "as with --max-files, one file slice goes in any case."
_LIMITS: Final[Mapping[str, Mapping[str, Any]]] = {
    "max_files": {
        "type": _AT_LEAST_ONE,
        "help": f"Stop at N files in this run, those of failed writes too; the next run continues. {_LEAST}",
    },
    "max_partitions": {
        "type": _AT_LEAST_ONE,
        "help": f"Stop at N partitions in this run; {_LIKEWISE}",
    },
    "max_bytes": {
        "metavar": "SIZE",
        "type": size,
        "help": f"Stop at this much in this run (bytes, or 500MB, 1.5GB, 2TiB); {_LIKEWISE}",
    },
    "max_duration": {
        "metavar": "SPAN",
        "help": "Start no further deletions after SPAN (90s, 15m, 2h); the next clean continues.",
    },
}


def retention_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the retention options to a command, which gets them as one argument, ``options``, a `CleanOptions`."""
    return _gathered(function, _RETENTION)


def clean_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `retention_options` and the limits of a run."""
    return _gathered(function, {**_RETENTION, **_LIMITS})


def _gathered(function: Callable[..., None], table: Mapping[str, Mapping[str, Any]]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(**arguments: Any) -> None:
        # Gathered in one argument, or each command would list them all.
        options = {name: arguments.pop(name) for name in table}
        options["instants"] = options["instants"] or None
        function(**arguments, options=options)

    # Reversed, because decorators apply from the inside: so help lists them as written here.
    for name, attributes in reversed(list(table.items())):
        flag = attributes.get("flag", f"--{name.replace('_', '-')}")
        rest = {key: value for key, value in attributes.items() if key != "flag"}
        wrapper = click.option(flag, name, **rest)(wrapper)
    return wrapper


def full_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--full`` to a command."""
    return click.option("--full", is_flag=True, help="Examine all partitions, not only changed ones.")(function)


def tag_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--tag`` to a command."""
    text = "As --quarantine, and tag the objects there: a lifecycle rule of the bucket deletes them. In S3 only."
    return click.option("--tag", metavar="KEY=VALUE", help=text)(function)


def examine_everything(opened: Table) -> None:
    """Have cleans examine all partitions, as ``--full`` asks for."""
    opened.settings = opened.settings.merged({"hoodie.clean.incremental.enabled": False})
