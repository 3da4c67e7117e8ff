"""Who needs a file, and by which rule: each need alone, and against the planner and Hudi's own plans."""

from itertools import combinations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.formats import records_codec as codec
from hudi_py.fsview.build import PendingOperation
from hudi_py.fsview.fate import Promise, Protection, judge_partition_files, without_writes
from hudi_py.fsview.loader import load_facts
from hudi_py.fsview.needs import Failed, Latest, Needed, Pending, Removable, Rule, Savepoint, Snapshot, Unknown
from hudi_py.model.files import BaseFile, FileSlice
from hudi_py.model.instant import Action, State
from hudi_py.model.records import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    InstantInfo,
    RequestedReplaceMetadata,
    RestorePlan,
    RollbackPlan,
)
from support import fixtures
from support.crash_states import open_real, real_table
from support.laws import examples
from support.tables import SYNC, TableBuilder, at

NAME = TableBuilder.base_name


def facts_of(builder, promise=Promise()):  # noqa: B008 - frozen
    table = builder.table()
    return load_facts(table.timeline, table.contents, promise=promise)


def fates(builder, promise=Promise(), partition="r0"):  # noqa: B008 - frozen
    """The fate of each file of one partition, by what it is."""
    names = [entry.name for entry in builder.storage.list(partition)]
    judged = judge_partition_files(facts_of(builder, promise), partition, names)
    return {name: judged.of(name) for name in names if not name.startswith(".hoodie")}


def three_versions(layout=2, **builder):
    """Group ``a`` written by the first three commits."""
    made = TableBuilder(layout, **builder)
    for number in (1, 2, 3):
        made.commit(at(number), {"r0": ["a"]})
    return made


def undo(builder, number):
    """What a finished rollback of the newest commit leaves: neither its instant nor its file."""
    for path in builder.storage.files():
        if at(number) in path:
            builder.storage.delete(path)


def cluster(builder, time, name, partition="r0"):
    """A requested clustering that reads one file."""
    file_slice = ClusteringSlice(
        file_id="a", partition_path=partition, data_file_path=f"file:///lake/trips/{partition}/{name}"
    )
    requested = RequestedReplaceMetadata(
        operation_type="CLUSTER",
        clustering_plan=ClusteringPlan(input_groups=(ClusteringGroup(slices=(file_slice,)),)),
    )
    word = "replacecommit" if builder.layout.version == 1 else "clustering"
    builder.instant(time, word, State.REQUESTED, codec.encode_requested_replace(requested, sync=SYNC))


def compacted():
    """A slice of a base and a log file below one that a compaction made, and the names of the three files."""
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("r0", "a", at(1))])
    builder.commit(at(3), {"r0": ["a"]})
    return builder, NAME("a", at(1)), f".a_{at(2)}.log.1_0-1-0", NAME("a", at(3))


HOLDERS = {
    "savepoint": (lambda builder, name: builder.savepoint(at(1), {"r0": [name]}), Savepoint(at(1))),
    "clustering": (lambda builder, name: cluster(builder, at(4), name), Pending(Action.CLUSTERING, at(4))),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("named", [0, 1])
def test_who_names_one_file_of_a_slice_holds_all_of_it(holder, named):
    """Without the base or without the logs a slice has other rows (A-39)."""
    builder, *names, newest = compacted()
    hold, need = HOLDERS[holder]
    hold(builder, names[named])
    found = fates(builder)
    assert [found[name] for name in names] == [Needed((need,))] * 2
    assert found[newest] == Needed((Latest(),))


def test_a_pending_compaction_needs_nothing_below_the_slice_that_it_reads():
    """Older slices of its group are garbage as before, and so are other groups."""
    builder, base, log, newest = compacted()
    builder.compaction(at(5), [("r0", "a", at(3), [])])
    found = fates(builder)
    assert found[base] == found[log] == Removable(Rule.SUPERSEDED)
    assert found[newest] == Needed((Latest(), Pending(Action.COMPACTION, at(5))))


def test_a_pending_compaction_holds_what_it_names_of_another_group():
    """K-15: its plan contradicts the table, so nothing that it names goes."""
    builder = TableBuilder(table_type="MERGE_ON_READ")
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a", "b"]}, action="deltacommit")
    builder.compaction(at(3), [("r0", "b", at(2), [NAME("a", at(1))])])
    found = fates(builder)
    assert found[NAME("a", at(1))] == Needed((Pending(Action.COMPACTION, at(3)),))
    assert found[NAME("b", at(1))] == Removable(Rule.SUPERSEDED)


def test_a_pending_compaction_does_not_hold_a_replaced_group():
    """A-47: nothing of it is read any more."""
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.compaction(at(2), [("r0", "a", at(1), [])])
    builder.commit(at(3), {"r0": ["b"]}, replaced={"r0": ["a"]})
    assert fates(builder)[NAME("a", at(1))] == Removable(Rule.REPLACED)


def slice_of(file_id, time, partition="r0"):
    return FileSlice(partition, file_id, time, BaseFile(NAME(file_id, time), file_id, "0-1-0", time))


def test_a_savepoint_holds_slices_of_its_files_and_no_others():
    """A-39, partition by partition."""
    protection = Protection(savepointed_files={"r0": frozenset({NAME("a", at(1))})})
    held = [slice_of("a", at(1)), slice_of("a", at(2)), slice_of("b", at(1)), slice_of("a", at(1), "r1")]
    assert [protection.is_savepointed(each) for each in held] == [True, False, False, False]


@pytest.mark.parametrize("is_log_compaction", [False, True])
def test_a_pending_compaction_is_called_what_it_is(is_log_compaction):
    """Its way out depends on it."""
    builder = three_versions()
    facts = facts_of(builder)
    operation = PendingOperation(at(4), at(3), is_log_compaction, ())
    facts = attrs.evolve(facts, protection=Protection(pending={("r0", "a"): operation}))
    name = NAME("a", at(3))
    action = Action.LOG_COMPACTION if is_log_compaction else Action.COMPACTION
    assert judge_partition_files(facts, "r0", [name]).of(name) == Needed((Latest(), Pending(action, at(4))))


def test_a_pending_compaction_holds_its_slice_by_time_and_by_name():
    """A-40: from the base that it reads on; K-15: whatever it names, should its base be another one."""
    operation = PendingOperation(at(5), at(2), False, ())
    protection = Protection(pending={("r0", "a"): operation})
    assert [protection.is_pending(slice_of("a", at(number))) for number in (1, 2, 3)] == [False, True, True]
    assert not protection.is_pending(slice_of("b", at(2)))
    assert not protection.is_pending(slice_of("a", at(2), "r1"))
    named = attrs.evolve(protection, pending_files={("r0", NAME("a", at(1))): operation})
    assert [named.is_pending(slice_of("a", at(1), partition)) for partition in ("r0", "r1")] == [True, False]
    assert not named.is_pending(slice_of("b", at(1)))


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("holder", ["savepoint", "clustering", "compaction"])
def test_a_file_that_somebody_names_stays_even_if_it_counts_as_failed(layout, holder):
    """Two records contradict each other, and on doubt nothing goes; the other files of the write stay failed ones."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.commit(at(2), {"r0": ["a", "b"]}, action="deltacommit", state=State.INFLIGHT)
    name = NAME("a", at(2))
    if holder == "savepoint":
        builder.savepoint(at(1), {"r0": [name]})
    elif holder == "clustering":
        cluster(builder, at(4), name)
    else:
        builder.compaction(at(4), [("r0", "a", at(2), [])])
    found = fates(builder)
    assert isinstance(found[name], Needed)
    assert found[NAME("b", at(2))] == Failed(at(2))


@pytest.mark.parametrize("layout", [1, 2])
def test_only_the_newest_slice_is_needed_without_a_promise(layout):
    """Older slices are superseded; once the newest is rolled back, the one below is the newest."""
    builder = three_versions(layout)
    superseded, latest = Removable(Rule.SUPERSEDED), Needed((Latest(),))
    assert fates(builder) == {
        NAME("a", at(1)): superseded,
        NAME("a", at(2)): superseded,
        NAME("a", at(3)): latest,
    }
    undo(builder, 3)
    assert fates(builder) == {NAME("a", at(1)): superseded, NAME("a", at(2)): latest}


def test_promised_times_need_what_they_show():
    """From the earliest one on every snapshot, before it the single ones."""
    builder = three_versions()
    assert fates(builder, Promise(earliest=at(2)))[NAME("a", at(2))] == Needed((Snapshot(at(2)),))
    assert fates(builder, Promise(earliest=at(2)))[NAME("a", at(1))] == Removable(Rule.SUPERSEDED)
    assert fates(builder, Promise(earliest=at(3), times=(at(1),)))[NAME("a", at(1))] == Needed((Snapshot(at(1)),))
    assert fates(builder, Promise(earliest=at(3)))[NAME("a", at(2))] == Removable(Rule.SUPERSEDED)
    assert fates(builder, Promise(earliest=at(1)))[NAME("a", at(3))] == Needed((Latest(),))


@examples(200)
@given(
    st.one_of(st.none(), st.integers(0, 6)), st.sets(st.integers(0, 6)), st.integers(0, 6),
    st.one_of(st.none(), st.integers(1, 4)),
)  # fmt: skip
def test_a_promise_covers_what_one_of_its_times_shows(earliest, times, begins, lasts):
    """From when something begins until right before it is superseded; the time told is one of them."""
    ends = None if lasts is None else begins + lasts
    promised = times | (set() if earliest is None else set(range(earliest, 20)))
    shown = {time for time in promised if begins <= time and (ends is None or time < ends)}
    promise = Promise(earliest=None if earliest is None else at(earliest), times=tuple(map(at, sorted(times))))
    found = promise.within(at(begins), None if ends is None else at(ends))
    assert found in set(map(at, shown)) if shown else found is None


def test_a_view_without_some_writes_is_that_of_before_them():
    """They are pending again, what they replaced lives, and plans of theirs hold nothing."""
    builder = TableBuilder()
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a"]})
    builder.commit(at(3), {"r0": ["b"]}, replaced={"r0": ["a"]})
    table = builder.table()
    context = attrs.evolve(
        load_facts(table.timeline, table.contents).context,
        pending_times=frozenset({at(9)}),
        pending_compactions={("r0", x): PendingOperation(at(n), at(1), False, ()) for x, n in (("a", 3), ("b", 5))},
        pending_clustering={("r0", "a"): at(3), ("r0", "b"): at(5)},
    )
    before = without_writes(context, [at(3)])
    assert before.visible_times == before.completed_times == {at(1), at(2)}
    assert before.last_time == at(2)
    assert before.pending_times == {at(3), at(9)}
    assert context.replaced == {("r0", "a"): at(3)}
    assert before.replaced == {}
    assert before.pending_compactions.keys() == before.pending_clustering.keys() == {("r0", "b")}


def test_replaced_groups_are_needed_by_snapshots_before_their_replacement():
    """Nobody needs them later; without their replacecommit they live again."""
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["a"]})
    builder.commit(at(2), {"r0": ["b"]}, replaced={"r0": ["a"]})
    name = NAME("a", at(1))
    assert fates(builder)[name] == Removable(Rule.REPLACED)
    assert fates(builder, Promise(earliest=at(2)))[name] == Removable(Rule.REPLACED)
    assert fates(builder, Promise(earliest=at(1)))[name] == Needed((Snapshot(at(1)),))
    undo(builder, 2)
    assert fates(builder)[name] == Needed((Latest(),))


def test_savepoints_hold_the_files_that_they_name():
    """Each by its time (A-39)."""
    builder = three_versions()
    builder.savepoint(at(1), {"r0": [NAME("a", at(1))]})
    builder.savepoint(at(2), {"r0": [NAME("a", at(2))]})
    found = fates(builder)
    assert found[NAME("a", at(1))] == Needed((Savepoint(at(1)),))
    assert found[NAME("a", at(2))] == Needed((Savepoint(at(2)),))


def test_pending_compactions_need_the_slices_they_read():
    """The base and what was written since it (A-40), the base of the slice that it opened counting as newest too."""
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("r0", "a", at(1))])
    builder.compaction(at(3), [("r0", "a", at(1), [f".a_{at(2)}.log.1_0-1-0"])])
    found = fates(builder)
    assert found[NAME("a", at(1))] == Needed((Latest(), Pending(Action.COMPACTION, at(3))))
    assert found[f".a_{at(2)}.log.1_0-1-0"] == found[NAME("a", at(1))]


@pytest.mark.parametrize("layout", [1, 2])
def test_pending_clusterings_need_the_files_they_read(layout):
    """Hudi's cleaner does not ask for them, and the clustering fails without them."""
    builder = three_versions(layout)
    cluster(builder, at(4), NAME("a", at(2)))
    assert fates(builder)[NAME("a", at(2))] == Needed((Pending(Action.CLUSTERING, at(4)),))


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_pending_rollbacks_need_what_lies_below(state):
    """Until it is done both are needed: what is the newest now, and what will be."""
    builder = TableBuilder()
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"] if number > 1 else ["a", "untouched"]})
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(3), "commit"))
    for each in State:
        if each <= state:
            builder.instant(at(4), "rollback", each, codec.encode_rollback_plan(plan, SYNC))
    found = fates(builder)
    assert found[NAME("a", at(3))] == Needed((Latest(),))
    assert found[NAME("untouched", at(1))] == Needed((Latest(),))
    assert found[NAME("a", at(2))] == Needed((Pending(Action.ROLLBACK, at(4)),))
    assert found[NAME("a", at(1))] == Removable(Rule.SUPERSEDED)


def test_pending_restores_need_what_lies_below_all_they_undo():
    """A replaced group that will live again among them."""
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["a"]})
    builder.commit(at(2), {"r0": ["a"]})
    builder.commit(at(3), {"r0": ["b"]}, replaced={"r0": ["a"]})
    plan = RestorePlan(
        instants_to_rollback=(InstantInfo(at(3), "replacecommit"), InstantInfo(at(2), "commit")),
        savepoint_to_restore_timestamp=at(1),
    )
    builder.instant(at(4), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    assert fates(builder) == {
        NAME("a", at(1)): Needed((Pending(Action.RESTORE, at(4)),)),
        NAME("a", at(2)): Removable(Rule.REPLACED),
        NAME("b", at(3)): Needed((Latest(),)),
    }


def test_files_of_writes_that_are_not_completed_are_nobody_elses_business():
    """Neither needed nor removable: rollback takes them; what is no data file is unknown."""
    builder = three_versions()
    builder.commit(at(4), {"r0": ["a", "b"]}, state=State.INFLIGHT)
    builder.put("r0/notes.txt")
    found = fates(builder)
    assert found[NAME("a", at(4))] == found[NAME("b", at(4))] == Failed(at(4))
    assert found[NAME("a", at(3))] == Needed((Latest(),))
    assert found["notes.txt"] == Unknown()


def test_log_files_of_a_failed_write_in_a_slice_of_their_own_are_failed_too():
    """They are known, to a rollback and to no clean."""
    builder = TableBuilder(table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("r0", "b", at(2))], state=State.INFLIGHT)
    (log,) = (name for name in fates(builder) if ".log." in name)
    assert fates(builder)[log] == Failed(at(2))


def test_base_files_of_retried_tasks_share_the_fate_of_their_slice():
    """The view shows one of two files of equal group and instant; neither goes while the slice is needed."""
    builder = three_versions()
    other = NAME("a", at(3)).replace("0-1-0", "0-9-0")
    builder.put(f"r0/{other}")
    assert fates(builder)[other] == fates(builder)[NAME("a", at(3))] == Needed((Latest(),))


RETENTIONS = [{"commits_retained": 1}, {"commits_retained": 3}, {"file_versions_retained": 1}]


@pytest.mark.slow
@pytest.mark.parametrize("name", fixtures.fixture_names())
def test_nobody_needs_what_is_planned(name):
    """On every table of real Hudi: a fresh plan, equal to Hudi's, names nothing that is needed."""
    storage = real_table(name)
    table = open_real(name, storage)
    pending = bool(table.timeline.pending("rollback", "restore"))
    for retention in RETENTIONS:
        plan = table.plan_clean(**retention)
        earliest = plan.earliest_to_retain
        promise = Promise(earliest=None if earliest is None else earliest.requested_time)
        facts = load_facts(table.timeline, table.contents, promise=promise)
        for path in plan.files:
            there = [entry.name for entry in storage.list(path)]
            judged = judge_partition_files(facts, path, there)
            for each in there:  # asked about alone, no other file group is looked at
                assert judged.of(each) == judge_partition_files(facts, path, there, about=[each]).of(each)
            kept = {each: judged.of(each) for each in plan.files.names(path)}
            assert pending or all(isinstance(fate, Removable) for fate in kept.values()), kept


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=2, max_size=8),
    st.integers(0, 8),
    st.sampled_from([1, 2]),
)
@examples(25)
def test_what_a_time_shows_is_needed_while_it_is_promised(history, promised, layout):
    """Law: exactly the files that the table showed at some promised time, by a model of its groups, are needed."""
    builder = TableBuilder(layout)
    shown = {}
    live = {}
    for number, (group, replaces) in enumerate(history, 1):
        file_id = f"{group}{number}" if replaces else next((each for each in live if each[0] == group), f"{group}0")
        gone = [each for each in live if replaces and each[0] == group]
        builder.commit(at(number), {"r0": [file_id]}, replaced={"r0": gone} if gone else None)
        live = {**{each: time for each, time in live.items() if each not in gone}, file_id: at(number)}
        shown[number] = {NAME(each, time) for each, time in live.items()}
    earliest = min(promised, len(history))
    found = fates(builder, Promise(earliest=at(earliest)))
    needed = {name for name, fate in found.items() if isinstance(fate, Needed)}
    assert needed == set().union(*(names for number, names in shown.items() if number >= earliest))


def test_reasons_are_sentences_for_people():
    """Each need and each fate says who and when."""
    assert str(Needed((Latest(), Savepoint("1")))) == "it holds the newest rows of its file group; savepoint 1 holds it"
    assert str(Needed((Pending(Action.ROLLBACK, "2"),))) == "the pending rollback 2 needs it"
    assert str(Failed("3")) == "3, which wrote it, is not completed"
    assert {str(Removable(rule)) for rule in Rule} == {rule.value for rule in Rule}
    assert attrs.asdict(Unknown()) == {}


def test_a_file_is_held_by_whatever_names_it_and_only_in_its_partition():
    """By a savepoint, a pending compaction or a pending clustering; one such file among many is enough."""
    builder = three_versions()
    builder.compaction(at(4), [("r0", "a", at(3), [])])
    (compaction,) = facts_of(builder).protection.pending_files.values()
    facts = attrs.evolve(
        facts_of(builder),
        protection=Protection(
            savepointed_files={"r0": frozenset({"s"}), "r1": frozenset({"t"})},
            pending_files={("r0", "p"): compaction, ("r2", "p"): compaction},
            clustered_files={("r0", "c"): at(5), ("r3", "c"): at(5)},
        ),
    )
    held = {("r0", "s"), ("r1", "t"), ("r0", "p"), ("r2", "p"), ("r0", "c"), ("r3", "c")}
    for path in ("r0", "r1", "r2", "r3", "r4"):
        for count in range(4):
            for names in combinations("stpcx", count):
                assert facts.holds_any(path, names) is any((path, name) in held for name in names)


def test_what_comes_back_waits_for_the_last_of_several_rollbacks():
    """Until then the slice is not the newest again, whichever of them was planned first."""
    times = [at(5), at(6)]
    for undoing in (times, times[::-1]):
        pending = {at(n): Pending(Action.ROLLBACK, time) for n, time in zip((2, 3), undoing, strict=True)}
        facts = attrs.evolve(facts_of(three_versions()), undoing=pending)
        judged = judge_partition_files(facts, "r0", [NAME("a", at(n)) for n in (1, 2, 3)])
        assert judged.of(NAME("a", at(1))) == Needed((Pending(Action.ROLLBACK, at(6)),))
