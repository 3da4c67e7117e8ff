"""The golden traces of rules/table-services J: runs of real Hudi, every line."""

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.model.instant import State
from support.tables import TableBuilder, at, data_files, planned

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def base(*numbers, file_id="f"):
    return [TableBuilder.base_name(file_id, at(number)) for number in numbers]


def run(builder, number, **retention):
    """Plan and carry out the clean after commit *number*; returns what was planned, and the plan."""
    builder.clock.moment = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(hours=number, minutes=40)
    table = builder.table()
    plan = table.plan_clean(**retention)
    results = table.clean(**retention)
    assert len(results) == plan.would_schedule
    return planned(plan), plan


def ecr(plan):
    return None if plan.earliest_to_retain is None else plan.earliest_to_retain.requested_time


@LAYOUTS
def test_j1_keep_latest_commits_with_a_dropped_partition(layout):
    """J.1: k = 2, partitions r0 and r1, r0 dropped by c4."""
    builder = TableBuilder(layout)
    ids = {"r0": "a", "r1": "b"}
    expected = {
        1: (None, {}),
        2: (None, {}),
        3: (2, {}),
        4: (3, {"r1": [1]}),
        5: (4, {"r1": [2]}),
        6: (5, {"r0": [3, 2, 1]}),
        7: (6, {"r1": [3]}),
        8: (7, {"r1": [5]}),
    }
    for number in range(1, 9):
        if number == 4:
            builder.commit(at(4), {}, replaced={"r0": ["a"]}, operation="DELETE_PARTITION")
        else:
            written = ids if number < 4 else {"r1": "b"}
            builder.commit(at(number), {partition: [file_id] for partition, file_id in written.items()})
        files, plan = run(builder, number, commits_retained=2)
        window, deleted = expected[number]
        assert ecr(plan) == (None if window is None else at(window)), number
        assert files == {p: base(*times, file_id=ids[p]) for p, times in deleted.items()}, number
        assert plan.partitions_to_delete == (("r0",) if number == 6 else ()), number
    assert not [path for path in builder.storage.files() if path.startswith("r0/")]


@LAYOUTS
def test_j2_savepoint_made_and_deleted(layout):
    """J.2: k = 2, savepoint at c2 deleted after c7."""
    builder = TableBuilder(layout)
    regions = ("r0", "r1", "r2")
    expected = {
        3: {},
        4: {"r0": [1], "r1": [1], "r2": [1]},
        5: {},
        6: {"r1": [3]},
        7: {"r1": [4]},
        8: {"r0": [2], "r1": [5, 2], "r2": [2]},
        9: {"r1": [6]},
    }
    windows = {3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7, 9: 8}
    for number in range(1, 10):
        builder.commit(at(number), {region: ["f"] for region in (regions if number < 4 else ("r1",))})
        if number == 3:
            builder.savepoint(at(2), {region: base(2) for region in regions})
        if number == 8:
            builder.delete_savepoint(at(2))
        if number < 3:
            continue
        files, plan = run(builder, number, commits_retained=2)
        assert ecr(plan) == at(windows[number]), number
        assert files == {partition: base(*times) for partition, times in expected[number].items()}, number
        recorded = {"savepointed_timestamps": at(2)} if number < 8 else {}
        assert dict(plan.extra_metadata) == recorded, number


@LAYOUTS
def test_j3_keep_latest_file_versions(layout):
    """J.3: v = 1; c3 = insert_overwrite r0, c4 upserts r0."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["old"], "r1": ["f"]})
    builder.commit(at(2), {"r0": ["old"], "r1": ["f"]})
    assert run(builder, 2, file_versions_retained=1)[0] == {"r0": base(1, file_id="old"), "r1": base(1)}
    builder.commit(at(3), {"r0": ["new"]}, replaced={"r0": ["old"]}, operation="INSERT_OVERWRITE")
    assert run(builder, 3, file_versions_retained=1)[0] == {"r0": base(2, file_id="old")}
    builder.commit(at(4), {"r0": ["new"]})
    files, plan = run(builder, 4, file_versions_retained=1)
    assert files == {"r0": base(3, file_id="new")}
    assert ecr(plan) is None
    assert data_files(builder.storage) == [f"r0/{base(4, file_id='new')[0]}", f"r1/{base(2)[0]}"]


def hours_table(layout):
    """Commits at 01:00 to 05:00 and 07:00, a pending one at 06:00, one file group."""
    builder = TableBuilder(layout)
    for hour in (1, 2, 3, 4, 5, 7):
        builder.commit(at(hour), {"r0": ["f"]})
    builder.commit(at(6), {"r0": ["f"]}, state=State.INFLIGHT)
    return builder


J7 = [  # now, earliest, times planned
    ("2026-01-01T06:30", 4, (2, 1)),
    ("2026-01-01T07:30", 5, (3, 2, 1)),
    ("2026-01-01T08:30", 7, (4, 3, 2, 1)),
    ("2026-01-01T09:30", 7, (4, 3, 2, 1)),
    ("2026-01-02T09:30", None, ()),
    ("2026-01-01T05:59:59.999", 3, (1,)),
    ("2026-01-01T06:00", 3, (1,)),
    ("2026-01-01T06:00:00.001", 4, (2, 1)),
]


@LAYOUTS
@pytest.mark.parametrize(("now", "window", "times"), J7, ids=[now for now, _, _ in J7])
def test_j7_keep_latest_by_hours(layout, now, window, times):
    """J.7 (A-20, A-21): limit inclusive, the pending commit bounds nothing, everything too old keeps everything."""
    moment = datetime.fromisoformat(now).replace(tzinfo=timezone.utc)
    plan = hours_table(layout).table().plan_clean(hours_retained=3, now=moment)
    assert ecr(plan) == (None if window is None else at(window))
    assert planned(plan) == ({"r0": base(*times)} if times else {})
