"""
What `Table.check` says where services together have lost rows: each damaged state is made as Apache Hudi makes it.

Our services refuse these sequences; so deletions and completed instants are written by hand, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from hudi_py.formats import records_codec as codec
from hudi_py.model import records
from hudi_py.model.files import parse_data_file
from hudi_py.model.instant import State
from hudi_py.services.check.findings import Severity
from hudi_py.services.recovery.finding import Problem
from hudi_py.table import Table
from support.tables import SYNC, TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def built(layout: int, commits: int, group: str = "a") -> TableBuilder:
    """So many commits of one group; commit *n* writes its *n*-th version."""
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"eu": [group]})
    return builder


def plan_clean(builder: TableBuilder, time: str, files: Iterable[str]) -> None:
    """A requested clean that is to delete these files of ``eu``."""
    infos = tuple(records.CleanFileInfo(f"{builder.storage.root}/eu/{name}") for name in files)
    plan = records.CleanerPlan(policy="KEEP_LATEST_FILE_VERSIONS", files_to_delete={"eu": infos})
    builder.instant(time, "clean", State.REQUESTED, codec.encode_cleaner_plan(plan, SYNC))


def carry_out_clean(
    builder: TableBuilder,
    time: str,
    files: Iterable[str],
    *,
    completed: bool = True,
    earliest: str = "",
    extra: Mapping[str, str] | None = None,
) -> None:
    """As Apache Hudi does, whatever has happened since the clean was planned."""
    names = tuple(files)
    builder.instant(time, "clean", State.INFLIGHT)
    for name in names:
        assert builder.storage.delete(f"eu/{name}")
    metadata = records.CleanMetadata(
        start_clean_time=time,
        time_taken_ms=1,
        total_files_deleted=len(names),
        earliest_commit_to_retain=earliest,
        last_completed_commit_timestamp=time,
        extra_metadata=extra or {},
        partitions={
            "eu": records.CleanPartitionMetadata(
                partition_path="eu",
                policy="KEEP_LATEST_FILE_VERSIONS",
                delete_path_patterns=names,
                success_delete_files=names,
            )
        },
    )
    if completed:
        builder.instant(time, "clean", State.COMPLETED, codec.encode_clean_metadata(metadata, SYNC))


def take_back(builder: TableBuilder, time: str, target: str, action: str = "commit") -> None:
    """The rollback of a completed write, as Apache Hudi completes it: nobody asks what is left below."""
    gone = []
    for path in list(builder.storage.files()):
        name = path.rpartition("/")[2]
        parsed = parse_data_file(name)
        if parsed is not None and parsed.instant_time == target:
            builder.storage.delete(path)
            gone.append(f"{builder.storage.root}/{path}")
        elif path.startswith(f"{builder.folder}/{target}") and ".savepoint" not in path:
            builder.storage.delete(path)
    info = records.InstantInfo(target, action)
    metadata = records.RollbackMetadata(
        start_rollback_time=time,
        time_taken_ms=1,
        total_files_deleted=len(gone),
        commits_rollback=(target,),
        partitions={"eu": records.RollbackPartitionMetadata(partition_path="eu", success_delete_files=tuple(gone))},
        instants_rollback=(info,),
    )
    plan = records.RollbackPlan(instant_to_rollback=info)
    builder.instant(time, "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))
    builder.instant(time, "rollback", State.INFLIGHT)
    builder.instant(time, "rollback", State.COMPLETED, codec.encode_rollback_metadata(metadata, SYNC))


def errors(builder: TableBuilder) -> set[tuple[str, str]]:
    """Code and place of what is worse than news."""
    found = Table(builder.storage, clock=builder.clock).check()
    return {(each.code, each.where) for each in found if each.severity is not Severity.INFO}


def assert_lost(builder: TableBuilder, copies: Mapping[str, bytes], *names: str) -> None:
    """Found, named by recover, and the way out works: the files from a copy of the table make it whole."""
    assert {("file-needed-again", f"eu/{name}") for name in names} == errors(builder)
    outcomes = Table(builder.storage, clock=builder.clock).recover()
    assert {
        path for each in outcomes if each.finding.problem is Problem.CONTRADICTION for path in each.finding.paths
    } == {f"eu/{name}" for name in names}
    for name in names:
        builder.put(f"eu/{name}", copies[f"eu/{name}"])
    assert set() == errors(builder)


# --- liveness: what was right when it was planned -----------------------------------------------------------------
@LAYOUTS
@pytest.mark.parametrize("order", ["planned, rolled back, carried out", "carried out, rolled back", "inflight"])
def test_a_clean_of_older_slices_whose_successors_are_rolled_back(layout, order):
    """The older slice is the latest again and gone, in whatever order it came to that."""
    builder = built(layout, 3)
    copies = dict(builder.storage.copy().files())
    old = [builder.base_name("a", at(1)), builder.base_name("a", at(2))]
    plan_clean(builder, at(4), old)
    if order == "carried out, rolled back":
        carry_out_clean(builder, at(4), old)
    take_back(builder, at(5), at(3))
    if order != "carried out, rolled back":
        carry_out_clean(builder, at(4), old, completed=order != "inflight")
    if order == "inflight":  # pending it is news; that it deletes what is needed is not
        found = errors(builder)
        assert ("file-needed-again", f"eu/{old[1]}") in found
        return
    assert_lost(builder, copies, old[1])


@LAYOUTS
def test_a_replaced_group_that_lives_again(layout):
    """Its files were cleaned, and then the replacecommit that had replaced it was rolled back."""
    builder = built(layout, 1, "b")
    copies = dict(builder.storage.copy().files())
    builder.commit(at(2), {"eu": ["c"]}, replaced={"eu": ["b"]})
    plan_clean(builder, at(3), [builder.base_name("b", at(1))])
    carry_out_clean(builder, at(3), [builder.base_name("b", at(1))])
    assert set() == errors(builder)
    take_back(builder, at(4), at(2), "replacecommit")
    assert_lost(builder, copies, builder.base_name("b", at(1)))


@LAYOUTS
def test_a_slice_that_falls_back_to_what_a_savepoint_holds(layout):
    """Some older slice is there; but the commits in between are completed, and theirs are gone."""
    builder = built(layout, 4)
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    copies = dict(builder.storage.copy().files())
    between = [builder.base_name("a", at(2)), builder.base_name("a", at(3))]
    plan_clean(builder, at(5), between)
    carry_out_clean(builder, at(5), between)
    assert set() == errors(builder)
    take_back(builder, at(6), at(4))
    assert_lost(builder, copies, between[1])


@LAYOUTS
def test_going_back_to_a_savepoint_is_a_way_out_too(layout):
    """Where a savepoint reaches behind what is lost, a restore to it leaves a table that is whole."""
    builder = built(layout, 4)
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    between = [builder.base_name("a", at(2)), builder.base_name("a", at(3))]
    plan_clean(builder, at(5), between)
    carry_out_clean(builder, at(5), between)
    take_back(builder, at(6), at(4))
    Table(builder.storage, clock=builder.clock).restore(at(1))
    assert set() == errors(builder)


@LAYOUTS
def test_rows_of_archived_commits(layout):
    """No active commit names the file any more: the archive tells of its commit, and the clean that it went."""
    builder = built(layout, 1, "b")
    for number in range(2, 8):
        builder.commit(at(number), {"eu": ["a"]})
    table = Table(builder.storage, clock=builder.clock, settings={"hoodie.clean.commits.retained": 2})
    assert table.archive(keep_min_commits=3, keep_max_commits=4)
    assert at(1) not in {each.requested_time for each in Table(builder.storage).timeline}
    copies = dict(builder.storage.copy().files())
    builder.commit(at(8), {"eu": ["c"]}, replaced={"eu": ["b"]})
    plan_clean(builder, at(9), [builder.base_name("b", at(1))])
    carry_out_clean(builder, at(9), [builder.base_name("b", at(1))])
    assert set() == errors(builder)
    take_back(builder, at(10), at(8), "replacecommit")
    assert_lost(builder, copies, builder.base_name("b", at(1)))


# --- savepoints ---------------------------------------------------------------------------------------------------
@LAYOUTS
def test_a_restore_past_a_newer_savepoint(layout):
    """What the newer one holds is deleted, and it stays listed."""
    builder = built(layout, 3)
    for number in (1, 3):
        builder.savepoint(at(number), {"eu": [builder.base_name("a", at(number))]})
    for number, target in ((4, 3), (5, 2)):
        take_back(builder, at(number), at(target))
    codes = {code for code, _ in errors(builder)}
    assert codes == {"savepoint-commit-missing", "savepoint-file-missing"}
    Table(builder.storage, clock=builder.clock).delete_savepoint(at(3))
    assert set() == errors(builder)


@LAYOUTS
def test_a_savepoint_that_was_made_beside_a_clean(layout):
    """It holds what the clean had left, so what it lacks is told by the commits."""
    builder = built(layout, 2)
    builder.commit(at(3), {"eu": ["b"]})
    builder.commit(at(4), {"eu": ["a"]})
    name = builder.base_name("a", at(2))
    clean_up_to(builder, at(5), [name], earliest="")
    assert set() == errors(builder)
    builder.savepoint(at(3), {"eu": [builder.base_name("b", at(3))]})
    assert {("savepoint-file-missing", f"eu/{name}")} == errors(builder)
    Table(builder.storage, clock=builder.clock).delete_savepoint(at(3))
    assert set() == errors(builder)


# --- nothing is lost ----------------------------------------------------------------------------------------------
@LAYOUTS
def test_files_that_nobody_needs_are_not_missed(layout):
    """Superseded files that a clean took stay accounted for, after a later commit, a rollback and a restore."""
    builder = built(layout, 4)
    builder.savepoint(at(4), {"eu": [builder.base_name("a", at(4))]})
    old = [builder.base_name("a", at(number)) for number in (1, 2, 3)]
    plan_clean(builder, at(5), old)
    carry_out_clean(builder, at(5), old)
    builder.commit(at(6), {"eu": ["a"]})
    builder.commit(at(7), {"eu": ["a", "b"]})
    assert set() == errors(builder)
    Table(builder.storage, clock=builder.clock).rollback(at(7))
    assert set() == errors(builder)
    Table(builder.storage, clock=builder.clock).restore(at(4))
    assert set() == errors(builder)


@LAYOUTS
def test_where_a_commit_is_damaged_nothing_is_concluded(layout):
    """It may have superseded anything: that it is damaged is the finding."""
    builder = built(layout, 3)
    old = [builder.base_name("a", at(1)), builder.base_name("a", at(2))]
    plan_clean(builder, at(4), old)
    carry_out_clean(builder, at(4), old)
    path = next(path for path in builder.storage.files() if path.startswith(f"{builder.folder}/{at(3)}") and
                path.endswith(".commit"))  # fmt: skip
    builder.put(path, b"torn")
    assert {("instant-unreadable", path)} == errors(builder)


@LAYOUTS
def test_a_table_whose_commits_are_all_archived(layout):
    """Files that no active commit is behind are out of sight, here and in Apache Hudi; the next commit shows them."""
    builder = TableBuilder(layout)
    for number in range(1, 8):
        builder.commit(at(number), {"eu": [f"g{number}"]})
    assert Table(builder.storage, clock=builder.clock).archive(keep_min_commits=3, keep_max_commits=4)
    for number in (7, 6, 5):
        assert set() == errors(builder)
        take_back(builder, at(13 - number + 7), at(number))
    assert () == Table(builder.storage).base_files()
    assert {("commits-all-archived", builder.folder)} == errors(builder)
    builder.commit(at(20), {})
    assert set() == errors(builder)
    assert {"g1", "g2", "g3", "g4"} == {file.file_id for _, file in Table(builder.storage).base_files()}


# --- times that no clean gave up ----------------------------------------------------------------------------------
def clean_up_to(builder: TableBuilder, time: str, names: Iterable[str], *, earliest: str, **extra: str) -> None:
    """A completed clean that deleted these files of ``eu`` and recorded that from *earliest* on all is whole."""
    plan_clean(builder, time, names)
    carry_out_clean(builder, time, names, earliest=earliest, extra=extra)


@LAYOUTS
def test_a_time_within_the_window_of_a_clean(layout):
    """What was deleted behind the window is accounted for; what a time within it needs is an error."""
    builder = built(layout, 4)
    versions = [builder.base_name("a", at(number)) for number in (1, 2)]
    clean_up_to(builder, at(5), versions[:1], earliest=at(2))
    assert set() == errors(builder)
    clean_up_to(builder, at(6), versions[1:], earliest=at(2))
    assert {("snapshot-file-missing", f"eu/{versions[1]}")} == errors(builder)


@LAYOUTS
def test_a_replaced_group_within_the_window(layout):
    """The table as of the time before the replacecommit needs it."""
    builder = built(layout, 1, "b")
    builder.commit(at(2), {"eu": ["c"]}, replaced={"eu": ["b"]})
    builder.commit(at(3), {"eu": ["c"]})
    clean_up_to(builder, at(4), [builder.base_name("b", at(1))], earliest=at(2))
    assert set() == errors(builder)
    clean_up_to(builder, at(5), [], earliest=at(3))
    assert set() == errors(builder)
    other = built(layout, 1, "b")
    other.commit(at(2), {"eu": ["c"]}, replaced={"eu": ["b"]})
    clean_up_to(other, at(4), [other.base_name("b", at(1))], earliest=at(1))
    assert {("snapshot-file-missing", f"eu/{other.base_name('b', at(1))}")} == errors(other)


@LAYOUTS
def test_a_snapshot_that_a_ladder_keeps(layout):
    """Before the window it counts the snapshots that the clean says it kept, and no others."""
    builder = built(layout, 5)
    holes = {"hudi_py.window": at(5), "hudi_py.snapshots": at(2)}
    names = [builder.base_name("a", at(number)) for number in (1, 3)]
    clean_up_to(builder, at(6), names, earliest=at(2), **holes)
    assert set() == errors(builder)
    clean_up_to(builder, at(7), [builder.base_name("a", at(2))], earliest=at(2), **holes)
    assert {("snapshot-file-missing", f"eu/{builder.base_name('a', at(2))}")} == errors(builder)
