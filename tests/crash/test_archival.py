"""Archival interrupted at every storage call, in every way, in both layouts; run twice more; states compared."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.model.instant import Action, State
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import INTERRUPTION_MODES
from support.crash_points import interruptions
from support.history_tables import fixture_in_memory, open_in, state_of
from support.tables import TableBuilder, at, data_files

SETTINGS = {"keep_min_commits": 2, "keep_max_commits": 4}
MERGING = {"hoodie.timeline.compaction.batch.size": 2}


def builder_of(layout: int, commits: int = 7) -> TableBuilder:
    """Commits of one group and two cleans between them, and a marker folder that a crash left."""
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(3 * number), {"eu": ["a"], "us": ["b"]})
    for number in (2, 4):
        builder.cleaned(at(3 * number + 1), earliest="", last_commit=at(3 * number))
    builder.put(f".hoodie/.temp/{at(3)}/eu/x.marker.CREATE", b"")
    return builder


def fresh(name: str) -> MemoryStorage:
    return builder_of(int(name[-1])).storage if name.startswith("layout") else fixture_in_memory(name)


def archive(storage) -> object:
    table = Table(storage, settings=MERGING, clock=TableBuilder().clock)
    return table.archive(**SETTINGS)


def history_of(storage: MemoryStorage) -> tuple[list, list]:
    """Active and archived instants; nothing may be lost between the two."""
    table = open_in(storage)
    active = [(i.requested_time, i.action.value) for i in table.timeline if i.is_completed]
    archived = [(i.requested_time, i.action.value) for i in table.archived_timeline() if i.state is State.COMPLETED]
    return active, archived


TABLES = ["layout 1", "layout 2", "cow_many-0.15.0", "cow_many-1.0.2", "cow_many-1.1.1"]


@pytest.mark.parametrize("name", TABLES)
def test_archival_survives_every_interruption(name, record_property):
    """D-15, D-16: whatever stops it, no instant is lost at any moment; two more runs end where a calm one does."""
    before = state_of(fresh(name))
    everything = set(history_of(fresh(name))[0]) | set(history_of(fresh(name))[1])
    calm = fresh(name)
    archive(calm)
    assert len(history_of(calm)[0]) < len(history_of(fresh(name))[0]), "there was nothing to archive"
    cases = 0
    modes = INTERRUPTION_MODES if name.startswith("layout") else INTERRUPTION_MODES[:2]
    for cases, case in enumerate(interruptions(lambda: fresh(name), modes), 1):  # noqa: B007 - reported below
        case.run(archive)
        active, archived = history_of(case.storage)
        assert everything == {*active, *archived}, case
        for _ in range(2):
            archive(case.storage)
            active, archived = history_of(case.storage)
            assert everything == {*active, *archived}, case
            assert len(archived) == len(set(archived)), case
            assert before["files"] == data_files(case.storage), case
            assert before["listing"] == state_of(case.storage)["listing"], case
        wanted = {each for each in history_of(calm)[0] if each[1] in ("commit", "replacecommit")}
        found = {each for each in active if each[1] in ("commit", "replacecommit")}
        assert wanted <= found, case
        assert len(found) <= open_in(case.storage).services.archive(**SETTINGS).plan().keep_max, case
    record_property("interruptions", cases)


@pytest.mark.parametrize("mode", INTERRUPTION_MODES, ids=lambda mode: mode.name)
def test_history_survives_interruptions_over_many_runs(mode):
    """D-17, layout 2: files are merged level by level, obsolete ones removed, whenever a run is interrupted."""

    def grown() -> MemoryStorage:
        builder = builder_of(2)
        archive(builder.storage)
        for number in range(8, 11):
            builder.commit(at(3 * number), {"eu": ["a"], "us": ["b"]})
        return builder.storage

    for case in interruptions(grown, [mode]):
        case.run(archive)
        builder = TableBuilder(2)
        builder.storage = case.storage
        for number in range(11, 20):
            builder.commit(at(3 * number), {"eu": ["a"], "us": ["b"]})
            archive(case.storage)
        active, archived = history_of(case.storage)
        writes = sorted(time for time, action in {*active, *archived} if action == "commit")
        assert writes == [at(3 * number) for number in range(1, 20)], case
        names = [path.rpartition("/")[2] for path in case.storage.files() if "/history/" in path]
        assert sum(name.startswith("manifest_") for name in names) <= 6, (case, names)
        assert sum(name.endswith(".parquet") for name in names) <= 14, (case, names)


def test_merging_archive_files_survives_every_interruption(record_property):
    """Layout 1: whatever stops it, the archive tells the same, and two more runs leave one file and no plan."""
    merging = {"hoodie.archive.merge.enable": True, "hoodie.archive.merge.files.batch.size": 3}

    def two_files_and_more_to_come() -> MemoryStorage:
        builder = builder_of(1)
        for number in range(8, 12):
            archive(builder.storage)
            builder.commit(at(3 * number), {"eu": ["a"]})
        for number in (12, 13):
            builder.commit(at(3 * number), {"eu": ["a"]})
        assert len(archive_files(builder.storage)) == 2
        return builder.storage

    def merge(storage) -> object:
        return Table(storage, settings=merging, clock=TableBuilder().clock).archive(**SETTINGS)

    everything = set().union(*map(set, history_of(two_files_and_more_to_come())))
    calm = two_files_and_more_to_come()
    assert merge(calm).merges == 3
    cases = 0
    for cases, case in enumerate(interruptions(two_files_and_more_to_come), 1):  # noqa: B007 - reported below
        case.run(merge)
        active, archived = history_of(case.storage)
        assert everything == {*active, *archived}, case
        for _ in range(2):
            merge(case.storage)
            active, archived = history_of(case.storage)
            assert everything == {*active, *archived}, case
            assert len(archived) == len(set(archived)), case
            assert not [path for path in case.storage.files() if path.endswith("mergeArchivePlan")], case
        assert len(archive_files(case.storage)) <= 3, case
    record_property("interruptions", cases)


def archive_files(storage: MemoryStorage) -> list[str]:
    return [path for path in storage.files() if ".commits_.archive." in path]


@pytest.mark.parametrize("layout", [1, 2])
def test_damaged_commit_leaves_no_hole(layout):
    """Layout 1 must decode what it archives: a damaged clean stays alone, a damaged commit with all behind it."""
    builder = builder_of(layout)
    path = next(p for p in builder.storage.files() if p.endswith(".commit") and f"/{at(6)}" in p)
    builder.put(path, b"garbage")
    archive(builder.storage)
    active = [i.requested_time for i in builder.table().timeline.completed("commit")]
    if layout == 1:
        assert active == [at(3 * number) for number in range(2, 8)]
    else:
        assert active == [at(18), at(21)]


def test_interrupted_history_that_misses_rows_is_completed():
    """An instant that became due between two tries under one file name is written into a file of its own."""
    builder = builder_of(2)
    late = at(4)

    def interrupted_once():
        for case in interruptions(builder.storage.copy, INTERRUPTION_MODES[:1]):
            stopped = case.run(archive)
            version = ".hoodie/timeline/history/_version_"
            if stopped and version in case.storage.files():
                return case.storage
        return None

    builder.storage = interrupted_once()
    assert builder.storage is not None
    builder.cleaned(late, earliest="", last_commit=at(3))
    archive(builder.storage)
    _, archived = history_of(builder.storage)
    assert (late, "clean") in archived
    assert builder.table().timeline.find(late, Action.CLEAN) is None


def test_damaged_manifest_stops_archival_before_anything_goes():
    """On doubt nothing is deleted."""
    builder = builder_of(2)
    archive(builder.storage)
    for number in range(8, 12):
        builder.commit(at(3 * number), {"eu": ["a"]})
    manifest = max(path for path in builder.storage.files() if "/manifest_" in path)
    builder.put(manifest, b"garbage")
    before = builder.storage.files()
    with pytest.raises(CorruptMetadata):
        archive(builder.storage)
    assert before == builder.storage.files()
