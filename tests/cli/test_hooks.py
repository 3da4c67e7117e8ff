"""Hooks after commits and services: what they are told, when, and that they can break nothing."""

from __future__ import annotations

import json
import os
import resource
import shlex
import sys
import threading
import time
import tracemalloc
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError
from hudi_py.txn.hook_calls import HookFailed, run_command
from support.tables import TableBuilder, at

LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
told: list[hudi_py.Completed] = []
"""What `remember` was called with."""


def remember(completed):
    """The function that the setting names."""
    told.append(completed)


def rows(number):
    """Two rows of one partition."""
    return pa.table({"id": ["a", "b"], "p": ["x", "x"], "v": [number, number]})


@contextmanager
def receiver(status=200, wait=0.0, drip=False, location="/elsewhere"):
    """A server that keeps what it is sent: address, and requests as headers and document."""
    got = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((dict(self.headers), json.loads(body)))
            over.wait(wait)
            if drip:
                for byte in b"HTTP/1.1 200 OK":
                    self.wfile.write(bytes([byte]))
                    if over.wait(0.1):
                        return
            self.send_response(status)
            self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_):
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", got
        over.set()
        server.shutdown()


def test_commits_and_services_are_told_in_order(tmp_path):
    """Each action on the timeline once, with its content, after it completed; an archival with its number."""
    location = str(tmp_path / "t")
    found = []
    remove = hudi_py.add_hook(found.append)
    try:
        for number in range(5):
            hudi_py.write(location, rows(number), settings=SETTINGS)
        table = hudi_py.open_table(location, settings=SETTINGS)
        table.create_savepoint(name="kept")
    finally:
        remove()
    hudi_py.write(location, rows(9), settings=SETTINGS)
    archived = [each for each in found if each.action == "archive"]
    instants = [each for each in found if each.action != "archive"]
    assert sum(each.content["archived"] for each in archived) > 0
    whole = {
        (each.instant.requested_time, each.instant.action.value): each
        for each in hudi_py.open_table(location).history(archived=True)
    }
    assert len({(each.requested_time, each.action) for each in instants}) == len(instants)
    assert {(each.requested_time, each.action) for each in instants} <= set(whole)
    assert [each.action for each in instants].count("commit") == 5
    assert {each.action for each in instants} == {"commit", "clean", "savepoint"}
    for each in instants:
        assert each.is_commit == (each.action == "commit")
        assert (each.location, each.table_name) == (location, "t")
        if each.is_commit:
            assert sum(len(stats) for stats in each.content["partitionToWriteStats"].values()) == 1


@pytest.mark.parametrize("lock", [{}, LOCK], ids=["no lock", "lock"])
def test_the_lock_is_free_and_the_action_visible(tmp_path, lock):
    """So a hook may read the table, or change it from another thread."""
    location, seen = str(tmp_path / "t"), []

    def look(completed):
        if completed.action != "commit":
            return
        rows_seen = hudi_py.open_table(location).rows().to_arrow().num_rows
        done = threading.Thread(target=lambda: seen.append(hudi_py.open_table(location, settings=lock).clean()))
        done.start()
        done.join(20)
        seen.append(rows_seen)

    remove = hudi_py.add_hook(look)
    try:
        hudi_py.write(location, rows(1), settings={**SETTINGS, **lock})
    finally:
        remove()
    assert seen == [[], 2]


def test_nothing_that_a_hook_does_fails_the_commit(run, tmp_path, caplog):
    """Errors, exit codes, hanging programs and addresses: each is one warning, and the rows are there."""

    def broken(_completed):
        raise RuntimeError("broken hook")

    location = str(tmp_path / "t")
    remove = hudi_py.add_hook(broken)
    try:
        with receiver(status=500) as (url, got), receiver(wait=60) as (slow, _), receiver(drip=True) as (dripping, _):
            settings = {
                **SETTINGS, "hoodie_py.hook.timeout": "1s", "hoodie_py.hook.function": "no.such.module:f",
                "hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": slow,
                "hoodie.write.commit.callback.http.timeout.seconds": "1",
            }  # fmt: skip
            started = time.monotonic()
            for number, (command, address) in enumerate(
                [(f"{sys.executable} -c 'import time; time.sleep(60)'", url), ("false", dripping),
                 ("/no/such/program", "http://127.0.0.1:1/")]
            ):  # fmt: skip
                more = {"hoodie_py.hook.command": command, "hoodie_py.hook.url": address}
                result = hudi_py.write(location, rows(number), settings={**settings, **more})
                assert result.instant is not None
            assert time.monotonic() - started < 40
            assert len(got) >= 1
    finally:
        remove()
    assert hudi_py.open_table(location).rows().to_arrow().column("v").to_pylist() == [2, 2]
    said = " ".join(record.message for record in caplog.records if "hook.failed" in record.message)
    for why in ("broken hook", "No module named 'no'", "was killed", "exit code 1", "cannot be started", "status 500",
                "no answer within 1 s", "cannot be reached"):  # fmt: skip
        assert why in said, why


@pytest.mark.parametrize("lock", [{}, LOCK], ids=["no lock", "lock"])
def test_a_hook_does_not_end_the_process_in_the_middle_of_a_write(lock, tmp_path, caplog):
    """A script's main function may be a hook: the write goes on, with nothing left to clean up and its clean done."""
    remove = hudi_py.add_hook(lambda completed: sys.exit(f"{completed.action} is over"))
    try:
        for number in range(4):
            result = hudi_py.write(tmp_path / "t", rows(number), settings={**SETTINGS, **lock})
            assert result.instant is not None
    finally:
        remove()
    table = hudi_py.open_table(tmp_path / "t")
    assert table.check() == ()
    assert table.timeline.completed("clean")
    said = " ".join(record.message for record in caplog.records if "hook.failed" in record.message)
    assert "commit is over" in said
    assert "clean is over" in said


class Cancelled(BaseException):
    """As the cancellation of a task: no Exception, and here without words that can be read."""

    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("raised", [Cancelled, GeneratorExit, MemoryError])
def test_whatever_a_hook_raises_is_a_warning_that_names_the_hook(raised, tmp_path, caplog):
    """Also what is no Exception, and what cannot be shown."""

    def broken(_completed):
        raise raised

    remove = hudi_py.add_hook(broken)
    try:
        result = hudi_py.write(tmp_path / "t", rows(1), settings=SETTINGS)
    finally:
        remove()
    assert result.instant is not None
    [said] = [record.message for record in caplog.records if "hook.failed" in record.message]
    assert raised.__name__ in said
    assert "broken" in said


def test_a_signal_ends_the_process_also_while_a_hook_runs(tmp_path):
    """Ctrl-C is for the process, not a fault of the hook."""

    def interrupted(_completed):
        raise KeyboardInterrupt

    remove = hudi_py.add_hook(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            hudi_py.write(tmp_path / "t", rows(1), settings=SETTINGS)
    finally:
        remove()


DOCUMENT = {"table": "t", "action": "commit", "kind": "commit", "requested_time": "1", "content": "x" * 500_000}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("import sys; sys.stderr.write('a' * 300_000 + 'at last'); sys.exit(3)", "exit code 3: a+at last$"),
        ("import os, time; os.close(2); time.sleep(60)", "longer than 1 s"),
    ],
)
def test_a_failed_command_is_told_with_its_last_words(script, why):
    """How it ended, and the end of what it said; it read nothing of a document larger than a pipe."""
    with pytest.raises(HookFailed, match=why):
        run_command([sys.executable, "-c", script], DOCUMENT, 1 if "longer" in why else 60)


def test_a_command_is_run_by_a_process_with_many_files_open():
    """A server with a thousand connections has file numbers that not every call of the system takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("fewer files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.enter_context(open(os.devnull))
        run_command(["true"], DOCUMENT, 60)
        with pytest.raises(HookFailed, match="exit code 3: a"):
            run_command(["sh", "-c", "echo a >&2; exit 3"], DOCUMENT, 60)


def test_what_a_command_says_takes_no_memory():
    """One that writes to standard error until it is killed: only the end is kept."""
    tracemalloc.start()
    try:
        with pytest.raises(HookFailed, match="longer than 1 s"):
            run_command(["sh", "-c", "yes >&2"], DOCUMENT, 1)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_command_is_over_when_its_program_ends():
    """What it left running in the background, out of its group, holds standard error open and keeps nobody waiting."""
    beside = "import subprocess, sys; subprocess.Popen(['sleep', '20'], start_new_session=True)"
    started = time.monotonic()
    run_command([sys.executable, "-c", beside], DOCUMENT, 60)
    with pytest.raises(HookFailed, match="longer than 1 s"):
        run_command([sys.executable, "-c", f"{beside}; import time; time.sleep(60)"], DOCUMENT, 1)
    assert time.monotonic() - started < 15


def test_a_command_is_given_the_document_and_prints_nothing(run, tmp_path):
    """On standard input, without a shell; standard output stays one JSON document."""
    kept = tmp_path / "kept.jsonl"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os, sys\nprint('noise')\n"
        f"open({str(kept)!r}, 'a').write(sys.stdin.read() + '\\n')\n"
        "assert sys.argv[1:] == ['$HOME;', '*'], sys.argv\n"
        "assert os.environ['HUDI_PY_KIND'] == 'commit'\n"
    )
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "a", "p": "x", "v": 1}\n')
    conf = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    result = run(
        "write", tmp_path / "t", file, "--json", *conf, "--conf", "hoodie_py.hook.after=commit",
        "--conf", f"hoodie_py.hook.command={sys.executable} {script} '$HOME;' '*'",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "hook.failed" not in result.err
    [line] = kept.read_text().splitlines()
    document = json.loads(line)
    shown = run("instant", tmp_path / "t", result.json["instant"], "--json").json
    assert (document["kind"], document["action"]) == ("commit", "commit")
    assert (document["requested_time"], document["content"]) == (result.json["instant"], shown["content"])


def test_the_callback_of_apache_hudi_is_served(tmp_path):
    """Under its own settings: address, key, headers, and the fields of its message; after commits only."""
    with receiver() as (url, got):
        settings = {
            **SETTINGS, "hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": url,
            "hoodie.write.commit.callback.http.api.key": "secret-key",
            "hoodie.write.commit.callback.http.custom.headers": "X-One:1;X-Two:two:2",
        }  # fmt: skip
        written = [hudi_py.write(str(tmp_path / "t"), rows(number), settings=settings) for number in range(3)]
    assert [message["commitTime"] for _, message in got] == [each.instant for each in written]
    headers, message = got[-1]
    assert (headers["HUDI-CALLBACK-KEY"], headers["X-One"], headers["X-Two"]) == ("secret-key", "1", "two:2")
    assert (message["tableName"], message["basePath"]) == ("t", str(tmp_path / "t"))
    assert [stat["numUpdateWrites"] for stat in message["hoodieWriteStat"]] == [2]


def spoil(completed):
    """A function that changes what it is given, at every depth."""
    completed.content["extraMetadata"]["spoilt"] = "yes"
    completed.content["partitionToWriteStats"].clear()


def test_what_a_hook_changes_reaches_no_other_hook(run, tmp_path):
    """Neither another function, nor the program and the address that are given the document afterwards."""
    found, kept = [], tmp_path / "kept.json"
    removes = [hudi_py.add_hook(each) for each in (spoil, lambda completed: found.append(completed.content), spoil)]
    try:
        with receiver() as (url, got):
            settings = {
                **SETTINGS, "hoodie_py.hook.function": f"{__name__}:spoil", "hoodie_py.hook.url": url,
                "hoodie_py.hook.command": f"tee {kept}", "hoodie.write.commit.callback.on": "true",
                "hoodie.write.commit.callback.http.url": url,
            }  # fmt: skip
            result = hudi_py.write(tmp_path / "t", rows(1), settings=settings)
    finally:
        for remove in removes:
            remove()
    written = run("instant", tmp_path / "t", result.instant, "--json").json["content"]
    (_, sent), (_, message) = got
    assert found == [written]
    assert sent["content"] == json.loads(kept.read_text())["content"] == written
    assert message["hoodieWriteStat"] == written["partitionToWriteStats"]["x"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirections_are_told_and_not_followed(status, tmp_path, caplog):
    """A header with a key must not reach an address that only the answer names."""
    with receiver() as (elsewhere, other), receiver(status=status, location=elsewhere) as (url, got):
        hudi_py.write(tmp_path / "t", rows(1), settings={**SETTINGS, "hoodie_py.hook.url": url})
    assert (len(got), other) == (1, [])
    [said] = [record.message for record in caplog.records if "hook.failed" in record.message]
    assert f"status {status}, a redirection" in said


def test_a_setting_can_name_a_function(tmp_path):
    """Of a module that can be imported; only for what the setting asks for."""
    told.clear()
    name = f"{__name__}:remember"
    settings = {**SETTINGS, "hoodie_py.hook.function": name, "hoodie_py.hook.after": "service"}
    for number in range(3):
        hudi_py.write(str(tmp_path / "t"), rows(number), settings=settings)
    here = sys.modules[__name__].told
    assert here
    assert {each.action for each in here} <= {"clean", "archive"}


@pytest.mark.parametrize(
    "settings",
    [
        {"hoodie_py.hook.url": "file:///etc/passwd"}, {"hoodie_py.hook.url": "http://"},
        {"hoodie_py.hook.url": "http://h:99999/"}, {"hoodie_py.hook.url": "http://h:secret/"},
        {"hoodie_py.hook.url": "http://h/\u00e4"}, {"hoodie_py.hook.url": "http://user:secret@h/a b"},
        {"hoodie_py.hook.function": "os.system"},
        {"hoodie_py.hook.function": "os;x:y"}, {"hoodie_py.hook.after": "commits"}, {"hoodie_py.hook.after": ","},
        {"hoodie_py.hook.command": "'unclosed"}, {"hoodie_py.hook.timeout": "0s"},
        {"hoodie.write.commit.callback.on": "true"},
        {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://h/",
         "hoodie.write.commit.callback.http.custom.headers": "nonsense"},
        {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://h/",
         "hoodie.write.commit.callback.http.api.key": "secret\n"},
        {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://h/",
         "hoodie.write.commit.callback.http.api.key": "secret\u20ac"},
        {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://h/",
         "hoodie.write.commit.callback.http.custom.headers": "X One:secret"},
        {"hoodie.write.commit.callback.on": "true", "hoodie.write.commit.callback.http.url": "http://h/",
         "hoodie.write.commit.callback.http.custom.headers": "X-One:secret\u20ac"},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_anything_is_written(tmp_path, settings):
    """Without the secrets that they may have."""
    with pytest.raises(ConfigError) as caught:
        hudi_py.write(str(tmp_path / "t"), rows(1), settings={**SETTINGS, **settings})
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "t" / ".hoodie").exists() or not list((tmp_path / "t" / ".hoodie").rglob("*.commit"))


def test_a_table_has_no_hooks_of_its_own(tmp_path):
    """Whoever can write to a table must not run programs in the processes that clean it."""
    builder = TableBuilder(2)
    for number in range(1, 4):
        builder.commit(at(number), {"p": ["f"]})
    properties = builder.storage.files()[".hoodie/hoodie.properties"]
    mark = tmp_path / "ran"
    builder.put(".hoodie/hoodie.properties", properties + f"hoodie_py.hook.command=touch {mark}\n".encode())
    hudi_py.Table(builder.storage, clock=builder.clock, settings={"hoodie_py.conf.allow.unknown": "true"}).clean(
        commits_retained=1
    )
    assert not mark.exists()


def test_work_on_the_metadata_table_is_told_to_nobody(tmp_path):
    """It is part of the action on the table."""
    found = []
    remove = hudi_py.add_hook(found.append)
    try:
        hudi_py.write(str(tmp_path / "t"), rows(1), settings={**SETTINGS, "hoodie.metadata.enable": "true"})
    finally:
        remove()
        remove()
    assert (tmp_path / "t" / ".hoodie" / "metadata").is_dir()
    assert {each.location for each in found} == {str(tmp_path / "t")}


@pytest.mark.parametrize(
    "words",
    [
        ("write", "{rows}"),
        ("delete", "--where", "id = 'a'"),
        ("update", "--set", "v=7"),
        ("merge", "{rows}", "--on", "id", "--when-matched", "update"),
        ("drop-partition", "x"),
        ("lease", "create", "--ttl", "1h", "--savepoint"),
    ],
    ids=lambda words: words[0],
)
def test_a_dry_run_calls_no_hook(run, tmp_path, words):
    """The commit is in its memory only: whoever was called would begin the next job for it."""
    table, told_to, file = tmp_path / "t", tmp_path / "told", tmp_path / "rows.jsonl"
    hudi_py.write(table, rows(1), settings=SETTINGS)
    file.write_text('{"id": "a", "p": "x", "v": 3}\n')
    hook = shlex.join([sys.executable, "-c", f"open({str(told_to)!r}, 'a').write('called')"])
    given = [each.format(rows=file) for each in words]
    at_table = 2 if words[0] == "lease" else 1
    command = [*given[:at_table], str(table), *given[at_table:], "--conf", f"hoodie_py.hook.command={hook}"]
    assert run(*command, "--dry-run").code == 0
    assert not told_to.exists()
    assert run(*command).code == 0
    assert told_to.exists()
