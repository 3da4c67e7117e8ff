"""A policy in force: every process follows it, a lost one deletes nothing, a crash leaves the old one or the new."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from hudi_py.testing import interruptions
from hudi_py.timeline.policy_file import path_of
from support.tables import NOW, TableBuilder, data_files

KEEP = '[keep]\neverything = "3h"\n'
KEEP_MORE = '[keep]\neverything = "3h"\nversions = 4\n'
GREEDY = {"hoodie.clean.commits.retained": 1, "hoodie.clean.hours.retained": 1}


def stamp(hours):
    return f"{NOW - timedelta(hours=hours):%Y%m%d%H%M%S}000"


def history(layout=2):
    """One commit in each of the last six hours."""
    builder = TableBuilder(layout)
    for hours in range(6, 0, -1):
        builder.commit(stamp(hours), {"r0": ["f"]})
    return builder


def opened(builder, **settings):
    return Table(builder.storage, settings=GREEDY | settings, clock=builder.clock)


@pytest.mark.parametrize("layout", [1, 2])
def test_every_process_follows_it_whatever_its_settings_say(layout):
    """Until it is removed; the files that go are those of a clean with the same retention in its settings."""
    builder, same = history(layout), history(layout)
    policy = opened(builder).apply_policy(KEEP)
    assert opened(builder).policy == policy
    (done,) = opened(builder).clean()
    assert done.deleted_files == same.table().clean(policy="KEEP_LATEST_BY_HOURS", age_retained="3h")[0].deleted_files
    assert len(data_files(builder.storage)) > 2
    builder.clock.move(timedelta(seconds=1))
    assert opened(builder).remove_policy()
    assert opened(builder).policy is None
    assert not [path for path in builder.storage.files() if "policies" in path]
    builder.commit(stamp(0), {"r0": ["f"]})
    opened(builder, **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}).clean(file_versions_retained=1)
    assert len(data_files(builder.storage)) == 1


def test_the_trial_of_a_policy_writes_nothing_and_shows_what_it_would_delete():
    """As the clean under it does afterwards; a policy in force is looked past."""
    builder = history()
    opened(builder).apply_policy(KEEP_MORE)
    before = builder.storage.files()
    report = opened(builder).under_policy(KEEP).maintain(dry_run=True)
    assert builder.storage.files() == before
    shown = {path for step in report.steps if step.step.name == "CLEAN" for path in step.found.files}
    opened(builder).apply_policy(KEEP)
    (done,) = opened(builder).clean()
    assert shown == set(done.deleted_files) != set()


@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_without_its_document_nothing_is_deleted(damage):
    """Reading goes on; applying a policy again mends it."""
    builder = history()
    mark = opened(builder).apply_policy(KEEP).mark
    if damage == "lost":
        builder.storage.delete(path_of(mark))
    else:
        builder.storage.replace(path_of(mark), b"[keep]\ncommits = 1\n")
    before = data_files(builder.storage)
    table = opened(builder)
    assert table.file_slices("r0")
    with pytest.raises(RefusedError, match="hudi-py policy apply"):
        table.clean()
    assert data_files(builder.storage) == before
    table.apply_policy(KEEP)
    assert opened(builder).clean()


def test_a_process_that_knows_another_policy_deletes_nothing():
    """It opened the table before; what it would delete, the new policy may keep."""
    builder = history()
    early = opened(builder)
    opened(builder).apply_policy(KEEP_MORE)
    with pytest.raises(RefusedError, match="policy was changed"):
        early.clean(commits_retained=1)
    assert len(data_files(builder.storage)) == 6
    early.refresh().clean(commits_retained=1)  # it knows the policy by now
    assert len(data_files(builder.storage)) == 4


@pytest.mark.parametrize("before", [None, KEEP])
def test_a_clean_that_was_planned_before_a_policy_is_planned_again(before):
    """Also before the first policy, and by Apache Hudi, which knows none: the policy may keep what it would delete."""
    builder = history()
    if before is not None:
        opened(builder).apply_policy(before)
    files = data_files(builder.storage)
    assert opened(builder).services.clean().schedule()
    opened(builder).apply_policy("[keep]\ncommits = 20")
    opened(builder).clean()
    assert data_files(builder.storage) == files
    assert not opened(builder).timeline.pending(Action.CLEAN)


def test_a_crash_while_a_policy_is_applied_leaves_the_old_one_or_the_new():
    """And the same call finishes it; in no state is the retention unknown."""

    def start():
        builder = history()
        opened(builder).apply_policy(KEEP)
        return builder.storage

    for case in interruptions(start):
        case.run(lambda storage: Table(storage, clock=FixedClock(NOW)).apply_policy(KEEP_MORE))
        table = Table(case.storage, clock=FixedClock(NOW))
        assert table.policy.text in (KEEP, KEEP_MORE), repr(case)
        assert table.deletion_forbidden is None
        table.apply_policy(KEEP_MORE)
        assert Table(case.storage, clock=FixedClock(NOW)).policy.text == KEEP_MORE


def test_what_cannot_be_is_refused_before_anything_is_written():
    """A table without partitions has none that expire."""
    builder = TableBuilder(partitioned=False)
    before = builder.storage.files()
    for text in ("[keep]\ncomits = 1", "[partitions]\ndays = 3"):
        with pytest.raises(ConfigError):
            builder.table().apply_policy(text)
    assert builder.storage.files() == before


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("change", ["another", "none"])
def test_a_plan_of_the_policy_before_is_withdrawn(layout, change):
    """Nobody has begun it; what is kept since then is kept. One that has begun is finished as it was planned."""
    builder = history(layout)
    opened(builder).apply_policy(KEEP)
    services = opened(builder).services
    requested = services.clean(services.clean_config()).schedule()
    assert opened(builder).contents.clean_plan(requested).files_to_delete
    if change == "none":
        opened(builder).remove_policy()
    else:
        opened(builder).apply_policy(KEEP_MORE)
    before = data_files(builder.storage)
    results = Table(builder.storage, clock=builder.clock).clean(commits_retained=5)
    assert [each.withdrawn for each in results] == [True]
    assert "retention policy" in results[0].why_spared
    assert before == data_files(builder.storage)
    assert not opened(builder).timeline.pending()
