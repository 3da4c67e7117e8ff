"""A table that forbids deletion loses no file with committed rows, whatever is asked of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.instant import Action, State
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.timeline import deletion, quarantine
from hudi_py.timeline.properties_file import update_properties
from support import writes
from support.tables import NOW, TableBuilder, at, data_files
from support.writes import NEW, OLD, create_table, rows_of

SWITCH = "hoodie_py.gc.enabled"


def history(layout=2, commits=4):
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def by_property(builder):
    assert builder.table().forbid_deletion()
    return builder.table()


def by_setting(builder):
    return Table(builder.storage, settings={SWITCH: False}, clock=builder.clock)


def by_a_word_nobody_knows(builder):
    update_properties(builder.storage, {SWITCH: "flase"}, builder.clock)
    return builder.table()


def into_quarantine(table):
    table.settings = table.settings.merged({"hoodie_py.clean.quarantine": True})
    return table


ASKED = {
    "clean": lambda table: table.clean(commits_retained=1),
    "clean into quarantine": lambda table: into_quarantine(table).clean(commits_retained=1),
    "store a plan": lambda table: table.services.clean(table.services.clean_config(commits_retained=1)).schedule(),
    "orphans": lambda table: table.orphans(),
    "rollback": lambda table: table.rollback(at(4)),
    "look at a rollback": lambda table: table.services.rollback().preview(at(4)),
    "restore": lambda table: table.restore(at(3)),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("forbid", [by_property, by_setting, by_a_word_nobody_knows])
def test_what_deletes_data_is_refused_by_name(asked, forbid):
    """Nothing is written, either; the message says how to end it. Without the switch, the same call does something."""
    free = history()
    free.table().create_savepoint(at(3))
    if asked != "orphans":  # it finds none here, and is refused all the same
        assert ASKED[asked](free.table())
    builder = history()
    builder.table().create_savepoint(at(3))
    table = forbid(builder)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=rf"{SWITCH}=(false|flase).*(hudi-py deletion allow|leave the setting out)"):
        ASKED[asked](table)
    assert builder.storage.files() == before


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_pending_clean_waits_until_deletion_is_allowed(layout, has_begun):
    """Requested or interrupted, by `clean` and by `recover`; then it does what it would have done."""
    builder, free = history(layout), history(layout)
    for each in (builder, free):
        planner = each.table().services.clean(each.table().services.clean_config(commits_retained=1))
        planned = planner.schedule()
        if has_begun:
            each.instant(planned.requested_time, "clean", State.INFLIGHT)
    builder.table().forbid_deletion()
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match=SWITCH):
        builder.table().clean(commits_retained=1)
    told = [each.error for each in builder.table().recover() if each.finding.time == planned.requested_time]
    assert SWITCH in str(told)
    assert data_files(builder.storage) == before
    assert builder.table().allow_deletion()
    builder.table().clean(commits_retained=1)
    free.table().clean(commits_retained=1)
    assert data_files(builder.storage) == data_files(free.storage) != before


def test_a_clean_that_is_deleting_stops_before_its_next_round():
    """The switch counts at once; what is left, is left, and the clean goes on when deletion is allowed."""
    builder = history(commits=6)

    class ForbidAfterFirst(DelegatingStorage):
        def delete_many(self, paths):
            done = self.inner.delete_many(paths)
            builder.table().forbid_deletion()
            return done

    class OneByOne(LocalEngine):
        files_max = 1

    table = Table(ForbidAfterFirst(builder.storage), clock=builder.clock)
    with pytest.raises(RefusedError, match=SWITCH):
        table.clean(commits_retained=1, engine=OneByOne(1))
    assert len(data_files(builder.storage)) == 11
    assert builder.table().timeline.pending(Action.CLEAN)
    builder.table().allow_deletion()
    builder.table().clean(commits_retained=1)
    assert len(data_files(builder.storage)) == 2 * 2  # each group: the newest file, and the one that A-16 keeps


@pytest.mark.parametrize("deletes", [False, True])
def test_a_removal_of_orphans_stops_before_its_next_part(deletes, monkeypatch):
    """A search may remove very many: the switch counts before each part, and the error says how many are gone."""
    monkeypatch.setattr(deletion, "PART_FILES", 4)
    builder = history()
    for number in range(5):
        builder.put(f"r0/{builder.base_name(f'x{number}', at(2)[:-7] + '1500000')}")
    before = data_files(builder.storage)

    class ForbidAfterFirst(DelegatingStorage):
        def delete_many(self, paths):
            done = self.inner.delete_many(paths)
            builder.table().forbid_deletion()
            return done

        def move_many(self, paths, source, target):
            done = self.inner.move_many(paths, source, target)
            builder.table().forbid_deletion()
            return done

    table = Table(ForbidAfterFirst(builder.storage), clock=builder.clock)
    options = {"older_than": "0m", "now": NOW + timedelta(days=9000), "delete": deletes}
    with pytest.raises(RefusedError, match=f"stopped after 4 of 5, .*{SWITCH}"):
        table.orphans(**options)
    assert len(data_files(builder.storage)) == len(before) - 4
    builder.table().allow_deletion()
    assert len(builder.table().orphans(**options).done) == 1


def test_emptying_the_quarantine_stops_before_the_next_removal():
    """Each removal is one that could still be put back."""
    builder = history()
    for number in (5, 6):
        into_quarantine(builder.table()).clean(commits_retained=1)
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    builder.clock.move(timedelta(days=30))

    class ForbidAfterFirst(DelegatingStorage):
        def delete_folder(self, folder):
            self.inner.delete_folder(folder)
            builder.table().forbid_deletion()

    assert len(quarantine.removals(builder.storage)) == 2
    with pytest.raises(RefusedError, match="stopped after 1 of 2"):
        into_quarantine(Table(ForbidAfterFirst(builder.storage), clock=builder.clock)).clean(commits_retained=1)
    assert len(quarantine.removals(builder.storage)) == 1


def test_a_failed_write_is_rolled_back_all_the_same():
    """Nobody was shown its files, and no table can be written while its rollback waits."""
    builder = history()
    builder.commit(at(5), {"r0": ["f"]}, state=State.INFLIGHT)
    builder.table().forbid_deletion()
    (undone,) = builder.table().rollback_failed_writes()
    assert undone.commits_rollback == (at(5),)
    assert data_files(builder.storage) == data_files(history().storage)


def test_the_quarantine_is_not_emptied():
    """What was taken out before can still be put back, long after its time."""
    builder = history()
    table = into_quarantine(builder.table())
    (done,) = table.clean(commits_retained=1)
    builder.clock.move(timedelta(days=30))
    builder.table().forbid_deletion()
    with pytest.raises(RefusedError):
        table.clean(commits_retained=1)
    assert quarantine.removals(builder.storage) == (done.instant,)
    builder.table().undo(done.instant)
    assert data_files(builder.storage) == data_files(history().storage)


def test_a_commit_leaves_its_clean_out():
    """The write itself is fine, and all versions stay; without the switch it cleans."""
    left = {}
    for forbids in (True, False):
        storage = create_table(9)
        if forbids:
            writes.open_table(storage).forbid_deletion()
        for rows in (OLD, NEW, OLD, NEW):
            writes.open_table(storage, **{"hoodie.clean.commits.retained": 1}).upsert(
                writes.pa.Table.from_pylist(rows, schema=writes.SCHEMA)
            )
        assert [row["id"] for row in rows_of(storage)] == ["a", "b", "c"]
        left[forbids] = (len(data_files(storage)), len(writes.open_table(storage).timeline.of((Action.CLEAN,))))
    assert left[True][1] == 0 < left[False][1]
    assert left[True][0] > left[False][0]


def test_a_dry_run_shows_the_plan_and_that_it_is_refused():
    """Looking is free: whoever asks what a clean would do is told."""
    builder = history()
    free = builder.table().plan_clean(commits_retained=1)
    builder.table().forbid_deletion()
    plan = builder.table().plan_clean(commits_retained=1)
    assert list(plan.files) == list(free.files)
    assert SWITCH in plan.warnings[-1]
    assert not any(SWITCH in each for each in free.warnings)
    assert builder.table().orphans(dry_run=True).verdicts == ()


CHANGES = {
    "switch": lambda table: table.forbid_deletion(),
    "policy": lambda table: table.apply_policy("[keep]\nversions = 1\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_restore_that_has_begun_is_finished_first(change):
    """Half undone, the table would be neither what it was nor what it is to be."""
    builder = history()
    builder.table().create_savepoint(at(3))
    service = builder.table().services.restore()
    service._begin(at(3))
    before = dict(builder.table().config.properties)
    with pytest.raises(RefusedError, match=r"stays .* pending .* finish it first: hudi-py recover"):
        CHANGES[change](builder.table())
    assert dict(builder.table().config.properties) == before
    service.run(at(3))
    assert CHANGES[change](builder.table())


def test_setting_it_twice_and_back():
    """Each call says whether it changed something; other properties stay as they are."""
    builder = history()
    before = dict(builder.table().config.properties)
    table = builder.table()
    assert (table.forbid_deletion(), table.forbid_deletion()) == (True, False)
    assert dict(table.config.properties) == {**before, SWITCH: "false"}
    assert (table.allow_deletion(), table.allow_deletion()) == (True, False)
    assert dict(table.config.properties) == before
    assert table.deletion_forbidden is None
    with pytest.raises(ConfigError):
        Table(builder.storage, settings={SWITCH: "maybe"})


def test_doctor_says_that_it_is_on_and_who_does_not_know_it():
    """Apache Hudi cleans all the same."""
    builder = history()
    assert "deletion-off" not in [each.code for each in builder.table().doctor()]
    builder.table().forbid_deletion()
    (found,) = [each for each in builder.table().doctor() if each.code == "deletion-off"]
    assert "Apache Hudi does not know" in found.message
