"""What callers hold can be sent to another process: handle, snapshots, plans, results."""

from __future__ import annotations

import pickle

import pytest

from hudi_py.errors import ConfigError
from hudi_py.storage.local import LocalStorage
from support import fixtures
from support.writes import CHANGES, NEW, OLD, create_table, open_table, upsert


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.fixture(params=[6, 9], ids=["version 6", "version 9"])
def table(request, tmp_path):
    """Three commits, the second one savepointed; the first two hold the same rows."""
    storage = create_table(request.param, LocalStorage(str(tmp_path / "t")))
    upsert(storage, OLD)
    upsert(storage, OLD)
    opened = open_table(storage)
    opened.create_savepoint()
    upsert(storage, CHANGES)
    return open_table(storage)


def listed(rows):
    return sorted((row for batch in rows for row in batch.to_pylist()), key=lambda row: row["id"])


def test_a_table_is_opened_again_where_it_arrives(table):
    """The handle stays a handle: what is committed later is seen there, and it has the same settings and clock."""
    arrived = again(table)
    assert (arrived.config, arrived.settings.as_dict()) == (table.config, table.settings.as_dict())
    assert listed(arrived.rows()) == NEW


def test_snapshots_stay_at_their_time(table):
    """Whatever is committed before they arrive."""
    _, first, _ = table.timeline.completed("commit")
    kinds = {
        "latest": table.snapshot(),
        "earlier": table.as_of(first.requested_time),
        "savepoint": table.snapshot(savepoint=first.requested_time),
    }
    packed = {kind: pickle.dumps(snapshot) for kind, snapshot in kinds.items()}
    expected = {"latest": NEW, "earlier": OLD, "savepoint": OLD}
    upsert(table.storage, [{"id": "z", "region": "eu", "ts": 9}])
    for kind, data in packed.items():
        arrived = pickle.loads(data)
        assert listed(arrived.rows()) == listed(kinds[kind].rows()) == expected[kind], kind
        assert arrived.schema == kinds[kind].schema


@pytest.mark.parametrize("name", ["cow_partitioned-0.15.0", "cow_partitioned-1.1.1"])
def test_snapshots_listed_through_a_metadata_table_arrive_too(name, tmp_path):
    """The listing stays at its moment: its files are opened again, those of a later moment are not looked at."""
    table = open_table(LocalStorage(fixtures.unpack(name, tmp_path)))
    assert table.config.has_metadata_table
    first = table.timeline.completed("commit")[-1].requested_time
    for snapshot in (table.snapshot(), table.as_of(first)):
        assert again(snapshot).base_files() == snapshot.base_files()
    assert again(table.listing).partition("r0") == table.listing.partition("r0")


def test_rows_arrive_with_their_conditions(table):
    """A reader elsewhere reads the same."""
    rows = table.rows(where=[("ts", ">", 1), "region != us"], columns=["id"])
    assert listed(again(rows)) == listed(rows) == [{"id": "a"}, {"id": "c"}]


def test_plans_and_results_arrive_equal(table):
    """Timeline, plan, result of a clean, findings, outcomes, explanations."""
    upsert(table.storage, [{"id": "a", "region": "eu", "ts": 9}])
    opened = open_table(table.storage)
    plan = opened.plan_clean(commits_retained=1, details=True)
    assert again(plan).files == plan.files
    assert again(opened.timeline) == opened.timeline
    explained = opened.explain("eu", commits_retained=1)
    found = (opened.check(), opened.recover(dry_run=True), opened.overview(), explained)
    assert again(found) == found
    done = opened.clean(commits_retained=1)
    assert again(done) == done


def test_errors_arrive_as_they_are():
    """Their message and their exit code."""
    error = again(ConfigError("what, where"))
    assert (str(error), error.exit_code) == ("what, where", ConfigError("x").exit_code)
