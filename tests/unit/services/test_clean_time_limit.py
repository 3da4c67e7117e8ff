"""A clean that runs out of time: nothing readable goes, the result says so, and the next clean does the rest."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.services.clean.executing import execute
from hudi_py.services.clean.planning import examination
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.clean_histories import make, policies, retained, steps
from support.crash_points import EVERY, interruptions
from support.laws import examples
from support.tables import TableBuilder, at
from support.tables import data_files as listed

MINUTE = timedelta(minutes=1)


def data_files(storage):
    return set(listed(storage))


class Ticking(DelegatingStorage):
    """Every call of *verb* takes a minute."""

    def __init__(self, builder, verb):
        super().__init__(builder.storage)
        self.clock, self.verb = builder.clock, verb

    def _around(self, verb, paths, call):
        result = call()
        if verb == self.verb:
            self.clock.move(MINUTE)
        return result


def limited(builder, verb="list", minutes=1):
    return Table(Ticking(builder, verb), settings={"hoodie_py.clean.max.duration": f"{minutes}m"}, clock=builder.clock)


@examples(60)
@given(st.sampled_from((1, 2)), steps, policies, retained, st.integers(1, 4))
def test_cleans_short_of_time_end_where_one_clean_ends(layout, history, policy, count, minutes):
    """Each run gets on without a new commit, and what no run had time for is not forgotten."""
    whole, short = make(layout, history), make(layout, history)
    now = whole.builder.clock.now()
    whole.builder.table().clean(now=now, **{policy: count})
    for _ in range(200):
        if not limited(short.builder, minutes=minutes).clean(now=now, **{policy: count}):
            break
    else:
        pytest.fail("the cleans never end")
    assert data_files(short.builder.storage) == data_files(whole.builder.storage)
    assert examination.UNSEEN.path not in short.builder.storage.files()


@examples(40)
@given(
    st.sampled_from((1, 2)),
    steps,
    policies,
    retained,
    st.fixed_dictionaries(
        {"max_duration": st.sampled_from(("1m", MINUTE, timedelta(minutes=3)))},
        optional={
            "max_files": st.integers(1, 3),
            "max_partitions": st.integers(1, 2),
            "max_bytes": st.sampled_from((1, 9, 40)),
        },
    ),
    st.sampled_from(("list", "delete_many")),
)
def test_budgets_and_a_time_limit_together_end_where_one_clean_ends(layout, history, policy, count, limits, verb):
    """Given as keywords for a run: whichever is reached first ends it, and all runs together leave nothing out."""
    whole, short = make(layout, history), make(layout, history)
    now = whole.builder.clock.now()
    whole.builder.table().clean(now=now, **{policy: count})
    before = data_files(short.builder.storage)
    for _ in range(200):
        table = Table(Ticking(short.builder, verb), clock=short.builder.clock)
        if not table.clean(now=now, **{policy: count}, **limits):
            break
        left = data_files(short.builder.storage)
        assert left <= before
        before = left
    else:
        pytest.fail("the cleans never end")
    assert before == data_files(whole.builder.storage)


@pytest.mark.parametrize(
    ("limit", "holds"),
    [
        ({"max_files": 1}, lambda plan: plan.file_count == 1),
        ({"max_partitions": 1}, lambda plan: len(plan.files) == 1),
        ({"max_bytes": 1}, lambda plan: plan.file_count == 1),
        ({"max_duration": MINUTE}, lambda plan: len(plan.files) < 4),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_each_limit_is_a_keyword_of_a_plan(limit, holds):
    """A plan under a limit is partial; None is none."""
    builder = partitions_table(2)
    table = Table(Ticking(builder, "list"), clock=builder.clock)
    plan = table.plan_clean(commits_retained=1, **limit)
    assert plan.is_partial
    assert holds(plan)
    whole = table.plan_clean(commits_retained=1, **dict.fromkeys(limit))
    assert not whole.is_partial
    assert whole.file_count > plan.file_count


def partitions_table(layout, count=4):
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {f"r{each}": ["f"] for each in range(count)})
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_a_plan_short_of_time_says_so_and_leaves_whole_partitions(layout):
    """Each listing takes a minute: the root and one partition fit, the rest is named as not looked at."""
    builder = partitions_table(layout)
    plan = limited(builder, minutes=2).plan_clean(commits_retained=1)
    assert plan.is_partial
    assert plan.unseen.everything
    assert 0 < len(plan.files) < 4
    assert examination.UNSEEN.path not in builder.storage.files(), "a plan that is only shown leaves nothing"


@pytest.mark.parametrize("layout", [1, 2])
def test_something_is_always_found_however_little_time_there_is(layout):
    """Partitions without garbage before the first one with some: otherwise no clean would ever get past them."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {f"a{each}": ["f"] for each in range(5)})
    for number in (2, 3, 4):
        builder.commit(at(number), {"z": ["f"]})
    assert limited(builder).clean(commits_retained=1)[0].deleted_count == 1


@pytest.mark.parametrize("layout", [1, 2])
def test_what_an_incremental_plan_had_no_time_for_is_planned_next(layout):
    """The recorded window has passed those partitions, so they are remembered by name."""
    builder = partitions_table(layout)
    builder.table().clean(commits_retained=1)
    builder.commit(at(5), {f"r{each}": ["f"] for each in range(4)})
    first = limited(builder).clean(commits_retained=1)
    plan = builder.table().plan_clean(commits_retained=1)
    assert not plan.scope.everything
    assert len(first[0].metadata.partitions) + len(plan.files) == 4
    assert not set(first[0].metadata.partitions) & set(plan.files)


@pytest.mark.parametrize("layout", [1, 2])
def test_replaced_groups_are_never_left_for_want_of_time(layout):
    """The archiver drops replacecommits before the recorded window, and their groups would live again (rule D-9)."""
    builder = partitions_table(layout)
    builder.commit(at(4), {"r3": ["g"]}, replaced={"r3": ["f"]})
    builder.commit(at(5), {"r0": ["f"]})
    plan = limited(builder).plan_clean(commits_retained=1)
    assert plan.unseen
    assert "r3" in plan.files


@pytest.mark.parametrize("layout", [1, 2])
def test_an_execution_short_of_time_stays_pending_and_is_finished(layout, monkeypatch):
    """Between rounds of deletions the clock is looked at; what is left is deleted by the same plan."""
    monkeypatch.setattr(execute, "TASK_FILES_MAX_TIMED", 1)
    builder = partitions_table(layout, count=20)
    before = data_files(builder.storage)
    builder.table().services.clean(builder.table().services.clean_config(commits_retained=1)).schedule()
    (first,) = limited(builder, "delete_many").clean(commits_retained=1)
    assert not first.is_finished
    assert builder.table().timeline.pending("clean")
    assert set(first.deleted_files) == before - data_files(builder.storage)
    (second,) = builder.table().clean(commits_retained=1)
    assert second.is_finished
    assert second.instant == first.instant
    assert set(first.deleted_files) | set(second.deleted_files) == before - data_files(builder.storage)
    assert set(second.missing_files) == set(first.deleted_files)


def unfinished(layout):
    """A clean had no time for three partitions; nobody has written there since its window began."""
    builder = partitions_table(layout)
    builder.table().clean(commits_retained=1)
    builder.commit(at(5), {f"r{each}": ["f"] for each in range(4)})
    builder.commit(at(6), {"r0": ["f"]})
    limited(builder).clean(commits_retained=1)
    assert len(examination.UNSEEN.load(builder.storage).partitions) == 3
    builder.commit(at(7), {"r0": ["f"]})
    return builder


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("retained", "name", "value"),
    [(1, "hoodie_py.clean.breaker.max.share", 0.01), (1, "hoodie.clean.trigger.max.commits", 100), (4, None, None)],
    ids=["refused", "not due", "longer retention"],
)
def test_what_was_left_is_not_forgotten_by_a_run_that_stores_nothing(layout, retained, name, value):
    """It was looked at again, but nothing of it went: the next clean has to look there too."""
    builder = unfinished(layout)
    table = Table(builder.storage, settings={name: value} if name else None, clock=builder.clock)
    with suppress(RefusedError):
        assert table.clean(commits_retained=retained) == []
    (result,) = builder.table().clean(commits_retained=1)
    assert {path.partition("/")[0] for path in result.deleted_files} == {f"r{each}" for each in range(4)}
    assert examination.UNSEEN.path not in builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_a_budget_for_what_was_left_does_not_forget_the_rest(layout):
    """The budget takes a part of what the plan looks at; the window has passed the other part's partitions."""
    builder = unfinished(layout)
    while Table(builder.storage, settings={"hoodie_py.clean.max.files": 1}, clock=builder.clock).clean(
        commits_retained=1
    ):
        pass
    left = data_files(builder.storage)
    builder.table(clean_incremental_enabled=False).clean(commits_retained=1)
    assert data_files(builder.storage) == left


@pytest.mark.slow
@pytest.mark.parametrize("layout", [1, 2])
def test_interrupted_anywhere_what_was_left_is_not_forgotten(layout, record_property):
    """Between looking there again and storing the plan a crash must find the note still there."""
    fresh = unfinished(layout)
    whole = fresh.storage.copy()
    Table(whole, clock=fresh.clock).clean(commits_retained=1)
    count = 0
    for case in interruptions(fresh.storage.copy):
        count += case.run(lambda storage: Table(storage, clock=fresh.clock).clean(commits_retained=1))
        for _ in range(2):  # what is pending, then what is left
            Table(case.storage, clock=fresh.clock).clean(commits_retained=1)
        assert data_files(case.storage) == data_files(whole), case
    record_property("interruptions", count)
    assert count * EVERY > 20


def test_a_damaged_note_costs_nothing_but_a_look():
    """What it said is unknown, so the next plan looks everywhere."""
    builder = partitions_table(2)
    limited(builder).clean(commits_retained=1)
    builder.put(examination.UNSEEN.path, b"{")
    assert builder.table().plan_clean(commits_retained=1).scope.everything


@pytest.mark.parametrize("value", ["soon", "0s", "-1m", "5"])
def test_a_duration_that_is_none_is_refused(value):
    """A number with its unit, and more than nothing."""
    builder = partitions_table(2)
    with pytest.raises(ConfigError, match=r"hoodie_py\.clean\.max\.duration"):
        Table(builder.storage, settings={"hoodie_py.clean.max.duration": value}).services.clean_config()
    assert Settings({"hoodie_py.clean.max.duration": "90m"})
