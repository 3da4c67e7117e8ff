"""Damage to the history of layout 2 (rules/timeline 5.3)."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.archive_entries import newest_snapshot

FOLDER = ".hoodie/timeline/history"


def test_history_whose_manifests_are_gone_is_not_taken_for_an_empty_one():
    """An archival would begin it anew, and then remove every file that the new manifest does not name."""
    storage = MemoryStorage.from_files({f"{FOLDER}/_version_": b"3", f"{FOLDER}/1_2_0.parquet": b"PAR1"})
    with pytest.raises(CorruptMetadata, match="no manifest"):
        newest_snapshot(storage, FOLDER, [entry.name for entry in storage.list(FOLDER)])


def test_history_that_an_interrupted_archival_began_is_empty():
    """The first file is written before the first manifest."""
    storage = MemoryStorage.from_files({f"{FOLDER}/1_2_0.parquet": b"PAR1"})
    assert newest_snapshot(storage, FOLDER, ["1_2_0.parquet"]).files == ()
