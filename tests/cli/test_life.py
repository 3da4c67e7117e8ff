"""``hudi-py history``, ``diff``, ``simulate``: numbers of the instants, composing differences, rules of the planner."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.formats.archive_log import decode_archive_log
from hudi_py.table import Table
from support.fixtures import expected
from support.tables import TableBuilder, at, on_disk

NAMES = ["cow_mixed-0.15.0", "cow_mixed-1.1.1", "mor_compacted-1.0.2", "cow_archived-0.15.0", "cow_archived-1.1.1"]
ARCHIVES = [f"cow_archived-{version}" for version in ("0.15.0", "1.0.2", "1.1.1", "1.2.0")]
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def test_the_newest_instants_are_active_ones_first(run, table):
    """``--limit`` counts archived instants, too, each once however many states are listed of it."""
    path = table("cow_archived-1.1.1")
    whole = run("timeline", path, "--archived", "--json").json
    active = len(whole["instants"])
    archived = list(dict.fromkeys(each["requested_time"] for each in whole["archived"]))
    for limit in (0, 1, active, active + 3, active + len(archived), 999):
        page = run("timeline", path, "--archived", "--limit", limit, "--json").json
        assert page["instants"] == whole["instants"][active - min(limit, active) :]
        wanted = archived[len(archived) - min(max(limit - active, 0), len(archived)) :]
        assert page["archived"] == [each for each in whole["archived"] if each["requested_time"] in wanted]


@pytest.mark.parametrize("name", NAMES)
def test_history_has_an_event_for_each_instant(run, table, name):
    """In the order of the timeline, with the numbers that the instants hold."""
    path = table(name)
    events = run("history", path, "--json", "--archived").json["events"]
    timeline = run("timeline", path, "--json", "--archived", "--contents").json
    assert [each for each in events if not each["archived"]] != []
    key = lambda each: (each["requested_time"], each["action"], each["state"])
    # Layout 1 archives three files for each instant; here all of them were completed.
    archived = [each for each in timeline["archived"] if each["state"] == "COMPLETED"]
    assert sorted(map(key, events)) == sorted(map(key, timeline["instants"] + archived))
    contents = {key(each): each["content"] for each in timeline["instants"] + timeline["archived"]}
    for event in events:
        if event["state"] != "COMPLETED":
            continue
        content = contents[key(event)]
        stats = [stat for stats in (content.get("partitionToWriteStats") or {}).values() for stat in stats]
        assert event["files_written"] == len(stats)
        assert event["bytes_written"] == sum(stat["fileSizeInBytes"] for stat in stats)
        assert event["files_deleted"] == content.get("totalFilesDeleted", 0)
        if event["operation"] not in ("COMPACT", "CLUSTER", "LOG_COMPACT"):
            assert event["rows_inserted"] == sum(stat["numInserts"] for stat in stats)
    assert run("history", path, "--json", "--limit", 2).json["events"] == [e for e in events if not e["archived"]][-2:]
    cleans = run("history", path, "--json", "--action", "clean").json["events"]
    assert cleans == [e for e in events if e["action"] == "clean" and not e["archived"]]
    assert run("history", path).code == run("history", path, "--action", "restore").code == 0
    assert run("history", path, "--action", "nonsense").code == 2


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archived_instant_is_told_once_with_how_long_it_took(run, table, name):
    """In every list for people, in SQL and on the page; also from layout 1, whose archive has a file for each state."""
    path = table(name)
    theirs = expected(name)["expected"]["timeline"]
    keys = {(each["requested_time"], each["action"]) for each in theirs["archived"]}
    opened = hudi_py.open_table(path)
    archived = [event for event in opened.history(archived=True) if event.is_archived]
    assert [(e.instant.requested_time, e.instant.action.value) for e in archived] == sorted(keys)
    assert all(event.instant.is_completed and event.seconds for event in archived)
    logs = sorted(Path(path, ".hoodie", "archived").glob(".commits_.archive.*"))
    read = lambda text: datetime.strptime(f"{text}+0000", "%Y%m%d%H%M%S%f%z")
    entries = [entry for log in logs for entry in decode_archive_log(log.read_bytes(), log.name)]
    written = {(e.requested_time, e.action, e.state): read(e.state_transition_time) for e in entries}
    for event in archived if logs else ():
        time, action = event.instant.requested_time, event.instant.action.value
        # A clean records what it took itself, without the waiting around it.
        if action == "commit":
            took = written[(time, action, "COMPLETED")] - written[(time, action, "REQUESTED")]
            assert event.seconds == took.total_seconds()
    times = [time for time, _ in keys]
    for command in ("timeline", "history"):
        lines = run(command, path, "--archived").out.splitlines()
        assert [line.split()[0] for line in lines if line.split()[0] in times] == sorted(times)
    assert "ROLLING_STAT" not in run("history", path, "--archived").out
    assert len(opened.view("instants")) == len(keys) + len(theirs["instants"])


@pytest.mark.parametrize("name", ["cow_partitioned-1.1.1", "cow_partitioned-0.15.0", "mor_logs-1.0.2"])
def test_differences_compose(run, table, name):
    """From the first to the last is what the steps in between add up to: files, rows, commits."""
    path = table(name)
    times = [each["requested_time"] for each in run("timeline", path, "--json").json["instants"]
             if each["action"] in ("commit", "deltacommit") and each["state"] == "COMPLETED"]  # fmt: skip
    assert len(times) > 2
    whole = run("diff", path, times[0], times[-1], "--json").json
    assert run("diff", path, times[0], times[0], "--json").json["files"] == {"added": [], "removed": []}
    gained, lost, rows, commits = {}, {}, {"inserted": 0, "updated": 0, "deleted": 0, "rewritten": 0}, []
    for start, end in pairwise(times):
        step = run("diff", path, start, end, "--json").json
        commits += step["commits"]
        rows = {name: rows[name] + step["rows"][name] for name in rows}
        for each in step["files"]["removed"]:
            if each["path"] in gained:
                del gained[each["path"]]
            else:
                lost[each["path"]] = each["bytes"]
        gained.update({each["path"]: each["bytes"] for each in step["files"]["added"]})
    assert {each["path"]: each["bytes"] for each in whole["files"]["added"]} == gained
    assert {each["path"] for each in whole["files"]["removed"]} == set(lost)
    assert whole["rows"] == rows
    assert whole["commits"] == commits == times[1:]
    assert whole["schema"] == {"added": [], "removed": [], "changed": []}
    assert run("diff", path, times[0], "--json").json["files"] == whole["files"]
    assert run("diff", path, times[-1], times[0]).code == 2
    assert run("diff", path, times[0]).code == 0


def test_a_new_column_is_a_difference(tmp_path):
    """Of the schema, with its type."""
    path = str(tmp_path / "t")
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(path, pa.table({"id": [1, 2]}), settings=settings)
    first = hudi_py.open_table(path).timeline.completed("commit")[0].requested_time
    hudi_py.open_table(path).upsert(pa.table({"id": [2, 3], "note": ["a", "b"]}))
    found = hudi_py.open_table(path).diff(first)
    assert dict(found.columns_added) == {"note": "string"}
    assert (found.numbers.rows_inserted, found.numbers.rows_updated) == (1, 1)
    assert len(found.added) == len(found.removed) == 1


@LAYOUTS
@pytest.mark.parametrize("options", [{"commits_retained": 2}, {"file_versions_retained": 2}, {"hours_retained": 3},
                                     {"commits_retained": 1, "min_file_versions": 2}], ids=str)  # fmt: skip
def test_a_replay_ends_where_a_clean_ends(layout, options):
    """Cleaning after each commit deletes in the end what one clean of everything would delete now."""
    builder = TableBuilder(layout)
    for number in range(1, 14):
        groups = {"p": ["f"], "q": ["g"] if number % 3 else [], "r": ["h"] if number in (2, 3, 9) else []}
        builder.commit(at(number), {path: ids for path, ids in groups.items() if ids})
    builder.commit(at(14), {"q": ["new"]}, replaced={"q": ["g"]})
    for number in range(15, 19):
        builder.commit(at(number), {"p": ["f"]})
    now = builder.clock.now().replace(year=2026, month=1, day=1, hour=18)
    table = Table(builder.storage, clock=type(builder.clock)(now))
    planned = table.plan_clean(now=now, **options)
    found = table.simulate(**options)
    assert set(found.deleted) == {file.path for files in planned.files.values() for file in files}
    assert len(found.steps) == 18
    assert sum(step.files_deleted for step in found.steps) == len(found.deleted)
    sizes = {path: len(data) for path, data in builder.storage.files().items() if path.endswith(".parquet")}
    assert found.steps[-1].files == len(sizes) - len(found.deleted)
    assert found.steps[-1].bytes == sum(sizes.values()) - found.bytes_deleted


def test_simulate_prints_what_it_found(run, table):
    """Text and document; what cannot be simulated is refused."""
    path = table("cow_archived-1.1.1")
    page = run("simulate", path, "--commits-retained", 2, "--json").json
    assert page["totals"]["commits"] == len(page["steps"]) > 10
    assert sum(step["bytes_deleted"] for step in page["steps"]) == page["totals"]["bytes_deleted"] > 0
    assert run("simulate", path, "--commits-retained", 2).code == 0
    assert run("simulate", table("cow_empty-1.1.1")).code == 0
    assert run("simulate", path, "--keep-daily", 3).code == 2


def test_an_instant_is_found_by_its_second(run, tmp_path):
    """As people type it; two of one second are named, and nothing is guessed."""
    builder = TableBuilder(2)
    first, second, third = "20260101100000123", "20260101110000001", "20260101110000999"
    for time in (first, second, third):
        builder.commit(time, {"p": ["f"]})
    on_disk(builder, tmp_path)
    for text in ("2026-01-01T10:00:00", "2026-01-01 10:00:00", "20260101100000", first):
        found = run("instant", tmp_path, text, "--json")
        assert found.json["requested_time"] == first, found
    result = run("instant", tmp_path, "2026-01-01T11:00:00")
    assert result.code == 2
    assert second in result.err
    assert third in result.err
    assert run("instant", tmp_path, "2026-01-01T10:00:01").code == 2
    assert run("instant", tmp_path, "2026-01-01T10:00:00.124").code == 2
