"""Compactions and clusterings of more log records than may be held: by way of a temporary file of this machine."""

import os

import pytest

from hudi_py.errors import ConfigError, SpillError
from hudi_py.rows import spill
from support import writes

MOR = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.index.bloom.num_entries": 100}
DUE = MOR | writes.ALONE
DUE |= {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.log.compaction.blocks.threshold": 1}
MEMORY = {
    "compact": "hoodie.memory.compaction.max.size",
    "compact_logs": "hoodie.memory.compaction.max.size",
    "cluster": "hoodie_py.clustering.memory.bytes",
}
FOLDER = "hoodie.memory.spillable.map.path"


def table_with_logs(version):
    """Rows that were updated once, twice, deleted, and added by log files."""
    storage = writes.create_table(version, **MOR)
    for number in range(2):
        rows = [{"id": f"k{n}", "region": "eu", "ts": number} for n in range(12) if n % (number + 1) == 0]
        writes.upsert(storage, rows, **MOR)
    writes.upsert(storage, [{"id": "k5", "region": "eu", "ts": 9}], operation="DELETE", **MOR)
    return storage


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("verb", MEMORY)
def test_rows_are_the_same_with_hardly_any_memory(version, verb, tmp_path, monkeypatch):
    """The temporary file is used, lies where the setting says, and is gone afterwards."""
    storage, folders = table_with_logs(version), []
    before = writes.merged_rows_of(storage)
    given = spill.tempfile.TemporaryFile
    monkeypatch.setattr(spill.tempfile, "TemporaryFile", lambda **how: folders.append(how["dir"]) or given(**how))
    table = writes.open_table(storage, **DUE, **{MEMORY[verb]: 4, FOLDER: str(tmp_path)})
    (done,) = getattr(table, verb)()
    # A log compaction writes the rows of log files, the others all rows.
    assert (done.rows, writes.merged_rows_of(storage)) == (6 if verb == "compact_logs" else len(before), before)
    assert set(folders) == {str(tmp_path)}
    assert not os.listdir(tmp_path)
    assert not [each for each in writes.open_table(storage).check() if each.severity.value != "info"]


@pytest.mark.parametrize("verb", MEMORY)
def test_memory_that_suffices_needs_no_temporary_file(verb, tmp_path):
    """So a folder that is not there is no mistake."""
    storage = table_with_logs(9)
    assert getattr(writes.open_table(storage, **DUE, **{FOLDER: str(tmp_path / "absent")}), verb)()


@pytest.mark.parametrize("verb", MEMORY)
def test_what_the_disk_of_the_machine_lacks_is_no_damage_of_the_table(verb, tmp_path, monkeypatch):
    """It is told by name, the plan stays, and the next run carries it out."""
    storage = table_with_logs(9)
    before = writes.merged_rows_of(storage)
    tiny = DUE | {MEMORY[verb]: 4}
    with pytest.raises(ConfigError, match=f"absent is not a folder.*{FOLDER}"):
        getattr(writes.open_table(storage, **tiny, **{FOLDER: str(tmp_path / "absent")}), verb)()

    class FullFile:
        def __init__(self, file):
            self._file = file

        def write(self, _):
            raise OSError(28, "No space left on device")

        def __getattr__(self, name):
            return getattr(self._file, name)

    given = spill.tempfile.TemporaryFile
    monkeypatch.setattr(spill.tempfile, "TemporaryFile", lambda **how: FullFile(given(**how)))
    with pytest.raises(SpillError, match=f"No space left on device.*{FOLDER}"):
        getattr(writes.open_table(storage, **tiny), verb)()
    monkeypatch.undo()
    table = writes.open_table(storage, **tiny)
    (pending,) = table.timeline.pending()
    assert writes.merged_rows_of(storage) == before
    assert getattr(table, verb)()[0].instant == pending.requested_time
    assert writes.merged_rows_of(storage) == before
