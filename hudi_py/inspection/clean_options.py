"""The options of a clean that ``hudi-py clean`` and ``hudi-py explain`` share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from hudi_py.table import Table

_POLICIES: Final = "KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS"
_AT_LEAST_ONE: Final = click.IntRange(min=1)
_AT_LEAST_ZERO: Final = click.IntRange(min=0)
_RETENTION: Final[Mapping[str, Mapping[str, Any]]] = {
    "policy": {"help": f"{_POLICIES}; follows from the retention given."},
    "commits_retained": {"type": _AT_LEAST_ONE, "help": "Keep what so many commits need."},
    "file_versions_retained": {"type": _AT_LEAST_ONE, "help": "Keep so many slices of each file group."},
    "hours_retained": {"type": _AT_LEAST_ONE, "help": "Keep what the commits of so many hours need."},
    "age_retained": {"metavar": "SPAN", "help": "Keep what this span needs: 90m, 36h, 7d."},
    "min_commits": {"type": _AT_LEAST_ONE, "help": "Floor: keep what so many commits need anyway."},
    "max_commits": {"type": _AT_LEAST_ONE, "help": "Ceiling, in commits, of what is kept by time."},
    "min_file_versions": {"type": _AT_LEAST_ONE, "help": "Floor: slices to keep of each file group."},
    "keep_daily": {"type": _AT_LEAST_ZERO, "help": "Keep the newest snapshot of so many days."},
    "keep_weekly": {"type": _AT_LEAST_ZERO, "help": "The same of so many weeks."},
    "keep_monthly": {"type": _AT_LEAST_ZERO, "help": "The same of so many months."},
    "instants": {
        "flag": "--instant",
        "multiple": True,
        "metavar": "INSTANT",
        "help": "For this run: forget this snapshot.",
    },
    "older_than": {"metavar": "TIME", "help": "For this run: let go of what was superseded before TIME."},
}
_LIMITS: Final[Mapping[str, Mapping[str, Any]]] = {
    "max_files": {"type": _AT_LEAST_ONE, "help": "Delete no more files in this run; the next goes on."},
    "max_partitions": {"type": _AT_LEAST_ONE, "help": "Delete in no more partitions in this run."},
    "max_bytes": {"type": _AT_LEAST_ONE, "help": "Delete no more bytes in this run."},
    "max_duration": {"help": "Take nothing more on after so long (90s, 15m, 2h); the next clean goes on."},
}


def retention_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add policy and keeps to a command, which gets them as one argument, ``options``, a `CleanOptions`."""
    return _gathered(function, _RETENTION)


def clean_options(function: Callable[..., None]) -> Callable[..., None]:
    """`retention_options`, and the limits of one run."""
    return _gathered(function, {**_RETENTION, **_LIMITS})


def _gathered(function: Callable[..., None], table: Mapping[str, Mapping[str, Any]]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in table}
        options["instants"] = options["instants"] or None
        function(**arguments, options=options)

    for name, attributes in reversed(list(table.items())):
        flag = attributes.get("flag", f"--{name.replace('_', '-')}")
        rest = {key: value for key, value in attributes.items() if key != "flag"}
        wrapper = click.option(flag, name, **rest)(wrapper)
    return wrapper


def full_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--full`` to a command."""
    return click.option("--full", is_flag=True, help="Look at every partition, not only at what has changed.")(function)


def look_everywhere(opened: Table) -> None:
    """What ``--full`` means."""
    opened.settings = opened.settings.merged({"hoodie.clean.incremental.enabled": False})
