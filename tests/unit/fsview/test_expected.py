"""What the latest slices must consist of, by commits made for the purpose."""

from __future__ import annotations

import pytest

from hudi_py.fsview.expected import Written, expected_slices, is_replaced_since, mismatches, removals
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    CleanPartitionMetadata,
    CommitMetadata,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPartitionMetadata,
    WriteStat,
)
from hudi_py.versions.format import LogNaming
from support.tables import at, done

NAMING = {1: LogNaming.BY_SLICE, 2: LogNaming.BY_WRITE}


def completed(time: str, action: Action = Action.COMMIT) -> Instant:
    return Instant(time, action, State.COMPLETED, done(time))


def base(group: str, time: str, size: int = 10) -> WriteStat:
    return WriteStat(file_id=group, path=f"eu/{group}_0-1-0_{time}.parquet", file_size_in_bytes=size)


def log(group: str, time: str, version: int = 1, size: int = 10) -> WriteStat:
    return WriteStat(file_id=group, path=f"eu/.{group}_{time}.log.{version}_0-1-0", file_size_in_bytes=size)


def commit(time: str, *stats: WriteStat, replaced: tuple[str, ...] | None = None) -> tuple[Instant, CommitMetadata]:
    ids = None if replaced is None else {"eu": replaced}
    return completed(time), CommitMetadata(partition_to_write_stats={"eu": stats}, partition_to_replace_file_ids=ids)


def names(layout: int, *commits: tuple[Instant, CommitMetadata]) -> dict[str, list[str]]:
    slices = expected_slices(commits, NAMING[layout])
    return {group: [file.name for file in each.files] for (_, group), each in slices.items()}


def test_the_newest_base_file_is_needed_and_a_replaced_group_is_not():
    """Of a group only the newest base file, and nothing of a group that was replaced."""
    history = [commit(at(1), base("a", at(1)), base("b", at(1))), commit(at(2), base("a", at(2)))]
    assert names(2, *history) == {"a": [f"a_0-1-0_{at(2)}.parquet"], "b": [f"b_0-1-0_{at(1)}.parquet"]}
    assert names(2, *history, commit(at(3), replaced=("a",))) == {"b": [f"b_0-1-0_{at(1)}.parquet"]}


@pytest.mark.parametrize("layout", [1, 2])
def test_log_files_below_the_newest_base_file_are_not_needed(layout):
    """After a compaction only the log files on top of its base file are needed, whichever way names tell the slice."""
    before, after = (at(1), at(4)) if layout == 1 else (at(2), at(5))
    history = [
        commit(at(1), base("a", at(1))),
        commit(at(2), log("a", before)),
        commit(at(4), base("a", at(4))),
        commit(at(5), log("a", after)),
    ]
    assert names(layout, *history) == {"a": [f"a_0-1-0_{at(4)}.parquet", f".a_{after}.log.1_0-1-0"]}


def test_a_log_file_that_completes_after_a_compaction_was_requested_lies_on_top_of_it():
    """A compaction that was requested while a delta commit ran has not read its log file (rule Z-4)."""
    running = Instant(at(3), Action.DELTA_COMMIT, State.COMPLETED, done(at(4)))
    stats = CommitMetadata(partition_to_write_stats={"eu": (log("a", at(3)),)})
    assert names(2, (running, stats), commit(at(4), base("a", at(4)))) == {
        "a": [f"a_0-1-0_{at(4)}.parquet", f".a_{at(3)}.log.1_0-1-0"]
    }


def test_a_log_file_must_be_as_large_as_the_largest_that_was_recorded():
    """In layout 1 delta commits append to one log file; it may be larger, for rollbacks append too."""
    history = [commit(at(1), log("a", at(0), size=10)), commit(at(2), log("a", at(0), size=30))]
    slices = expected_slices(history, LogNaming.BY_SLICE).values()
    name = f".a_{at(0)}.log.1_0-1-0"
    assert [found.size_bytes for found in mismatches(slices, {"eu": {name: 29}})] == [29]
    assert mismatches(slices, {"eu": {name: 31}}) == mismatches(slices, {"eu": {name: None}}) == []


def test_the_instants_that_removed_a_file_are_told():
    """Cleans, rollbacks and restores name what they removed, pending cleans what they are about to."""
    undone = RollbackMetadata(
        start_rollback_time=at(5), time_taken_ms=1, total_files_deleted=1, commits_rollback=(at(1),),
        partitions={"eu": RollbackPartitionMetadata(partition_path="eu", success_delete_files=("/lake/t/eu/b",))},
        instants_rollback=(),
    )  # fmt: skip
    restored = RestoreMetadata(
        start_restore_time=at(6), time_taken_ms=1, instants_to_rollback=(), rollbacks={at(1): (undone,)},
        restore_instant_info=(),
    )  # fmt: skip
    clean = CleanMetadata(
        start_clean_time=at(3), time_taken_ms=1, total_files_deleted=1,
        partitions={"eu": CleanPartitionMetadata(partition_path="eu", policy="x", delete_path_patterns=("a",))},
    )  # fmt: skip
    plan = CleanerPlan(policy="x", files_to_delete={"eu": (CleanFileInfo("/lake/t/eu/a"),)})
    at_clean, at_plan = completed(at(3), Action.CLEAN), Instant(at(4), Action.CLEAN, State.REQUESTED)
    at_rollback, at_restore = completed(at(5), Action.ROLLBACK), completed(at(6), Action.RESTORE)
    contents = [(at_clean, clean), (at_plan, plan), (at_rollback, undone), (at_restore, restored)]
    assert removals(contents) == {("eu", "a"): [at_clean, at_plan], ("eu", "b"): [at_rollback, at_restore]}


def test_only_a_clean_after_an_archived_replacement_accounts_for_a_missing_file():
    """A clean without a replacement took what is the latest again; a replacement before the commit is none."""
    file = Written("eu", "a", "g", at(2), 10, completed(at(2)), is_log=False)
    clean = completed(at(5), Action.CLEAN)
    assert is_replaced_since(file, [clean], {("eu", "g"): at(4)})
    assert not is_replaced_since(file, [clean], {})
    assert not is_replaced_since(file, [clean], {("eu", "g"): at(1)})
    assert not is_replaced_since(file, [clean], {("eu", "g"): at(6)})
    assert not is_replaced_since(file, [], {("eu", "g"): at(4)})
