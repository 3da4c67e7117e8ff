"""Whatever file of the metadata table is lost or cut short: the listing is the same as before, or there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.mdt.in_step import has_records, unrecorded
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.timeline import Timeline
from support.metadata_tables import VERSIONS, config_of, store_of, table_of, with_metadata_table

FOLDER = ".hoodie/metadata/"
DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda _: None,
    "emptied": lambda _: b"",
    "a byte short": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
}


def walked(storage: MemoryStorage) -> dict[str, dict[str, int | None]]:
    _, listing = open_snapshot(store_of(storage), config_of(storage), Settings())
    return {path: {entry.name: entry.size_bytes for entry in entries} for path, entries in listing.walk()}


def damage(storage: MemoryStorage, path: str, how: str) -> bool:
    """Damage one file; False where that changes nothing."""
    before = storage.read(path)
    after = DAMAGES[how](before)
    if after is None:
        storage.delete(path)
    else:
        storage.replace(path, after)
    return after != before


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table", ["cow_cleaned", "cow_archived"])
@pytest.mark.slow
def test_no_lost_file_changes_the_listing(table, version, how):
    """Each file of the metadata table in turn, its timeline, properties and old versions included."""
    name = f"{table}-{version}"
    whole = walked(table_of(name))
    told = 0
    for path in [path for path in table_of(name).files() if path.startswith(FOLDER)]:
        storage = table_of(name)
        if not damage(storage, path, how):
            continue
        try:
            assert walked(storage) == whole, path
        except HudiError:
            told += 1
    assert told > 3, "the newest files must be among those that are missed"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_log_file_is_missed_by_name(version):
    """The error names the file, the delta commit that wrote it, and the way out."""
    storage = table_of(f"cow_cleaned-{version}")
    logs = [path for path in storage.files() if path.startswith(f"{FOLDER}files/.files") and ".log." in path]
    newest = max(logs, key=lambda path: (path.partition(".log.")[0], int(path.partition(".log.")[2].partition("_")[0])))
    storage.delete(newest)
    with pytest.raises(
        CorruptMetadata, match=r"is missing.*deltacommit 20.*hudi-py recover.*hoodie\.metadata\.enable"
    ) as e:
        walked(storage)
    assert newest in str(e.value)


@pytest.mark.slow
def test_no_table_of_hudi_lacks_a_file_or_an_action():
    """The two checks find nothing on any table that Hudi wrote."""
    for name in with_metadata_table():
        assert walked(table_of(name)), name


def test_a_commit_must_be_recorded_unless_it_changed_nothing_or_came_before_the_first_listing():
    """What was there when the metadata table was made is listed; cleans count like commits, rollbacks do not."""

    def completed(time: str, action: Action = Action.COMMIT) -> Instant:
        return Instant(time.ljust(17, "0"), action, State.COMPLETED, time.ljust(17, "1"))

    table = Timeline((completed("20260101"), completed("20260103"), completed("20260104", Action.CLEAN)))
    table = Timeline((*table, completed("20260105", Action.ROLLBACK)))
    clean = completed("20260104", Action.DELTA_COMMIT)
    first = Instant("0" * 17, Action.DELTA_COMMIT, State.COMPLETED, "20260102".ljust(17, "0"))
    assert unrecorded(table, Timeline((first, clean))) == (completed("20260103"),)
    commit = completed("20260103", Action.DELTA_COMMIT)
    assert unrecorded(table, Timeline((first, commit))) == (completed("20260104", Action.CLEAN),)
    assert unrecorded(table, Timeline((first, commit, clean))) == ()
    assert unrecorded(table, Timeline((completed("20260106", Action.DELTA_COMMIT),))) == ()
    stat = WriteStat(path="eu/a_0_20260101000000000.parquet", file_size_in_bytes=1)
    assert has_records(CommitMetadata(partition_to_write_stats={"eu": (stat,)}))
    assert not has_records(CommitMetadata())
