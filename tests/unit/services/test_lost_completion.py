"""A write whose completed file is lost is told by what later instants recorded, and never undone by itself."""

from __future__ import annotations

import shutil

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, State
from hudi_py.model.records import InstantInfo, RollbackPlan
from hudi_py.services.recovery.finding import Step
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.writing.transaction import begin_write
from support import fixtures
from support.tables import SYNC, TableBuilder, at, on_disk

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def without_completion(builder: TableBuilder, time: str) -> Table:
    """Delete the completed file of the commit of that time, as by hand."""
    found = builder.table().timeline.find(time)
    assert found is not None
    assert builder.storage.delete(f"{builder.folder}/{found.file_name}")
    return builder.table()


def cleaned_table(layout: int) -> TableBuilder:
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a"]})
    builder.cleaned(at(4), earliest=at(3), last_commit=at(3))
    return builder


def codes(table: Table) -> set[str]:
    return {each.code for each in table.check()}


@LAYOUTS
def test_a_commit_that_a_clean_saw_completed_is_missed_by_everybody(layout):
    """Views, plans and savepoints are refused, check names it, and nothing that runs by itself takes the write back."""
    table = without_completion(cleaned_table(layout), at(3))
    assert "instant-completion-lost" in codes(table)
    uses = {
        "rows": lambda t: t.base_files(),
        "files": lambda t: t.file_slices("eu"),
        "overview": lambda t: t.overview(),
        "plan": lambda t: t.plan_clean(commits_retained=1),
        "clean": lambda t: t.clean(commits_retained=1),
        "savepoint": lambda t: t.create_savepoint(at(2)),
    }
    before = table.storage.files()
    for use in uses.values():
        with pytest.raises(CorruptMetadata, match=rf"{at(3)}.*was completed once.*hudi-py rollback TABLE {at(3)}"):
            use(table.refresh())
    found = (each.finding for each in table.recover())
    steps = {each.instant.requested_time: each.step for each in found if each.instant is not None}
    assert steps[at(3)] is Step.DECIDE
    assert before == table.storage.files()


@LAYOUTS
def test_by_hand_it_is_rolled_back_and_all_is_well(layout):
    """The way out that the message names works."""
    table = without_completion(cleaned_table(layout), at(3))
    table.rollback(at(3))
    assert [base.instant_time for _, base in table.refresh().base_files()] == [at(2)]
    assert "instant-completion-lost" not in codes(table)


@LAYOUTS
def test_a_savepoint_and_a_commit_on_top_prove_it_too(layout):
    """A savepoint is of a completed commit, and a commit that merges into a base file of one."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"]})
    builder.savepoint(at(2), {"eu": [builder.base_name("a", at(2))]})
    table = without_completion(builder, at(2))
    assert "instant-completion-lost" in codes(table)
    with pytest.raises(CorruptMetadata, match="savepoint"):
        table.base_files()


@LAYOUTS
def test_a_write_that_nobody_saw_completed_has_failed(layout):
    """Inflight, and what came later names other commits: it is rolled back as ever."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"]}, state=State.INFLIGHT)
    builder.cleaned(at(4), earliest=at(1), last_commit=at(1))
    table = builder.table()
    assert "instant-completion-lost" not in codes(table)
    assert [base.instant_time for _, base in table.base_files()] == [at(1)]


@LAYOUTS
@pytest.mark.parametrize("is_readable", [True, False])
def test_a_rollback_accounts_for_it(layout, is_readable):
    """A rollback takes the completed file away first; one that cannot be read may have."""
    builder = cleaned_table(layout)
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(3), "commit"), rollback_requests=())
    content = codec.encode_rollback_plan(plan, sync=SYNC) if is_readable else b"torn"
    builder.instant(at(5), "rollback", State.REQUESTED, content)
    builder.instant(at(5), "rollback", State.INFLIGHT)
    table = without_completion(builder, at(3))
    assert "instant-completion-lost" not in codes(table)
    assert [base.instant_time for _, base in table.base_files()] == [at(2)]


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1"])
def test_a_lost_commit_of_apache_hudi(version, tmp_path):
    """The one that a clean saw is missed, and the newest too: the metadata table has it, and no markers are left."""
    seen, newest = (fixtures.unpack(f"cow_cleaned-{version}", tmp_path / each) for each in ("seen", "newest"))
    table = Table(LocalStorage(str(seen)))
    clean = table.contents.clean(table.timeline.completed(Action.CLEAN)[-1])
    lost = table.timeline.find(clean.last_completed_commit_timestamp)
    last = table.timeline.commits.completed()[-1]
    assert lost.requested_time < last.requested_time
    for path, instant in ((seen, lost), (newest, last)):
        for file in path.glob(f".hoodie/**/*{instant.file_name}*"):
            if "metadata" not in file.parts:
                file.unlink()  # its checksum too
    for settings in ({}, {"hoodie.metadata.enable": "false"}):
        damaged = Table(LocalStorage(str(seen)), settings=settings)
        assert "instant-completion-lost" in codes(damaged)
        with pytest.raises(CorruptMetadata, match="was completed once"):
            damaged.base_files()
    for settings in ({}, {"hoodie.metadata.enable": "false"}):
        damaged = Table(LocalStorage(str(newest)), settings=settings)
        with pytest.raises(CorruptMetadata, match="markers were deleted"):
            damaged.base_files()
    damaged = Table(LocalStorage(str(newest)))
    assert "instant-completion-lost" in codes(damaged)
    assert Step.DECIDE in {each.finding.step for each in damaged.recover(dry_run=True)}
    for policy in ("EAGER", "LAZY"):
        for metadata in ("true", "false"):  # to write without it drops the witness
            more = {"hoodie.metadata.enable": metadata, "hoodie.clean.failed.writes.policy": policy}
            writer = Table(LocalStorage(str(newest)), settings=more)
            with pytest.raises(CorruptMetadata, match="markers were deleted"):
                begin_write(writer.contents, writer.config, writer.settings, writer.services.metadata_table)
    assert damaged.refresh().timeline.find(last.requested_time).is_pending


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_a_checksum_that_is_left_proves_it(version, tmp_path):
    """Hadoop creates it after the file and deletes it before the file; nobody reads, writes or recovers past it."""
    path = fixtures.unpack(f"cow_partitioned-{version}", tmp_path)
    settings = {"hoodie.metadata.enable": "false"}
    table = Table(LocalStorage(str(path)), settings=settings)
    last = table.timeline.commits.completed()[-1]
    file = path / table.contents.store.path(last)
    file.unlink()
    checksum = file.parent / f".{file.name}.crc"
    assert checksum.exists()
    shutil.rmtree(path / ".hoodie/metadata")
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text("".join(x for x in properties.read_text().splitlines(True) if "metadata.partitions" not in x))
    (path / ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)
    damaged = Table(LocalStorage(str(path)), settings=settings)
    for use in (damaged.base_files, damaged.rollback_failed_writes, lambda: begun(damaged)):
        with pytest.raises(CorruptMetadata, match=f"{last.requested_time}.*the checksum of its completed file"):
            use()
    assert "instant-completion-lost" in codes(damaged)
    assert step_of(damaged, last.requested_time) is Step.DECIDE
    checksum.unlink()
    damaged.refresh().base_files()
    assert {"instant-outcome-unknown"} == {each for each in codes(damaged) if each.startswith("instant-")}


def begun(table: Table) -> object:
    return begin_write(table.contents, table.config, table.settings, table.services.metadata_table)


def step_of(table: Table, time: str) -> Step:
    """What a dry run of recover proposes about the write of that time."""
    found = (each.finding for each in table.recover(dry_run=True))
    return next(each.step for each in found if each.time == time)


@LAYOUTS
def test_the_checksum_of_what_was_rolled_back_proves_nothing(layout, tmp_path):
    """Our own deletion takes the file first: interrupted, it leaves a checksum, and the rollback accounts for it."""
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"eu": ["a"]})
    folder, _, name = builder.table().contents.store.path(builder.table().timeline.find(at(2))).rpartition("/")
    without_completion(builder, at(2))
    builder.put(f"{folder}/.{name}.crc", b"crc")
    assert "instant-completion-lost" in codes(on_disk(builder, tmp_path / "lost"))
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(2), "commit"), rollback_requests=())
    builder.instant(at(3), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, sync=SYNC))
    builder.instant(at(3), "rollback", State.INFLIGHT)
    table = on_disk(builder, tmp_path / "undone")
    assert not {"instant-completion-lost", "instant-outcome-unknown"} & codes(table)
    assert [base.instant_time for _, base in table.base_files()] == [at(1)]


@LAYOUTS
def test_files_without_markers_are_named_and_refuse_nothing(layout, caplog):
    """
    A lost completed file, or markers that somebody removed: check and recover leave that to a person, and a write goes
    on, as Apache Hudi's does.
    """
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"eu": ["a"]})
    table = without_completion(builder, at(2))
    before = builder.storage.files()
    (found,) = (each for each in table.check() if each.code == "instant-outcome-unknown")
    assert at(2) in found.where
    assert step_of(table, at(2)) is Step.DECIDE
    table.recover()
    assert builder.storage.files() == before
    assert [base.instant_time for _, base in table.refresh().base_files()] == [at(1)]
    table.rollback_failed_writes()
    assert [at(2) in each.getMessage() for each in caplog.records if "rollback.unmarked" in each.getMessage()] == [True]
    assert table.refresh().timeline.pending() == ()


@LAYOUTS
@pytest.mark.parametrize("left", ["markers", "no file"])
def test_a_write_with_markers_or_without_files_has_failed(layout, left):
    """That is how a write looks that is under way, or died: markers come before files."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"]}, state=State.INFLIGHT)
    if left == "no file":
        builder.storage.delete(f"eu/{builder.base_name('a', at(2))}")
        builder.storage.delete_folder(f".hoodie/.temp/{at(2)}")
    table = builder.table()
    assert not {"instant-completion-lost", "instant-outcome-unknown"} & codes(table)
    assert step_of(table, at(2)) is Step.ROLL_BACK


def test_logs_on_the_slice_of_a_pending_compaction_are_not_its_own():
    """In layout 1 they bear the time of the compaction, which has written nothing yet."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.compaction(at(2), [("eu", "a", at(1), [])])
    builder.instant(at(2), "compaction", State.INFLIGHT)
    builder.log_files(at(3), [("eu", "a", at(2))])
    assert "instant-outcome-unknown" not in codes(builder.table())
