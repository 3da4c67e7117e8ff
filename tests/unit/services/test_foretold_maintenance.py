"""A dry run of maintenance, and the trial of a policy, show what the run then does, step by step."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant import Action
from hudi_py.model.instant_time import format_instant_time
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.archive.plan import Bound
from hudi_py.services.maintenance.service import Chore
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support import writes
from support.foretold import differences
from support.laws import examples
from support.tables import NOW, TableBuilder, at, data_files

POLICY = """
[keep]
everything = "3h"
commits = 1
[tags]
daily = 3
hourly = 5
[archive]
min_commits = 2
max_commits = 3
"""


def found(report, step):
    (result,) = (each.found for each in report.steps if each.step is step)
    return result


def history(rng, layout, table_type):
    """Commits over two days; in a merge-on-read table some are log files on the slice before."""
    builder = TableBuilder(layout, table_type=table_type)
    slices = {}
    for hours in sorted(rng.sample(range(1, 48), rng.randrange(2, 12)), reverse=True):
        time = format_instant_time(NOW - timedelta(hours=hours))
        groups = [each for each in ("a", "b") if rng.random() < 0.7] or ["a"]
        if table_type == "MERGE_ON_READ" and set(groups) <= set(slices) and rng.random() < 0.6:
            builder.log_files(time, [("r0", group, slices[group]) for group in groups])
        else:
            builder.commit(time, {"r0": groups})
            slices |= dict.fromkeys(groups, time)
    return builder


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@examples(25)
@given(seed=st.integers(0, 2**32))
def test_the_trial_of_a_policy_shows_what_the_run_does(layout, table_type, seed):
    """Not what tags keep that it makes before, and what may be archived once tags are gone and files are cleaned."""
    builder = history(random.Random(seed), layout, table_type)
    shown = builder.table().under_policy(POLICY).maintain(dry_run=True)
    builder.table().apply_policy(POLICY)
    before = set(data_files(builder.storage))
    done = builder.table().maintain()
    assert differences(shown, done) == []
    assert set(found(shown, Chore.CLEAN).files) == before - set(data_files(builder.storage))


def policy(rng):
    """One that drops partitions, archives, and keeps what it deletes for a while."""
    days, kept = rng.choice([1, 2, 5]), rng.choice([1, 2, 3])
    lines = [f'[keep]\neverything = "{rng.choice([1, 10, 40])}h"\ncommits = {kept}']
    lines += [f"[partitions]\ndays = {days}", f"[archive]\nmin_commits = {kept + 1}\nmax_commits = {kept + 2}"]
    if rng.random() < 0.5:
        lines.append("[tags]\ndaily = 1")
    if rng.random() < 0.5:
        lines.append('[clean]\nquarantine = true\ngrace = "20h"')
    return "\n".join(lines)


@pytest.mark.parametrize("version", [6, 9])
@examples(6)
@given(seed=st.integers(0, 2**32))
def test_every_run_does_what_the_one_before_it_in_memory_did(version, seed):
    """Writes, leases and tags that expire, partitions that do, files in quarantine: run after run, with all limits."""
    rng, clock = random.Random(seed), FixedClock(writes.START)
    storage = MemoryStorage(clock_ms=lambda: int(clock.moment.timestamp() * 1000))
    writes.create_table(version, storage, clock)
    document = policy(rng)
    Table(storage, clock=clock).apply_policy(document)

    def opened():
        clock.move(timedelta(minutes=1))
        return Table(storage, clock=clock)

    for number in range(8):
        rows = [
            {"id": str(rng.randrange(4)), "region": region, "ts": number}
            for region in rng.sample(("ap", "eu", "us"), rng.randrange(1, 3))
        ]
        writes.upsert(storage, rows, opened())
        if rng.random() < 0.3:
            opened().take_lease(ttl=f"{rng.randrange(1, 50)}h", savepoint=rng.random() < 0.3)
        newest = opened().timeline.commits.completed()[-1].requested_time
        if rng.random() < 0.3 and opened().timeline.find(newest, Action.SAVEPOINT) is None:
            opened().create_savepoint(ttl=f"{rng.randrange(1, 50)}h")
        clock.move(timedelta(hours=rng.choice([1, 8, 30])))
        if rng.random() < 0.6:
            limit = rng.choice([None, None, 1, 3])
            before = storage.files()
            table = opened()
            shown = table.maintain(dry_run=True, max_deletes=limit)
            assert storage.files() == before
            assert differences(shown, table.maintain(max_deletes=limit)) == [], (document, number)


@pytest.mark.parametrize("layout", [1, 2])
def test_archival_is_shown_behind_the_clean_that_lets_it_go(layout):
    """A replaced group stays on the timeline until a clean has removed its files, here one of the same run."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a"]})
    builder.commit(at(2), {"r0": ["b"]}, replaced={"r0": ["a"]})
    for hour in range(3, 9):
        builder.commit(at(hour), {"r0": ["b"]})
    settings = {
        "clean.commits.retained": 1,
        "keep.min.commits": 2,
        "keep.max.commits": 3,
    }
    assert builder.table(**settings).services.archive().plan().bound is Bound.REPLACEMENT
    shown = builder.table(**settings).maintain(dry_run=True)
    taken = [time for time in map(at, range(1, 9)) if any(time in each for each in found(shown, Chore.ARCHIVAL).files)]
    assert taken == [at(hour) for hour in range(1, 7)]
    assert differences(shown, builder.table(**settings).maintain()) == []


def test_nothing_is_due_where_tags_keep_all_of_it():
    """It says so."""
    builder = TableBuilder()
    for hours in (30, 20, 10, 5, 4, 1):
        builder.commit(format_instant_time(NOW - timedelta(hours=hours)), {"r0": ["a"]})
    document = '[keep]\neverything = "3h"\ncommits = 1\n[tags]\nhourly = 40\n'
    shown = found(builder.table().under_policy(document).maintain(dry_run=True), Chore.CLEAN)
    assert (shown.is_due, dict(shown.files), shown.why) == (False, {}, "nothing to delete")
    builder.table().apply_policy(document)
    before = data_files(builder.storage)
    builder.table().maintain()
    assert data_files(builder.storage) == before
