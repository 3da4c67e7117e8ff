"""Events: to the application's handlers with their fields, to nobody without any, and never to standard output."""

import json
import logging
import subprocess
import sys

import pytest

from hudi_py.inspection.log_output import logging_to_stderr
from hudi_py.runtime.log import Log, log

EMIT = "from hudi_py.runtime.log import log; log.warning('lock.waiting', name='n', args=1, holder='x y')"


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("before", "error"),
    [
        ("", ""),
        (
            "import logging; logging.basicConfig()",
            "WARNING:hudi_py:event='lock.waiting' name='n' args=1 holder='x y'\n",
        ),
    ],
    ids=["library alone", "application that listens"],
)
@pytest.mark.slow
def test_the_application_decides_what_is_shown(before, error):
    """Without a handler of its own nothing, on neither output."""
    assert printed(f"{before}\n{EMIT}") == ("", error)


def test_fields_stay_fields(caplog):
    """Whatever their names, those of the standard library's records too; with what the log was bound to."""
    fields = {"name": "n", "msg": [1], "args": {"a": None}, "message": 2, "path": "p"}
    with caplog.at_level(logging.INFO, "hudi_py"):
        Log().bind(instant="001").info("files.deleted", **fields)
    (record,) = caplog.records
    assert (record.event, record.fields) == ("files.deleted", {"instant": "001", **fields})
    assert record.getMessage().startswith("event='files.deleted' instant='001' name='n' msg=[1]")


@pytest.mark.parametrize(("level", "count"), [("warning", 1), ("info", 2), ("debug", 3)])
def test_a_command_shows_events_as_json_lines(level, count, capsys):
    """On standard error, from the level asked for on, and no longer than the command runs."""
    with logging_to_stderr(level, as_json=True):
        for emit in (log.warning, log.info, log.debug):
            emit("files.deleted", paths=["p\n"], moment=object)
    log.warning("files.deleted")
    shown = capsys.readouterr()
    events = [json.loads(line) for line in shown.err.splitlines()]
    assert shown.out == ""
    assert [each["level"] for each in events] == ["warning", "info", "debug"][:count]
    assert {(each["event"], *each["paths"]) for each in events} == {("files.deleted", "p\n")}
    assert all(each["time"].endswith("+00:00") for each in events)


def test_a_command_shows_events_as_text(capsys):
    """One line each, warnings by default."""
    with logging_to_stderr("warning", as_json=False):
        log.info("lock.taken")
        log.warning("lock.waiting", holder="x y")
    assert capsys.readouterr() == ("", "event='lock.waiting' holder='x y'\n")
