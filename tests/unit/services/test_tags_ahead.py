"""A dry run of maintenance knows what the tags keep that the run makes before it cleans."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.maintenance.service import Chore
from support.laws import examples
from support.tables import NOW, TableBuilder, data_files

POLICY = '[keep]\neverything = "3h"\ncommits = 1\n[tags]\ndaily = 3\nhourly = 5\n'


def chore(report, step):
    (found,) = (each.found for each in report.steps if each.step is step)
    return found


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
def test_a_dry_run_shows_what_the_run_deletes(layout, table_type, seed):
    """Not what the tags keep that it makes before: whoever approves a policy reads the list."""
    builder = history(random.Random(seed), layout, table_type)
    shown = chore(builder.table().under_policy(POLICY).maintain(dry_run=True), Chore.CLEAN)
    builder.table().apply_policy(POLICY)
    before = set(data_files(builder.storage))
    done = chore(builder.table().maintain(), Chore.CLEAN)
    assert set(shown.files) == before - set(data_files(builder.storage))
    assert (shown.is_due, set(shown.files)) == (done.is_due, set(done.files))


def test_nothing_is_due_where_tags_keep_all_of_it():
    """It says so."""
    builder = TableBuilder()
    for hours in (30, 20, 10, 5, 4, 1):
        builder.commit(format_instant_time(NOW - timedelta(hours=hours)), {"r0": ["a"]})
    policy = '[keep]\neverything = "3h"\ncommits = 1\n[tags]\nhourly = 40\n'
    found = chore(builder.table().under_policy(policy).maintain(dry_run=True), Chore.CLEAN)
    assert (found.is_due, dict(found.files)) == (False, {})
    assert "tags that are due keep" in found.why
    builder.table().apply_policy(policy)
    before = data_files(builder.storage)
    builder.table().maintain()
    assert data_files(builder.storage) == before
