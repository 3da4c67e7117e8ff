"""
Makes the list that a person is asked about, and tells afterwards what became of each file in it. Pure.

Nothing of it is on the timeline: a stored plan would be carried out by the next writer, Apache Hudi too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.instant_time import iso_utc
from hudi_py.model.removal_list import CLEAN, ORPHANS, ListedFile, RemovalList
from hudi_py.model.shown import Shown
from hudi_py.services.clean.planning.plan import CleanPlan
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.orphans.facts import OrphanFate, OrphanReport

_MS: Final = timedelta(milliseconds=1)


@attrs.frozen(kw_only=True, repr=False)
class ApprovedRemoval(Shown):
    """
    What became of the files that a person approved.

    Args:
        asked: The list.
        removed: Paths of the files that were removed, or would be in a dry run.
        kept: Path of each other file of the list to why it was not removed.
        failed: Path of each file that the storage refused to remove, to the reason.
        cleans: The cleans that removed the files.
        orphans: The search that removed them.
        is_dry_run: Whether nothing was written.
    """

    asked: RemovalList
    removed: tuple[str, ...] = ()
    kept: Mapping[str, str] = attrs.field(factory=dict)
    failed: Mapping[str, str] = attrs.field(factory=dict)
    cleans: tuple[CleanResult, ...] = ()
    orphans: OrphanReport | None = None
    is_dry_run: bool = False

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.asked.kind, "removed": len(self.removed), "kept": len(self.kept),
                "failed": len(self.failed), "is_dry_run": self.is_dry_run}  # fmt: skip

    def _listed(self) -> Iterable[tuple[str, str]]:
        return ((path, why) for path, why in self.kept.items())


@attrs.frozen(kw_only=True)
class Asking:
    """
    How a list is made.

    Args:
        table: Location of the table.
        made_ms: When, in epoch milliseconds.
        options: The options of the clean or search.
        settings: The settings that decide, beside the options.
    """

    table: str
    made_ms: int
    options: Mapping[str, Any]
    settings: Mapping[str, str]


def list_of_clean(plan: CleanPlan, asking: Asking) -> RemovalList:
    """
    The files that a clean would delete.

    Raises:
        RefusedError: A circuit breaker tripped, or files of a partition cannot be deleted.
    """
    for why in (*plan.breakers, *plan.refused.values()):
        raise RefusedError(f"{asking.table}: no list was made, because a clean would be refused: {why}")
    files = (
        ListedFile(file.path, -1 if file.size_bytes is None else file.size_bytes, file.reason.value)
        for path in sorted(plan.files)
        for file in plan.files[path]
    )
    return _list(CLEAN, asking, files)


def list_of_orphans(report: OrphanReport, asking: Asking) -> RemovalList:
    """
    The files that a search for orphans would remove.

    Raises:
        RefusedError: The table is in doubt.
    """
    for why in report.doubts if report.to_remove else ():
        raise RefusedError(f"{asking.table}: no list was made, because no file would be removed: {why}")
    files = (ListedFile(each.file.path, each.file.size_bytes, each.reason) for each in report.to_remove)
    return _list(ORPHANS, asking, files)


def _list(kind: str, asking: Asking, files: Iterable[ListedFile]) -> RemovalList:
    return RemovalList(
        kind=kind,
        table=asking.table,
        made=iso_utc(asking.made_ms),
        options={name: _plain(value) for name, value in asking.options.items() if value is not None},
        settings=asking.settings,
        files=tuple(files),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return f"{value // _MS}ms"
    if isinstance(value, (str, int, bool)):
        return value
    return [*map(str, value)] if isinstance(value, (list, tuple)) else str(value)


def check_approved(asked: Any, table: str) -> None:
    """
    Raises:
        RefusedError: Nobody has approved the list, or it is of another table.
        ConfigError: It is no list, or who approved it cannot be printed.
    """
    if not isinstance(asked, RemovalList):
        raise ConfigError(f"asked={asked!r}: give a list from list_for_approval; nothing was removed")
    if asked.table != table:
        raise RefusedError(f"the list is of the table {asked.table}, not of {table}; nothing was removed")
    if not asked.approved_by.strip():
        raise RefusedError(
            f"{table}: nobody has approved the list; write your name into approved_by in its first line, or give --by "
            "NAME; nothing was removed"
        )
    # The name is stored with the clean and shown on terminals, where control characters could imitate other lines.
    if not asked.approved_by.isprintable():
        raise ConfigError(f"{table}: {asked.approved_by!r} cannot be the name of who approved it; nothing was removed")


def kept_of_clean(asked: RemovalList, plan: CleanPlan, there: Mapping[str, int | None]) -> dict[str, str]:
    """
    Which files of the list a clean now would not delete, and why.

    Args:
        asked: The list.
        plan: The plan of the approved files, with all verdicts.
        there: Path of each file of the list to its size now; None if it is not there.
    """
    planned = {file.path for path in plan.files for file in plan.files[path]}
    verdicts = {
        f"{verdict.file_slice.partition_path}/{name}".lstrip("/"): verdict
        for verdict in plan.verdicts
        for name in verdict.file_slice.file_names
    }
    kept = {}
    for path, size in asked.sizes.items():
        if path in planned:
            continue
        now, verdict = there.get(path), verdicts.get(path)
        if now is None:
            kept[path] = "it is not there any more"
        elif now != size:
            kept[path] = f"it has {now} bytes now, and {size} in the list: it is not the file that was approved"
        elif verdict is None:
            kept[path] = f"a clean does not look at it now: {plan.scope.reason}"
        else:
            kept[path] = verdict.reason.value
    return kept


def kept_of_orphans(asked: RemovalList, report: OrphanReport) -> dict[str, str]:
    """Which files of the list a search for orphans now would not remove, and why."""
    verdicts = {each.file.path: each for each in report.verdicts}
    kept = {}
    for path in asked.sizes:
        verdict = verdicts.get(path)
        if verdict is None:
            kept[path] = "it is not there any more, or an instant knows it by now"
        elif verdict.fate is not OrphanFate.REMOVE:
            kept[path] = verdict.why_kept or "it is too young"
    return kept
