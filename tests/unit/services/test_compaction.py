"""Rules of compaction plans that no recorded table shows, and what stands in the way of one."""

from datetime import date

import attrs
import pytest

import hudi_py
from hudi_py.config.compaction import CompactionConfig, compaction_config
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.instant import Action, State
from hudi_py.model.records import CompactionOperation
from hudi_py.services.compaction import service
from hudi_py.services.compaction.policy import choose
from hudi_py.timeline.fence import is_fenced
from hudi_py.timeline.store import TimelineStore
from support import writes

MOR = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.index.bloom.num_entries": 100}
SOON = MOR | {"hoodie.compact.inline.max.delta.commits": 2}


def operation(partition, file_id, *, log_bytes=1, logs=1, io=1):
    metrics = {"TOTAL_LOG_FILES_SIZE": float(log_bytes), "TOTAL_LOG_FILES": float(logs), "TOTAL_IO_MB": float(io)}
    return CompactionOperation(base_instant_time="1", file_id=file_id, partition_path=partition, metrics=metrics)


def chosen(operations, **config):
    found = choose(operations, CompactionConfig(**config), date(2024, 1, 10), takes_first=False)
    assert len(found.operations) + len(found.left) == len(operations)
    assert all(reason for _, reason in found.left)
    return [each.file_id for each in found.operations]


def table_with_logs(version):
    storage = writes.create_table(version, **MOR)
    for number in (1, 2):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": number}], **MOR)
    return storage


def test_the_limit_ends_a_plan_behind_the_operation_that_reaches_it():
    """The last one may overshoot (E-9); what is left out has a reason."""
    operations = [operation("p", "a", log_bytes=1, io=3), operation("p", "b", log_bytes=3, io=3)]
    assert chosen([*operations, operation("p", "c", log_bytes=2, io=3)], target_io_mb=4) == ["b", "c"]


def test_strategies_choose_one_after_the_other():
    """First among partitions, then among what is left there."""
    operations = [operation("2024/01/09", "a", logs=1), operation("2024/01/09", "b", logs=3)]
    operations += [operation("2024/01/01", "c", logs=9)]
    strategies = ("BoundedPartitionAware", "LogFileNumBased")
    assert chosen(operations, strategies=strategies, days=2, log_files_min=2) == ["b"]
    assert chosen(operations, strategies=("UnBoundedPartitionAware",), days=2) == ["c"]
    assert chosen(operations, strategies=("PartitionRegexBased",), partition_regex="1/0[1-3]$") == ["c"]


def test_partitions_that_are_no_dates_and_unknown_strategies_are_named():
    """Neither is guessed."""
    with pytest.raises(ConfigError, match="'p' is not a date"):
        chosen([operation("p", "a")], strategies=("DayBased",))
    with pytest.raises(ConfigError, match=r"com\.acme\.Mine is a Java class"):
        compaction_config(Settings({"hoodie.compaction.strategy": "com.acme.Mine"}))


@pytest.mark.parametrize(("version", "blocked"), [(6, True), (9, False)])
def test_a_write_under_way_blocks_plans_of_layout_1_only(version, blocked):
    """There its log files would be left in the old slice; in layout 2 they belong to the new one."""
    storage = table_with_logs(version)
    table = writes.open_table(storage, **SOON)
    store = TimelineStore(storage, table.config, table.services.metadata_table.clock)
    store.transition(store.request(Action.DELTA_COMMIT, store.new_time()))
    assert bool(table.schedule_compaction()) is not blocked
    assert ("is pending" in writes.open_table(storage, **SOON).services.compaction().plan().reason) is blocked


@pytest.mark.parametrize("version", [6, 9])
def test_a_missing_file_of_the_plan_leaves_it_pending(version):
    """Nothing is written, and the message names the file."""
    storage = table_with_logs(version)
    time = writes.open_table(storage, **SOON).schedule_compaction()
    (base,) = [path for path in storage.files() if path.startswith("eu/") and path.endswith(".parquet")]
    storage.delete(base)
    with pytest.raises(CorruptMetadata, match=base):
        writes.open_table(storage, **SOON).compact(instant=time)
    (pending,) = writes.open_table(storage).timeline.pending("compaction")
    assert pending.state in (State.REQUESTED, State.INFLIGHT)
    assert not [path for path in storage.files() if path.startswith("eu/") and path.endswith(f"{time}.parquet")]


@pytest.mark.parametrize("version", [6, 9])
def test_late_tasks_are_shut_out_before_a_compaction_is_published(version, monkeypatch):
    """An attempt that was taken for dead and lives would add a second base file of the same time."""
    storage, fenced, real = table_with_logs(version), [], service.publish

    def publish(begun, contents, *args, **words):
        fenced.append(is_fenced(contents.store.storage, begun.instant.requested_time))
        return real(begun, contents, *args, **words)

    monkeypatch.setattr(service, "publish", publish)
    assert writes.open_table(storage, **{"hoodie.compact.inline.max.delta.commits": 1}).compact()
    assert [True] == fenced


def test_a_copy_on_write_table_has_nothing_to_compact():
    """Wrong usage, with the way that is right."""
    with pytest.raises(ConfigError, match="no log files"):
        writes.open_table(writes.create_table(9)).compact()


def test_a_pending_compaction_can_be_taken_back_to_its_plan_and_carried_out(tmp_path):
    """The rollback of an inflight one keeps the plan (B-25)."""
    storage = table_with_logs(9)
    table = writes.open_table(storage, **SOON)
    time = table.schedule_compaction()
    store = TimelineStore(storage, table.config, table.services.metadata_table.clock)
    (pending,) = store.load().pending(Action.COMPACTION)
    store.transition(pending)
    writes.open_table(storage).rollback(time)
    (again,) = writes.open_table(storage).timeline.pending("compaction")
    assert attrs.evolve(again, file_name=None) == attrs.evolve(pending, file_name=None)
    (done,) = writes.open_table(storage, **SOON).compact()
    assert isinstance(done, hudi_py.RewriteResult)
    assert done.instant == time
