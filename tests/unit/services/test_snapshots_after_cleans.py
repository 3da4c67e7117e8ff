"""Which earlier times can be answered after cleans of every kind: exactly those whose files are all there."""

from datetime import timedelta, timezone

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hudi_py.errors import RefusedError
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.clean.planning.past import whole_times
from hudi_py.snapshot.retained import earliest_retained
from support.laws import examples
from support.tables import TableBuilder, at, data_files

CLEANS = (
    {"file_versions_retained": 1},
    {"file_versions_retained": 2},
    {"commits_retained": 1},
    {"commits_retained": 4},
    {"file_versions_retained": 1, "max_partitions": 1},
)
steps = st.lists(
    st.one_of(
        st.sets(st.tuples(st.sampled_from(("r0", "r1")), st.sampled_from("fgh")), min_size=1, max_size=3),
        st.sampled_from(CLEANS),
    ),
    min_size=2,
    max_size=14,
)


def play(layout, history):
    """A table with that history, and for each commit the files that a reader at its time needs."""
    builder, newest, needed = TableBuilder(layout), {}, {}
    for number, step in enumerate(history):
        time = at(number)
        builder.clock.moment = parse_instant_time(time, timezone.utc) + timedelta(minutes=1)
        if isinstance(step, dict):
            builder.table(clean_incremental_enabled=False).clean(**step)
            continue
        groups = {}
        for partition, group in sorted(step):
            groups.setdefault(partition, []).append(group)
            newest[partition, group] = join_path(partition, builder.base_name(group, time))
        builder.commit(time, groups)
        needed[time] = set(newest.values())
    return builder, needed


@pytest.mark.parametrize("layout", [1, 2])
@examples(60)
@given(history=steps)
def test_a_time_is_answered_wholly_or_not_at_all(layout, history):
    """K-29: Hudi reads fewer rows after a clean by file versions, or after one that retains more than the last."""
    builder, needed = play(layout, history)
    left = set(data_files(builder.storage))
    table = builder.table()
    for time, files in needed.items():
        try:
            found = {join_path(path, base.name) for path, base in table.base_files(time)}
        except RefusedError:
            is_bounded = time < earliest_retained(table.contents, table.timeline)
            event("refused by the last clean's bound" if is_bounded else "refused by name")
            assert is_bounded or not files <= left
        else:
            assert found == files
        if not files <= left:
            with pytest.raises(RefusedError, match=r"cannot be savepointed"):
                table.create_savepoint(time)
        if time < earliest_retained(table.contents, table.timeline):
            continue
        for path in {each.rpartition("/")[0] for each in files}:
            of_path = {each for each in files if each.startswith(f"{path}/")}
            if of_path <= left:
                slices = table.as_of(time).file_slices(path)
                assert {join_path(path, each.base_file.name) for each in slices} == of_path
            else:
                with pytest.raises(RefusedError, match=r"deleted"):
                    table.as_of(time).file_slices(path)


@pytest.mark.parametrize("layout", [1, 2])
@examples(60)
@given(history=steps)
def test_a_ladder_keeps_no_snapshot_that_has_lost_a_file(layout, history):
    """And none that is whole by every clean's own words is left out."""
    builder, needed = play(layout, history)
    left = set(data_files(builder.storage))
    table = builder.table()
    whole = whole_times(table.contents, table.config, table.timeline)
    assert [time for time in whole if not needed[time] <= left] == []
    bounds = [table.contents.clean(clean) for clean in table.timeline.completed(Action.CLEAN)]
    times = (each.earliest_commit_to_retain or each.last_completed_commit_timestamp for each in bounds)
    last = max((time or each.start_clean_time for time, each in zip(times, bounds, strict=True)), default="")
    assert {time for time in needed if time >= last} <= set(whole)


SCHEDULED = (
    {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "clean_fileversions_retained": 1},
    {"clean_policy": "KEEP_LATEST_COMMITS", "clean_commits_retained": 1},
)


@pytest.mark.parametrize("layout", [1, 2])
@examples(60)
@given(history=steps, policy=st.sampled_from(SCHEDULED), state=st.sampled_from(State), data=st.data())
def test_beside_a_clean_under_way_a_time_is_answered_while_its_files_are_there(layout, history, policy, state, data):
    """Requested or begun, whatever it has deleted so far; else the message names it."""
    builder, needed = play(layout, history)
    table = builder.table(**policy)
    scheduled = table.services.clean(table.services.clean_config()).schedule()
    if scheduled is None or state is State.COMPLETED:
        return
    if state is State.INFLIGHT:
        builder.instant(scheduled.requested_time, "clean", State.INFLIGHT)
    plan = table.contents.clean_plan(scheduled)
    planned = [join_path(path, file.name) for path, files in plan.files_to_delete.items() for file in files]
    for path in data.draw(st.sets(st.sampled_from(planned))) if planned else ():
        builder.storage.delete(path)
    left = set(data_files(builder.storage))
    table = builder.table()
    done = table.timeline.completed(Action.CLEAN)
    bound = table.contents.clean(done[-1]).earliest_commit_to_retain if done else ""
    for time, files in needed.items():
        try:
            found = {join_path(path, base.name) for path, base in table.base_files(time)}
        except RefusedError as error:
            assert time < bound or not files <= left
            event("names the clean" if str(scheduled.requested_time) in str(error) else "names what came before")
        else:
            assert found == files


@pytest.mark.parametrize("layout", [1, 2])
def test_the_clean_under_way_is_named(layout):
    """With the file that it has deleted; what it plans and has not deleted does not matter."""
    builder, needed = play(layout, [{("r0", "f")}, {("r0", "f")}, {("r0", "f")}])
    table = builder.table(clean_policy="KEEP_LATEST_FILE_VERSIONS", clean_fileversions_retained=1)
    [first, second, third] = needed
    requested = table.services.clean(table.services.clean_config()).schedule()
    builder.instant(requested.requested_time, "clean", State.INFLIGHT)
    past = builder.table().as_of(first)
    assert past.base_files()
    [lost] = needed[first]
    builder.storage.delete(lost)
    named = rf"as of {first}: clean {requested.requested_time} .* is under way and has deleted {lost}"
    with pytest.raises(RefusedError, match=named):
        builder.table().as_of(first)
    with pytest.raises(RefusedError, match=named):
        past.base_files()
    assert builder.table().base_files(second)
    assert builder.table().base_files(third)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_clean_under_way_that_took_logs_below_a_newer_base_file_leaves_the_time_readable(layout):
    """They held rows of that time once, which a compaction has moved into the base file; a log above it counts."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["f"]}, action="deltacommit")
    builder.log_files(at(2), [("r0", "f", at(1))])
    builder.commit(at(3), {"r0": ["f"]}, operation="COMPACT")
    builder.log_files(at(4), [("r0", "f", at(3))])
    builder.commit(at(5), {"r0": ["f"]}, operation="COMPACT")
    builder.log_files(at(6), [("r0", "f", at(5))])
    table = builder.table(clean_policy="KEEP_LATEST_FILE_VERSIONS", clean_fileversions_retained=1)
    requested = table.services.clean(table.services.clean_config()).schedule()
    builder.instant(requested.requested_time, "clean", State.INFLIGHT)
    [below] = [path for path in data_files(builder.storage) if f".f_{at(1 if layout == 1 else 2)}.log" in path]
    [above] = [path for path in data_files(builder.storage) if f".f_{at(3 if layout == 1 else 4)}.log" in path]
    for path in (below, f"r0/{builder.base_name('f', at(1))}"):
        assert builder.storage.delete(path)
    assert [each.base_instant_time for each in builder.table().as_of(at(4)).file_slices("r0")] == [at(3)]
    assert builder.table().take_lease(ttl="1h", at=at(6), holder="a test").instant == at(6)
    with pytest.raises(RefusedError, match="under way and has deleted"):
        builder.table().as_of(at(2))
    assert builder.storage.delete(above)
    with pytest.raises(RefusedError, match=f"under way and has deleted {above}"):
        builder.table().as_of(at(4))
