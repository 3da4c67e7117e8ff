"""Views on a timeline (rules/timeline 7) and what decides about slices (rules/table-services 0)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.table import TableType
from hudi_py.fsview.build import ViewContext, build_partition, latest_base_files, latest_slices
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from hudi_py.timeline.timeline import Timeline, build_timeline
from hudi_py.versions.format import LogNaming
from hudi_py.versions.served import FORMATS
from support.laws import examples
from support.tables import TableBuilder, at, done

VIEWS = {
    "commits": {"commit", "deltacommit", "replacecommit", "clustering"},
    "commits_and_compaction": {"commit", "deltacommit", "replacecommit", "clustering", "compaction"},
    "writes": {"commit", "deltacommit", "replacecommit", "clustering", "compaction", "logcompaction"},
}


def timeline_of_everything():
    """One instant per action and state."""
    pairs = [(action, state) for action in Action for state in State]
    return Timeline(tuple(Instant(at(number), *pair) for number, pair in enumerate(pairs)))


@pytest.mark.parametrize("view", VIEWS)
def test_views_hold_the_actions_of_the_table_in_all_states(view):
    """The vocabulary of rules/table-services 0."""
    found = getattr(timeline_of_everything(), view)
    assert {instant.action.value for instant in found} == VIEWS[view]
    assert len(found) == 3 * len(VIEWS[view])


def test_view_of_files_holds_completed_writes_and_pending_compactions():
    """``TL.view``."""
    for instant in timeline_of_everything().view:
        assert instant.is_completed or instant.action.value in {"compaction", "logcompaction"}
        assert instant.action.value in VIEWS["writes"]
    assert len(timeline_of_everything().view) == 6 + 2 * 2


def test_commits_of_the_table_type():
    """``TL.table``: delta commits count on merge-on-read tables only."""
    everything = timeline_of_everything()
    cow, mor = (
        {i.action.value for i in everything.table_commits(each)}
        for each in (TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ)
    )
    assert cow == {"commit", "replacecommit", "clustering"}
    assert mor == cow | {"deltacommit"}


def test_start_is_the_first_time_that_is_not_savepointed():
    """Archival may have passed over savepointed instants, so they prove nothing."""
    made = [(1, Action.COMMIT), (1, Action.SAVEPOINT), (3, Action.COMMIT)]
    timeline = Timeline(tuple(Instant(at(number), action, State.COMPLETED) for number, action in made))
    assert timeline.start == at(3)
    assert timeline.is_before_start(at(2))
    assert not timeline.is_before_start(at(3))
    assert not Timeline(()).is_before_start(at(1))


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(list(Action)), st.sampled_from(list(State)))))
def test_find_and_last_time_agree_with_a_search_through_all(made):
    """Whatever is on the timeline."""
    ordered = sorted(dict.fromkeys(made), key=lambda each: (each[0], each[1].value))
    timeline = Timeline(
        tuple(Instant(at(n), a, s, done(at(n)) if s is State.COMPLETED else None) for n, a, s in ordered)
    )
    for number in range(31):
        same = [i for i in timeline if i.requested_time == at(number)]
        assert timeline.find(at(number)) == (same[0] if same else None)
        for action in Action:
            found = [
                i for i in same if i.comparable_action is Instant(at(0), action, State.REQUESTED).comparable_action
            ]
            assert timeline.find(at(number), action) == (found[0] if found else None)
    times = [t for i in timeline for t in (i.requested_time, i.completion_time) if t]
    assert timeline.last_time == max(times, default=None)
    assert sorted([*timeline.completed(), *timeline.pending()], key=timeline.instants.index) == list(timeline)


@pytest.mark.parametrize("layout", [1, 2])
def test_loading_costs_one_listing_and_contents_are_read_once(layout):
    """Lazily, and never twice."""
    builder = TableBuilder(layout)
    for number in range(1, 20):
        builder.commit(at(number), {"r0": ["f"]})
    storage = RecordingStorage(builder.storage)
    table = Table(storage)
    storage.clear()
    assert len(table.timeline) == 19
    assert dict(storage.counts) == {"list": 1}
    for _ in range(3):
        table.contents.commit(table.timeline.completed("commit")[-1])
    assert dict(storage.counts) == {"list": 1, "read": 1}


def context(layout=2, *, visible=(), completed=(), first=None, last=None, **more):
    return ViewContext(
        log_naming=LogNaming.BY_SLICE if layout == 1 else LogNaming.BY_WRITE,
        visible_times=frozenset(visible),
        first_time=first,
        last_time=last,
        completed_times=frozenset(completed),
        **more,
    )


def test_z1_z2_slices_are_newest_first_and_committed_ones_only():
    """In the view, or before its start; never after its end, never of a pending instant."""
    names = [(TableBuilder.base_name("f", at(number)), 1) for number in (5, 1, 4, 2, 3, 9)]
    view = context(visible=[at(3), at(5)], completed=[at(3), at(5)], first=at(3), last=at(5), pending_times={at(2)})
    partition = build_partition(view, "p", names)
    (group,) = partition.groups
    assert [each.base_instant_time for each in group.slices] == [at(5), at(3), at(1)]
    assert {each.base_instant_time for each in partition.uncommitted} == {at(2), at(4), at(9)}


def test_nothing_is_visible_on_an_empty_timeline():
    """Files without any instant are nobody's."""
    partition = build_partition(context(), "p", [(TableBuilder.base_name("f", at(1)), 1)])
    assert latest_slices(context(), partition) == ()
    assert latest_base_files(context(), partition) == ()


def test_z4_layout_1_logs_follow_the_base_instant_in_their_name():
    """Whenever they were written."""
    names = [(TableBuilder.base_name("f", at(number)), 1) for number in (1, 4)]
    names += [(f".f_{at(1)}.log.{version}_0-1-0", 1) for version in (2, 10, 1)]
    view = context(1, visible=[at(1), at(4)], completed=[at(1), at(4)], first=at(1), last=at(4))
    (group,) = build_partition(view, "p", names).groups
    assert [len(each.log_files) for each in group.slices] == [0, 3]
    assert [log.version for log in group.slices[1].log_files] == [1, 2, 10]


@pytest.mark.parametrize(("completion", "position"), [(at(3), 1), (at(4), 0), (at(9), 0), (None, 0)])
def test_z4_layout_2_logs_follow_the_completion_of_their_delta_commit(completion, position):
    """The newest slice that was there when it completed; the newest of all while it is pending."""
    names = [(TableBuilder.base_name("f", at(number)), 1) for number in (1, 4)] + [(f".f_{at(2)}.log.1_0-1-0", 1)]
    times = [at(1), at(2), at(4)]
    completions = {} if completion is None else {at(2): completion}
    view = context(visible=times, completed=times, first=at(1), last=at(4), completion_times=completions)
    (group,) = build_partition(view, "p", names).groups
    assert [bool(each.log_files) for each in group.slices] == [position == 0, position == 1]


@pytest.mark.parametrize(("completion", "time"), [(at(5), at(1)), (at(7), at(6)), (None, at(9))])
def test_z4_layout_2_logs_pass_over_base_files_that_nobody_is_shown(completion, time):
    """
    Of a write that failed or runs (at 3), and of a later one than the end of the view (at 9): a delete there would come
    to nothing. A log file whose own write is pending stays on the newest slice of all, as in Hudi.
    """
    names = [(TableBuilder.base_name("f", at(number)), 1) for number in (1, 3, 6, 9)] + [(f".f_{at(4)}.log.1_0-1-0", 1)]
    done = [at(1), at(4), at(6)]
    completions = {} if completion is None else {at(4): completion}
    view = context(
        visible=done, completed=done, first=at(1), last=at(6), completion_times=completions, pending_times={at(3)}
    )
    partition = build_partition(view, "p", names)
    slices = [*partition.groups[0].slices, *partition.uncommitted]
    assert [each.base_instant_time for each in slices if each.log_files] == [time]


def test_leftover_of_a_retried_task_does_not_make_a_second_file():
    """One base file per slice: the larger write token, as Hudi's map keeps the last one."""
    names = [f"f_{token}_{at(1)}.parquet" for token in ("0-1-1", "0-1-0")]
    view = context(visible=[at(1)], completed=[at(1)], first=at(1), last=at(1))
    partition = build_partition(view, "p", [(name, 1) for name in names])
    assert [base.name for base in latest_base_files(view, partition)] == [names[0]]


@examples(300)
@given(st.text(max_size=60))
def test_any_file_name_is_parsed_or_passed_over(name):
    """No name stops a view; what is parsed gives its name back."""
    for parse in (parse_base_file, parse_log_file):
        found = parse(name)
        assert found is None or found.name == name
    view = context(visible=[at(1)], completed=[at(1)], first=at(1), last=at(1))
    partition = build_partition(view, "p", [(name, 1)])
    assert len(partition.other_names) + len(partition.groups) == 1


def test_the_same_names_give_the_same_value_in_each_layout():
    """A listing without news costs no second reading of its names; another layout reads them in another way."""
    one, two = (FORMATS[version].layout for version in (6, 9))
    names = [f"{at(1)}.commit", f"{at(1)}_{at(2)}.commit"]
    assert build_timeline(iter(names), two) is build_timeline(list(names), two)
    assert build_timeline(names, one) is not build_timeline(names, two)
    assert build_timeline(names[:1], two) is not build_timeline(names, two)
