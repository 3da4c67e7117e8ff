"""``hudi-py serve --allow-actions``: the page does what the commands do, for those who know the token."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.inspection import serve_command
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Request, Site
from hudi_py.inspection.site_actions import ACTIONS, BODY_BYTES_MAX, Action, Actions, Told
from hudi_py.inspection.site_api import openapi
from support.browser import CHROMIUM, Browser
from support.fixtures import unpack_rows

TOKEN = "0123456789abcdefABCDEF"
HOST = "127.0.0.1:8642"
SETTINGS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.index.type": "BLOOM",
}
CLEANING = {"commits_retained": 1}
WITH_TOKEN = {"host": HOST, "authorization": f"Bearer {TOKEN}"}
NAMES = [each.name for each in ACTIONS]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A merge-on-read table with something to do for each action: many delta commits, and a write that died."""
    location = tmp_path_factory.mktemp("made") / "trips"
    for number in range(40):
        rows = pa.table({"id": ["a", "b"], "fare": [1.0, float(number)]})
        hudi_py.write(str(location), rows, settings=SETTINGS)
        if number in (15, 30):
            hudi_py.open_table(str(location), settings={"hoodie.compact.inline.max.delta.commits": "1"}).compact()
    timeline = location / ".hoodie" / "timeline"
    (timeline / "20300101000000000.deltacommit.requested").write_bytes(b"")
    return location


@pytest.fixture
def trips(made, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "trips"))


def site_of(*locations, token=TOKEN, settings=None):
    """A site with actions, as the command makes it."""

    def opened(where):
        return hudi_py.open_table(where, settings=settings)

    actions = Actions(opened, CLEANING)
    return Site(
        tuple(map(str, locations)), lambda where: opened(where).read_only(), hosts=frozenset({HOST}), token=token,
        options=CLEANING, actions=actions,
    )  # fmt: skip


def post(site, target, body=b'{"dry_run": true}', **headers):
    """What a program that knows the token sends."""
    given = {"host": HOST, "authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return site.answer(Request("POST", target, given, body))


def state(location):
    """All files of the table with their content."""
    return {path.relative_to(location): path.read_bytes() for path in location.rglob("*") if path.is_file()}


def rows_of(location):
    return sorted(map(str, hudi_py.open_table(str(location)).rows().to_arrow().select(["id", "fare"]).to_pylist()))


@pytest.mark.parametrize("name", NAMES)
def test_an_action_is_tried_without_a_trace_and_does_what_its_command_does(run, trips, name, tmp_path):
    """A trial writes nothing and says that it is due; the action then answers with the command's document."""
    twin = tmp_path / "twin"
    site = site_of(trips)
    before, rows = state(trips), rows_of(trips)
    shutil.copytree(trips, twin)
    tried = post(site, f"/t/0/do/{name}")
    assert tried.status == HTTPStatus.OK, tried.body
    told = json.loads(tried.body)
    assert (told["action"], told["dry_run"], told["is_due"]) == (name, True, True)
    assert told["lines"]
    assert state(trips) == before
    done = json.loads(post(site, f"/t/0/do/{name}", b'{"dry_run": false}').body)
    assert done["dry_run"] is False
    retention = ("--commits-retained", 1) if name == "clean" else ()
    assert shape(done["result"]) == shape(run(name, twin, *retention, "--json").json)
    assert state(trips) != before
    assert rows_of(trips) == rows


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "fixture",
    ["cow_clean_requested-1.1.1", "cow_clean_inflight-0.15.0", "cow_pending_clustering-1.0.2",
     "mor_pending_compaction-1.1.1", "cow_archived-1.1.1", "rows/mor_rolled_back_logs-0.15.0"],
)  # fmt: skip
def test_a_trial_says_that_there_is_something_to_do_where_there_is(table, fixture, name, tmp_path):
    """And only there; what it says of a clean that is pending is what is deleted then. Orphans are only told of."""
    path = unpack_rows(fixture[5:], tmp_path) if fixture.startswith("rows/") else table(fixture)
    site = site_of(path)
    before = data_state(path)
    told = json.loads(post(site, f"/t/0/do/{name}").body)
    assert data_state(path) == before
    done = json.loads(post(site, f"/t/0/do/{name}", b'{"dry_run": false}').body)
    if name == "compact" and fixture.startswith("cow"):
        assert told.keys() == done.keys() == {"error"}
        return
    assert told["is_due"] == done["is_due"] == (data_state(path) != before)
    if name == "clean":
        gone = sum(each.suffix in (".parquet", ".log") for each in before.keys() - data_state(path).keys())
        assert not gone or f"{gone} files" in told["lines"][-1]


def data_state(location):
    """Without our own notes, which a clean that deletes nothing writes too."""
    return {path: data for path, data in state(Path(location)).items() if "hudi_py" not in path.parts}


def shape(document):
    """Keys, and counts of lists: times differ from run to run."""
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items() if not key.isdigit()}
    return [len(document), *map(shape, document[:1])] if isinstance(document, list) else None


@pytest.mark.parametrize(
    ("target", "body", "headers", "status"),
    [
        ("/t/0/do/rollback", None, {}, 404), ("/t/0/do/restore", None, {}, 404), ("/t/1/do/clean", None, {}, 404),
        ("/t/0/", None, {}, 404), ("/t/0/do/clean/../recover", None, {}, 404),
        ("/t/0/do/clean?dry_run=1", None, {}, 400),
        ("/t/0/do/clean", b"", {}, 400), ("/t/0/do/clean", b"{}", {}, 400), ("/t/0/do/clean", b"[" * 9000, {}, 400),
        ("/t/0/do/clean", b'{"dry_run": 1}', {}, 400), ("/t/0/do/clean", b'{"dry_run": "false"}', {}, 400),
        ("/t/0/do/clean", b'{"dry_run": false, "commits_retained": 0}', {}, 400),
        ("/t/0/do/clean", b'{"dry_run": true, "dry_run": false}', {}, 400),
        ("/t/0/do/clean", b'{"dry_run": false, "dry_run": false}', {}, 400),
        ("/t/0/do/clean", None, {"content_type": "application/x-www-form-urlencoded"}, 415),
        ("/t/0/do/clean", None, {"content_type": "text/plain"}, 415),
        ("/t/0/do/clean", None, {"content_type": ""}, 415),
        ("/t/0/do/clean", None, {"authorization": "Bearer x"}, 401),
        ("/t/0/do/clean", None, {"authorization": ""}, 401),
        ("/t/0/do/clean", None, {"host": "evil.example:8642"}, 421),
        ("/t/0/do/clean", None, {"origin": "http://evil.example"}, 403),
        ("/t/0/do/clean", None, {"origin": "null"}, 403),
        ("/t/0/do/clean", None, {"origin": f"https://evil.example/{HOST}"}, 403),
        ("/t/0/do/clean", None, {"sec_fetch_site": "cross-site"}, 403),
        ("/t/0/do/clean", None, {"sec_fetch_site": "same-site"}, 403),
    ],
)  # fmt: skip
def test_what_is_no_action_of_somebody_who_may_changes_nothing(trips, target, body, headers, status):
    """Foreign sites, wrong tokens, forms, other bodies, other actions."""
    before = state(trips)
    response = post(site_of(trips), target, b'{"dry_run": false}' if body is None else body, **headers)
    assert response.status == status, response.body
    assert state(trips) == before


def test_a_cookie_is_enough_for_the_page_itself(trips):
    """The browser sends it for this site only; other methods stay refused."""
    site = site_of(trips)
    entered = site.answer(Request("GET", f"/?token={TOKEN}", {"host": HOST}))
    own = {
        "cookie": entered.more["Set-Cookie"].partition(";")[0],
        "authorization": "",
        "origin": f"http://{HOST}",
        "sec_fetch_site": "same-origin",
    }
    assert post(site, "/t/0/do/archive", **own).status == HTTPStatus.OK
    # A proxy that speaks TLS passes on what the browser sends.
    assert post(site, "/t/0/do/archive", **{**own, "origin": f"https://{HOST}"}).status == HTTPStatus.OK
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert site.answer(Request(method, "/t/0/do/clean", {"host": HOST})).status == HTTPStatus.METHOD_NOT_ALLOWED


def test_a_refusal_says_why(trips):
    """Deletion is forbidden in the table: no clean, no other error."""
    hudi_py.open_table(str(trips)).forbid_deletion()
    before = state(trips)
    for body in (b'{"dry_run": true}', b'{"dry_run": false}'):
        response = post(site_of(trips), "/t/0/do/clean", body)
        assert response.status == HTTPStatus.CONFLICT
        assert "hudi-py deletion allow" in json.loads(response.body)["error"]["message"]
        assert state(trips) == before


@pytest.mark.parametrize("settings", [None, {"hoodie.table.services.enabled": "false"}], ids=["on", "off"])
def test_a_trial_has_the_document_of_the_command(run, trips, settings):
    """After an earlier clean, too, which left only a part of the snapshots to read; and with services switched off."""
    hudi_py.open_table(str(trips)).clean(commits_retained=30)
    conf = [f"--conf={name}={value}" for name, value in (settings or {}).items()]
    told = json.loads(post(site_of(trips, settings=settings), "/t/0/do/clean").body)["result"]
    # A policy without a window of its own shows best what is left by the clean before.
    shown = run("clean", trips, "--dry-run", "--json", "--commits-retained", 1, *conf).json
    assert {**told, "schema_version": None} == {**shown, "schema_version": None}


def test_one_action_at_a_time_runs_on_a_table(trips, tmp_path):
    """The second one is told so at once; another table is free, and so is looking."""
    other = tmp_path / "other"
    shutil.copytree(trips, other)
    site = site_of(trips, other)
    inner, answers = [], []

    def opened(where):
        if where == str(trips) and not inner:  # the first action is under way
            inner.append(where)
            for number in (0, 1):
                answers.append(post(site, f"/t/{number}/do/archive").status)
            answers.append(site.answer(Request("GET", "/t/0/timeline", WITH_TOKEN)).status)
            assert site_actions.is_running
        return hudi_py.open_table(where)

    site_actions = Actions(opened, CLEANING)
    site._actions = site_actions
    assert post(site, "/t/0/do/archive").status == HTTPStatus.OK
    assert answers == [HTTPStatus.CONFLICT, HTTPStatus.OK, HTTPStatus.OK]
    assert not site_actions.is_running


def test_actions_are_offered_where_they_are_allowed_only(trips):
    """In the document of the page, in OpenAPI and in the list of addresses."""
    described = openapi(True)["paths"].keys() - openapi()["paths"].keys()
    assert described == {f"/t/{{number}}/do/{name}" for name in NAMES}
    site = site_of(trips)
    document = json.loads(site.answer(Request("GET", "/t/0/document", WITH_TOKEN)).body)
    assert [each["name"] for each in document["actions"]] == NAMES
    assert "/do/clean" in site.answer(Request("GET", "/api", WITH_TOKEN)).body.decode()
    reading = Site((str(trips),), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}))
    assert "actions" not in json.loads(reading.answer(Request("GET", "/t/0/document", WITH_TOKEN)).body)
    assert "/do/clean" not in reading.answer(Request("GET", "/api", WITH_TOKEN)).body.decode()
    assert reading.answer(Request("POST", "/t/0/do/clean", WITH_TOKEN)).status == HTTPStatus.METHOD_NOT_ALLOWED


def test_the_command_asks_for_a_token(run, trips):
    """On this machine, too: every program on it could change the tables otherwise."""
    result = run("serve", trips, "--allow-actions", "--port", 0)
    assert result.code == 2
    assert "--allow-actions needs a token" in result.err


@pytest.mark.parametrize("is_running", [True, False])
def test_a_stop_waits_for_the_action_under_way(run, trips, monkeypatch, is_running):
    """SIGTERM too, by which services are stopped; no other action begins meanwhile, or in the moment before the end."""
    waits, ended, sites = threading.Event(), [], []

    def say(text, **_):
        if "waiting" in text:
            waits.set()

    begun = threading.Event()

    def take(opened, dry_run, options):
        begun.set()
        waits.wait()
        ended.append(True)
        return Told([], False, None)

    def serve(server, **_):
        sites.append(server.site)
        if is_running:
            act = (str(trips), Action("a", "", take), b'{"dry_run": false}')
            threading.Thread(target=server.site._actions.run, args=act, daemon=True).start()
            begun.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")

    monkeypatch.setattr(serve_command, "say", say)
    monkeypatch.setattr(Server, "serve_forever", serve)
    before = signal.getsignal(signal.SIGTERM)
    assert run("serve", trips, "--allow-actions", "--token", TOKEN, "--port", 0).code == 0
    assert signal.getsignal(signal.SIGTERM) is before
    assert bool(ended) == is_running
    answer = post(sites[0], "/t/0/do/archive", host=f"127.0.0.1:{port_of(sites[0])}")
    assert answer.status == HTTPStatus.CONFLICT


def port_of(site):
    """Of the address under which a site answers."""
    return min(site._hosts).rpartition(":")[2]


@contextmanager
def served(location):
    """A server with actions: its port."""
    with Server(("127.0.0.1", 0), socket.AF_INET) as server:
        site = site_of(location)
        site._hosts = frozenset({f"127.0.0.1:{server.server_port}"})
        server.site = site
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    ("length", "body", "status"),
    [
        ("17", b'{"dry_run": true}', 200), ("", b"", 411), ("x", b"", 411), ("-1", b"", 411),
        (str(BODY_BYTES_MAX + 1), b"", 413), ("9" * 5000, b"", 413), ("40", b'{"dry_run": true}', 400),
    ],
)  # fmt: skip
def test_bodies_are_bounded(trips, length, body, status):
    """By what the client says of them, before any of it is read."""
    with served(trips) as port, closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as client:
        head = [
            "POST /t/0/do/archive HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {TOKEN}",
            "Content-Type: application/json", *([f"Content-Length: {length}"] if length else []), "", "",
        ]  # fmt: skip
        client.sendall("\r\n".join(head).encode() + body)
        client.shutdown(socket.SHUT_WR)
        answer = client.makefile("rb").readline()
    assert int(answer.split()[1]) == status


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_a_late_answer_is_not_shown_for_another_action(trips, tmp_path):
    """Close the dialog while it asks, open another action: what the button does then is what was shown."""
    with served(trips) as port, Browser(tmp_path / "profile") as browser:
        browser.open(f"http://127.0.0.1:{port}/t/0/?token={TOKEN}")
        # The page's own requests, answered when the test says so.
        browser.evaluate(
            "(window.answers = [], window.sent = [], window.fetch = (url, given) => new Promise((done) => {"
            "if (!given) return; sent.push(url); answers.push((lines) => done({ json: () => "
            "Promise.resolve({ is_due: true, lines }) })); }), 0)"
        )
        for name in ("clean", "archive"):
            browser.evaluate(f"document.querySelectorAll('#actions button')[{NAMES.index(name)}].click()")
            browser.evaluate("document.getElementById('doing-close').click()")
        browser.evaluate(f"document.querySelectorAll('#actions button')[{NAMES.index('recover')}].click()")
        browser.evaluate("answers[0](['of the clean'])")
        browser.evaluate("answers[1](['of the archival'])")
        assert browser.evaluate("document.getElementById('doing-go').disabled")
        assert "of the" not in browser.evaluate("document.getElementById('doing-text').textContent")
        browser.evaluate("answers[2](['of the recovery'])")
        browser.wait("!document.getElementById('doing-go').disabled")
        assert "of the recovery" in browser.evaluate("document.getElementById('doing-text').textContent")
        assert browser.errors == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_the_page_shows_an_action_before_it_is_done(trips, tmp_path):
    """With the keyboard: open, read, do, close; the page then follows the table. Hostile text stays text."""
    rows = rows_of(trips)
    with served(trips) as port, Browser(tmp_path / "profile") as browser:
        browser.open(f"http://127.0.0.1:{port}/t/0/?token={TOKEN}")
        assert browser.evaluate("!document.getElementById('actions-section').hidden")
        names = "[...document.querySelectorAll('#actions button')].map((each) => each.textContent)"
        assert browser.evaluate(names) == [f"{name} …" for name in NAMES]
        for name, done in (("recover", "Done:"), ("clean", "Done:")):
            browser.evaluate(f"document.querySelectorAll('#actions button')[{NAMES.index(name)}].click()")
            browser.wait("!document.getElementById('doing-go').disabled")
            assert "It would do this:" in browser.evaluate("document.getElementById('doing-text').textContent")
            browser.evaluate("document.getElementById('doing-go').click()")
            browser.wait(f"document.getElementById('doing-text').textContent.startsWith('{done}')")
            assert browser.evaluate("document.getElementById('doing-go').disabled")
            browser.evaluate("document.getElementById('doing-close').click()")
            assert browser.evaluate("!document.getElementById('doing').open")
        assert browser.errors == []
    table = hudi_py.open_table(str(trips))
    assert not table.timeline.pending()
    assert len(table.timeline.completed("clean")) == 1
    assert rows_of(trips) == rows


def test_a_trial_tells_of_failed_writes(table):
    """A clean rolls them back first, under the policy LAZY, also where it has nothing else to do."""
    site = site_of(table("cow_failed_write-1.1.1"), settings={"hoodie.clean.failed.writes.policy": "LAZY"})
    told = json.loads(post(site, "/t/0/do/clean").body)
    [time] = told["result"]["failed_writes"]
    assert told["is_due"]
    assert f"1 failed write would be rolled back: {time}" in told["lines"]
