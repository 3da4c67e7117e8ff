"""The steps of a maintenance run, by the methods of the opened table that do them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hudi_py.services.maintenance.service import Chore, ChoreResult, Work


class Maintained(Protocol):
    """What a run asks of an opened table; see `hudi_py.Table`."""

    @property
    def plan_clean(self) -> Callable[..., Any]: ...
    @property
    def clean(self) -> Callable[..., Any]: ...
    @property
    def archive(self) -> Callable[..., Any]: ...
    @property
    def orphans(self) -> Callable[..., Any]: ...
    @property
    def deletion_forbidden(self) -> str | None: ...
    @property
    def remove_expired_savepoints(self) -> Callable[..., Any]: ...


def works(table: Maintained, max_deletes: int | None) -> list[Work]:
    """
    All steps, in order.

    Args:
        table: The opened table.
        max_deletes: Largest number of files that the clean deletes; None for no limit.
    """
    # No value at all instead of None: a limit from the settings has to stay in force.
    limit = {} if max_deletes is None else {"max_files": max_deletes}

    def forbidden() -> ChoreResult | None:
        why = table.deletion_forbidden
        return None if why is None else ChoreResult(f"left out, no data is deleted: {why}", is_due=False)

    def plan_clean() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        plan = table.plan_clean(**limit)
        files = {file.path: file.reason.value for group in plan.files.values() for file in group}
        if plan.would_schedule:
            return ChoreResult("files that the retention does not keep", files)
        why = "nothing to delete" if plan.needs_cleaning else "too few commits since the last clean"
        return ChoreResult(why, is_due=False)

    def clean() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        results = table.clean(**limit)
        files = {path: f"clean {each.instant} removed it" for each in results for path in each.deleted_files}
        if not results:
            return ChoreResult("nothing to delete", is_due=False)
        return ChoreResult(", ".join(f"clean {result.instant}" for result in results), files)

    def remove_tags() -> ChoreResult:
        gone = table.remove_expired_savepoints()
        files = {each.requested_time: "its time to live was over" for each in gone}
        return ChoreResult("expired savepoints" if gone else "none has expired", files, is_due=bool(gone))

    # Without arguments: the limits of the settings count, as after a write.
    def archive() -> ChoreResult:
        done = table.archive()
        files = {str(instant): "moved to the archive" for instant in done.instants}
        return ChoreResult("old instants" if files else "nothing to archive", files, is_due=bool(files))

    def orphans() -> ChoreResult:
        # Never removed from here: a file that no instant knows may belong to a writer that is not known either, so a
        # person has to look at the list first.
        report = table.orphans(dry_run=True)
        files = {verdict.file.path: verdict.why_kept or verdict.reason for verdict in report.verdicts}
        why = "; ".join(report.doubts) or ("hudi-py orphans removes them" if files else "none")
        return ChoreResult(why, files, is_due=bool(report.to_remove))

    # A plan for them would be out of date at once: what expires and what may be archived depends on the steps before.
    undecided = ChoreResult("decided when it runs", is_due=False)
    return [
        Work(Chore.TAGS, lambda: undecided, remove_tags),
        Work(Chore.CLEAN, plan_clean, clean),
        Work(Chore.ARCHIVAL, lambda: undecided, archive),
        Work(Chore.ORPHANS, orphans),
    ]
