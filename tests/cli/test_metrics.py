"""Metrics: what collectors read is what the other commands say."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

import hudi_py
from hudi_py.inspection import site_metrics
from hudi_py.inspection.metrics_file import run_samples, write_metrics
from hudi_py.inspection.open_metrics import FAMILIES, Sample, metrics_text, samples_in
from hudi_py.inspection.options import Common
from hudi_py.inspection.site_metrics import SiteMetrics
from hudi_py.inspection.table_metrics import timeline_samples
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.runtime.clock import SystemClock
from support.tables import TableBuilder, at, on_disk

openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs prometheus_client")
classic = pytest.importorskip("prometheus_client.parser")


def parsed(text):
    """Family and labels to value, by both parsers, which have to agree: collectors use one or the other."""
    found = [
        {(s.name, tuple(sorted(s.labels.items()))): s.value for family in parse(text) for s in family.samples}
        for parse in (openmetrics.text_string_to_metric_families, classic.text_string_to_metric_families)
    ]
    assert found[0] == found[1]
    return found[0]


def of(samples, family, **labels):
    """Value of one sample; `None` if it is not there."""
    return samples.get((family, tuple(sorted(labels.items()))))


@pytest.mark.parametrize("name", ["cow_cleaned-1.1.1", "mor_pending_compaction-0.15.0", "cow_failed_write-1.2.0"])
def test_the_numbers_are_those_of_the_commands(run, table, tmp_path, name):
    """Bytes are those of ``du``, findings those of ``doctor``, counts those of ``timeline``."""
    path, file = str(table(name)), tmp_path / "m.prom"
    findings = run("doctor", path, "--json", "--metrics-file", file).json
    problems = [each for each in findings if each["severity"] != "info"]
    samples = parsed(file.read_text())
    usage = run("du", path, "--json").json
    for reason in {each["reason"] for each in usage["by_reason"]}:
        told = sum(each["bytes"] for each in usage["by_reason"] if each["reason"] == reason)
        assert of(samples, "hudi_py_held_bytes", table=path, held_by=reason) == told
    held = [value for (family, _), value in samples.items() if family == "hudi_py_held_files"]
    assert sum(held) == usage["total"]["files"]
    assert sum(v for (f, _), v in samples.items() if f == "hudi_py_findings") == len(findings)
    instants = run("timeline", path, "--json").json["instants"]
    assert sum(v for (f, _), v in samples.items() if f == "hudi_py_instants") == len(instants)
    pending = {each["action"] for each in instants if each["state"] != "COMPLETED"}
    aged = {dict(labels)["action"] for (f, labels) in samples if f == "hudi_py_pending_age_seconds"}
    assert aged == pending
    newest = {}
    for event in run("history", path, "--json").json["events"]:
        if event["state"] == "COMPLETED":
            newest[event["action"]] = event["bytes_written"]
    for action, size in newest.items():
        assert of(samples, "hudi_py_last_written_bytes", table=path, action=action) == size
    assert of(samples, "hudi_py_command_exit_code", command="doctor", table=path) == (3 if problems else 0)


def test_a_run_that_fails_keeps_the_time_of_the_last_success(run, table, tmp_path):
    """That is what an alarm is about; the exit code says that this run failed, and a later success is newer."""
    path, file = table("cow_cleaned-1.1.1"), tmp_path / "m.prom"
    arguments = ("clean", path, "--metrics-file", file)
    success = {"family": "hudi_py_command_success_timestamp_seconds", "command": "clean", "table": str(path)}
    assert run(*arguments).code == 0
    first = of(parsed(file.read_text()), **success)
    (path / ".hoodie").rename(path / "gone")
    assert run(*arguments).code == 5
    failed = parsed(file.read_text())
    assert of(failed, **success) == first
    assert of(failed, "hudi_py_command_exit_code", command="clean", table=str(path)) == 5
    assert of(failed, "hudi_py_table_up", table=str(path)) == 0
    (path / "gone").rename(path / ".hoodie")
    assert run(*arguments).code == 0
    assert of(parsed(file.read_text()), **success) > first


def test_wrong_usage_is_a_failed_run_too(run, table, tmp_path):
    """Settings that are refused end with exit code 2, and the file says so; a folder that is missing is refused."""
    path, file = table("cow_cleaned-1.1.1"), tmp_path / "m.prom"
    assert run("clean", path, "--conf", "hoodie.clean.policy=NONSENSE", "--metrics-file", file).code == 2
    assert of(parsed(file.read_text()), "hudi_py_command_exit_code", command="clean", table=str(path)) == 2
    before = run("timeline", path, "--json").out
    assert run("clean", path, "--commits-retained", 1, "--metrics-file", tmp_path / "none" / "m.prom").code == 2
    assert run("timeline", path, "--json").out == before


@pytest.mark.slow
def test_many_tables_are_one_file(run, table, tmp_path):
    """With each table's own numbers, and those of the run; tables that failed are told."""
    good, broken, file = table("cow_cleaned-1.1.1"), tmp_path / "lake" / "broken", tmp_path / "m.prom"
    (broken / ".hoodie").mkdir(parents=True)
    lake = tmp_path / "lake"
    shutil.copytree(good, lake / "good")
    assert run("clean", "--tables", lake, "--metrics-file", file, "--parallel", 1).code == 6
    samples = parsed(file.read_text())
    assert of(samples, "hudi_py_table_up", table=str(lake / "good")) == 1
    assert of(samples, "hudi_py_table_up", table=str(broken)) == 0
    assert of(samples, "hudi_py_command_exit_code", command="clean", table=str(broken)) not in (0, None)
    assert of(samples, "hudi_py_command_exit_code", command="clean") == 6
    assert run("fleet", lake, "--metrics-file", file, "--parallel", 1).code == 6
    fleet = parsed(file.read_text())
    assert of(fleet, "hudi_py_wasted_bytes", table=str(lake / "good")) is not None
    assert of(fleet, "hudi_py_command_exit_code", command="fleet") == 6


def test_a_run_over_many_tables_that_ends_early_is_told(run, table, tmp_path, monkeypatch):
    """By a signal, with the tables that were done, or for want of tables: the last file would say 0 for ever."""
    good, file = table("cow_cleaned-1.1.1"), tmp_path / "m.prom"
    words = ("check", "--metrics-file", file, "--parallel", 1)
    assert run(*words, "--tables", good).code == 0
    assert of(parsed(file.read_text()), "hudi_py_command_exit_code", command="check") == 0
    assert run(*words, "--tables", tmp_path / "nowhere").code == 2
    assert of(parsed(file.read_text()), "hudi_py_command_exit_code", command="check") == 2
    two = shutil.copytree(good, tmp_path / "two")
    opened = Common.open

    def interrupted(self, location):
        if location == str(two):
            raise KeyboardInterrupt
        return opened(self, location)

    monkeypatch.setattr(Common, "open", interrupted)
    (tmp_path / "list.txt").write_text(f"{good}\n{two}\n")
    assert run(*words, "--tables", tmp_path / "list.txt").code == 130
    samples = parsed(file.read_text())
    assert of(samples, "hudi_py_command_exit_code", command="check") == 130
    assert of(samples, "hudi_py_command_exit_code", command="check", table=str(good)) == 0


@pytest.mark.parametrize("name", ['"} 1\nevil 1 {a="', "a\\", "\\n", "tab\tä\u2028", "\ud800", "{}#,=", "x\r# EOF"])
def test_hostile_names_stay_labels(name):
    """No name of a table ends its label or its line, and one that is read back is written in the same way."""
    text = metrics_text([Sample("hudi_py_table_up", {"table": name}, 1)])
    [(family, labels)] = parsed(text)
    assert (family, [key for key, _ in labels]) == ("hudi_py_table_up", ["table"])
    assert metrics_text(samples_in(text, "hudi_py_table_up")) == text
    assert [line for line in text.splitlines() if line.startswith("evil")] == []


def test_names_end_with_their_units():
    """OpenMetrics asks for it, and a parser of its own refuses the file otherwise."""
    for name, (unit, meaning) in FAMILIES.items():
        assert name.endswith(f"_{unit}") or not unit, name
        assert meaning.endswith("."), name
    samples = [Sample(name, {}, 1) for name in FAMILIES]
    assert len(parsed(metrics_text(samples))) == len(FAMILIES)


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path, capsys):
    """The work of the command is done; that its metrics are missing is said."""
    folder = tmp_path / "m.prom"
    folder.mkdir()
    write_metrics(str(folder), list(run_samples("clean", "t", 0, 1.0, SystemClock().now())))
    assert "--metrics-file" in capsys.readouterr().err


def test_ages_count_from_the_given_moment():
    """In seconds, never negative: a clock that is behind the table's is no reason for a negative age."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    opened = hudi_py.Table(builder.storage)
    began = parse_instant_time(at(1), opened.zone)
    for later, age in ((60, 60), (-60, 0)):
        samples = timeline_samples(opened, "t", began + timedelta(seconds=later))
        assert [s.value for s in samples if s.family == "hudi_py_last_completed_age_seconds"] == [age]


class TestServer:
    """``/metrics``."""

    def test_a_call_has_a_time_limit_and_the_next_one_goes_on(self, tmp_path):
        """Tables that there was no time for show their timeline, and are examined at the next call."""
        locations = []
        for number in range(3):
            builder = TableBuilder(2)
            builder.commit(at(1), {"p": ["f"]})
            on_disk(builder, tmp_path / str(number))
            locations.append(str(tmp_path / str(number)))
        clock = iter(range(0, 1000, 4))  # each look at the clock is four seconds later
        metrics = SiteMetrics(
            lambda: tuple(locations),
            lambda where: hudi_py.open_table(where).read_only(),
            {},
            seconds=lambda: next(clock),
        )
        assert site_metrics.SECONDS_MAX == 5
        counts = []
        for _ in range(4):
            samples = parsed(metrics.text())
            assert sum(v for (f, _), v in samples.items() if f == "hudi_py_table_up") == 3
            counts.append(sum(f == "hudi_py_wasted_bytes" for f, _ in samples))
        assert counts == [1, 2, 3, 3]

    def test_a_change_is_seen_and_nothing_else_is_looked_at_again(self, tmp_path, monkeypatch):
        """What an examination found stays until the timeline changes."""
        builder = TableBuilder(2)
        builder.commit(at(1), {"p": ["f"]})
        on_disk(builder, tmp_path / "t")
        location = str(tmp_path / "t")
        looks = []
        examine = SiteMetrics._examine
        monkeypatch.setattr(SiteMetrics, "_examine", lambda self, *a: looks.append(1) or examine(self, *a))
        metrics = SiteMetrics(lambda: (location,), lambda where: hudi_py.open_table(where).read_only(), {})
        first, second = parsed(metrics.text()), parsed(metrics.text())
        family = "hudi_py_commits_since_clean"
        assert (of(first, family, table=location), of(second, family, table=location), len(looks)) == (1, 1, 1)
        builder.commit(at(2), {"p": ["f"]})
        on_disk(builder, tmp_path / "t")
        assert of(parsed(metrics.text()), family, table=location) == 2
        assert len(looks) == 2
        shutil.rmtree(location)
        samples = parsed(metrics.text())
        assert of(samples, "hudi_py_table_up", table=location) == 0
        assert of(samples, family, table=location) is None, "what is gone has no numbers"

    def test_what_changes_without_the_timeline_is_seen_in_time(self, tmp_path):
        """A property at once, an orphan after an hour: no instant speaks of either."""
        builder = TableBuilder(2)
        builder.commit(at(1), {"p": ["f"]})
        root = on_disk(builder, tmp_path / "t").storage.root
        clock = [0.0]
        metrics = SiteMetrics(
            lambda: (root,), lambda where: hudi_py.open_table(where).read_only(), {}, seconds=lambda: clock[0]
        )

        def more():
            samples = parsed(metrics.text())
            return sum(v for (family, _), v in samples.items() if family == "hudi_py_held_files") - before

        before = 0
        before = more()
        orphan = f"11111111-1111-1111-1111-111111111111-0_0-1-1_{at(0)}.parquet"
        (tmp_path / "t" / "p" / orphan).write_bytes(b"x")
        clock[0] = site_metrics.EXAMINED_SECONDS_MAX - 1
        assert more() == 0
        clock[0] += 1
        assert more() == 1
        (tmp_path / "t" / "p" / orphan).unlink()
        properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("fields=region", "fields=area"))
        assert more() == 0
