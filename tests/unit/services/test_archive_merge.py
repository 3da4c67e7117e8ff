"""Small archive files of layout 1 become one (rules/table-services D-20, rules/timeline 5.2)."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.archive_log import MergePlan, decode_merge_plan, encode_merge_plan
from hudi_py.model.instant import State
from hudi_py.services.archive.merge_logs import PLAN_FILE
from support.tables import SYNC, TableBuilder, at

FOLDER = ".hoodie/archived"
MERGING = {
    "archive_merge_enable": True,
    "archive_merge_files_batch_size": 3,
}


def name(number: int) -> str:
    return f".commits_.archive.{number}_1-0-1"


def archive(builder: TableBuilder, **settings: object) -> object:
    return builder.table(**settings).archive(keep_min_commits=2, keep_max_commits=3)


def archived(builder: TableBuilder) -> list[str]:
    return [i.requested_time for i in builder.table().archived_timeline() if i.state is State.COMPLETED]


def files(builder: TableBuilder) -> list[str]:
    return [path.rpartition("/")[2] for path in builder.storage.files() if path.startswith(f"{FOLDER}/")]


@pytest.fixture
def three() -> TableBuilder:
    """Three archive files."""
    builder = TableBuilder(1)
    for number in range(1, 9):
        builder.commit(at(number), {"eu": ["a"]})
        if number in (4, 6, 8):
            archive(builder)
    assert files(builder) == [name(1), name(2), name(3)]
    return builder


def grow_and_archive(builder: TableBuilder, **settings: object) -> None:
    builder.commit(at(9), {"eu": ["a"]})
    builder.commit(at(10), {"eu": ["a"]})
    archive(builder, **settings)


def test_enough_small_files_become_one(three):
    """The newest consecutive small ones, under the next number; what is archived stays the same."""
    before = archived(three)
    grow_and_archive(three, **MERGING)
    assert files(three) == [name(5)]
    assert archived(three)[: len(before)] == before
    assert len(archived(three)) == len(before) + 2


def test_off_by_default(three):
    """As in Hudi: files stay as they are."""
    grow_and_archive(three)
    assert files(three) == [name(1), name(2), name(3), name(4)]


def test_large_file_ends_the_row(three):
    """Only what is newer than the last large file, and only if that is enough."""
    size = len(three.storage.read(f"{FOLDER}/{name(3)}"))
    content = three.storage.read(f"{FOLDER}/{name(1)}")
    three.storage.replace(f"{FOLDER}/{name(1)}", content * 9)
    grow_and_archive(three, **MERGING, archive_merge_small_file_limit_bytes=3 * size)
    assert files(three) == [name(1), name(5)]


def with_plan(builder: TableBuilder, *candidates: str, merged: str) -> None:
    root = f"{builder.storage.root}/{FOLDER}"
    plan = MergePlan(tuple(f"{root}/{each}" for each in candidates), merged)
    builder.put(f"{FOLDER}/{PLAN_FILE}", encode_merge_plan(plan, SYNC))


def test_plan_round_trips_and_torn_ones_are_told():
    """rules/timeline 5.2: candidates are full paths, the merged name is bare."""
    plan = MergePlan(("/lake/t/.hoodie/archived/a", "/b"), "c")
    data = encode_merge_plan(plan, SYNC)
    assert decode_merge_plan(data, "x") == plan
    for size in (0, 10, len(data) - 1):
        with pytest.raises(CorruptMetadata):
            decode_merge_plan(data[:size], "x")


def test_merge_that_deleted_nothing_is_taken_back(three):
    """All inputs exist: the merged file goes, whole or torn, and the plan."""
    three.put(f"{FOLDER}/{name(4)}", b"#HUDI# torn")
    with_plan(three, name(3), name(2), name(1), merged=name(4))
    archive(three)
    assert files(three) == [name(1), name(2), name(3)]


def test_merge_that_deleted_some_is_finished(three):
    """Some inputs are gone: the merged file holds them; the rest goes, then the plan."""
    before = archived(three)
    merged = b"".join(three.storage.read(f"{FOLDER}/{name(n)}") for n in (3, 2, 1))
    three.put(f"{FOLDER}/{name(4)}", merged)
    three.storage.delete(f"{FOLDER}/{name(2)}")
    with_plan(three, name(3), name(2), name(1), merged=name(4))
    archive(three)
    assert files(three) == [name(4)]
    assert archived(three) == before


def test_unreadable_plan_goes(three):
    """It was never carried out."""
    three.put(f"{FOLDER}/{PLAN_FILE}", b"")
    archive(three)
    assert files(three) == [name(1), name(2), name(3)]


@pytest.mark.parametrize("damage", ["no merged file", "torn merged file", "foreign input"])
def test_doubtful_merges_delete_nothing(three, damage):
    """Inputs are gone and what replaced them is not whole, or the plan names what is no archive file."""
    if damage == "foreign input":
        with_plan(three, name(3), "hoodie.properties", merged=name(4))
    else:
        three.storage.delete(f"{FOLDER}/{name(2)}")
        with_plan(three, name(3), name(2), name(1), merged=name(4))
        if damage == "torn merged file":
            three.put(f"{FOLDER}/{name(4)}", three.storage.read(f"{FOLDER}/{name(3)}")[:-5])
    before = three.storage.files()
    with pytest.raises(CorruptMetadata):
        archive(three)
    assert before == three.storage.files()


def test_damaged_commit_is_archived_without_content_where_that_is_wanted():
    """``hoodie.fail.on.timeline.archiving=false``: the rest is not held up, and its bytes are kept aside."""
    builder = TableBuilder(1)
    for number in range(1, 8):
        builder.commit(at(number), {"eu": ["a"]})
    builder.put(f".hoodie/{at(2)}.commit", b"garbage")
    archive(builder)
    assert archived(builder) == [at(1)]
    archive(builder, fail_on_timeline_archiving=False)
    assert archived(builder) == [at(n) for n in range(1, 6)]
    assert builder.storage.read(f".hoodie/.aux/hudi_py/damaged/{at(2)}.commit") == b"garbage"
    assert [i.requested_time for i in builder.table().timeline.completed("commit")] == [at(6), at(7)]
