"""
Gives way to Apache Hudi while it fills a partition of the metadata table beside us.

It looks for index partitions that are missing under the table's lock when a write begins, and once more without it when
the write has begun. So it makes a partition that was dropped in between, as rollbacks do, beside other writers. Its
records come from a listing: a write that completes meanwhile would be missing from them, and readers would leave out
its rows. If the folder is removed meanwhile, the properties name a partition without files in the end.

Source: rules/data-files 10.4; Hudi 1.1.1 ``StreamingMetadataWriteHandler``.
"""

from __future__ import annotations

from datetime import tzinfo

from hudi_py.config import keys
from hudi_py.config.concurrency import SEVERAL_WRITERS
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.mdt.in_step import is_first_listing
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import instant_epoch_ms
from hudi_py.runtime.clock import Clock, zone_of
from hudi_py.timeline.heartbeat import CLOCKS_APART_MS_MAX, Pulse, Rhythm, pulses
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


def refuse_beside_maker(
    table: MetadataTable, metadata: Timeline, clock: Clock, settings: Settings, own_time: str = ""
) -> None:
    """
    Refuse to go on while a running writer may be filling a partition; costs nothing unless one is being filled.

    Args:
        table: The metadata table.
        metadata: Its timeline, as just loaded.
        clock: Tells how old heartbeats are.
        settings: The mode of concurrency, and when a heartbeat expires. With a single writer nobody is at work.
        own_time: Requested time of our own write, whose heartbeat does not count.

    Raises:
        ConflictError: There is such a writer; trying again helps.
    """
    making = {each.requested_time for each in metadata.pending(Action.DELTA_COMMIT) if is_first_listing(each)}
    if not making or settings[keys.CONCURRENCY_MODE] != SEVERAL_WRITERS:
        return
    since = _since(table.store, making)
    # Heartbeats have times of the data table, in its zone, which may differ from that of the metadata table.
    zone = zone_of(read_table_config(table.data_storage).timezone)
    for time, pulse in pulses(table.data_storage, clock, Rhythm.of(settings)).items():
        # What a dead writer left would otherwise hold up all others for as long as any of them is running.
        if time != own_time and (since is None or _began_before(time, zone, since)):
            raise _conflict(table, making, pulse)


def _since(store: TimelineStore, making: set[str]) -> int | None:
    """When the last of these began, in milliseconds since 1970; None where the storage does not tell."""
    entries = store.storage.list(store.folder, details=True)
    begun = [each.modified_ms for each in entries if each.name.split(".")[0] in making]
    return None if None in begun else max((ms for ms in begun if ms is not None), default=None)


def _began_before(time: str, zone: tzinfo, since_ms: int) -> bool:
    try:
        return instant_epoch_ms(time, zone) <= since_ms + CLOCKS_APART_MS_MAX
    except (ValueError, OverflowError):  # no date: in doubt it did
        return True


def _conflict(table: MetadataTable, making: set[str], pulse: Pulse) -> ConflictError:
    return ConflictError(
        f"{table.storage.root}: delta commit {max(making)} fills a partition of the metadata table, and a writer that "
        f"may be filling it is running ({pulse}): rows written now would be missing there; nothing was written, try "
        "again when it has gone on"
    )
