"""Retention by age of a table that rests."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from hudi_py.model.instant_time import parse_instant_time
from support.clean_histories import paths
from support.tables import TableBuilder, at, data_files, done

FULL = {"clean_incremental_enabled": False}


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("more", [{}, {"commits_retained": 1}], ids=["alone", "beside"])
def test_by_age_a_table_that_rests_keeps_what_its_span_needs_and_no_more(layout, more):
    """Long after its last commit that one has all that the span needs; Hudi's policy by hours deletes nothing then."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"r0": ["f"]})
    builder.clock.moment = parse_instant_time(at(5), timezone.utc) + timedelta(days=30)
    table = builder.table(**FULL)
    table.settings = table.settings.merged({"hoodie_py.clean.verify": True})  # the second planner agrees
    assert paths(table.plan_clean(hours_retained=7 * 24)) == set()
    gone = {f"r0/{builder.base_name('f', at(number))}" for number in (1, 2, 3)}
    assert paths(table.plan_clean(age_retained="7d", **more)) == gone
    assert paths(table.plan_clean(age_retained="31d", **more)) == set()
    assert earliest_after(table.plan_clean(age_retained="7d", **more)) == at(5)


def earliest_after(plan):
    """Requested time of the earliest instant that a plan retains."""
    return plan.earliest_to_retain.requested_time


def rested(layout):
    """Two groups with six versions each, eight hours apart, the last of them just now."""
    builder = TableBuilder(layout)
    for number in range(1, 7):
        builder.commit(at(8 * number), {"r0": ["a"], "r1": ["b"]})
    builder.clock.moment = parse_instant_time(at(50), timezone.utc)
    return builder


SECOND = at(16)


def later(builder, _):
    """Time passes; nobody says that anything has ended."""
    builder.clock.move(timedelta(days=30))


def reads(table):
    """A consumer has read up to the second commit."""
    table.consumer("job").at(SECOND if table.config.version == 6 else done(SECOND))


ENDINGS = {
    "lease released": (lambda table: table.take_lease(ttl="9h", at=SECOND), lambda b, x: b.table().release_lease(x.id)),
    "lease expired": (lambda table: table.take_lease(ttl="9h", at=SECOND), later),
    "consumer deleted": (reads, lambda b, _: b.table().consumer("job").delete()),
    "consumer expired": (reads, later),
    "consumer went on": (reads, lambda b, _: b.table().consumer("job").at(b.table().changed_until())),
    "tag expired": (lambda table: table.create_savepoint(SECOND, name="t", ttl="9h"), later),
    "age": (lambda _: None, later),
    "changes": (lambda _: None, later),
}
OPTIONS: dict[str, dict[str, object]] = {"age": {"age_retained": "20h"}}
SETTINGS = {"changes": {"hoodie_py.clean.changes.retained": "20h"}}


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "policy", [{"commits_retained": 1}, {"file_versions_retained": 1}], ids=["commits", "versions"]
)
def test_when_something_that_kept_files_ends_the_next_clean_deletes_them_without_a_commit(layout, ending, policy):
    """What is left is what a table has that never kept them; then no clean is due any more."""
    keep, end = ENDINGS[ending]
    options = OPTIONS.get(ending, {}) | policy
    builder, twin = rested(layout), rested(layout)

    def opened(builder):
        table = builder.table()
        table.settings = table.settings.merged(SETTINGS.get(ending, {}))
        return table

    held = keep(opened(builder))
    opened(builder).clean(**options)
    kept = set(data_files(builder.storage))
    assert not opened(builder).plan_clean(**options).needs_cleaning
    end(builder, held)
    twin.clock.moment = builder.clock.moment
    assert opened(builder).plan_clean(**options).would_schedule
    opened(builder).clean(**options)
    opened(twin).clean(**options)
    assert set(data_files(builder.storage)) == set(data_files(twin.storage)) < kept
    assert not opened(builder).plan_clean(**options).needs_cleaning


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("words", [{}, {"name": "t"}], ids=["nameless", "tag"])
def test_after_a_savepoint_is_deleted_a_clean_waits_for_a_commit(layout, words):
    """As in Apache Hudi (A-10), which looks at all partitions then (A-33)."""
    builder = rested(layout)
    builder.table().create_savepoint(SECOND, **words)
    builder.table().clean(commits_retained=1)
    builder.table().delete_savepoint(SECOND)
    assert not builder.table().plan_clean(commits_retained=1).needs_cleaning
    builder.commit(at(51), {"r1": ["b"]})
    builder.clock.moment = parse_instant_time(at(52), timezone.utc)
    builder.table().clean(commits_retained=1)
    assert {path for path in data_files(builder.storage) if path.startswith("r0/")} == {
        f"r0/{builder.base_name('a', at(48))}"
    }
