"""Stored plans with contents that neither side writes, or that ask for more than is served: refused, rows stay."""

import attrs
import pytest

from hudi_py.config.compaction import compaction_config
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.model.instant import Action, State
from hudi_py.model.records import RequestedReplaceMetadata, Strategy
from hudi_py.services.clustering.plan import stored_plan
from hudi_py.txn.commit import Prepared, Requested
from support import writes

VERSIONS = [6, 9]
QUICK = writes.ALONE | {"hoodie.index.bloom.num_entries": 100, "hoodie.parquet.small.file.limit": 0}
MOR = QUICK | {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.log.compaction.blocks.threshold": 1,
}


def table_of(version, settings=QUICK):
    """Two partitions, each with two file groups; of a merge-on-read table, one with a log file."""
    storage = writes.create_table(version, **settings)
    for number in range(2):
        rows = [{"id": f"{region}{number}", "region": region, "ts": 1} for region in ("eu", "us")]
        writes.upsert(storage, rows, operation="INSERT", **settings)
    writes.upsert(storage, [{"id": "eu0", "region": "eu", "ts": 2}], **settings)
    return storage


def with_plan(storage, settings, change):
    """The table with a pending clustering whose plan was changed."""
    table = writes.open_table(storage, **settings)
    instant = table.services.clustering().schedule()
    plan = table.contents.requested_replace(instant).clustering_plan
    table.cancel_clustering(instant.requested_time)
    store = writes.open_table(storage, **settings).contents.store
    odd = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=change(plan), extra_metadata={}, version=1)
    Prepared(store, store.layout.clustering, store.new_time(store.load())).request(odd)
    return writes.open_table(storage, **settings)


def a_group_twice(plan):
    return attrs.evolve(plan, input_groups=plan.input_groups * 2)


def partitions_mixed(plan):
    first, *others = plan.input_groups
    slices = (*first.slices, *(each for group in others for each in group.slices))
    return attrs.evolve(plan, input_groups=(attrs.evolve(first, slices=slices),))


def class_named(name):
    return lambda plan: attrs.evolve(plan, strategy=Strategy(class_name=name, strategy_params={}))


RUN = "org.apache.hudi.client.clustering.run.strategy."
ODD = {
    "twice": (a_group_twice, CorruptMetadata, "twice"),
    "partitions": (partitions_mixed, CorruptMetadata, "several partitions"),
    "class": (class_named("com.example.Masking"), UnsupportedTable, "com.example.Masking"),
    "buckets": (class_named(f"{RUN}SparkConsistentBucketClusteringExecutionStrategy"), UnsupportedTable, "Consistent"),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("odd", ODD)
def test_a_clustering_plan_that_would_change_rows_is_refused(version, odd):
    """By a run as by name, before a file is written; it can be cancelled, and then all is as before."""
    change, error, words = ODD[odd]
    storage = table_of(version)
    before, table = writes.rows_of(storage), with_plan(storage, QUICK, change)
    (pending,) = table.timeline.pending()
    files = storage.files()
    for run in (table.cluster, lambda: table.run_clustering(table.services.clustering(), pending.requested_time)):
        with pytest.raises(error, match=f"{words}.*hudi-py cluster .*--cancel {pending.requested_time}"):
            run()
    assert storage.files() == files
    table.cancel_clustering(pending.requested_time)
    assert table.cluster()
    assert writes.rows_of(storage) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_at_a_plan_that_is_not_served_is_left_alone(version):
    """Apache Hudi may be carrying it out: neither a run nor its name takes it back."""
    storage = table_of(version)
    table = with_plan(storage, QUICK, ODD["class"][0])
    (pending,) = table.timeline.pending()
    Requested(table.contents.store, pending).begin()
    files = storage.files()
    table = writes.open_table(storage, **QUICK)
    for run in (table.cluster, lambda: table.run_clustering(table.services.clustering(), pending.requested_time)):
        with pytest.raises(UnsupportedTable, match=r"com\.example\.Masking"):
            run()
    assert storage.files() == files


def only_in_eu(change):
    """The change, and groups of one partition only."""

    def changed(plan):
        groups = tuple(each for each in plan.input_groups if each.slices[0].partition_path == "eu")
        return change(attrs.evolve(plan, input_groups=groups))

    return changed


def sorted_by(column):
    parameters = {"hoodie.clustering.plan.strategy.sort.columns": column}
    return lambda plan: attrs.evolve(plan, strategy=attrs.evolve(plan.strategy, strategy_params=parameters))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("change", [ODD["class"][0], sorted_by("absent")])
def test_a_clustering_that_is_not_served_stands_in_the_way_of_its_own_groups_only(version, change):
    """The rest of the table is clustered; then a run is refused by the plan's name, with the way to cancel it."""
    storage = table_of(version)
    before, table = writes.rows_of(storage), with_plan(storage, QUICK, only_in_eu(change))
    (pending,) = table.timeline.pending()
    (done,) = table.cluster()
    assert list(done.metadata.partition_to_write_stats) == ["us"]
    assert writes.rows_of(storage) == before
    files = storage.files()
    several = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": False}
    table = writes.open_table(storage, **QUICK, **several)
    assert table.cluster(partitions=["us"]) == []
    assert table.services.clustering().run(every=1) == []
    with pytest.raises(UnsupportedTable, match=f"cluster .* --cancel {pending.requested_time}"):
        table.cluster()
    assert storage.files() == files
    table.cancel_clustering(pending.requested_time)
    (done,) = table.cluster()
    assert list(done.metadata.partition_to_write_stats) == ["eu"]
    assert writes.rows_of(storage) == before


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
def test_a_compaction_that_is_not_served_stands_in_the_way_of_its_own_groups_only(action):
    """
    By a Java class of its own, or, in table version 8, with log files that delete and that only a compaction merges.
    """
    storage = table_of(8, MOR)
    is_log = action is Action.LOG_COMPACTION
    writes.upsert(storage, [{"id": "eu0", "region": "eu", "ts": 3}], operation="DELETE", **MOR)
    table = writes.open_table(storage, **MOR)
    (operation,) = table.services.compaction().plan().plan.operations
    plan = attrs.evolve(
        table.services.log_compaction().plan().plan if is_log else table.services.compaction().plan().plan,
        operations=(operation,),
    )
    if not is_log:
        plan = attrs.evolve(plan, strategy=Strategy(class_name="com.example.Masking", strategy_params={}))
    store = table.contents.store
    time = Prepared(store, action, store.new_time(store.load())).request(plan).instant.requested_time
    writes.upsert(storage, [{"id": "us0", "region": "us", "ts": 2}], **MOR)
    before, table = writes.merged_rows_of(storage), writes.open_table(storage, **MOR)
    run, cancel = (
        (table.compact_logs, table.cancel_log_compaction) if is_log else (table.compact, table.cancel_compaction)
    )
    (done,) = run()
    assert list(done.metadata.partition_to_write_stats) == ["us"]
    assert writes.merged_rows_of(storage) == before
    writes.upsert(storage, [{"id": "eu0", "region": "eu", "ts": 4}], **MOR)  # so that the next one is due
    before, files = writes.merged_rows_of(storage), storage.files()
    for refused in (lambda: run(instant=time), run):
        with pytest.raises(UnsupportedTable, match=f"compact .*--cancel {time}"):
            refused()
    assert storage.files() == files
    cancel(time)
    assert writes.open_table(storage, **MOR).compact()
    assert writes.merged_rows_of(storage) == before


@pytest.mark.parametrize("name", ["SparkSingleFileSort", "SparkBinaryCopyClustering", "JavaSortAndSize"])
def test_plans_for_other_classes_that_move_rows_are_carried_out(name):
    """Apache Hudi has several, which write the same rows."""
    storage = table_of(9)
    before = writes.rows_of(storage)
    assert with_plan(storage, QUICK, class_named(f"{RUN}{name}ExecutionStrategy")).cluster()
    assert writes.rows_of(storage) == before


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
def test_a_compaction_plan_that_names_a_file_group_twice_is_refused(version, action):
    """Readers would take one of two new files by chance; rows stay as they are."""
    storage = table_of(version, MOR)
    before, table = writes.merged_rows_of(storage), writes.open_table(storage, **MOR)
    is_log = action is Action.LOG_COMPACTION
    plan = (table.services.log_compaction() if is_log else table.services.compaction()).plan().plan
    assert plan.operations
    store = table.contents.store
    twice = attrs.evolve(plan, operations=plan.operations * 2)
    time = Prepared(store, action, store.new_time(store.load())).request(twice).instant.requested_time
    table = writes.open_table(storage, **MOR)
    with pytest.raises((CorruptMetadata, RefusedError), match=r"twice.*hudi-py compact"):
        (table.compact_logs if is_log else table.compact)(instant=time)
    assert writes.merged_rows_of(storage) == before
    (table.cancel_log_compaction if is_log else table.cancel_compaction)(time)
    assert table.compact()
    assert writes.merged_rows_of(storage) == before


WITHOUT_BASE = {"data_file_path": ""}
OF_ANOTHER_TIME = {"base_instant_time": "20200101000000000"}


@pytest.mark.parametrize(
    ("version", "change", "words"),
    [(6, WITHOUT_BASE, "leaves out"), (9, WITHOUT_BASE, "leaves out"), (9, OF_ANOTHER_TIME, "is of 2020")],
)
def test_a_compaction_plan_with_another_base_file_than_that_of_its_slice_is_refused(version, change, words):
    """Rows would be lost, or those of older log files come back; cancelled, the group is compacted with all rows."""
    storage = writes.create_table(version, **MOR)
    rows = [{"id": name, "region": "eu", "ts": 1} for name in ("a", "b")]
    writes.upsert(storage, rows, operation="INSERT", **MOR)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 2}], **MOR)
    before, table = writes.merged_rows_of(storage), writes.open_table(storage, **MOR)
    plan = table.services.compaction().plan().plan
    (operation,) = plan.operations
    odd = attrs.evolve(plan, operations=(attrs.evolve(operation, **change),))
    store = table.contents.store
    time = Prepared(store, Action.COMPACTION, store.new_time(store.load())).request(odd).instant.requested_time
    table = writes.open_table(storage, **MOR)
    for run in (table.compact, lambda: table.compact(instant=time)):
        with pytest.raises(CorruptMetadata, match=f"eu/{operation.file_id} {words}.*--cancel {time}"):
            run()
    assert writes.merged_rows_of(storage) == before
    table.cancel_compaction(time)
    assert table.compact()
    assert writes.merged_rows_of(storage) == before


@pytest.mark.parametrize("kind", ["clustering", "compaction", "log compaction"])
def test_an_overwrite_of_planned_groups_names_the_way_out(kind):
    """By the command of the plan's kind: what nobody has begun cannot be rolled back."""
    storage = table_of(9, MOR)
    table = writes.open_table(storage, **MOR)
    schedule, cancel, command = {
        "clustering": (table.services.clustering().schedule, table.cancel_clustering, "cluster"),
        "compaction": (table.schedule_compaction, table.cancel_compaction, "compact"),
        "log compaction": (table.schedule_log_compaction, table.cancel_log_compaction, "compact --logs"),
    }[kind]
    assert schedule()
    (pending,) = writes.open_table(storage).timeline.pending()
    rows, time = [{"id": "new", "region": "eu", "ts": 9}], pending.requested_time
    with pytest.raises(
        ConflictError, match=f"{kind} {time}; carry it out with hudi-py {command}, or .* --cancel {time}"
    ):
        writes.upsert(storage, rows, operation="INSERT_OVERWRITE", **MOR)
    with pytest.raises(RefusedError, match=f"only planned.*hudi-py {command} .*--cancel {time}"):
        writes.open_table(storage).rollback(time)
    cancel(time)
    writes.upsert(storage, rows, operation="INSERT_OVERWRITE", **MOR)
    assert [each["id"] for each in writes.merged_rows_of(storage) if each["region"] == "eu"] == ["new"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_of_another_kind_is_not_carried_out(version):
    """Each verb knows its own pending plans only; nothing is written."""
    storage = table_of(version, MOR)
    table = writes.open_table(storage, **MOR)
    times = {"clustering": table.services.clustering().schedule().requested_time}
    writes.upsert(storage, [{"id": "x", "region": "ap", "ts": 1}], operation="INSERT", **MOR)
    writes.upsert(storage, [{"id": "x", "region": "ap", "ts": 2}], **MOR)
    table = writes.open_table(storage, **MOR)
    times["compaction"] = table.schedule_compaction()
    times["write"] = table.timeline.completed("deltacommit")[0].requested_time
    files = storage.files()
    verbs = {
        "compaction": (lambda time: table.compact(instant=time), table.cancel_compaction),
        "log compaction": (lambda time: table.compact_logs(instant=time), table.cancel_log_compaction),
        "clustering": (
            lambda time: table.run_clustering(table.services.clustering(), time),
            table.cancel_clustering,
        ),
    }
    for verb, calls in verbs.items():
        for kind, time in times.items():
            for call in () if kind == verb else calls:
                with pytest.raises(ConfigError, match=f"no pending {verb}"):
                    call(time)
    assert storage.files() == files


def test_patterns_that_java_reads_in_another_way_are_refused():
    """Others mean what they mean there: letters of other scripts are no word characters."""
    name = "hoodie.compaction.partition.path.regex"
    with pytest.raises(ConfigError, match=r"regular expression.*another set of characters"):
        compaction_config(Settings({name: "[a-z&&[^x]]"}))
    package = "org.apache.hudi.table.action.compact.strategy.PartitionRegexBasedCompactionStrategy"
    settings = {**MOR, name: r"^\w+$", "hoodie.compaction.strategy": package}
    storage = writes.create_table(9, **settings)
    for ts in (1, 2):
        rows = [{"id": f"{region}0", "region": region, "ts": ts} for region in ("eu", "über")]
        writes.upsert(storage, rows, **settings)
    plan = writes.open_table(storage, **settings).services.compaction().plan().plan
    assert [each.partition_path for each in plan.operations] == ["eu"]


def test_a_compaction_plan_with_log_files_of_another_slice_is_refused():
    """In table version 6 their names tell it; their rows are in a base file already, or outdated."""
    storage = table_of(6, MOR)
    table = writes.open_table(storage, **MOR)
    assert table.compact()
    writes.upsert(storage, [{"id": "eu0", "region": "eu", "ts": 3}], **MOR)
    before, table = writes.merged_rows_of(storage), writes.open_table(storage, **MOR)
    (operation,) = table.services.compaction().plan().plan.operations
    older = [
        path.rpartition("/")[2] for path in storage.files() if f".{operation.file_id}_" in path and ".log." in path
    ]
    store = table.contents.store
    odd = attrs.evolve(operation, delta_file_paths=tuple(sorted(older)))
    assert len(older) > len(operation.delta_file_paths)
    plan = attrs.evolve(table.services.compaction().plan().plan, operations=(odd,))
    time = Prepared(store, Action.COMPACTION, store.new_time(store.load())).request(plan).instant.requested_time
    with pytest.raises(CorruptMetadata, match=r"another slice.*hudi-py compact .*--cancel"):
        writes.open_table(storage, **MOR).compact(instant=time)
    assert writes.merged_rows_of(storage) == before


def test_log_files_that_a_java_class_merges_are_refused_before_anything_begins():
    """By every compaction; a clustering takes the file groups without log files, also beside such a plan of others."""
    storage = table_of(6, MOR)
    properties = storage.read(".hoodie/hoodie.properties") + b"hoodie.compaction.payload.class=com.example.Masking\n"
    table = writes.open_table(storage, **MOR)
    planned = table.services.clustering().plan()
    time = table.schedule_compaction()
    storage.replace(".hoodie/hoodie.properties", properties)
    files = storage.files()
    table = writes.open_table(storage, **MOR)
    for refused in (table.compact, table.compact_logs, lambda: table.compact(instant=time)):
        with pytest.raises(UnsupportedTable, match=r"com\.example\.Masking"):
            refused()
    assert storage.files() == files
    table.cancel_compaction(time)
    store = writes.open_table(storage, **MOR).contents.store
    plan = stored_plan(planned, storage.root, has_missing_partitions=False)
    odd = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=only_in_eu(lambda each: each)(plan))
    Prepared(store, store.layout.clustering, store.new_time(store.load())).request(odd)
    (done,) = writes.open_table(storage, **MOR).cluster()
    assert list(done.metadata.partition_to_write_stats) == ["us"]
    writes.open_table(storage, **MOR).cancel_clustering(store.load().pending()[0].requested_time)
    (done,) = writes.open_table(storage, **MOR).cluster(partitions=["eu"])
    assert done.file_groups == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_is_at_work_holds_its_own_file_groups_only(version, tmp_path):
    """By its heartbeat; the others are clustered beside it."""
    storage = table_of(version, MOR)
    before = writes.merged_rows_of(storage)
    little = {"hoodie.memory.compaction.max.size": 1, "hoodie.memory.spillable.map.path": str(tmp_path / "absent")}
    with pytest.raises(ConfigError, match="absent"):
        writes.open_table(storage, **MOR, **little).compact()
    table = writes.open_table(storage, **MOR)
    (pending,) = table.timeline.pending()
    assert pending.state is State.INFLIGHT
    (done,) = table.cluster()
    assert done.file_groups == 3
    assert writes.merged_rows_of(storage) == before
    assert writes.open_table(storage, **MOR).compact()[0].instant == pending.requested_time
    assert writes.merged_rows_of(storage) == before
    assert not [each for each in writes.open_table(storage).check() if each.severity.name != "INFO"]
