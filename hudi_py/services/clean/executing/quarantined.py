"""Where a clean moves its files, if it keeps them for a while."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_py.config.clean import CleanConfig
from hudi_py.model.instant import Instant
from hudi_py.services.clean.planning.stored_plan import Names
from hudi_py.timeline.quarantine import Manifest, files_folder, load_manifest, store_manifest
from hudi_py.timeline.store import TimelineStore


def quarantine_of(
    store: TimelineStore, config: CleanConfig, instant: Instant, names: Names, partitions: Sequence[str]
) -> str:
    """
    Folder to which the clean moves its files, ``""`` if it deletes them; its manifest is written first.

    A clean that was interrupted goes on as it was begun, whatever the settings say now: only a clean whose files are
    all in quarantine can be undone.
    """
    time = instant.requested_time
    if load_manifest(store.storage, time) is None:
        if not config.quarantine:
            return ""
        made_ms = int(store.clock.now().timestamp() * 1000)
        files = {path: dict.fromkeys(each, -1) for path, each in names.items()}
        files |= {path: files.get(path, {}) for path in partitions}
        until_ms = made_ms + int(config.quarantine_grace.total_seconds() * 1000)
        store_manifest(
            store.storage, Manifest(name=time, kind="clean", made_ms=made_ms, until_ms=until_ms, files=files)
        )
    return files_folder(time)
