"""Another table below a table: none of its files is taken for one of the outer table, whatever is done there."""

from datetime import timedelta

import pytest

from hudi_py.errors import CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.formats import records_codec as codec
from hudi_py.mdt.create import create_metadata_table
from hudi_py.model.instant import State
from hudi_py.model.records import ActionInstant, CleanerPlan, CleanFileInfo, InstantInfo, RollbackPlan, RollbackRequest
from hudi_py.services.usage.facts import Holder
from hudi_py.timeline.properties_file import update_properties
from support import writes
from support.tables import NOW, SYNC, TableBuilder, at, data_files

LATER = NOW + timedelta(days=9000)  # whatever the machine's clock says, every file is old
STRANGER = at(4)[:-7] + "1500000"  # between two commits
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def around(layout, inner="inner"):
    """A table with four commits around another one, whose files are from before its timeline."""
    builder = TableBuilder(layout)
    for number in (2, 3, 4, 5):
        builder.commit(at(number), {"r0": ["f"]})
    builder.put(f"{inner}/.hoodie/hoodie.properties", b"")
    builder.put(f"{inner}/p/.hoodie_partition_metadata", b"")
    theirs = [f"{inner}/p/{builder.base_name('x', at(1)[:-3] + text)}" for text in ("000", "001", "002", "003")]
    for path in theirs:
        builder.put(path)
    return builder, set(theirs)


@LAYOUTS
@pytest.mark.parametrize("inner", ["inner", "a/b"])
@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_a_clean_deletes_no_file_of_a_table_below(layout, inner, policy):
    """Its times are from before the outer timeline, where every time counts as committed: it lost its old versions."""
    builder, theirs = around(layout, inner)
    words = {"commits_retained": 1} if policy == "KEEP_LATEST_COMMITS" else {"file_versions_retained": 1}
    (result,) = builder.table().clean(policy=policy, **words)
    assert result.deleted_count
    assert theirs <= set(builder.storage.files())


@LAYOUTS
def test_an_unpartitioned_table_below_is_another_one_too(layout):
    """Its metafile, data files and .hoodie lie in one folder."""
    builder, _ = around(layout)
    builder.put("flat/.hoodie/hoodie.properties", b"")
    builder.put("flat/.hoodie_partition_metadata", b"")
    theirs = {f"flat/{builder.base_name('x', at(1)[:-3] + text)}" for text in ("000", "001", "002")}
    for path in theirs:
        builder.put(path)
    builder.table().clean(commits_retained=1)
    assert theirs <= set(builder.storage.files())


@LAYOUTS
def test_its_files_are_none_of_the_tables_view(layout):
    """Neither readers nor the check take them for files of the outer table; their bytes are counted as foreign."""
    builder, theirs = around(layout)
    table = builder.table()
    assert set(table.partitions()) == {"r0"}
    assert not [each for each in table.check() if "inner" in each.where]
    uses = {use.path: use.holder for use in table.services.usage().files()}
    assert {uses[path] for path in theirs} == {Holder.FOREIGN}


@LAYOUTS
def test_a_partition_with_a_timeline_of_its_own_is_an_error(layout):
    """It is both: rows that commits name are not left out silently."""
    builder, _ = around(layout)
    builder.put("r0/.hoodie/hoodie.properties", b"")
    before = data_files(builder.storage)
    with pytest.raises(CorruptMetadata, match=r"r0 has a \.hoodie of its own"):
        builder.table().partitions()
    builder.table().clean(commits_retained=1)
    assert before == data_files(builder.storage)


def inventory(tmp_path, paths):
    file = tmp_path / "inventory.csv"
    file.write_text("path,size,mtime\n" + "".join(f"{path},4,1\n" for path in paths))
    return str(file)


@LAYOUTS
def test_an_inventory_without_hidden_files_shows_no_file_of_a_table_below_as_an_orphan(tmp_path, layout):
    """The .hoodie is looked for in the folders: an inventory may leave it out, or be older than that table."""
    builder, theirs = around(layout)
    stranger = f"inner/p/{builder.base_name('y', STRANGER)}"
    orphan = f"r0/{builder.base_name('y', STRANGER)}"
    for path in (stranger, orphan):
        builder.put(path)
    listed = inventory(tmp_path, data_files(builder.storage))
    report = builder.table().orphans(older_than="0m", inventory=listed, now=LATER)
    assert (orphan,) == report.done
    assert ("inner",) == report.other_tables
    assert theirs | {stranger} <= set(builder.storage.files())


def test_paths_of_an_inventory_that_no_file_of_the_table_has_are_passed_over(tmp_path):
    """The same file by another path would belong to no partition that a commit names."""
    builder, _ = around(2)
    name = builder.base_name("y", STRANGER)
    builder.put(f"r0/{name}")
    odd = [f"./r0/{name}", f"r0/../r0/{name}", f"../trips/r0/{name}", f"r0//{name}", f"/lake/trips/./r0/{name}", "r0/"]
    report = builder.table().orphans(older_than="0m", inventory=inventory(tmp_path, odd), now=LATER)
    assert report.verdicts == ()
    assert report.files_seen == 0


@pytest.mark.parametrize(
    "source", ["/lake/trips/src", "file:/lake/trips/src/", "file:///lake/trips/src", "/lake/trips"]
)
def test_files_that_a_bootstrapped_table_was_made_from_are_no_orphans(source):
    """They lie below the table, have names as of Hudi (they were a table once), and no instant knows them."""
    builder, _ = around(2)
    properties = builder.storage.read(".hoodie/hoodie.properties")
    builder.put(".hoodie/hoodie.properties", properties + f"hoodie.bootstrap.base.path={source}\n".encode())
    path = f"src/r0/{builder.base_name('y', STRANGER)}"
    builder.put(path)
    report = builder.table().orphans(older_than="0m", now=LATER)
    assert report.verdicts == ()
    assert path in builder.storage.files()


@pytest.mark.parametrize("source", ["/lake/trips/src", "file:///lake/trips/src/", "/lake/trips"])
@pytest.mark.parametrize("has_inventory", [False, True])
def test_files_that_a_table_below_was_made_from_are_no_orphans(tmp_path, source, has_inventory):
    """That table shows them, and only its properties tell."""
    builder, _ = around(2)
    builder.put("inner/.hoodie/hoodie.properties", f"hoodie.bootstrap.base.path={source}\n".encode())
    path = f"src/r0/{builder.base_name('y', STRANGER)}"
    builder.put(path)
    listed = inventory(tmp_path, [*data_files(builder.storage), "inner/.hoodie/hoodie.properties"])
    more = {"inventory": listed} if has_inventory else {}
    report = builder.table().orphans(older_than="0m", now=LATER, **more)
    assert report.verdicts == ()
    assert path in builder.storage.files()


# --- a metadata table lists its partitions ---------------------------------------------------------------------------
def list_all(storage, table, clock, empty=()):
    """A metadata table as Apache Hudi makes one of the folders, those of the table below among them."""
    listing = {folder: {} for folder in empty}
    for path in data_files(storage):
        folder, _, name = path.rpartition("/")
        if ".hoodie" in folder:
            continue
        listing.setdefault(folder, {})[name] = storage.size(path)
    create_metadata_table(
        storage,
        table.config,
        table.timeline,
        listing,
        lambda changes: update_properties(storage, changes, clock),
        clock=clock,
    )


def listed(layout, inner="inner"):
    builder, theirs = around(layout, inner)
    list_all(builder.storage, builder.table(), builder.clock)
    assert f"{inner}/p" in builder.table().partitions()
    return builder, theirs


@LAYOUTS
@pytest.mark.parametrize("inner", ["inner", "a/b"])
@pytest.mark.parametrize("options", [{"commits_retained": 1}, {"file_versions_retained": 1}])
def test_a_clean_deletes_no_file_that_the_metadata_table_lists_of_a_table_below(layout, inner, options):
    """The plan leaves its partitions out, and says so; the rest of the table is cleaned."""
    builder, theirs = listed(layout, inner)
    plan = builder.table().plan_clean(**options)
    assert set(plan.files) == {"r0"}
    assert [each for each in plan.warnings if each.startswith(f"{inner} is another table")]
    (result,) = builder.table().clean(**options)
    assert result.deleted_count == plan.file_count > 0
    assert theirs <= set(builder.storage.files())


@LAYOUTS
def test_a_clean_removes_no_empty_partition_of_a_table_below(layout):
    """Its folder is one that a writer of that table may have made just now; it is left out of the plan."""
    builder, _ = around(layout)
    metafile = "inner/empty/.hoodie_partition_metadata"
    builder.put(metafile, b"")
    list_all(builder.storage, builder.table(), builder.clock, empty=["inner/empty"])
    options = {"policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    assert builder.table().plan_clean(**options).partitions_to_delete == ()
    (result,) = builder.table().clean(**options)
    assert result.deleted_count
    assert metafile in builder.storage.files()


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_plan_of_apache_hudi_that_names_its_files_takes_none(layout, state):
    """A requested one is withdrawn and made again; one that has begun goes on without them, and leaves its folders."""
    builder, theirs = listed(layout)
    builder.put("inner/empty/.hoodie_partition_metadata", b"")
    first = f"r0/{builder.base_name('f', at(2))}"
    files = {"inner/p": [path.rpartition("/")[2] for path in sorted(theirs)[:2]], "r0": [first.rpartition("/")[2]]}
    plan = CleanerPlan(
        earliest_instant_to_retain=ActionInstant(at(5), "commit", "COMPLETED"),
        last_completed_commit_timestamp=at(5),
        policy="KEEP_LATEST_COMMITS",
        files_to_delete={
            path: tuple(CleanFileInfo(f"{builder.storage.root}/{path}/{name}") for name in names)
            for path, names in files.items()
        },
        partitions_to_delete=("inner/empty",),
    )
    encoded = codec.encode_cleaner_plan(plan, SYNC)
    for each in (State.REQUESTED, State.INFLIGHT)[: 1 + (state is State.INFLIGHT)]:
        builder.instant(at(6), "clean", each, encoded)
    results = builder.table().clean(commits_retained=1)
    assert results[0].withdrawn == (state is State.REQUESTED)
    assert "inner has a .hoodie of its own" in results[0].why_spared
    there = set(builder.storage.files())
    assert theirs <= there
    assert "inner/empty/.hoodie_partition_metadata" in there
    assert first not in there


@LAYOUTS
def test_no_partition_of_a_table_below_expires(layout):
    """Whatever its age; dropping it would be a commit of the outer table about rows that it does not have."""
    builder, _ = listed(layout)
    plan = builder.table().expire_partitions(days=1, dry_run=True).plan
    assert plan.expired == ("r0",)
    assert {each.path: each.reason for each in plan.verdicts}["inner/p"].startswith("belongs to another table: inner")


@pytest.mark.parametrize("kind", ["clustering", "compaction"])
def test_its_files_are_not_rewritten(kind):
    """They would get times that its own timeline does not have; the message names it."""
    is_merging = kind == "compaction"
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"} if is_merging else {}
    storage = writes.create_table(9, **more)
    for rows in (writes.OLD, [{"id": "d", "region": "us", "ts": 3}]):
        writes.upsert(storage, rows, **{"hoodie.metadata.enable": False})
    file_ids = ("x", "y")
    for file_id in file_ids:
        storage.replace(f"inner/p/{file_id}_0-0-0_20250101000000000.parquet", b"PAR1")
    if is_merging:
        storage.replace("inner/p/.x_20250101000000001.log.1_0-0-0", b"#HUDI#")
    storage.replace("inner/.hoodie/hoodie.properties", b"")
    table = writes.open_table(storage)
    list_all(storage, table, table.services.metadata_table.clock)
    settings = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.clustering.plan.strategy.small.file.limit": 1000}
    services = writes.open_table(storage, **settings).services
    before = storage.files()
    with pytest.raises(RefusedError, match=f"no {kind}, nothing was changed: .* inner has a .hoodie of its own"):
        (services.compaction() if is_merging else services.clustering()).plan()
    assert before == storage.files()


@pytest.mark.parametrize("kind", ["clustering", "compaction", "log_compaction"])
def test_a_stored_plan_that_names_its_file_groups_is_not_carried_out(kind):
    """It stays pending with the reason, as any plan that is not served; nothing is written, and it can be withdrawn."""
    is_merging = kind != "clustering"
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"} if is_merging else {}
    storage = writes.create_table(9, **more)
    for number in range(3):
        ids = "ab" if is_merging else "abcdef"[2 * number :][:2]
        writes.upsert(storage, [{"id": each, "region": "us", "ts": number} for each in ids])
    settings = {
        "hoodie.compact.inline.max.delta.commits": 1,
        "hoodie.log.compaction.blocks.threshold": 2,
        "hoodie.clustering.plan.strategy.small.file.limit": 100_000_000,
        "hoodie.parquet.small.file.limit": 0,
    }
    service = getattr(writes.open_table(storage, **settings).services, kind)()
    instant = service.schedule()
    storage.replace("us/.hoodie/hoodie.properties", b"")
    before = storage.files()
    (left,) = service.left_pending(writes.open_table(storage).timeline)
    assert left.instant == instant
    with pytest.raises(
        UnsupportedTable, match=r"names file groups of us, .*: us has a \.hoodie of its own; withdraw it"
    ):
        service.execute(instant.requested_time)
    assert before == storage.files()
    service.cancel(instant.requested_time)
    assert not writes.open_table(storage).timeline.pending()


@LAYOUTS
@pytest.mark.parametrize("is_completed", [False, True])
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_rollback_plan_of_apache_hudi_deletes_no_file_of_a_copy_below(layout, is_completed, state):
    """A copy of the table below it has the same times, for which Apache Hudi looks in every folder."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["f"]})
    builder.commit(at(3), {"r0": ["g"]}, **({} if is_completed else {"state": State.INFLIGHT}))
    log = f".f_{at(2)}.log.1_0-1-0"
    blocks = {log: 1} if layout == 1 else {}
    builder.storage.replace(f"backup/r0/{log}", b"")
    for path, content in builder.storage.files().items():
        builder.storage.replace(f"backup/{path}", content)
    before = builder.storage.files()
    name = builder.base_name("g", at(3))
    requests = [
        RollbackRequest(partition_path=path, files_to_be_deleted=(f"{builder.storage.root}/{path}/{name}",))
        for path in ("r0", "backup/r0")
    ]
    if blocks:
        requests.append(
            RollbackRequest(
                partition_path="backup/r0", file_id="f", latest_base_instant=at(2), log_blocks_to_be_deleted=blocks
            )
        )
    action = next(each.action for each in builder.table().timeline.writes if each.requested_time == at(3))
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(3), action.value), rollback_requests=tuple(requests))
    for each in (State.REQUESTED, State.INFLIGHT)[: 1 + (state is State.INFLIGHT)]:
        builder.instant(at(4), "rollback", each, codec.encode_rollback_plan(plan, SYNC))
    builder.table().rollback(at(3))
    after = builder.storage.files()
    assert f"r0/{name}" not in after
    assert {p: b for p, b in before.items() if p.startswith("backup/")} == {
        p: b for p, b in after.items() if p.startswith("backup/")
    }
    assert builder.table().timeline.completed("rollback")


@LAYOUTS
def test_the_check_names_its_partitions(layout):
    """Readers take its rows for the outer table's, as Apache Hudi does."""
    builder, _ = listed(layout)
    found = {(each.code, each.where) for each in builder.table().check()}
    assert ("partition-of-other-table", "inner/p") in found
    assert not [code for code, where in found if "inner/p/" in where]
