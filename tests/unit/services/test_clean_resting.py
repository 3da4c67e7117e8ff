"""Retention by age of a table that rests."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from hudi_py.model.instant_time import parse_instant_time
from support.clean_histories import paths
from support.tables import TableBuilder, at

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
