"""What happens along the way is told on standard error; standard output holds what was asked for, and nothing else."""

import json

import pytest

CLEAN = ("clean", "--conf", "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS", "--file-versions-retained", "1", "--json")


@pytest.fixture
def path(table):
    return table("cow_partitioned-1.1.1")


def test_events_are_json_lines_beside_one_document(run, path, monkeypatch):
    """By option or by environment; fields are fields."""
    shown = run(*CLEAN, path, "--dry-run", "--log-level", "debug", "--log-json")
    assert isinstance(shown.json, dict)
    monkeypatch.setenv("HUDI_PY_LOG_LEVEL", "info")
    monkeypatch.setenv("HUDI_PY_LOG_JSON", "1")
    shown = run(*CLEAN, path)
    assert shown.json["cleans"]
    events = [json.loads(line) for line in shown.err.splitlines()]
    finished = [each for each in events if each["event"] == "clean.phase.finished"]
    assert {each["phase"] for each in finished} == {"plan", "delete"}
    assert all(isinstance(each["done"], int) and each["level"] == "info" for each in finished)


def test_without_a_switch_nothing_but_warnings_is_told(run, path):
    """A clean that goes well says nothing on standard error."""
    shown = run(*CLEAN, path)
    assert shown.json["cleans"]
    assert shown.err == ""
