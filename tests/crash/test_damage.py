"""Damaged tables: an error that names the file, only for commands that need the file, and always a way out."""

import random

import pytest

from hudi_py.errors import CorruptMetadata, HudiError, NotFound, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, State
from hudi_py.model.records import CleanerPlan, CleanFileInfo, RollbackPlan
from support.tables import SYNC, TableBuilder, at, data_files, planned

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
DAMAGES = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: max(1, len(data) // 2)] if data else b"Obj\x01",
    "noise": lambda data: random.Random(7).randbytes(200),
}
damages = pytest.mark.parametrize("damage", DAMAGES)


def base(*numbers, file_id="f"):
    return [TableBuilder.base_name(file_id, at(number)) for number in numbers]


def table_with_everything(layout):
    """Every action that a copy-on-write table has, in every state; 1 and 2 of group f can be cleaned away."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    builder.savepoint(at(2), {"r1": base(2, file_id="g")})
    builder.commit(at(6), {"r2": ["h"]}, replaced={"r1": []})
    builder.commit(at(7), {"r0": ["f"]})
    builder.cleaned(at(8), earliest="", last_commit=at(3))
    rollback = RollbackPlan(instant_to_rollback=None)
    builder.instant(at(9), "rollback", State.REQUESTED, codec.encode_rollback_plan(rollback, sync=SYNC))
    builder.instant(at(9), "rollback", State.INFLIGHT)
    return builder


def files_of(layout):
    folder = ".hoodie/" if layout == 1 else ".hoodie/timeline/"
    return [
        p for p in table_with_everything(layout).storage.files() if p.startswith(folder) and p[len(folder)].isdigit()
    ]


CASES = [(layout, path) for layout in (1, 2) for path in files_of(layout)]


@damages
@pytest.mark.parametrize(("layout", "path"), CASES, ids=[f"{n}-{p.rpartition('/')[2]}" for n, p in CASES])
def test_damaged_instant_stops_nobody_who_does_not_need_it(layout, path, damage):
    """The timeline is listed; slices and plans are those of the whole table, or an error names the file."""
    whole = table_with_everything(layout)
    builder = table_with_everything(layout)
    builder.put(path, DAMAGES[damage](builder.storage.read(path)))
    assert builder.table().timeline == whole.table().timeline
    before = builder.storage.files()
    questions = {
        "slices": lambda each: each.table().file_slices("r0"),
        "snapshot": lambda each: each.table().base_files(),
        "plan": lambda each: planned(each.table().plan_clean(commits_retained=1)),
        "full plan": lambda each: planned(
            each.table(clean_incremental_enabled=False).plan_clean(file_versions_retained=1)
        ),
    }
    needed = {
        "slices": ".replacecommit",
        "snapshot": ".replacecommit",
        "plan": (".replacecommit", ".savepoint", ".clean"),
        "full plan": (".replacecommit", ".savepoint"),
    }
    for name, question in questions.items():
        try:
            found, expected = question(builder), question(whole)
            if name.endswith("plan") and path.endswith(f"{at(2)}.commit"):
                # Without the commit of a savepoint it is not known what that needs (layout 1), and more is kept.
                assert all({*found[folder]} <= {*expected[folder]} for folder in found), name
            else:
                assert found == expected, name
        except CorruptMetadata as error:
            assert path in str(error), name
            assert path.endswith(needed[name]), f"{name} does not need {path}"
        assert builder.storage.files() == before, name


def with_pending_clean(layout, *, inflight=None):
    """A stored plan for slices 1 and 2 of one group."""
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["f"]})
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    if inflight is not None:
        data = table.contents.store.read_plan(instant) if inflight == "copy" else inflight
        builder.instant(instant.requested_time, "clean", State.INFLIGHT, data)
    return builder, instant.requested_time


@LAYOUTS
@pytest.mark.parametrize("inflight", [None, b"", "copy"], ids=["requested", "empty-inflight", "inflight"])
@pytest.mark.parametrize("requested", ["good", "empty", "gone"])
def test_pending_clean_with_empty_files_is_finished_or_planned_anew(layout, inflight, requested):
    """The tables of A.8 and rules/timeline 3.3: one call ends in a clean table, in every combination."""
    builder, time = with_pending_clean(layout, inflight=inflight)
    path = f"{builder.folder}/{time}.clean.requested"
    if requested == "empty":
        builder.put(path, b"")
    elif requested == "gone":
        builder.storage.delete(path)
    has_plan = requested == "good" or inflight == "copy"
    results = builder.table().clean(commits_retained=1)
    assert [result.instant == time for result in results] == [has_plan]
    assert data_files(builder.storage) == [f"r0/{name}" for name in base(3, 4)]
    timeline = builder.table().timeline
    assert not timeline.pending()
    assert len(timeline.completed("clean")) == 1
    assert builder.table().clean(commits_retained=1) == []


@LAYOUTS
@pytest.mark.parametrize("inflight", [None, b""], ids=["requested", "empty-inflight"])
@pytest.mark.parametrize("damage", ["torn", "noise"])
def test_pending_clean_with_garbage_names_file_and_way_out(layout, inflight, damage):
    """Nothing is deleted; after the named files are moved away, the next clean plans anew."""
    builder, time = with_pending_clean(layout, inflight=inflight)
    path = f"{builder.folder}/{time}.clean.requested"
    builder.put(path, DAMAGES[damage](builder.storage.read(path)))
    before = builder.storage.files()
    for _ in range(2):
        with pytest.raises(CorruptMetadata, match=rf"{time}\.clean\.inflight and {time}\.clean\.requested") as caught:
            builder.table().clean(commits_retained=1)
        assert path in str(caught.value)
        assert builder.storage.files() == before
    for state in ("inflight", "requested"):
        builder.storage.delete(f"{builder.folder}/{time}.clean.{state}")
    assert len(builder.table().clean(commits_retained=1)) == 1
    assert data_files(builder.storage) == [f"r0/{name}" for name in base(3, 4)]


@LAYOUTS
@pytest.mark.parametrize("plans", ["kept", "empty"])
def test_empty_completed_clean_is_carried_out_again(layout, plans):
    """A-69: its record is written anew from the stored plan; without one it goes, and the next plan is full."""
    builder, time = with_pending_clean(layout)
    builder.table().clean(commits_retained=1)
    done = builder.table().timeline.completed(Action.CLEAN)[-1]
    builder.put(f"{builder.folder}/{done.file_name}", b"")
    if plans == "empty":
        for state in ("requested", "inflight"):
            builder.put(f"{builder.folder}/{time}.clean.{state}", b"")
    assert builder.table().plan_clean(commits_retained=1).needs_cleaning  # as if there were none
    results = builder.table().clean(commits_retained=1)
    assert [result.instant for result in results] == ([time] if plans == "kept" else [])
    table = builder.table()
    assert not table.timeline.pending()
    for instant in table.timeline.completed("clean"):
        assert table.contents.clean(instant).earliest_commit_to_retain == at(4)
    assert data_files(builder.storage) == [f"r0/{name}" for name in base(3, 4)]


BAD_PLANS = {
    "file outside": {"r0": ["/etc/passwd"]},
    "parent folder": {"r0": ["/lake/trips/r0/../../x/r0/" + base(1)[0]]},
    "other partition": {"r0": ["/lake/trips/r1/" + base(1)[0]]},
    "two places": {"r0": ["/lake/trips/r0/" + base(1)[0], "/lake/other/r0/" + base(2)[0]]},
    "properties": {".hoodie": ["/lake/trips/.hoodie/hoodie.properties"]},
    "instants": {".hoodie/timeline": ["/lake/trips/.hoodie/timeline/" + base(1)[0]]},
    "metafile": {"r0": ["/lake/trips/r0/.hoodie_partition_metadata"]},
    "folder": {"r0": ["/lake/trips/r0/"]},
    "no file": {"r0": [""]},
    "absolute partition": {"/r0": ["/lake/trips//r0/" + base(1)[0]]},
    "partition above": {"../r0": ["/lake/trips/../r0/" + base(1)[0]]},
}


def stored(builder, files, partitions=()):
    plan = CleanerPlan(
        policy="KEEP_LATEST_COMMITS",
        files_to_delete={partition: tuple(map(CleanFileInfo, paths)) for partition, paths in files.items()},
        partitions_to_delete=partitions,
    )
    builder.instant(at(20), "clean", State.REQUESTED, codec.encode_cleaner_plan(plan, sync=SYNC))


@LAYOUTS
@pytest.mark.parametrize("files", BAD_PLANS.values(), ids=list(BAD_PLANS))
def test_plan_that_names_anything_but_its_own_data_files_is_refused(layout, files):
    """Before anything is written or deleted."""
    builder = table_with_everything(layout)
    stored(builder, files)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="nothing was deleted"):
        builder.table().clean()
    assert builder.storage.files() == before


@LAYOUTS
@pytest.mark.parametrize("partition", [".hoodie", ".hoodie/timeline", "..", "r0/..", "/", "r0//x"])
def test_plan_that_would_remove_a_folder_that_is_no_partition_is_refused(layout, partition):
    """Above all not the table's metadata."""
    builder = table_with_everything(layout)
    stored(builder, {"r0": ["/lake/trips/r0/" + base(1)[0]]}, (partition,))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="not a partition"):
        builder.table().clean()
    assert builder.storage.files() == before


@LAYOUTS
@pytest.mark.parametrize("root", ["/elsewhere/trips", "file:/lake/trips", "file:///lake/trips", "s3://old/trips", "/x"])
def test_plan_of_a_moved_table_is_carried_out_where_the_table_is(layout, root):
    """A-57: other spellings of the place, and other places; the files meant are those of this table."""
    builder = table_with_everything(layout)
    stored(builder, {"r0": [f"{root}/r0/{name}" for name in base(1, 2)]})
    (result,) = builder.table().clean()
    assert result.deleted_files == tuple(f"r0/{name}" for name in base(1, 2))


@LAYOUTS
@damages
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_damaged_rollback_plan_does_not_stop_the_next_rollback(layout, damage, state):
    """B-7: an unreadable requested one goes, an inflight one stays; the failed write is rolled back either way."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["f"]}, state=State.INFLIGHT)
    path = builder.instant(at(3), "rollback", State.REQUESTED, DAMAGES[damage](b"Obj\x01 and more"))
    if state is State.INFLIGHT:
        builder.instant(at(3), "rollback", State.INFLIGHT)
    assert len(builder.table().rollback_failed_writes()) == 1
    assert data_files(builder.storage) == [f"r0/{name}" for name in base(1)]
    assert not builder.table().timeline.commits.pending()
    assert (builder.storage.size(path) is None) is (state is State.REQUESTED)
    assert builder.table().rollback_failed_writes() == []


@LAYOUTS
def test_failed_insert_overwrite_with_an_empty_request_is_rolled_back(layout):
    """An empty request is no clustering."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["g"]}, replaced={"r0": ["f"]}, state=State.INFLIGHT)
    builder.instant(at(2), "replacecommit", State.REQUESTED, b"")
    assert len(builder.table().rollback_failed_writes()) == 1
    assert data_files(builder.storage) == [f"r0/{name}" for name in base(1)]


@LAYOUTS
def test_damaged_pending_clustering_stops_neither_reading_nor_cleaning(layout):
    """It changes no row and protects no file."""
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["f"]})
    action = "replacecommit" if layout == 1 else "clustering"
    path = builder.instant(at(9), action, State.REQUESTED, b"garbage")
    assert [file.name for _, file in builder.table().base_files()] == base(4)
    assert planned(builder.table().plan_clean(file_versions_retained=1)) == {"r0": base(3, 2, 1)}
    with pytest.raises(CorruptMetadata, match="trips") as caught:
        _ = builder.table().view_context
    assert path in str(caught.value)


STRANGE = [
    "_SUCCESS",
    "part-0.parquet",
    "f.parquet",
    "a_b.parquet",
    ".hidden",
    "x_1_2_3.parquet",
    "ü_ö_ä.parquet",
    "f_0-1-0_.x",
]


@LAYOUTS
@pytest.mark.parametrize("name", STRANGE)
def test_files_with_strange_names_are_left_alone(layout, name):
    """Neither shown nor planned; whatever has no instant of the table in its name is nobody's."""
    builder = table_with_everything(layout)
    builder.put(f"r0/{name}", b"?")
    assert builder.table().file_slices("r0") == table_with_everything(layout).table().file_slices("r0")
    builder.table().clean(file_versions_retained=1)
    assert builder.storage.size(f"r0/{name}") == 1


@LAYOUTS
def test_partition_without_metafile_is_named_and_nothing_is_planned(layout):
    """For Hudi it does not exist then, and its rows are not left out in silence; nothing is deleted on that ground."""
    builder = table_with_everything(layout)
    builder.storage.delete("r0/.hoodie_partition_metadata")
    with pytest.raises(HudiError, match=r"r0/\.hoodie_partition_metadata is missing.*hudi-py recover"):
        builder.table().plan_clean(file_versions_retained=1)
    data = {path for path in builder.storage.files() if not path.startswith(".hoodie/")}
    with pytest.raises(HudiError, match=r"r0/\.hoodie_partition_metadata is missing"):
        builder.table().clean(file_versions_retained=1)
    assert data == {path for path in builder.storage.files() if not path.startswith(".hoodie/")}


VERSIONS = [("hoodie.table.version=9", f"hoodie.table.version={n}") for n in (0, 5, 7, 10, 99, "x", "")]
LAYOUT_KEYS = [("layout.version=2", f"layout.version={n}") for n in (0, 1, 3, 9, "x")]


@pytest.mark.parametrize(("old", "new"), [*VERSIONS, *LAYOUT_KEYS], ids=str)
def test_unknown_versions_are_refused(old, new):
    """Nothing is guessed; the message names the file."""
    builder = TableBuilder(2)
    data = builder.storage.read(".hoodie/hoodie.properties")
    assert old.encode() in data
    builder.put(".hoodie/hoodie.properties", data.replace(old.encode(), new.encode()))
    with pytest.raises(HudiError, match=r"hoodie\.properties"):
        builder.table()


def test_instant_that_vanishes_between_listing_and_reading_is_a_clear_error():
    """Another writer archived or rolled it back."""
    builder = table_with_everything(2)
    table = builder.table()
    for instant in table.timeline.completed("replacecommit"):
        builder.storage.delete(f"{builder.folder}/{instant.file_name}")
    with pytest.raises(NotFound, match="replacecommit"):
        table.base_files()
