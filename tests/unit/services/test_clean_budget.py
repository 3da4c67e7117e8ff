"""A clean under a budget: the limit holds, nothing readable goes, and cleans go on until nothing is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.files import parse_base_file
from hudi_py.model.instant import State
from hudi_py.services.clean.retention.policy import Reason
from support.clean_histories import make, paths, policies, retained, steps
from support.laws import examples
from support.tables import TableBuilder, at, data_files

WINDOWS = ("commits_retained", "hours_retained")


def budgeted(builder, **limits):
    table = builder.table()
    table.settings = table.settings.merged({f"hoodie_py.clean.max.{name}": value for name, value in limits.items()})
    return table


def slices_planned(plan):
    return [v for v in plan.verdicts if not v.keep]


@examples(100)
@given(st.sampled_from((1, 2)), steps, policies, retained, st.integers(1, 3))
def test_budgeted_cleans_end_where_one_clean_without_a_budget_ends(layout, history, policy, count, files):
    """Each run keeps to its budget, the next one goes on without a new commit, and nothing is forgotten."""
    whole, steps_made = make(layout, history), make(layout, history)
    whole.builder.table().clean(**{policy: count})
    for _ in range(200):
        plan = budgeted(steps_made.builder, files=files).plan_clean(details=True, **{policy: count})
        chosen = slices_planned(plan)
        assert plan.file_count <= files or len(chosen) == 1 or all(v.reason is Reason.REPLACED for v in chosen)
        done = budgeted(steps_made.builder, files=files).clean(**{policy: count})
        assert bool(done) == plan.would_schedule
        if not done:
            break
    else:
        pytest.fail("the budgeted cleans never end")
    assert data_files(steps_made.builder.storage) == data_files(whole.builder.storage)


@examples(100)
@given(st.sampled_from((1, 2)), steps, st.sampled_from(WINDOWS), retained, st.integers(1, 3), st.booleans())
def test_what_is_readable_from_the_recorded_window_on_is_never_planned(
    layout, history, policy, count, files, incremental
):
    """Hudi makes savepoints of, and reads as of, any commit from the recorded instant on (rule C-2)."""
    made = make(layout, history)
    table = budgeted(made.builder, files=files)
    table.settings = table.settings.merged({"hoodie.clean.incremental.enabled": incremental})
    plan = table.plan_clean(**{policy: count})
    if not plan.file_count:
        return
    window = plan.earliest_to_retain.requested_time
    replaced = table.view_context.replaced
    commits = [i.requested_time for i in table.timeline.commits.completed() if i.requested_time >= window]
    assert commits
    pending = {i.requested_time for i in table.timeline.commits.pending()}
    groups = {}
    for path in data_files(made.builder.storage):
        partition, _, name = path.partition("/")
        base = parse_base_file(name)
        if base is not None and base.instant_time not in pending:
            groups.setdefault((partition, base.file_id), {})[base.instant_time] = path
    for time in commits:
        for key, versions in groups.items():
            seen = [each for each in versions if each <= time]
            if seen and not (key in replaced and replaced[key] <= time):
                assert versions[max(seen)] not in paths(plan), f"a reader as of {time} needs it"


@pytest.mark.parametrize("layout", [1, 2])
def test_a_plan_over_budget_is_made_for_the_newest_window_that_fits(layout):
    """Whole windows go first: the recorded instant is where Hudi's next incremental plan begins."""
    builder = TableBuilder(layout)
    for number in range(1, 8):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    plan = budgeted(builder, files=4).plan_clean(commits_retained=1)
    assert plan.is_partial
    assert plan.file_count == 4
    assert plan.earliest_to_retain.requested_time == at(4)
    assert plan.last_completed_commit == ""
    assert sorted(paths(plan)) == sorted(
        f"{path}/{TableBuilder.base_name(group, at(number))}"
        for path, group in (("r0", "f"), ("r1", "g"))
        for number in (1, 2)
    )


@pytest.mark.parametrize("layout", [1, 2])
def test_a_part_of_a_window_leaves_the_window_where_the_last_clean_left_it(layout):
    """After a clean up to c2, half of what c3's window frees goes and c2 stays recorded."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    builder.cleaned(at(6), earliest=at(2), last_commit=at(5))
    builder.commit(at(7), {"r0": ["f"], "r1": ["g"]})
    plan = budgeted(builder, files=1).plan_clean(commits_retained=1)
    assert plan.is_partial
    assert plan.file_count == 1
    assert plan.earliest_to_retain.requested_time == at(2)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_part_of_the_first_window_makes_the_next_plan_look_everywhere(layout):
    """The recorded instant lies before the timeline then, which Hudi answers with a full scan."""
    builder = TableBuilder(layout)
    for number in (1, 2):  # their commits are archived
        builder.put(f"r0/{TableBuilder.base_name('f', at(number))}")
        builder.put(f"r1/{TableBuilder.base_name('g', at(number))}")
    for number in (3, 4):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    budgeted(builder, files=1).clean(commits_retained=1)
    table = budgeted(builder, files=1)
    plan = table.plan_clean(commits_retained=1)
    assert plan.scope.everything
    assert plan.file_count == 1
    assert table.timeline.commits.is_before_start(
        table.contents.clean(table.timeline.completed("clean")[-1]).earliest_commit_to_retain
    )


@pytest.mark.parametrize("layout", [1, 2])
def test_replaced_groups_go_at_once_by_versions(layout):
    """Hudi's archiver takes every replaced group for cleaned after a clean by versions (rule D-9)."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "b", "c"], "r1": ["d"]})
    builder.commit(at(2), {"r1": ["d"]})
    builder.commit(at(3), {"r0": ["e"]}, replaced={"r0": ["a", "b", "c"]})
    plan = budgeted(builder, files=1).plan_clean(file_versions_retained=1)
    assert plan.is_partial
    assert set(plan.files) == {"r0"}
    assert plan.file_count == 3


@pytest.mark.parametrize(("limits", "count"), [({"partitions": 1}, 1), ({"bytes": 9}, 2), ({"bytes": 12}, 3)])
def test_every_kind_of_limit_holds(limits, count):
    """Partitions count those with a file to delete; a data file here has 4 bytes."""
    builder = TableBuilder(2)
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"], "r2": ["h"]})
    plan = budgeted(builder, **limits).plan_clean(file_versions_retained=1)
    assert plan.file_count == count
    assert plan.is_partial is (count < 3)


def test_a_removed_savepoint_is_not_forgotten_by_a_partial_plan():
    """The full scan that it calls for is called for again until it is finished."""
    builder = TableBuilder(2)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    builder.cleaned(at(4), earliest=at(3), last_commit=at(3), savepoints=[at(1)])
    builder.commit(at(5), {"r2": ["h"]})
    full = sorted(paths(builder.table().plan_clean(commits_retained=1)))
    deleted = []
    for _ in range(len(full)):
        (result,) = budgeted(builder, files=1).clean(commits_retained=1)
        deleted += result.deleted_files
        last = builder.table().timeline.completed("clean")[-1]
        assert builder.table().contents.clean(last).earliest_commit_to_retain >= at(3)
    assert sorted(deleted) == full
    assert budgeted(builder, files=1).clean(commits_retained=1) == []


@pytest.mark.parametrize(("limit", "cleaned"), [(None, 3), (9, 3), (5, 2), (3, 1), (1, 1)])
def test_files_of_failed_writes_count_in_the_limit_of_the_clean_that_rolls_them_back(limit, cleaned):
    """Three go so; one slice goes in any case, or the clean would never get on."""
    builder = TableBuilder()
    for number in range(1, 6):
        builder.commit(at(number), {"r0": ["f"]})
    builder.commit(at(6), {"r0": ["h", "i", "j"]}, state=State.INFLIGHT)
    before = len(data_files(builder.storage))
    table = builder.table(clean_failed_writes_policy="LAZY", clean_commits_retained=1)
    options = {} if limit is None else {"max_files": limit}
    (done,) = table.clean(**options)
    assert (done.deleted_count, before - len(data_files(builder.storage))) == (cleaned, cleaned + 3)
    assert done.has_more_to_do == (cleaned < 3)
