"""A record index made by hudi_py: for a new table, and for one that has rows."""

import json

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import RefusedError
from hudi_py.mdt.create_index import IndexSizing
from hudi_py.mdt.create_missing import create_index_of_rows, rows_to_index
from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.mdt.removal import drop_indexes
from hudi_py.mdt.table import INIT_TIME, MetadataTable, is_archived
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import SystemClock
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import INTERRUPTION_MODES
from hudi_py.timeline.archive import load_archived
from support import fixtures, writes
from support.crash_points import interruptions
from support.indexes import assert_true, places
from support.metadata_tables import config_of, update_properties

ASKED = {"hoodie.metadata.record.index.enable": True, "hoodie.metadata.record.index.min.filegroup.count": 2}


@pytest.fixture(scope="module", params=[6, 8, 9])
def made(request):
    """A table with rows and with the index that its first write made."""
    storage = writes.create_table(request.param)
    writes.upsert(storage, writes.OLD, **ASKED)
    return storage.files()


@pytest.fixture(scope="module", params=[6, 9])
def plain(request):
    """A table with rows and without a metadata table."""
    storage = writes.create_table(request.param)
    writes.upsert(storage, writes.OLD)
    return storage.files()


def test_a_new_table_gets_the_index_that_is_asked_for(made):
    """With the number of file groups of the settings; every row of the first write is in it, and of the next."""
    storage = MemoryStorage.from_files(made)
    table = MetadataTable(storage)
    assert len(table.slices(table.store.load(), RECORD_INDEX)) == 2
    assert_true(storage)
    assert len(places(storage)) == 2
    writes.upsert(storage, writes.CHANGES)
    assert_true(storage)
    assert [] == [each for each in writes.open_table(storage).check() if each.severity.name != "INFO"]


def test_only_releases_that_know_definitions_get_one(made):
    """Hudi 1.1 looks there whether the index is one for the whole table."""
    storage = MemoryStorage.from_files(made)
    text = made.get(".hoodie/.index_defs/index.json")
    assert (text is not None) == (writes.open_table(storage).config.version == 9)
    if text is not None:
        assert json.loads(text)["indexDefinitions"][RECORD_INDEX]["indexOptions"] == {"isPartitioned": "false"}


def test_a_table_with_rows_gets_an_index_of_them(plain):
    """In base files, as Apache Hudi does; then it is kept like any other."""
    storage = MemoryStorage.from_files(plain)
    writes.upsert(storage, writes.CHANGES, **ASKED)
    assert_true(storage)
    assert len(places(storage)) == 3
    writes.upsert(storage, writes.OLD[1:], operation="DELETE", **ASKED)
    assert_true(storage)


def test_a_key_with_two_rows_has_no_place(plain):
    """An index that knows one of them would lose the other."""
    storage = MemoryStorage.from_files(plain)
    writes.upsert(storage, [{"id": "a", "region": "us", "ts": 1}])
    with pytest.raises(RefusedError, match="'a' has several rows"):
        writes.upsert(storage, writes.CHANGES, **ASKED)
    assert RECORD_INDEX not in writes.open_table(storage).config.metadata_partitions


LONG = [{"id": "é" * 16_383 + "b", "region": "eu", "ts": 1}]  # 32,767 bytes, as many as a key of an HFile can have
LONGER = [{"id": "é" * 16_384, "region": "eu", "ts": 1}]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_key_for_which_it_has_no_room_is_refused(version, kind):
    """By name, and the next write goes through; the longest one that fits is kept."""
    storage = writes.create_table(version, **{"hoodie.table.type": kind})
    writes.upsert(storage, LONG, **ASKED)
    assert places(storage).keys() == {LONG[0]["id"]}
    with pytest.raises(RefusedError, match=r"'é+' has 32768 bytes.*room for 32767"):
        writes.upsert(storage, LONGER, **ASKED)
    writes.assert_tidy(storage, kind)  # its files are taken back at once
    assert writes.merged_rows_of(storage) == LONG
    writes.upsert(storage, LONG, operation="DELETE", **ASKED)
    assert_true(storage)
    writes.assert_tidy(storage, kind)


def test_rows_with_such_a_key_get_no_index(plain):
    """Nothing is made of an index that could not be written."""
    storage = MemoryStorage.from_files(plain)
    writes.upsert(storage, LONGER)
    with pytest.raises(RefusedError, match="32768 bytes"):
        writes.upsert(storage, writes.CHANGES, **ASKED)
    table = writes.open_table(storage)
    assert RECORD_INDEX not in table.config.metadata_partitions
    assert not table.timeline.pending()


def test_log_files_are_not_merged_for_it():
    """Which rows they leave is not looked at here, so nothing is guessed; refused before anything is created."""
    storage = writes.create_table(9, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    writes.upsert(storage, writes.OLD)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 2}])
    before = storage.files()
    with pytest.raises(RefusedError, match="log files"):
        writes.upsert(storage, writes.CHANGES, **ASKED)
    assert before == storage.files()


def test_a_rollback_makes_no_index(plain):
    """One that is made before the write is undone would have its rows for ever, and nothing would remove them."""
    storage = MemoryStorage.from_files(plain)
    enabled = {"hoodie.metadata.enable": True}
    writes.upsert(storage, writes.CHANGES, **enabled)
    writes.upsert(storage, [{"id": "z", "region": "us", "ts": 1}], **enabled)
    table = Table(storage, settings=ASKED)
    table.rollback(table.timeline.writes.completed()[-1].requested_time)
    assert RECORD_INDEX not in writes.open_table(storage).config.metadata_partitions
    writes.upsert(storage, [{"id": "z", "region": "eu", "ts": 1}], **ASKED)
    assert_true(storage)
    assert [] == [each for each in writes.open_table(storage).check() if each.severity.name != "INFO"]


@pytest.mark.parametrize("verb", ["rollback", "restore"])
def test_an_index_made_since_goes_with_a_commit_that_is_undone(plain, verb):
    """Its base files have the rows of that commit, which nothing takes out of them; an index made before stays."""
    storage = MemoryStorage.from_files(plain)
    settings = {"hoodie.metadata.enable": True}
    first = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    writes.upsert(storage, writes.CHANGES, **settings)
    undone = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    if verb == "restore":
        writes.open_table(storage).create_savepoint(first)
    writes.upsert(storage, [{"id": "d", "region": "us", "ts": 3}], **settings, **ASKED)
    latest = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    if verb == "restore":
        writes.open_table(storage, **settings).restore(first)
    else:
        writes.open_table(storage, **settings).rollback(latest)
        assert len(places(storage)) == 3
        writes.open_table(storage, **settings).rollback(undone)
    assert RECORD_INDEX not in writes.open_table(storage).config.metadata_partitions
    assert writes.rows_of(storage) == writes.OLD
    writes.upsert(storage, writes.CHANGES, **settings, **ASKED)
    assert_true(storage)


def test_a_file_whose_time_is_no_date_has_no_place(plain):
    """As those of a bootstrap: the index has the date of each row's file. Refused before anything is created."""
    time = writes.open_table(MemoryStorage.from_files(plain)).timeline.writes.completed()[0].requested_time
    odd = "0" * 16 + "2"
    files = {name.replace(time, odd): data.replace(time.encode(), odd.encode()) for name, data in plain.items()}
    storage = MemoryStorage.from_files(files)
    before = storage.files()
    with pytest.raises(RefusedError, match="which is not a date"):
        writes.upsert(storage, writes.CHANGES, **ASKED)
    assert before == storage.files()


@pytest.mark.slow
def test_an_interrupted_creation_starts_over(plain):
    """Stopped at any change of the storage: the next write makes it, and it is true."""
    for case in interruptions(lambda: MemoryStorage.from_files(plain), modes=INTERRUPTION_MODES[:1]):
        case.run(lambda faulty: writes.upsert(faulty, writes.CHANGES, **ASKED))
        writes.upsert(case.storage, writes.CHANGES, **ASKED)
        assert_true(case.storage, case)
        assert len(places(case.storage)) == 3


@pytest.mark.parametrize(("records", "groups"), [(0, 10), (11_000_000, 10), (300_000_000, 27), (10**13, 10_000)])
def test_the_number_of_file_groups_grows_with_the_table(records, groups):
    """A gibibyte each for twice the records, between the least and the greatest number."""
    assert groups == IndexSizing().groups(records)


def made_again(storage):
    """Let the record index be dropped, as by a writer that is set up without one, and made by one that asks for it."""
    update = update_properties(storage)
    drop_indexes(storage, config_of(storage), update, [RECORD_INDEX])
    asked, clock = Settings(ASKED), SystemClock()
    create_index_of_rows(storage, rows_to_index(storage, config_of(storage), asked, clock), asked, update, clock)


@pytest.mark.parametrize("time", ["00000000000000007", "20200101000000000"], ids=["zeros", "compaction"])
def test_what_is_archived_stays_completed(time):
    """A new index begins at zeros, and the active timeline then seems to begin before all that is archived."""
    storage = writes.create_table(9)
    writes.upsert(storage, writes.OLD, **ASKED)
    table = MetadataTable(storage)
    timeline = table.store.load()
    assert timeline.instants[0].requested_time.startswith(INIT_TIME)
    assert timeline.find(time) is None
    name = f"expr-index-day-0000-0_0-5-7_{time}.hfile"
    table.storage.create_new(f"expr_index_day/{name}", b"")
    (found,) = table.slices(timeline, "expr_index_day")
    assert found.base is not None
    assert found.base.name == name


def test_what_is_gone_from_the_middle_is_not_archived():
    """As a delta commit that was rolled back: a file of it that came late would count for ever."""
    storage = writes.create_table(9)
    for _ in range(2):
        writes.upsert(storage, writes.OLD, **ASKED)
    table = MetadataTable(storage)
    timeline = table.store.load()
    first, last = (each.requested_time for each in timeline.completed(Action.DELTA_COMMIT)[-2:])
    gone = str((int(first) + int(last)) // 2)
    assert first < gone < last
    assert [is_archived(timeline, each) for each in ("20200101000000000", gone)] == [True, False]
    table.storage.create_new(f"expr_index_day/expr-index-day-0000-0_0-5-7_{gone}.hfile", b"")
    assert [each.base for each in table.slices(timeline, "expr_index_day")] == [None]


@pytest.mark.parametrize("release", ["1.0.2", "1.1.1", "1.2.0"])
def test_the_time_of_a_new_index_is_behind_archived_ones(tmp_path, release):
    """Apache Hudi takes zeros behind the first instant of the active timeline for never completed."""
    path = fixtures.unpack(f"cow_archived-{release}", tmp_path)
    storage = LocalStorage(str(path))
    table = MetadataTable(storage)
    zeros = [each.requested_time for each in load_archived(table.storage, table.config).instants
             if each.requested_time.startswith(INIT_TIME)]  # fmt: skip
    assert zeros
    assert not MetadataTable(storage).store.load().instants[0].requested_time.startswith(INIT_TIME)
    made_again(storage)
    assert MetadataTable(storage).store.load().instants[0].requested_time > max(zeros)
