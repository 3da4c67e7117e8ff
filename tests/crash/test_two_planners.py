"""Two processes at one table of which one plans a rewrite: no row is written twice, and none is lost."""

from contextlib import suppress
from itertools import count

import pytest

from hudi_py.errors import ConflictError
from hudi_py.model.instant import Action, State
from hudi_py.services.check.findings import Severity
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS
from hudi_py.table import Table
from hudi_py.testing import Crash
from support.meanwhile import Meanwhile, ending
from support.simulation import unlock_cached_properties
from support.writes import OLD, create_table, is_data, merged_rows_of, open_table, upsert


@pytest.mark.parametrize("version", [6, 8, 9])
def test_group_is_planned_once_however_two_planners_meet(version):
    """Without a lock, as after ours was lost while this process was stopped between its plan and its file."""
    storage = create_table(version)
    for _ in range(2):
        upsert(storage, OLD)
    rows = merged_rows_of(storage)
    clock = open_table(storage).services.metadata_table.clock
    others = []

    def other():
        others.append(Table(storage, clock=clock).services.clustering().schedule())

    ours = Meanwhile(storage, other, before=ending("replacecommit.requested", "clustering.requested"))
    with pytest.raises(ConflictError, match="was planned at this moment for file group"):
        Table(ours, clock=clock).services.clustering().schedule()
    table = open_table(storage)
    assert [each.requested_time for each in table.services.clustering().pending()] == [others[0].requested_time]
    with suppress(ConflictError):
        table.cluster()
    assert merged_rows_of(storage) == rows


NOW = {"hoodie.compact.inline.max.delta.commits": 2, "hoodie.metadata.enable": False}


class WhilePlanning(Meanwhile):
    """Another process updates row a right before call *n*, a reading one too, and row b before call *then*."""

    def __init__(self, inner, n, then=None):
        super().__init__(inner, self._update, n=n, verbs=MUTATING_VERBS | READING_VERBS)
        self.then, self.keys = then, ["a", "b"]

    def _is_hit(self, position):
        return position in (self.n, self.then)

    def _update(self):
        upsert(self.inner, [row(self.keys.pop(0), 9)], **NOW)


def row(key, ts):
    return {**OLD[0], "id": key, "ts": ts}


def table_to_compact(version):
    """One file group with a base file and two log files."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for ts in (1, 2, 3):
        upsert(storage, [row("a", ts), row("b", ts)], **NOW)
    return storage


def planned_beside(original, n, then=None, double=WhilePlanning):
    """Plan a compaction beside updates, carry out what is planned then; return the double and the rows' values."""
    storage = original.copy()
    ours = double(storage, n, then)
    is_refused = False
    try:
        open_table(ours, **NOW).services.compaction().schedule()
    except (ConflictError, Crash):
        is_refused = True
    written = merged_rows_of(storage)
    open_table(storage, **NOW).compact()
    assert merged_rows_of(storage) == written
    assert not [str(each) for each in open_table(storage).check() if each.severity is not Severity.INFO], ours.fired
    return ours, is_refused, [row["ts"] for row in merged_rows_of(storage)]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_written_while_a_compaction_is_planned_stay(version):
    """
    Without a lock another process writes before any call of the planning.

    In layout 1 its log file lies on the slice that is planned, where the plan would hide it, or is named after the plan
    already, which must not be withdrawn then.
    """
    original = table_to_compact(version)
    calls, refused = 0, 0
    for n in count():
        ours, is_refused, values = planned_beside(original, n)
        if ours.fired is None:
            break
        calls += 1
        refused += is_refused
        assert values == [9, 3], ours.fired
    assert calls > 10
    assert refused > 5


@pytest.mark.parametrize("version", [6, 9])
def test_rows_written_before_and_after_the_plan_of_a_compaction_stay(version):
    """Of two other writes the plan lacks one, and one relies on it: neither dropping nor keeping it loses a row."""
    original = table_to_compact(version)
    last = next(n for n in count() if planned_beside(original, n)[0].fired is None) - 1
    for n in range(last):
        ours, _, values = planned_beside(original, n, last)
        assert values == [9, 9], ours.fired


class WhileTwoPlan(WhilePlanning):
    """
    Before call *n* another process plans a compaction, too, and a writer that has seen its plan updates row a.

    Row b is updated once both plans are stored, before ours looks at the timeline again, or has ended.
    """

    is_stored = is_killed = False

    def _around(self, verb, paths, call, data=b""):
        if self.is_stored and self.then is None:
            self.then = self.count
        self.is_stored = self.is_stored or (verb in MUTATING_VERBS and paths[0].endswith("compaction.requested"))
        return super()._around(verb, paths, call, data)

    def _update(self):
        if not self.is_stored:
            with suppress(ConflictError):
                open_table(self.inner, **NOW).services.compaction().schedule()
        super()._update()
        if self.is_killed and not self.keys:
            raise self._die("behind both plans")


class KilledBehindItsPlan(WhileTwoPlan):
    """The same; our process is killed before it looks."""

    is_killed = True


@pytest.mark.slow
@pytest.mark.parametrize("double", [WhileTwoPlan, KilledBehindItsPlan])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_that_rest_on_the_plans_of_two_compactions_stay(version, double):
    """
    Of two plans for one slice neither can go, for a writer relies on each, or nobody is left who withdraws one.

    What was logged behind the first plan lies below the base file of the second one.
    """
    unlock_cached_properties()
    original = table_to_compact(version)
    both = 0
    for n in count():
        ours, _, values = planned_beside(original, n, double=double)
        if n >= ours.count:  # it has ended before
            break
        # Otherwise it has seen the other plan, and nothing is due any more.
        has_two = not ours.keys
        assert values == [9, 9 if has_two else 3], ours.fired
        both += has_two
    assert both > 5


@pytest.mark.parametrize("version", [6, 9])
def test_compaction_is_withdrawn_if_another_one_was_planned_before(version, monkeypatch):
    """Both start from the same slice, so the later one would hide what was logged behind the first."""
    storage = table_to_compact(version)
    service = open_table(storage, **NOW).services.compaction()
    new_time, others = service.contents.store.new_time, []

    def later(*args, **options):
        others.append(open_table(storage, **NOW).services.compaction().schedule())
        upsert(storage, [row("a", 9)], **NOW)
        return new_time(*args, **options)

    monkeypatch.setattr(service.contents.store, "new_time", later)
    with pytest.raises(ConflictError, match="began or completed while the compaction was planned"):
        service.schedule()
    assert open_table(storage).timeline.pending(Action.COMPACTION) == tuple(others)
    open_table(storage, **NOW).compact()
    assert [row["ts"] for row in merged_rows_of(storage)] == [9, 3]


@pytest.mark.parametrize("version", [6, 9])
def test_a_clustering_is_carried_out_by_one_process(version):
    """
    Another one begins the same plan before any call of ours: its files would have the time of the same commit.

    If it began before ours looked, it is taken for dead, because only one is expected here, and rolled back.
    """
    original = create_table(version)
    upsert(original, OLD)
    upsert(original, [row("c", 1)], operation="INSERT")
    time = open_table(original).services.clustering().schedule().requested_time
    refused = 0
    for n in count():
        storage, begun = original.copy(), []

        def other(storage=storage, begun=begun):
            service = open_table(storage).services.clustering()
            (pending,) = service.pending()
            if pending.state is State.REQUESTED:
                begun.append(service.contents.store.transition(pending))

        ours = Meanwhile(storage, other, n=n, verbs=MUTATING_VERBS | READING_VERBS)
        before = {path for path in storage.files() if is_data(path)}
        try:
            open_table(ours).services.clustering().execute(time)
        except ConflictError:
            refused += 1
            assert {path for path in storage.files() if is_data(path)} == before, ours.fired
        else:
            assert not begun or open_table(storage).timeline.completed("rollback"), ours.fired
        if ours.fired is None or not begun:
            break
    assert refused > 5
