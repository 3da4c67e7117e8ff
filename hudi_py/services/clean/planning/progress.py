"""
The window of a clean that found nothing, remembered for the next one.

Hudi's incremental planning starts where the last completed clean stopped, and a clean that deletes nothing is not
stored (rule A-12, K-3): on a quiet table every plan starts from the same old point, or examines all partitions. So the
window for which nothing was found is remembered in a file of hudi_py, which Hudi does not read. If it is lost, more
partitions are examined, and the plan is the same.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.errors import OutcomeUnknown, StorageError
from hudi_py.runtime.log import log
from hudi_py.services.clean.memory.notes import Note
from hudi_py.services.clean.planning.plan import CleanPlan
from hudi_py.services.clean.planning.scope import LastClean
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.storage.base import Storage
from hudi_py.timeline.timeline import Timeline


@attrs.frozen
class Progress:
    """
    A window for which nothing in the whole table could be deleted.

    Args:
        earliest: Requested time of the earliest instant to retain.
        savepoints: Times of the savepoints that existed then.
    """

    earliest: str
    savepoints: frozenset[str] = frozenset()


def progress_of(plan: CleanPlan, seen: Situation, config: CleanConfig) -> Progress | None:
    """
    The progress to remember; None unless the plan found nothing, and nothing older can become removable later.

    Files older than the window can still become removable when a pending write before the window or a pending
    compaction ends, when a group whose versions are counted is written again, or when a snapshot drops off the ladder.
    """
    earliest = seen.earliest
    start = seen.retained_from(earliest)
    if (
        earliest is None
        or start is None
        or config.versions
        or plan.file_count
        or plan.is_partial
        or not plan.is_examined
    ):
        return None
    # What is held now becomes removable without a new commit.
    held = bool(seen.protection.pending or seen.protection.clustered_files) or any(
        i.requested_time < earliest.requested_time for i in seen.timeline.writes.pending()
    )
    if held or len(seen.table_commits) <= config.commits_required:
        return None
    return Progress(start.requested_time, seen.savepoints)


def start_of_scope(last_clean: LastClean | None, progress: Progress | None, timeline: Timeline) -> LastClean | None:
    """The last clean, or the remembered progress if that got further and its commit is still completed."""
    if progress is None or (last_clean is not None and last_clean.earliest_to_retain.strip() >= progress.earliest):
        return last_clean
    commit = timeline.commits_and_compaction.find(progress.earliest)
    # It was rolled back, or archived: then the window that was remembered may have gone back as well.
    if commit is None or commit.is_pending:
        return last_clean
    return LastClean(
        requested_time="" if last_clean is None else last_clean.requested_time,
        earliest_to_retain=progress.earliest,
        last_completed_commit="" if last_clean is None else last_clean.last_completed_commit,
        savepoints=progress.savepoints,
        counted_versions=last_clean is not None and last_clean.counted_versions,
    )


def remember(storage: Storage, progress: Progress) -> None:
    """Store the progress unless it is stored already; if that fails, the next clean only takes longer."""
    # Unchanged on a quiet table, so nothing has to be written there.
    if PROGRESS.load(storage) == progress:
        return
    try:
        PROGRESS.store(storage, {"earliest": progress.earliest, "savepoints": sorted(progress.savepoints)})
    except (StorageError, OutcomeUnknown) as error:
        log.warning("clean.progress.not_stored", path=PROGRESS.path, reason=str(error))


def _parse(document: Any) -> Progress | None:
    earliest, savepoints = document["earliest"], document["savepoints"]
    if not isinstance(earliest, str) or not isinstance(savepoints, list):
        raise TypeError("earliest is not a string, or savepoints is not a list")
    return Progress(earliest, frozenset(map(str, savepoints)))


PROGRESS: Final = Note[Progress | None](name="progress", parse=_parse, absent=None, damaged=None)
"""The window of the last clean that found nothing."""
