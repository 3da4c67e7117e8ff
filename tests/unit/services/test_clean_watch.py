"""Progress: callbacks, structured events, and the bar."""

import io
import json
import logging
import sys

import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.inspection import progress_bar
from hudi_py.inspection import still_running as still_running_module
from hudi_py.inspection.cli import main
from hudi_py.inspection.progress_bar import clean_bar, figures
from hudi_py.inspection.still_running import still_running
from hudi_py.services.clean.executing import watch
from hudi_py.services.clean.executing.watch import CleanProgress, Reporter
from hudi_py.storage.local import LocalStorage
from hudi_py.timeline.contents import Contents
from support.cli_runner import RUNNER
from support.fixtures import unpack
from support.tables import TableBuilder, at, data_files


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Everything is told, however fast it goes."""
    monkeypatch.setattr(watch, "CALL_SECONDS", 0.0)
    monkeypatch.setattr(watch, "EVENT_SECONDS", 0.0)


def story():
    """Five partitions, four superseded slices in each, of which a clean by one commit takes three."""
    builder = TableBuilder(2)
    for number in range(1, 6):
        builder.commit(at(number), {f"r{partition}": ["f"] for partition in range(5)})
    return builder


class Elsewhere(LocalEngine):
    """Deletes where no callback reaches, as Spark does."""

    name = "spark"


@pytest.mark.parametrize("engine", [LocalEngine(2), Elsewhere(2)], ids=["local", "elsewhere"])
def test_callback_sees_every_partition_and_every_file(engine, monkeypatch):
    """Two phases, each from nothing to all of it; bytes are those of the plan, and rate and time left follow."""
    monkeypatch.setattr(watch, "PAGE_FILES_MIN", 1)
    builder, seen = story(), []
    size = builder.table().plan_clean(commits_retained=1, details=True).size_bytes
    [result] = builder.table().clean(commits_retained=1, engine=engine, on_progress=seen.append)
    planning = [each for each in seen if each.phase == "plan"]
    deleting = [each for each in seen if each.phase == "delete"]
    assert seen == [*planning, *deleting]
    for phase in (planning, deleting):
        assert [each.is_finished for each in phase] == [False] * (len(phase) - 1) + [True]
        counts = [each.done for each in phase]
        assert counts[0] == 0 and counts == sorted(counts)
    assert (planning[-1].done, planning[-1].total, planning[-1].files_found) == (5, None, 15)
    assert (deleting[-1].done, deleting[-1].total) == (15, 15) == (len(result.deleted_files),) * 2
    assert (deleting[-1].bytes_done, deleting[-1].bytes_total) == (size, size)
    assert {each.instant for each in deleting} == {result.instant}
    assert len(deleting) > 3
    assert all(each.eta_seconds >= 0 for each in deleting if each.rate)


def test_an_incremental_plan_knows_how_many_partitions_there_are():
    """The share of the work is known before it begins."""
    builder, seen = story(), []
    builder.table().clean(commits_retained=1)
    builder.commit(at(6), {"r0": ["f"]})
    builder.commit(at(7), {"r0": ["f"], "r3": ["f"]})
    builder.table().clean(commits_retained=1, on_progress=seen.append)
    assert {each.total for each in seen if each.phase == "plan"} == {5}


def test_sizes_of_one_plan_are_not_told_of_another():
    """An older pending clean goes first, and its bytes are not known."""
    builder, seen = story(), []
    builder.table().services.clean(builder.table().services.clean_config(commits_retained=2)).schedule()
    table = builder.table(clean_multiple_enabled=True)
    results = table.clean(commits_retained=1, on_progress=seen.append)
    older, newer = [
        [each for each in seen if each.phase == "delete" and each.instant == result.instant] for result in results
    ]
    assert {(each.bytes_done, each.bytes_total) for each in older} == {(None, None)}
    assert newer[-1].bytes_done == newer[-1].bytes_total > 0


def test_a_plan_is_decoded_once_whoever_watches(monkeypatch):
    """A plan may name a million files."""
    decoded, builder = [], story()
    real = Contents.clean_plan
    monkeypatch.setattr(Contents, "clean_plan", lambda self, instant: decoded.append(instant) or real(self, instant))
    builder.table().clean(commits_retained=1, on_progress=lambda progress: None)
    assert len(decoded) == 1


def test_a_plan_stored_earlier_has_no_sizes():
    """Then the bytes are unknown, not 0."""
    builder, seen = story(), []
    builder.table().services.clean(builder.table().services.clean_config(commits_retained=1)).schedule()
    builder.table().clean(commits_retained=1, on_progress=seen.append)
    deleting = [each for each in seen if each.phase == "delete"]
    assert {(each.bytes_done, each.bytes_total) for each in deleting} == {(None, None)}
    assert deleting[-1].done == deleting[-1].total == 15


def test_a_callback_that_raises_ends_the_run_and_the_next_one_finishes():
    """Nothing is lost: the clean stays pending with its plan."""
    builder = story()

    def stop(progress):
        if progress.phase == "delete" and progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.table().clean(commits_retained=1, on_progress=stop)
    [pending] = builder.table().timeline.pending("clean")
    [result] = builder.table().clean(commits_retained=1)
    assert result.instant == pending.requested_time
    assert len(data_files(builder.storage)) == 10


def test_structured_events_where_there_is_no_callback(caplog):
    """Who listens to the log hears of each phase and how far it is."""
    caplog.set_level(logging.INFO, logger="hudi_py")
    story().table().clean(commits_retained=1)
    lines = [record.getMessage() for record in caplog.records if "clean.phase.finished" in record.getMessage()]
    assert [("phase='plan'" in line, "done=5" in line) for line in lines[:1]] == [(True, True)]
    assert ["done=15" in line and "total=15" in line for line in lines[1:]] == [True]
    assert any("clean.progress" in record.getMessage() for record in caplog.records)


def test_nobody_is_told_more_often_than_every_tenth_of_a_second(monkeypatch):
    """By whichever clock: ten steps of 60 ms make five calls, besides those at the beginning and the end."""
    monkeypatch.setattr(watch, "CALL_SECONDS", 0.1)
    now, seen = [100.0], []
    reporter = Reporter(seen.append, seconds=lambda: now[0])
    reporter.begin("delete", instant="001", total=10)
    for _ in range(10):
        now[0] += 0.06
        reporter.advance()
    reporter.finish()
    assert [each.done for each in seen] == [0, 2, 4, 6, 8, 10, 10]
    assert [round(each.elapsed_seconds, 2) for each in seen] == [0, 0.12, 0.24, 0.36, 0.48, 0.6, 0.6]
    assert [each.is_finished for each in seen] == [False] * 6 + [True]


# --- the bar ---------------------------------------------------------------------------------------------------------
class Terminal(io.StringIO):
    """Standard error, as a terminal."""

    def isatty(self):
        return True


def test_the_bar_stands_on_standard_error_with_counts_bytes_and_rate(monkeypatch, capsys):
    """Nothing of it reaches standard output."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    builder = story()
    with clean_bar() as on_progress:
        builder.table().clean(commits_retained=1, on_progress=on_progress)
    assert capsys.readouterr().out == ""
    shown = terminal.getvalue()
    assert "5 partitions  15 files to delete" in shown
    assert "15/15 files  60 B of 60 B" in shown


@pytest.mark.parametrize("term", ["dumb", None])
def test_no_bar_without_a_terminal(term, monkeypatch):
    """Neither in a pipe nor on a terminal that cannot redraw a line: there the line a minute has the figures."""
    monkeypatch.setattr(sys, "stderr", output := Terminal() if term else io.StringIO())
    monkeypatch.setenv("TERM", term or "xterm")
    with still_running("clean", is_wanted=True), clean_bar() as on_progress:
        on_progress(CleanProgress(phase="delete", done=1, total=4))
        assert still_running_module._current is not None
        assert still_running_module._current.doing == "deleting  1/4 files"
    assert output.getvalue() == ""
    assert not still_running_module._current


def test_figures_tell_what_is_known():
    """Counts, bytes, rate and time left; what is not known is left out."""
    half = CleanProgress(
        phase="delete", done=1000, total=4000, bytes_done=10**6, bytes_total=4 * 10**6, elapsed_seconds=30.0
    )
    assert figures(half) == "1,000/4,000 files  1.0 MB of 4.0 MB  33/s  1:30 left"
    assert figures(CleanProgress(phase="plan", done=7, files_found=2)) == "7 partitions  2 files to delete"


def test_json_stays_one_document_under_a_bar(tmp_path, monkeypatch):
    """With --json standard output holds the document only, bar or not."""
    path = unpack("cow_many-1.1.1", tmp_path)
    monkeypatch.setattr(progress_bar, "can_redraw", lambda: True)
    result = RUNNER.invoke(main, ["clean", str(path), "--commits-retained", "1", "--json"])
    assert result.exit_code == 0
    assert set(json.loads(result.stdout)) == {"cleans"}
    assert "planning" in result.stderr
    assert LocalStorage(str(path)).list(".hoodie")
