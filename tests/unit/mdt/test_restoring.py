"""After a restore the metadata table lists what lies in the folders, whatever it listed before."""

from __future__ import annotations

import pytest

from hudi_py.fsview.listing import FolderListing
from hudi_py.mdt.restoring import record_restore
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import INTERRUPTION_MODES
from support.crash_points import interruptions
from support.metadata_tables import LATER, LATEST, VERSIONS, begin, end, listing, partitions, table_of, timeline_of

NEW = "f-0_1-1-1_20991231235959000.parquet"
METAFILE = ".hoodie_partition_metadata"


def changed(version: str) -> MemoryStorage:
    """As listed, but one file is gone, one came into a partition of its own, one is larger; a restore is under way."""
    storage = table_of(f"cow_cleaned-{version}")
    known = listing(storage)
    for path, files in known.items():
        storage.replace(f"{path}/{METAFILE}", b"")
        for name, size in files.items():
            storage.replace(f"{path}/{name}", bytes(size))
    path = min(known)
    gone, *others = sorted(known[path])
    storage.delete(f"{path}/{gone}")
    storage.replace(f"{path}/{others[0]}", bytes(known[path][others[0]] + 1))
    storage.replace(f"new/{METAFILE}", b"")
    storage.replace(f"new/{NEW}", bytes(7))
    begin(storage, Action.RESTORE, LATER)
    return storage


def record(storage) -> None:
    vanishing = (LATEST,)  # the metadata table knows nothing of it
    folders = FolderListing(storage)
    record_restore(MetadataTable(storage), timeline_of(storage), LATER, vanishing, folders)


def in_folders(storage: MemoryStorage) -> dict[str, dict[str, int]]:
    found = {}
    for path, entries in FolderListing(storage).walk(details=True):
        found[path] = {entry.name: entry.size_bytes for entry in entries if entry.name != METAFILE}
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_what_lies_in_the_folders_is_listed(version):
    """B-31: interrupted anywhere and done again: nothing is seen before the restore completes, all of it after."""
    before, wanted = listing(changed(version)), in_folders(changed(version))
    assert before != wanted
    for case in interruptions(lambda: changed(version), INTERRUPTION_MODES[:2]):
        case.run(record)
        assert before == listing(case.storage), case
        record(case.storage)
        once = case.storage.files()
        record(case.storage)
        assert once == case.storage.files(), case
        end(case.storage, Action.RESTORE, LATER)
        assert wanted == listing(case.storage), case
        assert "new" in partitions(case.storage)
