"""How a clean removes its files, and where it keeps them if it does for a while."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_py.config.clean import CleanConfig
from hudi_py.model.instant import Instant
from hudi_py.services.clean.planning.stored_plan import Names
from hudi_py.storage.deleters import Deleter, Unlink, quarantine_in
from hudi_py.timeline.quarantine import Manifest, files_folder, load_manifest, store_manifest
from hudi_py.timeline.store import TimelineStore


def deleter_of(
    store: TimelineStore, config: CleanConfig, instant: Instant, names: Names, partitions: Sequence[str]
) -> Deleter:
    """
    How the clean removes its files; if it moves them into quarantine, its manifest is written first.

    A clean that was interrupted goes on as it was begun, whatever the settings say now: only a clean whose files are
    all in quarantine can be undone.
    """
    time = instant.requested_time
    manifest = load_manifest(store.storage, time)
    if manifest is None:
        if not config.quarantine:
            return Unlink()
        made_ms = int(store.clock.now().timestamp() * 1000)
        files = {path: dict.fromkeys(each, -1) for path, each in names.items()}
        files |= {path: files.get(path, {}) for path in partitions}
        manifest = Manifest(
            name=time,
            kind="clean",
            made_ms=made_ms,
            until_ms=made_ms + int(config.quarantine_grace.total_seconds() * 1000),
            files=files,
            tag=config.quarantine_tag,
        )
        store_manifest(store.storage, manifest)
    return quarantine_in(files_folder(time), manifest.tag)
