"""Clustering: small files become large ones, in one commit that changes no row."""

import re

import pyarrow as pa
import pytest

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.errors import ConfigError, ConflictError, RefusedError, ServiceFailed, UnsupportedTable
from hudi_py.model.files import BaseFile, FileSlice
from hudi_py.model.instant import Action, Instant, State
from hudi_py.services.clustering import execute
from hudi_py.services.clustering.plan import plan_clustering
from hudi_py.services.clustering.policy import Candidates, chosen_partitions
from hudi_py.timeline.fence import is_fenced
from hudi_py.writing.buckets import BUCKET_FOLDER
from support.writes import ALONE, SCHEMA, create_table, open_table, rows_of

VERSIONS = [6, 9]
QUICK = {**ALONE, "hoodie.index.bloom.num_entries": 100}
ROWS = [{"id": f"k{number}", "region": "eu", "ts": 7 - number} for number in range(3)]


def arrow(*rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def small_files(version, **settings):
    """A table with a file for each row."""
    storage = create_table(version)
    for row in ROWS:
        open_table(storage, **QUICK, **settings).bulk_insert(arrow(row))
    return storage


def files_of(storage):
    return {each.base_file.name for each in open_table(storage).file_slices("eu")}


@pytest.mark.parametrize("version", VERSIONS)
def test_small_files_become_one(version):
    """The rows keep their commit times; the commit replaces the old groups and says that it changed no row."""
    storage = small_files(version)
    before = open_table(storage).rows(with_meta=True).to_arrow().to_pylist()
    (done,) = open_table(storage, **QUICK).cluster(sort_by="ts")
    table = open_table(storage)
    instant = table.timeline.completed("replacecommit")[-1]
    metadata = table.contents.commit(instant)
    assert (done.instant, done.rows, done.file_groups) == (instant.requested_time, 3, 3)
    assert (metadata.operation_type, len(metadata.partition_to_replace_file_ids["eu"])) == ("CLUSTER", 3)
    assert len(files_of(storage)) == 1
    after = table.rows(with_meta=True).to_arrow().to_pylist()
    assert [row["ts"] for row in after] == [5, 6, 7]
    plain = [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in before]
    assert sorted(plain, key=str) == sorted(
        ({name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in after), key=str
    )
    last = max(row["_hoodie_commit_time"] for row in before)
    assert table.changes(instant.completion_time or last).to_arrow().num_rows == 0
    assert not table.check()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plan_waits_on_the_timeline_until_it_is_carried_out(version):
    """Scheduled by one process, executed by another; in layout 1 the plan is a replacecommit, later a clustering."""
    storage = small_files(version)
    instant = open_table(storage).services.clustering().schedule()
    assert instant.action is (Action.REPLACE_COMMIT if version == 6 else Action.CLUSTERING)
    table = open_table(storage)
    plan = table.contents.requested_replace(instant).clustering_plan
    assert (plan.preserve_hoodie_metadata, len(plan.file_groups), plan.version) == (True, 3, 1)
    assert rows_of(storage) == ROWS
    assert table.services.clustering().schedule() is None  # the groups are taken
    assert table.services.clustering().execute(instant.requested_time).rows == 3
    assert len(files_of(storage)) == 1
    done = open_table(storage).timeline.find(instant.requested_time)
    with pytest.raises(ConfigError, match=f"no pending clustering.*; that is {re.escape(str(done))}"):
        open_table(storage).services.clustering().execute(instant.requested_time)
    with pytest.raises(ConfigError, match=r"no pending clustering.*timeline shows what is pending"):
        open_table(storage).services.clustering().cancel("20200101000000000")


@pytest.mark.parametrize("version", VERSIONS)
def test_updates_of_planned_files_are_refused_until_the_plan_is_cancelled(version):
    """Rows that are about to move are not changed (E-44); others are written, and a cancelled plan bars nothing."""
    storage = small_files(version)
    instant = open_table(storage).services.clustering().schedule()
    with pytest.raises(ConflictError, match="waiting for clustering"):
        open_table(storage, **QUICK).upsert(arrow({**ROWS[0], "ts": 9}))
    open_table(storage, **QUICK).upsert(arrow({"id": "z", "region": "eu", "ts": 9}))
    open_table(storage).services.clustering().cancel(instant.requested_time)
    assert not open_table(storage).timeline.pending()
    open_table(storage, **QUICK).upsert(arrow({**ROWS[0], "ts": 9}))
    assert rows_of(storage)[0]["ts"] == 9


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_that_later_writes_made_invalid_are_not_carried_out(version):
    """A writer minded no plans: to name the plan is an error, a run withdraws it and makes another."""
    storage = small_files(version)
    instant = open_table(storage).services.clustering().schedule()
    plan = open_table(storage).contents.store.read_plan(instant)
    open_table(storage).services.clustering().cancel(instant.requested_time)
    open_table(storage, **QUICK).upsert(arrow({**ROWS[0], "ts": 9}))
    store = open_table(storage).contents.store
    store.request(instant.action, instant.requested_time, plan)
    with pytest.raises(RefusedError, match="--cancel"):
        open_table(storage).services.clustering().execute(instant.requested_time)
    assert [each.rows for each in open_table(storage, **QUICK).cluster()] == [3]
    assert rows_of(storage)[0]["ts"] == 9
    assert not open_table(storage).timeline.pending()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clustering_can_be_undone_and_run_again(version):
    """While the old groups are there: a rollback shows them again, and keeps the plan."""
    storage = small_files(version)
    before = files_of(storage)
    (done,) = open_table(storage, **QUICK).cluster()
    open_table(storage).rollback(done.instant)
    assert files_of(storage) == before
    assert rows_of(storage) == ROWS
    pending = open_table(storage).timeline.pending()
    assert [(each.requested_time, each.state) for each in pending] == [(done.instant, State.REQUESTED)]
    again = open_table(storage).services.clustering().execute(done.instant)
    assert (again.instant, again.rows) == (done.instant, 3)
    assert rows_of(storage) == ROWS
    assert not open_table(storage).check()


@pytest.mark.parametrize("version", [6, 9])
def test_late_tasks_are_shut_out_before_a_clustering_is_published(version, monkeypatch):
    """Afterwards nobody would look for their files, and readers might take them for the clustering's."""
    storage, fenced, real = small_files(version), [], execute.publish

    def publish(begun, contents, *args, **words):
        fenced.append(is_fenced(contents.store.storage, begun.instant.requested_time))
        return real(begun, contents, *args, **words)

    monkeypatch.setattr(execute, "publish", publish)
    assert open_table(storage, **ALONE).cluster()
    assert [True] == fenced


@pytest.mark.parametrize("version", VERSIONS)
def test_time_before_a_clustering_is_read_until_the_clean(version):
    """Times before it show the old groups; a clean deletes them, and no row."""
    storage = small_files(version)
    last = open_table(storage).timeline.commits.completed()[-1].requested_time
    old = files_of(storage)
    open_table(storage, **QUICK).cluster()
    assert open_table(storage).as_of(last).rows().to_arrow().num_rows == 3
    open_table(storage, **QUICK).upsert(arrow({"id": "z", "region": "eu", "ts": 1}))
    open_table(storage).clean(commits_retained=1)
    left = {path.rpartition("/")[2] for path in storage.files()}
    assert not old & left
    assert rows_of(storage) == [*ROWS, {"id": "z", "region": "eu", "ts": 1}]


@pytest.mark.parametrize("version", VERSIONS)
def test_writers_cluster_after_every_so_many_commits(version):
    """In line, or only the plan; commits are counted since the last clustering in whatever state."""
    inline = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 2}
    storage = small_files(version, **inline)
    assert [len(open_table(storage).timeline.completed("replacecommit")), len(files_of(storage))] == [1, 2]
    done = open_table(storage, **QUICK, **inline).bulk_insert(arrow({"id": "y", "region": "eu", "ts": 1}))
    assert [each.file_groups for each in done.clusterings] == [3]
    assert [len(open_table(storage).timeline.completed("replacecommit")), len(files_of(storage))] == [2, 1]
    planned = {"hoodie.clustering.schedule.inline": True, "hoodie.clustering.async.max.commits": 1}
    open_table(storage, **QUICK, **planned).bulk_insert(arrow({"id": "z", "region": "eu", "ts": 1}))
    assert [each.state for each in open_table(storage).timeline.pending()] == [State.REQUESTED]
    with pytest.raises(ConfigError, match="exclude each other"):
        open_table(storage, **inline, **planned).bulk_insert(arrow(ROWS[0]))
    assert len(rows_of(storage)) == 5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_clustering_after_a_commit_fails_the_write_unless_a_setting_says_otherwise(version):
    """``hoodie.fail.writes.on.inline.table.service.exception`` (G-6); the commit is there in both cases."""
    name = "hoodie.fail.writes.on.inline.table.service.exception"
    inline = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1}
    inline["hoodie.clustering.plan.strategy.sort.columns"] = "absent"
    storage = small_files(version)
    with pytest.raises(ServiceFailed, match=r"is completed.*no such column"):
        open_table(storage, **QUICK, **inline).bulk_insert(arrow({"id": "y", "region": "eu", "ts": 1}))
    done = open_table(storage, **QUICK, **inline, **{name: False}).bulk_insert(
        arrow({"id": "z", "region": "eu", "ts": 1})
    )
    assert done.clusterings == ()
    assert [row["id"] for row in rows_of(storage)][-2:] == ["y", "z"]


def slice_of(file_id, size_bytes, partition="p"):
    base = BaseFile(
        f"{file_id}_1-0-1_20260101000000000.parquet", file_id, "1-0-1", "20260101000000000", "parquet", size_bytes
    )
    return FileSlice(partition, file_id, "20260101000000000", base)


def planned(sizes, **options):
    slices = tuple(slice_of(f"f{number:03d}", size) for number, size in enumerate(sizes))
    candidates = Candidates(partition_path="p", slices=slices, left_out={})
    return plan_clustering([candidates], ClusteringConfig(**options))


def test_limits_of_a_plan_leave_files_out_and_say_why():
    """Number of groups, bytes of the plan, files that are alone."""
    few = planned([10] * 8, group_bytes_max=20, target_bytes=20, groups_max=2)
    assert [len(group.slices) for group in few.groups] == [2, 2]
    assert len(few.left_out) == 4
    assert all("maximum number of groups" in reason for reason in few.left_out.values())
    bounded = planned([10] * 8, group_bytes_max=20, target_bytes=20, bytes_max=45)
    assert bounded.size_bytes == 40
    assert all("maximum number of bytes" in reason for reason in bounded.left_out.values())
    assert bounded.left_by_limits == 4
    never = planned([30, 30, 10, 10], group_bytes_max=60, target_bytes=20, bytes_max=45)  # nor has the next plan room
    assert [len(group.slices) for group in never.groups] == [2]
    assert all("larger than a plan may be" in reason for reason in never.left_out.values())
    assert (never.left_by_limits, never.missing) == (0, ("p",))
    alone = planned([10], single_group=False)
    assert (alone.groups, list(alone.left_out.values())) == (
        (),
        ["there is no other small file in its partition to join it with"],
    )


@pytest.mark.parametrize(
    ("options", "hour", "chosen"),
    [
        ({}, 0, ("a", "b", "c")),
        ({"partitions": ("c", "x", "a")}, 0, ("c", "a")),
        ({"regex": "[ab]"}, 0, ("a", "b")),
        ({"regex": "a|.*b"}, 0, ("a", "b")),
        ({"filter_mode": "RECENT_DAYS"}, 0, ("c", "b")),
        ({"filter_mode": "RECENT_DAYS", "skip_latest": 1, "lookback": 1}, 0, ("b",)),
        ({"filter_mode": "RECENT_DAYS", "lookback": 0}, 0, ("c", "b", "a")),
        ({"filter_mode": "SELECTED_PARTITIONS", "begin": "b"}, 0, ("b", "c")),
        ({"filter_mode": "SELECTED_PARTITIONS", "end": "b"}, 0, ("a", "b")),
        ({"filter_mode": "DAY_ROLLING"}, 1, ("b",)),
        ({"filter_mode": "DAY_ROLLING"}, 5, ()),
    ],
)
def test_partitions_are_chosen_as_in_apache_hudi(options, hour, chosen):
    """Names before the pattern, the pattern matches whole paths, then the filter (E-33)."""
    assert chosen_partitions(["b", "c", "a"], ClusteringConfig(**options), hour) == chosen


def test_progress_is_told_group_by_group():
    """As many calls as there are groups, each with all of them."""
    storage = create_table(9)
    for row in ROWS:
        for region in ("eu", "us"):
            open_table(storage, **QUICK).bulk_insert(arrow({**row, "region": region}))
    heard = []
    table = open_table(storage, **QUICK)
    service = table.services.clustering(on_group=lambda done, total: heard.append((done, total)))
    table.run_clustering(service)
    assert heard == [(1, 2), (2, 2)]


def test_a_full_plan_names_the_partitions_that_the_next_one_has_to_look_into():
    """Hudi 1.x looks only into those and into what was written since (E-33); also where the next names partitions."""
    storage = create_table(9)
    for region in ("eu", "us", "za"):
        for row in ROWS[:2]:
            open_table(storage, **QUICK).bulk_insert(arrow({**row, "region": region}))
    one = {"hoodie.clustering.plan.strategy.max.num.groups": 1}

    def missing_of(**how):
        filters = how.pop("filters", {})
        table = open_table(storage, **QUICK, **one, **filters)
        (done,) = table.cluster(**how)
        table = open_table(storage)
        requested = Instant(done.instant, Action.CLUSTERING, State.REQUESTED)
        plan = table.contents.requested_replace(requested).clustering_plan
        return {group.slices[0].partition_path for group in plan.input_groups}, plan.missing_schedule_partitions

    assert missing_of() == ({"eu"}, ("us", "za"))
    assert missing_of(partitions=["us"]) == ({"us"}, ("za",))
    newest = {"hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS"}
    newest["hoodie.clustering.plan.strategy.daybased.lookback.partitions"] = 1
    assert missing_of(filters=newest) == ({"za"}, ("eu", "us"))


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
HASHING = f"{BUCKET_FOLDER}/consistent_hashing_metadata/eu/00000000000000.hashing_meta"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("told_by", ["settings", "names of files", "consistent hashing"])
def test_rows_of_buckets_stay_in_their_files(version, told_by):
    """Apache Hudi looks a key up in its bucket only, so a plan is refused by name, and nothing is changed."""
    settings = QUICK | (BUCKETS if told_by == "settings" else {})
    storage = small_files(version) if told_by == "consistent hashing" else create_table(version)
    if told_by == "consistent hashing":
        storage.replace(HASHING, b"{}")
    else:
        open_table(storage, **QUICK, **BUCKETS).upsert(arrow(*ROWS))
    before = storage.files()
    for asked in (lambda table: table.cluster(sort_by="ts"), lambda table: table.plan_cluster()):
        with pytest.raises(UnsupportedTable, match="bucket"):
            asked(open_table(storage, **settings))
    assert storage.files() == before
