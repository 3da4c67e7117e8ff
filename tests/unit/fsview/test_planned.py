"""A plan is held against the commits as far as it rests on them: older files are never planned on as the newest."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview import needed
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.tables import TableBuilder, at

COMMITS = {1: ("a", "b", "c", "d"), 2: ("a", "b"), 3: ("a", "b", "c"), 4: ("a", "d"), 5: ("b",)}
GROUPS = {"eu": ("a", "b", "c"), "us/ny": ("d",)}
GROUP_PATHS = [f"{path}/{each}" for path, ids in GROUPS.items() for each in ids]


def written(layout: int) -> TableBuilder:
    """Five commits; stats name what they replace, as those of Hudi."""
    builder = TableBuilder(layout)
    last: dict[str, str] = {}
    for number, some in COMMITS.items():
        groups = {path: [each for each in ids if each in some] for path, ids in GROUPS.items()}
        previous = {last.get(each) for each in some}
        builder.commit(at(number), groups, previous=previous.pop() if len(previous) == 1 else None)
        last.update(dict.fromkeys(some, at(number)))
    return builder


@pytest.fixture
def looked_through(monkeypatch):
    """Times of the commits whose names are looked for."""
    times = []
    real = needed.named_files
    monkeypatch.setattr(
        needed, "named_files", lambda data, time, **more: times.append(time) or real(data, time, **more)
    )
    return times


@pytest.mark.parametrize("policy", ["commits_retained", "file_versions_retained"])
@pytest.mark.parametrize("layout", [1, 2])
def test_no_older_file_is_planned_on_as_the_newest(layout, policy):
    """Each two lost files that leave a group older ones are refused by name."""
    whole = written(layout).storage.files()
    files = [path for path in whole if path.endswith(".parquet")]
    newest = {max(path for path in files if path.startswith(f"{each}_")) for each in GROUP_PATHS}
    refused = 0
    for lost in (frozenset(two) for two in combinations(files, 2)):
        left = {path.partition("_")[0] for path in files if path not in lost}
        if not any(path.partition("_")[0] in left for path in lost & newest):
            continue
        storage = MemoryStorage.from_files({path: data for path, data in whole.items() if path not in lost})
        with pytest.raises(CorruptMetadata) as raised:
            Table(storage).plan_clean(**{policy: 1})
        assert any(path in str(raised.value) for path in lost & newest)
        refused += 1
    assert refused > len(files)


@pytest.mark.parametrize("layout", [1, 2])
def test_no_older_commit_is_read_than_the_groups_there_need(layout, looked_through):
    """The three newest name all groups; readers look further, for groups of which nothing is left."""
    table = written(layout).table()
    assert table.plan_clean(commits_retained=1).file_count
    assert looked_through == [at(5), at(4), at(3)]
    pickle.loads(pickle.dumps(table.snapshot())).base_files()
    assert looked_through[3:] == [at(5), at(4), at(3), at(2), at(1)]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("order", [("a0", "zz"), ("zz", "a0")])
def test_a_partition_below_another_one_is_missed_whatever_comes_after(layout, order):
    """A stray metafile hides the partitions below it: others with data before or after it do not make up for that."""
    builder, (stray, other) = TableBuilder(layout), order
    builder.commit(at(1), {f"{stray}/deep": ["a"], other: ["b"]})
    builder.commit(at(2), {f"{stray}/deep": ["a"], other: ["b"]})
    builder.put(f"{stray}/.hoodie_partition_metadata", b"commitTime=1\npartitionDepth=1\n")
    with pytest.raises(CorruptMetadata, match=f"{stray}/.hoodie_partition_metadata says"):
        builder.table().plan_clean(commits_retained=1)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_group_of_which_nothing_is_left_stops_readers_and_no_plan(layout):
    """Nothing of it can be deleted; its rows are missing from what is read, though."""
    builder = written(layout)
    plan = builder.table().plan_clean(commits_retained=1)
    for path in [path for path in builder.storage.files() if path.startswith("eu/c_")]:
        builder.storage.delete(path)
    left = builder.table().plan_clean(commits_retained=1)
    assert [*left.files["eu"]] == [each for each in plan.files["eu"] if "/c_" not in each.path]
    with pytest.raises(CorruptMetadata, match=f"c_0-1-0_{at(3)}.parquet is missing"):
        builder.table().base_files()


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("after", ["nothing", "a folder", "a partition"])
def test_a_plan_misses_partitions_that_are_hidden(layout, after):
    """Their metafile is missing, or one above them says that the walk ends there; whatever is walked after them."""

    def story() -> TableBuilder:
        builder = written(layout)
        if after == "a folder":
            builder.put("zz/notes.txt")
        elif after == "a partition":
            builder.commit(at(6), {"zz": ["z"]})
        return builder

    builder = story()
    builder.storage.delete("us/ny/.hoodie_partition_metadata")
    with pytest.raises(CorruptMetadata, match=r"us/ny/\.hoodie_partition_metadata is missing"):
        builder.table().plan_clean(commits_retained=1)
    builder = story()
    builder.put("us/.hoodie_partition_metadata")
    with pytest.raises(CorruptMetadata, match="holds no data files"):
        Table(builder.storage).plan_clean(commits_retained=1)
