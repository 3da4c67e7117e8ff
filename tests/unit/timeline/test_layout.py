"""Names and states of instants against the tables of rules/timeline 2.1 and 3.1."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hudi_py.errors import ConflictError, TimelineStateError
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.timeline.timeline import build_timeline
from hudi_py.versions.layout import LAYOUT_V1, LAYOUT_V2
from support.laws import examples
from support.tables import TableBuilder

LAYOUTS = {1: LAYOUT_V1, 2: LAYOUT_V2}
T, C = "20260101000000000", "20260101000000005"

# The table of rules/timeline 2.1: requested, inflight, completed in layouts 1 and 2. None: there is no such file.
NAMES = {
    Action.COMMIT: ("commit.requested", "inflight", "commit", "commit"),
    Action.DELTA_COMMIT: ("deltacommit.requested", "deltacommit.inflight", "deltacommit", "deltacommit"),
    Action.COMPACTION: ("compaction.requested", "compaction.inflight", None, None),
    Action.LOG_COMPACTION: ("logcompaction.requested", "logcompaction.inflight", None, None),
    Action.CLEAN: ("clean.requested", "clean.inflight", "clean", "clean"),
    Action.ROLLBACK: ("rollback.requested", "rollback.inflight", "rollback", "rollback"),
    Action.RESTORE: ("restore.requested", "restore.inflight", "restore", "restore"),
    Action.SAVEPOINT: (None, "savepoint.inflight", "savepoint", "savepoint"),
    Action.REPLACE_COMMIT: ("replacecommit.requested", "replacecommit.inflight", "replacecommit", "replacecommit"),
    Action.CLUSTERING: ("clustering.requested", "clustering.inflight", None, None),
    Action.INDEXING: ("indexing.requested", "indexing.inflight", "indexing", "indexing"),
}
COMPLETES_AS = {  # rules/timeline 2.1, right column
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
CASES = list(itertools.product((1, 2), Action, State))


def word_of(layout, action, state):
    """What the table says."""
    if layout == 1 and action is Action.CLUSTERING:
        return None
    requested, inflight, first, second = NAMES[action]
    return (requested, inflight, first if layout == 1 else second)[state]


@pytest.mark.parametrize(("layout", "action", "state"), CASES, ids=str)
def test_each_instant_has_the_name_of_the_table_and_is_parsed_from_it(layout, action, state):
    """Names and instants are one to one; what has no name is refused."""
    completion = C if layout == 2 and state is State.COMPLETED else None
    instant = Instant(T, action, state, completion)
    word = word_of(layout, action, state)
    if word is None:
        with pytest.raises(TimelineStateError):
            LAYOUTS[layout].file_name(instant)
        return
    name = f"{T}_{C}.{word}" if completion else f"{T}.{word}"
    assert LAYOUTS[layout].file_name(instant) == name
    assert LAYOUTS[layout].parse(name) == instant


NO_INSTANTS = [
    "hoodie.properties",
    "hoodie.properties.backup",
    f".{T}.commit.crc",
    f"{T}.commit.0b4c5b1e-3a52-4f6e-9d4e-7a2b7c1d0e5f",
    f"{T}.commit.inflight",
    f"{T}.savepoint.requested",
    f"{T}.commit.requested.crc",
    f"{T}.schemacommit",
    f"{T}_{C}.clean.requested",
    f"{T}_{C}.inflight",
    f"{T}_.clean",
    f"_{C}.clean",
    f"{T}_{C}_{C}.clean",
    "x.clean",
    ".clean",
    "clean",
    "",
    "٢٠٢٦٠١٠١.clean",
    "²0260101000000000.clean",
    f"{T} .clean",
    f"{T}.CLEAN",
    f"{T}.clean ",
    "history",
    "archived",
]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("name", NO_INSTANTS)
def test_everything_else_in_the_folder_is_passed_over(layout, name):
    """Properties, side files, temporary files, folders, names that nobody writes."""
    assert LAYOUTS[layout].parse(name) is None
    assert build_timeline([name], LAYOUTS[layout]).instants == ()


@examples(300)
@given(st.lists(st.text(max_size=40)), st.sampled_from((LAYOUT_V1, LAYOUT_V2)))
def test_any_names_make_a_timeline(names, layout):
    """No name stops the listing, and the fast path agrees with the parser."""
    timeline = build_timeline(names, layout)
    parsed = [instant for name in names if (instant := layout.parse(name)) is not None]
    assert set(timeline.all_states) == set(parsed)
    assert {(i.requested_time, i.comparable_action) for i in timeline} == {
        (i.requested_time, i.comparable_action) for i in parsed
    }


@pytest.mark.parametrize("layout", [LAYOUT_V1, LAYOUT_V2])
def test_highest_state_counts_and_order_of_listing_does_not(layout):
    """One entry per time and comparable action (rules/timeline 7)."""
    second = layout is LAYOUT_V2
    done = f"{T}_{C}.commit" if second else f"{T}.commit"
    names = [f"{T}.compaction.requested", f"{T}.compaction.inflight", done, f"{T}.savepoint.inflight"]
    for order in itertools.permutations(names):
        timeline = build_timeline(order, layout)
        assert [(i.action, i.state) for i in timeline] == [
            (Action.COMMIT, State.COMPLETED),
            (Action.SAVEPOINT, State.INFLIGHT),
        ]
        assert len(timeline.all_states) == 4


def test_two_completed_files_of_one_clean_count_as_one():
    """A-75: the newest completion."""
    for order in ([C, "20260101000000009"], ["20260101000000009", C]):
        timeline = build_timeline([f"{T}_{time}.clean" for time in order], LAYOUT_V2)
        assert [i.completion_time for i in timeline] == ["20260101000000009"]


class StateMachine(RuleBasedStateMachine):
    """Any sequence of calls on a store against the transition table of rules/timeline 3.1."""

    layout = 2

    def __init__(self):
        super().__init__()
        self.builder = TableBuilder(self.layout)
        first = "20250101000000000"  # without a write, cleans and savepoints are what is left of a lost timeline
        self.builder.commit(first, {"eu": ["a"]})
        self.store = self.builder.table().contents.store
        self.states = {(first, Action.COMMIT): State.COMPLETED}  # (time, action as requested) -> state
        self.completed = {}

    def instant(self, time, action):
        return Instant(time, action, self.states[time, action])

    actions = st.sampled_from(list(Action))
    times = st.sampled_from([f"2026010100000000{digit}" for digit in range(3)])

    @rule(time=times, action=actions)
    def request(self, time, action):
        """A new instant starts as requested, once; savepoints and layout-1 clusterings have no such file."""
        if word_of(self.layout, action, State.REQUESTED) is None:
            with pytest.raises(TimelineStateError):
                self.store.request(action, time, b"")
        elif (time, action) in self.states:
            with pytest.raises(ConflictError):
                self.store.request(action, time, b"")
        else:
            assert self.store.request(action, time, b"") == Instant(time, action, State.REQUESTED)
            self.states[time, action] = State.REQUESTED

    @rule(time=times, action=actions, state=st.sampled_from(list(State)))
    def transition(self, time, action, state):
        """Only from where the instant is, and only one state further."""
        known = self.states.get((time, action))
        if known is None or state is State.COMPLETED or state > known:
            # whose file is missing may have been rolled back by another writer: that is a conflict
            refusals = TimelineStateError if state is State.COMPLETED else (TimelineStateError, ConflictError)
            with pytest.raises(refusals):
                self.store.transition(Instant(time, action, state), b"x", completion_time=C)
            return
        target = COMPLETES_AS.get(action, action)
        if state is State.INFLIGHT:
            if (time, target) in self.completed:
                with pytest.raises(ConflictError):
                    self.store.complete(Instant(time, action, state), b"x")
                return
            done = self.store.complete(Instant(time, action, state), b"x")
            self.states[time, action] = State.COMPLETED
            self.completed[time, target] = done
            assert (done.action, done.state) == (target, State.COMPLETED)
            assert (done.completion_time is None) is (self.layout == 1)
            assert done.completion_time is None or done.completion_time > time
        elif known is State.REQUESTED:
            assert self.store.transition(Instant(time, action, state), b"x").state is State.INFLIGHT
            self.states[time, action] = State.INFLIGHT
        else:
            with pytest.raises(ConflictError):
                self.store.transition(Instant(time, action, state), b"x")

    @invariant()
    def timeline_tells_the_truth(self):
        """Loaded again, every instant is in the state that the table of transitions gives it."""
        highest = {}
        for (time, action), state in self.states.items():
            key = (time, COMPARABLE_ACTION[action])
            highest[key] = max(state, highest.get(key, State.REQUESTED))
        assert {(i.requested_time, i.comparable_action): i.state for i in self.store.load()} == highest

    @invariant()
    def completion_times_grow(self):
        """In the order of completion (rules/timeline 2.4)."""
        times = [done.completion_time for done in self.completed.values() if done.completion_time]
        assert times == sorted(set(times))


class StateMachineOfLayout1(StateMachine):
    """The same for layout 1."""

    layout = 1


TestLayout2 = StateMachine.TestCase
TestLayout1 = StateMachineOfLayout1.TestCase
for case in (TestLayout1, TestLayout2):
    case.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
