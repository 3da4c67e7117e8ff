"""``hudi-py maintain``: what is due, in order; each step what its own command would do."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import StorageError
from hudi_py.inspection.cli import main
from hudi_py.runtime.clock import FixedClock, SystemClock
from hudi_py.services.maintenance.service import Chore, ChoreResult, Work
from hudi_py.services.maintenance.service import run as maintenance
from hudi_py.table import Table
from support.cli_runner import RUNNER


def bare(path):
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.mark.parametrize("name", ["cow_nonpartitioned-1.1.1", "cow_archived-0.15.0", "mor_compacted-0.15.0"])
def test_a_run_does_what_its_dry_run_shows(run, table, name):
    """The dry run writes nothing and names the files; afterwards rows are the same and nothing is due any more."""
    path = table(name)
    rows = hudi_py.open_table(path).rows().to_arrow()
    before = bare(path)
    options = ("--conf", "hoodie.clean.commits.retained=1", "--conf", "hoodie.table.services.enabled=false", "--json")
    due = {each["step"]: each for each in run("maintain", path, "--dry-run", *options).json["steps"]}
    assert bare(path) == before
    done = {each["step"]: each for each in run("maintain", path, *options).json["steps"]}
    assert list(done) == ["failed_writes", "tags", "clean", "archival", "quarantine", "orphans"]
    named, gone = ({each["path"] for each in steps["clean"]["files"]} for steps in (due, done))
    assert named == gone
    assert not gone & bare(path).keys()
    assert hudi_py.open_table(path).rows().to_arrow().equals(rows)
    assert not [each for each in run("maintain", path, "--dry-run", *options).json["steps"] if each["due"]]
    assert "clean" in run("maintain", path, "--dry-run").out


_INLINE = ("--conf", "hoodie.compact.inline=true", "--conf", "hoodie.clustering.inline=true")
_OFTEN = ("--conf", "hoodie.compact.inline.max.delta.commits=1", "--conf", "hoodie.clustering.inline.max.commits=1")

_LOGS = ("--conf", "hoodie.log.compaction.inline=true", "--conf", "hoodie.log.compaction.blocks.threshold=1")
_SHORT = ("--conf", "hoodie.keep.min.commits=2", "--conf", "hoodie.keep.max.commits=3")


@pytest.mark.parametrize(
    ("name", "conf", "step"),
    [
        ("cow_clean_requested-1.1.1", (), "clean"),
        ("cow_clean_inflight-0.15.0", (), "clean"),
        ("mor_pending_compaction-1.1.1", _INLINE[:2], "compaction"),
        ("mor_logs-1.0.2", (*_INLINE[:2], *_OFTEN), "compaction"),
        ("mor_logs-1.1.1", _LOGS, "log_compaction"),
        ("cow_pending_clustering-1.1.1", _INLINE[2:], "clustering"),
        ("cow_nonpartitioned-1.1.1", (*_INLINE[2:], *_OFTEN), "clustering"),
        ("cow_archived-1.1.1", _SHORT, "archival"),
    ],
)  # fmt: skip
def test_a_dry_run_calls_due_what_a_run_does(run, table, name, conf, step):
    """Each step, what is pending too; and the files of a clean by name."""
    path = table(name)
    before = bare(path)
    due = {each["step"]: each for each in run("maintain", path, "--dry-run", "--json", *conf).json["steps"]}
    assert bare(path) == before
    done = {each["step"]: each for each in run("maintain", path, "--json", *conf).json["steps"]}
    assert {each for each in due if due[each]["due"]} == {each for each in done if done[each]["done"]} == {step}
    if step == "clean":
        assert {each["path"] for each in due["clean"]["files"]} >= {each["path"] for each in done["clean"]["files"]}


def test_a_dry_run_shows_what_archival_takes_behind_a_clean(run, table):
    """Whether or not the clean is due in the same run."""
    path = table("cow_insert_overwrite-1.1.1")
    options = (*_SHORT, "--conf", "hoodie.clean.commits.retained=1", "--json")
    for due_before in (True, False):
        shown = {each["step"]: each for each in run("maintain", path, "--dry-run", *options).json["steps"]}
        assert shown["clean"]["due"] == due_before
        done = {each["step"]: each for each in run("maintain", path, *options).json["steps"]}
        told, gone = ({each["path"] for each in steps["archival"]["files"]} for steps in (shown, done))
        assert told == gone


def test_a_dry_run_names_tags(tmp_path):
    """Those that are due by the schedule, and those whose time is over."""
    path = str(tmp_path / "trips")
    keys = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(path, pa.table({"id": ["a"]}), settings=keys)
    clock = FixedClock(SystemClock().now() + timedelta(hours=2))
    table = hudi_py.open_table(path, settings={"hoodie_py.tags.hourly": "9"}, clock=clock)
    for step in (Chore.DUE_TAGS, Chore.TAGS):
        found, made = ({each.step: each.found for each in table.maintain(dry_run=dry).steps} for dry in (True, False))
        assert found[step].is_due
        assert found[step].files.keys() == made[step].files.keys()
        clock.move(timedelta(days=40))


def test_a_step_that_fails_does_not_stop_the_others():
    """It is reported with its error, and counts as not done."""

    def fails():
        raise StorageError("no disk")

    fine = ChoreResult("as always", {"a": "old"})
    works = [Work(Chore.TAGS, fails), Work(Chore.CLEAN, lambda: fine), Work(Chore.ORPHANS, lambda: fine, reports=True)]
    report = maintenance(works)
    assert [(each.is_done, each.error is None) for each in report.steps] == [
        (False, False),
        (True, True),
        (False, True),
    ]
    rehearsed = maintenance(works, dry_run=True)
    assert [each.is_done for each in rehearsed.steps] == [False, False, False]
    assert [each.step for each in rehearsed.failed] == [Chore.TAGS]


def test_watching_runs_until_a_signal(run, table, monkeypatch, tmp_path):
    """A line of JSON for each run; a failing run does not end it; of many tables it is refused."""
    path, waits = table("cow_nonpartitioned-1.1.1"), []

    def wait(_seconds):
        waits.append(1)
        if len(waits) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("hudi_py.inspection.watching.watch.__kwdefaults__", {"wait": wait, "chance": lambda: 0.5})
    done = run("maintain", path, "--watch", "15m", "--json", "--conf", "hoodie.clean.commits.retained=1")
    assert done.code == 0
    first, second = ({step["step"]: step for step in json.loads(line)["steps"]} for line in done.out.splitlines())
    assert (first["clean"]["done"], second["clean"]["due"]) == (True, False)
    assert run("maintain", path, "--watch", "soon").code == 2
    listed = tmp_path / "tables.txt"
    listed.write_text(str(path))
    assert run("maintain", "--tables", listed, "--watch", "15m").code == 2


@pytest.mark.parametrize("form", ["--json", "--json-envelope"])
def test_a_run_that_fails_is_a_line_of_its_own(run, table, monkeypatch, form):
    """Whoever follows the lines sees it as the error that a single run prints, and what to do."""
    path, elsewhere, waits = table("cow_nonpartitioned-1.1.1"), table("cow_empty-1.1.1") / "hidden", []

    def wait(_seconds):
        waits.append(path.rename(elsewhere) if not waits else elsewhere.rename(path))
        if len(waits) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("hudi_py.inspection.watching.watch.__kwdefaults__", {"wait": wait, "chance": lambda: 0.5})
    watched = run("maintain", path, "--watch", "15m", form)
    first, second = (json.loads(line) for line in watched.out.splitlines())
    assert "steps" in (first if form == "--json" else first["result"])
    path.rename(elsewhere)
    alone = run("maintain", path, form)
    assert second == json.loads(alone.out)
    assert second["error"]["kind"] == "TableNotFound"
    assert (watched.err, watched.code) == (alone.err, alone.code)


def test_a_fault_of_ours_ends_no_watch(run, table, monkeypatch):
    """It is told in a line, and the next run is as any other; with --debug it is shown whole."""
    path, faults, waits = table("cow_nonpartitioned-1.1.1"), [KeyError("a")], []
    maintain = Table.maintain

    def faulty(*given, **options):
        if faults:
            raise faults.pop()
        return maintain(*given, **options)

    def wait(_seconds):
        waits.append(1)
        if len(waits) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Table, "maintain", faulty)
    monkeypatch.setattr("hudi_py.inspection.watching.watch.__kwdefaults__", {"wait": wait, "chance": lambda: 0.5})
    watched = run("maintain", path, "--watch", "15m", "--json")
    first, second = (json.loads(line) for line in watched.out.splitlines())
    assert (first["error"]["kind"], "steps" in second, watched.code) == ("KeyError", True, 0)
    assert watched.err == "hudi-py: unexpected KeyError: 'a'; --debug shows where\n"
    faults.append(KeyError("b"))
    shown = RUNNER.invoke(main, ["maintain", str(path), "--watch", "15m", "--debug"])
    assert isinstance(shown.exception, KeyError)


def test_another_time_is_for_looking_only(run, table, tmp_path):
    """A dry run is the one of that time, step by step; a real run by it is refused, and others say so."""
    path, file = table("cow_cleaned-1.1.1"), tmp_path / "policy.toml"
    file.write_text("[keep]\neverything = '12h'\n")
    early, late = (("--now", time) for time in ("20240114124000000", "20240120124000000"))
    dry = ("maintain", path, "--dry-run", "--json", "--conf", "hoodie_py.clean.age.retained=12h")

    def due(*command):
        (step,) = (each for each in run(*command).json["steps"] if each["step"] == "clean")
        return {each["path"] for each in step["files"]}

    for now in (early, late):
        plan = run("clean", path, "--age-retained", "12h", "--dry-run", "--json", *now).json["plan"]
        planned = {path for files in plan["files_to_delete"].values() for path in files}
        assert due(*dry, *now) == planned == due("policy", "explain", path, "--file", file, "--json", *now)
    assert due(*dry, *early) < due(*dry, *late)
    tags = ("tag", "schedule", path, "--daily", "30", "--json")
    assert run(*tags, "--dry-run").json == []
    assert run(*tags, "--dry-run", *late).json
    before = bare(path)
    for command in (("maintain", path), ("maintain", path, "--watch", "1h"), tags):
        refused = run(*command, *late)
        assert (refused.code, "--dry-run" in refused.err) == (2, True)
    assert run("maintain", path, "--watch", "1h", "--max-duration", "soon").code == 2  # not again and again
    assert bare(path) == before
    assert "--now has no effect on timeline" in run("timeline", path, *late).err
    assert "--now" not in run("clean", path, *late, "--dry-run", "--force").err
