"""The law at the very end of a random history: nothing that nobody needs is kept for ever."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final

from hudi_py.errors import RefusedError
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action
from hudi_py.services.archive.plan import Bound
from hudi_py.services.orphans.judge import LISTED
from hudi_py.timeline import quarantine
from support.history_laws import REFUSALS, Violation
from support.history_steps import take
from support.history_windows import TAG
from support.history_world import ONE_THREAD, World
from support.history_writer import pending_clusterings
from support.tables import data_files

AGES: Final = timedelta(days=800)
"""Longer than any lease, tag or quarantine of a history lasts."""
_PASSING: Final = (".hoodie/.temp/", ".hoodie/.heartbeat/", ".hoodie/.aux/hudi_py/leases/", f"{quarantine.FOLDER}/")
"""Folders of what lives no longer than its purpose."""
_COMPACTED: Final = {"hoodie.metadata.compact.max.delta.commits": 1}
_SETTINGS: Final = {"hoodie_py.orphans.max.share": 1, "hoodie_py.quarantine.tag": TAG}


def exhaust(world: World) -> None:
    """
    Let everything expire, give up every plan and savepoint, and look after the table as anybody would.

    Raises:
        Violation: A file is left that no reader of the latest rows sees.
    """
    world.clock.move(AGES)
    world.open().remove_policy()
    table = world.open(**_SETTINGS)
    for instant in table.timeline.completed(Action.SAVEPOINT):
        _delete_savepoint(world, instant.requested_time)
    table = world.open(**_SETTINGS)
    cancels = {Action.COMPACTION: table.cancel_compaction, Action.LOG_COMPACTION: table.cancel_log_compaction}
    for instant in (*table.timeline.pending(*cancels), *pending_clusterings(table)):
        with suppress(*REFUSALS):
            cancels.get(instant.action, table.cancel_clustering)(instant.requested_time)
    table.refresh().recover()
    table = world.open(**_SETTINGS)
    if table.timeline.pending():
        world.counts["for ever: not asked, an action is pending"] += 1
        return
    done = world.counts["write: done"]
    take(world, ("write", {"operation": "UPSERT", "seed": 2}))  # without a commit since the last, no clean is due
    world.settle()
    if world.counts["write: done"] == done:
        world.counts["for ever: not asked, nothing is written"] += 1
        return
    report = world.open(**_SETTINGS).orphans(older_than="0m", delete=True)
    if any(each.why_kept == LISTED for each in report.verdicts):
        # It lists what rollbacks left in log files of table version 6; so docs/orphans.md lets them go.
        take(world, ("write", {"operation": "UPSERT", "seed": 3, "settings": {"hoodie.metadata.enable": False}}))
        world.settle()
        world.open(metadata=False, **_SETTINGS).orphans(older_than="0m", delete=True)
        world.counts["for ever: listed orphans gone"] += 1
    table = world.open(**_SETTINGS)
    table.clean(engine=ONE_THREAD, file_versions_retained=1)
    table.refresh().orphans(older_than="0m", delete=True)
    for path in [path for path in world.storage.files() if world.storage.tags(path)]:
        world.storage.delete(path)  # as the store does
    world.clock.move(AGES)
    world.open(**_SETTINGS).empty_quarantine()
    world.open(**_SETTINGS).recover()
    world.settle()
    world.check()
    _refuse_leftovers(world)


def _delete_savepoint(world: World, time: str) -> None:
    try:
        world.open(**_SETTINGS).delete_savepoint(time, archive_commit=True)
    except RefusedError as error:
        if Bound.METADATA_TABLE.value not in str(error):
            raise
        # A metadata table that was made anew knows the commit by its log files alone until it is compacted.
        take(world, ("write", {"operation": "UPSERT", "seed": 4, "settings": _COMPACTED}))
        world.settle()
        world.open(**_SETTINGS).delete_savepoint(time, archive_commit=True)
        world.counts["for ever: savepoint deleted behind a compaction"] += 1
    world.forget_savepoint(time)


def _refuse_leftovers(world: World) -> None:
    table = world.open()
    shown = {
        join_path(partition, name)
        for partition in table.partitions()
        for each in table.file_slices(partition)
        for name in each.file_names
    }
    there = {*data_files(world.storage), *(path for path in world.storage.files() if path.startswith(_PASSING))}
    left = sorted(path for path in there - shown if not path.endswith(".crc"))  # of Hadoop, beside files of fixtures
    if left:
        raise Violation("for ever: files left", f"{len(left)} files that nobody needs: {left[:4]}")
    world.counts["for ever: nothing left"] += 1
