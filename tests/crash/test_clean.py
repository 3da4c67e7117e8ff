"""Cleans interrupted at every call that changes something, on tables of real Hudi."""

import functools

import pytest

from support.crash_points import EVERY, interruptions
from support.crash_states import SerialEngine, canonical, check, data_files, open_real, real_table, visible_files

COMMITS, VERSIONS, HOURS = {"commits_retained": 1}, {"file_versions_retained": 1}, {"hours_retained": 26}
PLANNED = [
    ("cow_partition_dropped-0.15.0", COMMITS),
    ("cow_partition_dropped-1.1.1", VERSIONS),
    ("cow_savepoints-0.15.0", VERSIONS),
    ("cow_savepoints-1.0.2", COMMITS),
    ("cow_mixed-0.15.0", HOURS),
    ("cow_mixed-1.1.1", COMMITS),
    ("cow_nonpartitioned-1.1.1", COMMITS),
    ("cow_cleaned-0.15.0", COMMITS),
    ("mor_compacted-0.15.0", VERSIONS),
    ("mor_compacted_pending-1.1.1", VERSIONS),
]
PENDING = [
    f"{table}-{version}"
    for table in ("cow_clean_requested", "cow_clean_inflight", "mor_clean_inflight")
    for version in ("0.15.0", "1.0.2", "1.1.1")
]


def clean(name, storage, retention, **settings):
    return open_real(name, storage, **settings).clean(engine=SerialEngine(), **retention)


def new_cleans(storage, before):
    """Stored plans that were not there before: path to bytes."""
    return {p: d for p, d in storage.files().items() if p.endswith(".clean.requested") and p not in before.files()}


def loop(record_property, name, before, operation, allowed):
    """Interrupt *operation* everywhere, recover twice by the same call; returns the number of interruptions."""
    uninterrupted = before.copy()
    for _ in range(3):
        operation(uninterrupted)
    expected, shown = canonical(uninterrupted, before), visible_files(open_real(name, before))
    assert data_files(before) - data_files(uninterrupted) == allowed
    count = 0
    for case in interruptions(before.copy):
        count += case.run(operation)
        check(name, case, before, allowed, shown)
        stored = new_cleans(case.storage, before)
        for _ in range(2):
            operation(case.storage)
            check(name, case, before, allowed, shown)
        assert stored.items() <= new_cleans(case.storage, before).items(), f"{case}: planned again"
        assert canonical(case.storage, before) == expected, case
    record_property("interruptions", count)
    assert count * EVERY > 20


def gone_partitions(plan, before):
    """Metafiles of the partitions that a plan removes."""
    metafiles = (f"{path}/.hoodie_partition_metadata" for path in plan.partitions_to_delete)
    return {path for path in metafiles if path in before.files()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "retention"), PLANNED, ids=[f"{n}-{next(iter(r))}" for n, r in PLANNED])
def test_clean_interrupted_anywhere_ends_in_the_same_table(record_property, name, retention):
    """Plan, requested, inflight, each deletion, completion (A.7, A.8)."""
    before = real_table(name)
    plan = open_real(name, before).plan_clean(**retention)
    assert plan.would_schedule
    allowed = {file.path for files in plan.files.values() for file in files} | gone_partitions(plan, before)
    loop(record_property, name, before, functools.partial(clean, name, retention=retention), allowed)


@pytest.mark.slow
@pytest.mark.parametrize("name", PENDING)
def test_pending_clean_resumed_and_interrupted_anywhere(record_property, name):
    """Left by real Hudi as requested or half done; carried out from its own plan and never planned again."""
    before = real_table(name)
    table = open_real(name, before)
    (pending,) = table.timeline.pending("clean")
    plan = table.contents.clean_plan(pending)
    files = {f"{path}/{file.name}" for path, each in plan.files_to_delete.items() for file in each}
    loop(record_property, name, before, functools.partial(clean, name, retention={}), files & data_files(before))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow_cleaned-0.15.0", "cow_cleaned-1.1.1"])
def test_dropping_the_metadata_table_before_a_clean_interrupted_anywhere(record_property, name):
    """Property, folder, instant: in this order, and what a crash left is finished (rules/data-files 10.3)."""
    before = real_table(name, with_metadata_table=True)
    plan = open_real(name, before).plan_clean(**COMMITS)
    allowed = {file.path for files in plan.files.values() for file in files}
    operation = functools.partial(clean, name, retention=COMMITS, **{"hoodie.metadata.enable": "false"})
    loop(record_property, name, before, operation, allowed)
    done = before.copy()
    operation(done)
    assert not [path for path in done.files() if path.startswith(".hoodie/metadata/")]
