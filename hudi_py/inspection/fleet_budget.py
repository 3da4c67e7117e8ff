"""
Budgets of a run over many tables: what all of them together may delete or rewrite.

A table gets a share when it is started, as the limit that its command has for one table, and gives back what it did not
use. What failed counts as used up: nobody knows how far it came. Only a table that could not even be opened, or an
option that is wrong for it, has certainly changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs
import click

Used = Callable[[Any], int | None]
"""How much a table used, by its document; None if that is not known."""
_NOTHING_DONE: Final = frozenset({"TableNotFound", "UnsupportedTable", "ConfigError"})


def _sum(amounts: Iterable[int | None]) -> int | None:
    found = list(amounts)
    return None if None in found else sum(each or 0 for each in found)


def clean_outlook(document: Any) -> tuple[int, int | None]:
    """
    Return how many files, and bytes if they are known, a run would delete now, by the document of its dry run.

    That has the next plan also where a run would finish a pending clean instead, or where no clean is due.
    """
    begun = _begun(document)
    if begun:
        return sum(len(each["files_to_delete"]) for each in begun), _sum(each["bytes"] for each in begun)
    return (document["totals"]["files"], document["totals"]["bytes"]) if document["would_schedule"] else (0, 0)


def _clean_files(document: Any) -> int | None:
    if "totals" in document:  # of a dry run
        return clean_outlook(document)[0]
    return sum(len(each["deleted_files"]) for each in document["cleans"]) + int(document.get("failed_writes_files", 0))


def _clean_bytes(document: Any) -> int | None:
    if "totals" in document:
        return clean_outlook(document)[1]
    return _sum(each["bytes_freed"] if each["deleted_files"] else 0 for each in document["cleans"])


def _begun(document: Any) -> list[Any]:
    """Pending cleans, which a run would finish instead of making a plan."""
    return [each for each in document["pending"] if not each["withdrawn"]]


def _maintained_files(document: Any) -> int | None:
    steps = {each["step"]: each for each in document["steps"]}
    # Of the quarantine the document names removals, each with any number of files.
    if steps.get("quarantine", {}).get("files"):
        return None
    # Of failed writes it has the times, also of those that were left.
    undone = steps["failed_writes"]["deleted"] if "failed_writes" in steps else 0
    clean = steps.get("clean", {"files": (), "deleted": 0})
    return int(undone + max(len(clean["files"]), clean["deleted"]))


def _orphans(document: Any) -> int:
    # A search that only tells would have removed as many.
    return sum(each["removed"] for each in document["orphans"]) or int(document["files_to_remove"])


def _clustered_bytes(document: Any) -> int | None:
    if "totals" in document:  # of a dry run; of clusterings that are pending it tells no size
        return None if document["pending"] else int(document["totals"]["bytes"])
    return _sum(each["bytes_before"] for each in document.get("clusterings", ()))


_FILES: Final[Mapping[str, tuple[str, Used]]] = {
    "clean": ("max_files", _clean_files),
    "maintain": ("max_deletes", _maintained_files),
    "orphans": ("max_deletes", _orphans),
}
_BYTES: Final[Mapping[str, tuple[str, Used]]] = {
    "clean": ("max_bytes", _clean_bytes),
    "cluster": ("max_bytes", _clustered_bytes),
}
BUDGETS: Final[Mapping[str, Mapping[str, tuple[str, Used]]]] = {"total-files": _FILES, "total-bytes": _BYTES}


@attrs.define
class Budget:
    """
    One limit over all tables.

    Args:
        name: As the user gave it, without dashes.
        option: The command's parameter for one table.
        left: What no table has used or may still use.
        own: The limit for each table that was given besides; None for none.
        used: Tells from a document how much a table used.
    """

    name: str
    option: str
    left: int
    own: int | None
    used: Used

    def share(self, slots: int) -> int:
        """Take a share for a table, of which so many may run beside each other; 0 if nothing is left."""
        # Rounded up, so that the last ones are not left over for ever.
        fair = -(-self.left // max(slots, 1))
        share = fair if self.own is None else min(fair, self.own)
        self.left -= share
        return share

    def settle(self, share: int, document: Any, *, has_failed: bool) -> None:
        """Give back what a table did not use of its share; one that went on with an older plan may have used more."""
        used: int | None = None
        if not has_failed:
            used = self.used(document) if isinstance(document, dict) else 0
        elif isinstance(document, dict) and document.get("error", {}).get("kind") in _NOTHING_DONE:
            used = 0
        self.left = max(0, self.left + share - (share if used is None else used))

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.option.replace('_', '-')}"


def budget_of(option: str, total: int, command: click.Command, params: Mapping[str, Any]) -> Budget:
    """
    Return the budget that an option asks for.

    Args:
        option: A key of `BUDGETS`.
        total: Its value.
        command: What runs on each table.
        params: Its parameters, as given for each table.

    Raises:
        click.UsageError: The command has no such limit, or is only to store plans: what they will delete or rewrite
            is not known then, and they are carried out whole.
    """
    takers, name = BUDGETS[option], command.name or ""
    if name not in takers:
        raise click.UsageError(f"--{option} is for {', '.join(sorted(takers))}; {name} has no such limit")
    if params.get("schedule_only"):
        raise click.UsageError(f"--{option} limits what is carried out; leave --schedule-only out")
    limit, used = takers[name]
    return Budget(option, limit, total, params.get(limit), used)
