"""The metadata table of a table that only we write to stays small, and stays true."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.clean import CleanPolicy
from hudi_py.config.settings import Settings
from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import write_delta_commit
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.check.findings import Severity
from hudi_py.services.upkeep.service import UpkeepService, upkeep_archive_config, upkeep_clean_config
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from hudi_py.timeline.archive import load_archived
from hudi_py.writing.transaction import begin_write
from support.crash_points import interruptions
from support.metadata_tables import PROPERTIES, begin, config_of, end, table_of, timeline_of, write
from support.tables import TableBuilder

COMMITS = 200
CLEANS = 100
CLEANS_KEPT = 25  # at least twenty commits stay on the metadata table's timeline, whatever is asked for
LOOK_CALLS_MAX = 5  # the properties of the table and of the metadata table, its timeline
FILES_MAX = 50  # the slices of twenty commits, and those of the one before
PARTITIONS = ("eu", "us")
SETTINGS = {"metadata_enable": True, "keep_min_commits": 4, "keep_max_commits": 6}


def round_of(table, number):
    """What a writer does: commit, clean, archive."""
    write(table, PARTITIONS[number % len(PARTITIONS)])
    table.clean(commits_retained=2)
    table.archive()


def is_true(table):
    """No finding worse than news: the listing through the metadata table equals the folders."""
    return [] == [each for each in table.refresh().check() if each.severity is not Severity.INFO]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.slow
def test_hundreds_of_commits_leave_a_small_metadata_table(layout):
    """Files and instants of the metadata table are bounded, whatever the number of commits."""
    table = TableBuilder(layout).table(**SETTINGS)
    files, instants = [], []
    for number in range(COMMITS):
        round_of(table, number)
        metadata = MetadataTable(table.storage)
        files.append(len(metadata.storage.list("files")))
        instants.append(len(metadata.store.load().all_states))
    half, last = COMMITS // 2, COMMITS * 3 // 4
    assert max(files[last:]) <= max(files[:last])
    assert max(instants[last:]) <= max(instants[half:last])  # layout 1 keeps some cleans, counted by themselves
    assert is_true(table)
    timeline = metadata.store.load()
    assert timeline.completed(Action.CLEAN)
    archived = {i.requested_time for i in load_archived(metadata.storage, metadata.config)}
    assert len(archived) + len(timeline) > 2 * COMMITS  # a delta commit for each commit and each clean
    assert max(files) < FILES_MAX


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.slow
def test_cleans_alone_leave_a_small_metadata_table(layout):
    """Each clean adds to it, and nobody else may come by for long; its instants go with those of the table."""
    table = cleaned_in_steps(layout)
    for _ in range(3):
        write(table, groups=CLEANS)
    files = []
    while table.clean(commits_retained=1):
        table.refresh()
        files.append(len(MetadataTable(table.storage).storage.list("files")))
    assert len(files) == CLEANS
    half = len(files) // 2
    assert max(files[half:]) <= max(files[:half]) < FILES_MAX
    assert is_true(table)
    for _ in range(CLEANS_KEPT):
        write(table)
        table.archive(keep_min_commits=4, keep_max_commits=5)
    assert len(MetadataTable(table.storage).store.load()) < CLEANS
    assert is_true(table)


@pytest.mark.parametrize("layout", [1, 2])
def test_looking_after_it_costs_a_small_clean_next_to_nothing(layout):
    """A clean that finds nothing asks nothing more; where nothing is due, its timeline is listed and no folder."""
    table = cleaned_in_steps(layout)
    for _ in range(3):
        write(table, groups=3)
    more = []
    for _ in range(4):
        counts = []
        for looked_after in (False, True):
            storage = RecordingStorage(table.storage.copy() if not looked_after else table.storage)
            opened = Table(storage, settings=table.settings.as_dict(), clock=table.services.metadata_table.clock)
            if looked_after:
                opened.clean(commits_retained=1)
            else:
                opened.services.clean(opened.services.clean_config(commits_retained=1)).run()
                opened.refresh()
            counts.append(Counter(verb for verb, _ in storage.calls))
        more.append(counts[1] - counts[0])
    assert [each.total() for each in more[3:]] == [0]
    for each in more[:3]:
        assert each["list"] == 1
        assert each.total() <= LOOK_CALLS_MAX


@pytest.mark.slow
@pytest.mark.parametrize("layout", [1, 2])
def test_a_clean_beside_a_writer_leaves_the_metadata_table_to_it(layout):
    """Apache Hudi compacts and cleans there as part of a write."""
    table = cleaned_in_steps(layout)
    for _ in range(3):
        write(table, groups=20)
    begin_write(table.contents, table.config, table.settings, table.services.metadata_table)
    before = MetadataTable(table.storage).store.load()
    for _ in range(20):
        assert table.refresh().clean(commits_retained=1)
    after = MetadataTable(table.storage).store.load()
    new = [i.action for i in after if before.find(i.requested_time) is None]
    assert set(new) == {Action.DELTA_COMMIT}


@pytest.mark.slow
@pytest.mark.parametrize("layout", [1, 2])
def test_a_commit_can_be_taken_back_after_the_clean_that_follows_it(layout):
    """Hudi 0.15.0 and 1.0.2 roll back no commit that is older than a compaction of the metadata table."""
    table = TableBuilder(layout).table(**SETTINGS, metadata_compact_max_delta_commits=1)
    for number in range(12):
        write(table, PARTITIONS[number % len(PARTITIONS)])
        table.clean(commits_retained=1)
        last = table.refresh().timeline.completed("commit")[-1]
        compactions = MetadataTable(table.storage).store.load().completed(Action.COMMIT)
        assert all(each.requested_time < last.requested_time for each in compactions)
    assert compactions


@pytest.mark.parametrize("layout", [1, 2])
def test_what_cannot_be_tidied_up_takes_nothing_from_the_clean(layout, monkeypatch):
    """The clean is done; upkeep is tried again after the next one."""

    def fail(_):
        raise CorruptMetadata("damaged")

    table = cleaned_in_steps(layout)
    for _ in range(3):
        write(table)
    monkeypatch.setattr(UpkeepService, "run", fail)
    (done,) = table.clean(commits_retained=1)
    assert done.deleted_files
    assert not table.refresh().timeline.pending()


def cleaned_in_steps(layout):
    """A table of which each clean takes one file."""
    builder = TableBuilder(layout)
    settings = {"hoodie_py.clean.max.files": 1, "hoodie_py.clean.breakers": False, "hoodie.metadata.enable": True}
    return Table(builder.storage, settings=settings, clock=builder.clock)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.slow
def test_upkeep_survives_every_interruption(layout):
    """Whatever interrupts it, the listing is true, and the next rounds finish the work."""
    builder = TableBuilder(layout)
    settings = {**SETTINGS, "metadata_compact_max_delta_commits": 2, "keep_min_commits": 2, "keep_max_commits": 3}
    table = builder.table(**settings)
    number = 0
    while not _cleans_next(table):
        round_of(table, number)
        number += 1

    def fresh():
        return table.storage.copy()

    def opened(storage):
        builder.storage = storage
        return builder.table(**settings)

    for case in interruptions(fresh):
        case.run(lambda storage: opened(storage).services.upkeep().run())
        assert is_true(opened(case.storage)), case
        opened(case.storage).services.upkeep().run()
        assert is_true(opened(case.storage)), case
        metadata = MetadataTable(case.storage)
        assert not metadata.store.load().pending(), case
        round_of(opened(case.storage), number)
        assert is_true(opened(case.storage)), case


def _cleans_next(table):
    """Whether the next upkeep would clean: tried on a copy."""
    if not table.storage.list(METADATA_TABLE_FOLDER):
        return False
    copy = type(table)(
        table.storage.copy(), settings=table.settings.as_dict(), clock=table.services.metadata_table.clock
    )
    write(copy)
    before = MetadataTable(copy.storage).store.load().completed(Action.CLEAN)
    copy.services.upkeep().run()
    if before == MetadataTable(copy.storage).store.load().completed(Action.CLEAN):
        return False
    write(table)
    return True


def test_a_metadata_table_with_partitions_of_others_is_left_alone():
    """A compaction without them would let the archival of instants go past their blocks."""
    table = TableBuilder(2).table(**SETTINGS)
    for number in range(12):
        round_of(table, number)
    table.storage.replace(
        f"{METADATA_TABLE_FOLDER}/secondary_index_x/.hoodie_partition_metadata", b"partitionDepth=1\n"
    )
    files = table.storage.files()
    table.services.upkeep().run()
    assert files == table.storage.files()


def clean_and_look_after(storage, clock, number):
    """One recorded clean a minute later, and the upkeep after it."""
    clock.moment += timedelta(minutes=1)
    time = f"2098010101{number:02}00000"
    begin(storage, Action.CLEAN, time)
    changes = ListingChanges(deleted={"r0": [f"gone-0_0-0-0_{number}.parquet"]})
    write_delta_commit(MetadataTable(storage, clock), timeline_of(storage), time, changes)
    end(storage, Action.CLEAN, time)
    settings = Settings({"hoodie.metadata.compact.max.delta.commits": 3})
    UpkeepService(storage=storage, settings=settings, clock=clock).run()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0.2", "1.1.1"])
def test_cleans_alone_leave_statistics_small_and_unchanged(version):
    """A table of real Hudi: log files of all partitions are compacted, then cleaned; no statistic is lost."""
    storage, clock = table_of(f"cow_partitioned-{version}"), FixedClock(datetime(2098, 1, 1, tzinfo=timezone.utc))
    wanted, files = statistics_of_columns(storage), []
    for number in range(30):
        clean_and_look_after(storage, clock, number)
        metadata = MetadataTable(storage)
        files.append({name: len(metadata.storage.list(name)) for name in metadata.partitions()})
        assert wanted == statistics_of_columns(storage)
    assert (files[-1]["column_stats"], files[-1]["partition_stats"]) == (3, 2)  # base files, and that of the partition
    assert files[0]["column_stats"] > 2 * files[-1]["column_stats"]


@pytest.mark.slow
@pytest.mark.parametrize("dropped", ["column_stats", "partition_stats"])
@pytest.mark.parametrize("version", ["1.0.2", "1.1.1"])
def test_a_dropped_partition_is_missed_by_no_clean(version, dropped):
    """The metadata table's commits name it for as long as they are active; only the data table tells that it went."""
    storage, clock = table_of(f"cow_partitioned-{version}"), FixedClock(datetime(2098, 1, 1, tzinfo=timezone.utc))
    kept = [name for name in config_of(storage).metadata_partitions if name != dropped]
    storage.replace(PROPERTIES, re.sub(rb"(?m)^hoodie\.table\.metadata\.partitions=.*$",
        b"hoodie.table.metadata.partitions=" + ",".join(kept).encode(), storage.read(PROPERTIES)))  # fmt: skip
    for path in [path for path in storage.files() if path.startswith(f"{METADATA_TABLE_FOLDER}/{dropped}/")]:
        storage.delete(path)
    for number in range(30):
        clean_and_look_after(storage, clock, number)
    assert MetadataTable(storage).store.load().completed(Action.CLEAN)


def test_upkeep_that_fails_takes_nothing_from_an_archival(monkeypatch):
    """The instants are archived; the metadata table is looked after the next time."""

    def fail(_):
        raise CorruptMetadata("damaged")

    table = TableBuilder(2).table(**SETTINGS)
    for number in range(8):
        write(table, PARTITIONS[number % 2])
        table.clean(commits_retained=2)
    monkeypatch.setattr(UpkeepService, "run", fail)
    before = table.refresh().timeline.instants
    table.archive()
    assert len(table.timeline.instants) < len(before)


def statistics_of_columns(storage):
    found = []
    for partition in ("column_stats", "partition_stats"):
        with StatisticsReader(MetadataTable(storage), timeline_of(storage), partition=partition) as reader:
            found.append(dict(reader.scan()))
    return found


def test_the_settings_are_those_that_hudi_derives():
    """Twenty commits or a fifth more than the table's; one more instant on the timeline (A-4, by commits)."""
    settings = TableBuilder(2).table(clean_commits_retained=10).settings
    assert upkeep_clean_config(settings).commits_retained == 20
    settings = TableBuilder(2).table(clean_commits_retained=30, keep_min_commits=40, keep_max_commits=50).settings
    assert upkeep_clean_config(settings).commits_retained == 36
    config = upkeep_archive_config(settings)
    assert (config.keep_min, config.keep_max, config.delta_commits_kept) == (41, 51, 10)
    config = upkeep_archive_config(TableBuilder(2).table(keep_min_commits=2, keep_max_commits=3).settings)
    assert (config.keep_min, config.keep_max) == (21, 22)


def test_the_policy_is_that_of_the_data_table():
    """A-4: commits are truncated, versions and hours rounded up."""
    config = upkeep_clean_config(TableBuilder(2).table(clean_commits_retained=19).settings)
    assert (config.policy, config.commits_retained) == (CleanPolicy.KEEP_LATEST_COMMITS, 22)
    config = upkeep_clean_config(
        TableBuilder(2).table(clean_policy="KEEP_LATEST_FILE_VERSIONS", clean_fileversions_retained=3).settings
    )
    assert (config.policy, config.versions) == (CleanPolicy.KEEP_LATEST_FILE_VERSIONS, 4)
    config = upkeep_clean_config(
        TableBuilder(2).table(clean_policy="KEEP_LATEST_BY_HOURS", clean_hours_retained=24).settings
    )
    assert (config.policy, config.hours_retained) == (CleanPolicy.KEEP_LATEST_BY_HOURS, 29)
