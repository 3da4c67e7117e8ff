"""Lanes of the test suite: which, in which order, and what they add up to."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def lanes(load_tool):
    """The script."""
    return load_tool("lanes")


def test_fast_lane_comes_first_and_the_two_sparks_share_the_machine(lanes):
    """A mistake shows within seconds; what keeps one core busy does not wait for another of its kind."""
    chosen = list(lanes.lanes("py35", "py40", []))
    rest = [["fast tests"], ["slow tests, S3, browser"], ["against Apache Hudi"]]
    for cores, last in [(1, [["Spark 3.5"], ["Spark 4.0"]]), (2, [["Spark 3.5", "Spark 4.0"]])]:
        groups = [[lane.name for lane in group] for group in lanes.side_by_side(chosen, cores)]
        assert rest + last == groups


def test_lanes_side_by_side_are_shown_one_after_the_other(lanes, monkeypatch, capfd, tmp_path):
    """Each with its own output and time; the first that failed gives the exit code."""
    report = '<testsuite tests="2" failures="1"/>'

    def lane(name, code):
        script = f"import sys; print('said by {name}'); sys.exit({code})"
        return lanes.Lane(name, sys.executable, None, cores=1), script

    group = [lane("a", 1), lane("b", 0)]
    scripts = {each.name: script for each, script in group}
    real = subprocess.run

    def run(command, **options):
        name = Path(command[-1].partition("=")[2]).stem
        Path(command[-1].partition("=")[2]).write_text(report)
        return real([command[0], "-c", scripts[name]], **options)

    monkeypatch.setattr(lanes.subprocess, "run", run)
    done = list(lanes.run_all([each for each, _ in group], tmp_path, []))
    assert [(1, lanes.Count(1, 1, 0)), (0, lanes.Count(1, 1, 0))] == [(each.code, each.count) for each in done]
    shown = [line for line in capfd.readouterr().out.splitlines() if "said" in line or line.endswith(" s")]
    assert [line.split(":")[0] for line in shown] == ["said by a", "== a", "said by b", "== b"]


def test_marks_of_the_user_replace_the_lanes(lanes):
    """One run per environment, and no -m of ours."""
    assert [lanes.Lane("tests as chosen", "py35", None)] == list(lanes.lanes("py35", None, ["-m", "oracle"]))
    assert [lanes.Lane("Spark 4.0", "py40", None, "4.0", cores=1)] == list(lanes.lanes(None, "py40", ["-mslow"]))


def test_fast_needs_no_spark_and_no_server(lanes):
    """One lane: the unit and tidy tests, in an environment of its own."""
    (lane,) = lanes.lanes(None, None, [], "fast")
    assert lane.python == "fast"
    assert lane.paths == ("tests/unit", "tests/tidy")
    for mark in ("spark", "oracle", "s3", "browser", "slow"):
        assert mark in lane.marks


@pytest.mark.parametrize(
    ("arguments", "own"),
    [([], True), (["-k", "instant"], True), (["tests/unit/tools"], False), (["tests/unit/x.py::test_y"], True)],
)
def test_places_of_the_user_replace_those_of_a_lane(lanes, arguments, own):
    """A word after -k is no place, and neither is a file that is not there."""
    (lane,) = lanes.lanes(None, None, arguments, "fast")
    assert lanes.places(lane, arguments) == (lane.paths if own else ())


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([0, 5], 0), ([5, 5], 5), ([0, 1, 2], 1), ([5, 2], 2), ([0, -9], -9)]
)
def test_exit_code_is_that_of_the_first_failure(lanes, codes, code):
    """A lane without tests fails only when all lanes are without."""
    assert code == lanes.verdict(codes)


def test_outcomes_are_counted_from_the_report(lanes, tmp_path):
    """Errors in fixtures count as failures."""
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>')
    assert lanes.Count(passed=3, failed=3, skipped=3) == lanes.count(report)


def test_lane_that_died_counts_as_a_failure(lanes, tmp_path):
    """No report, no success."""
    assert lanes.Count(failed=1) == lanes.count(tmp_path / "absent.xml")


def test_total_stands_on_the_last_line(lanes, monkeypatch, capsys):
    """In the form that build servers read."""
    monkeypatch.setattr(lanes, "run", lambda lane, *_: lanes.Outcome(5, lanes.Count(2, 0, 1), 1.0))
    assert 5 == lanes.main(["--spark35", "py", "--", "-k", "x"])
    assert "total: 8 passed, 0 failed, 4 skipped" == capsys.readouterr().out.splitlines()[-1]
