"""A clean that finds nothing still brings the next one forward, and never changes what is deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant import State
from hudi_py.services.clean.planning.progress import PROGRESS
from support.clean_histories import make, paths, retained, steps
from support.laws import examples
from support.tables import TableBuilder, at, data_files

WINDOWS = st.sampled_from(("commits_retained", "hours_retained"))


def quiet(layout):
    """Five commits into as many groups: nothing is ever superseded."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {f"r{number}": ["f"]})
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_the_plan_after_an_empty_clean_is_incremental(layout):
    """Hudi would look everywhere again, for ever."""
    builder = quiet(layout)
    assert builder.table().plan_clean(commits_retained=2).scope.everything
    assert builder.table().clean(commits_retained=2) == []
    builder.commit(at(6), {"r4": ["f"]})
    plan = builder.table().plan_clean(commits_retained=2, details=True)
    assert not plan.scope.everything
    assert "a clean that found nothing got there" in plan.scope.reason
    assert {v.file_slice.partition_path for v in plan.verdicts} == {"r4"}
    assert not [i for i in builder.table().timeline if i.action.value == "clean"]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b"{}", b'{"earliest": 1, "savepoints": []}'])
def test_what_is_remembered_may_be_lost_or_damaged(layout, content):
    """Then everything is looked at."""
    builder = quiet(layout)
    builder.table().clean(commits_retained=2)
    builder.put(PROGRESS.path, content)
    assert builder.table().plan_clean(commits_retained=2).scope.everything


@pytest.mark.parametrize("layout", [1, 2])
def test_progress_counts_only_while_its_commit_stands(layout):
    """A restore took the commit away: what was found then says nothing now."""
    builder = quiet(layout)
    builder.put(PROGRESS.path, b'{"earliest": "20260101220000000", "savepoints": []}')
    assert builder.table().plan_clean(commits_retained=2).scope.everything


@pytest.mark.parametrize("layout", [1, 2])
def test_nothing_is_remembered_while_something_older_may_still_complete(layout):
    """By hours the window passes a pending commit; completed, that commit supersedes something older."""
    builder = quiet(layout)
    builder.commit(at(2)[:-3] + "500", {"r1": ["f"]}, state=State.INFLIGHT)
    assert builder.table().clean(hours_retained=1, now=builder.clock.moment.replace(month=1, hour=5)) == []
    assert PROGRESS.path not in builder.storage.files()


@examples(80)
@given(st.sampled_from((1, 2)), steps, steps, WINDOWS, retained, WINDOWS, retained)
def test_remembering_never_changes_what_is_deleted(layout, first, second, policy, count, policy_then, count_then):
    """The same history with the memory wiped before the second clean: the same plan."""
    length = len(first) + len(second)
    made = make(layout, [*first, *second][:14])
    made.builder.table().clean(**{policy: count})
    for number in range(1, 3):
        made.builder.commit(at(length + 1 + number), {"r0": [made.group], "r1": [f"new{number}"]})
    with_memory = paths(made.builder.table().plan_clean(**{policy_then: count_then}))
    made.builder.storage.delete(PROGRESS.path)
    assert with_memory == paths(made.builder.table().plan_clean(**{policy_then: count_then}))
    assert data_files(made.builder.storage)
