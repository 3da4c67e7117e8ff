"""``hudi-py serve``: pages of tables, for this machine or those who know the token, and for nobody else."""

from __future__ import annotations

import gc
import json
import socket
import threading
import tracemalloc
from http import HTTPStatus

import pytest

import hudi_py
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import DOCUMENT_SECONDS_MAX, Request, Site, cookie_name
from support.browser import CHROMIUM, Browser
from support.tables import TableBuilder, at, on_disk

HOST = "127.0.0.1:8642"
TOKEN = "0123456789abcdefABCDEF"


def opened(location):
    """A table, as the command opens it."""
    return hudi_py.open_table(location).read_only()


@pytest.fixture
def site(table):
    """Of one table, on the loopback address."""
    path = str(table("cow_cleaned-1.1.1"))
    return Site((path,), opened, hosts=frozenset({HOST}))


def ask(site, target, method="GET", **headers):
    """A request of a browser on this machine."""
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return site.answer(Request(method, target, given))


def test_pages_have_what_the_commands_say(run, site):
    """The front page leads to the only table; its document, a plan and an instant are those of the commands."""
    path = site.tables[0]
    front = ask(site, "/")
    assert (front.status, front.more["Location"]) == (303, "/t/0/")
    page = ask(site, "/t/0/")
    assert page.status == 200
    assert page.kind.startswith("text/html")
    document = json.loads(ask(site, "/t/0/document").body)
    assert document["findings"] == run("doctor", path, "--json").json
    assert document["live"] == "/t/0/"
    assert json.loads(ask(site, "/t/0/version").body) == {"version": document["version"]}
    plan = json.loads(ask(site, "/t/0/plan?commits_retained=1").body)
    told = run("clean", path, "--dry-run", "--commits-retained", 1, "--json").json
    assert plan["totals"] == told["totals"]
    assert plan["files"] == told["files"]
    time = document["events"][-1]["requested_time"]
    assert json.loads(ask(site, f"/t/0/instant/{time}").body) == run("instant", path, time, "--json").json
    for response in (front, page, ask(site, "/t/0/version"), ask(site, "/none")):
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/t/1/", 404), ("/t/0", 404), ("/t/0/../../etc/passwd", 404), ("/t/0/instant/..%2fhoodie.properties", 404),
        ("/t/00000000000000000000/", 404), ("/t/0/instant/99999999999999", 404), ("/t/0/plan?commits_retained=-1", 400),
        ("/t/0/plan?commits_retained=x", 400), ("/t/0/plan?path=/etc", 400), ("/t/0/plan?policy=NONSENSE", 400),
        ("/t/0/plan?commits_retained=", 400), ("/t/0/plan?commits_retained=1234567890", 400),
        ("/t/0/plan?policy=", 400),
        ("/t/0/plan?commits_retained=1&commits_retained=", 400), ("/t/0/timeline?archived", 400),
        ("/t/0/history?archived=true&archived=", 400), ("/t/0/files?nonsense=", 400), ("/t/0/files?as_of=", 400),
        ("/t/0/files?partition=", 404), ("/t/0/slices?partition=", 404), ("/t/0/columns?partition=", 404),
        ("/t/0/explain?target=", 400), ("/t/0/version?x=1", 400), ("/t/0/document?as_of=1d", 400),
        ("/metrics?table=t", 400), ("/tables?x", 400), ("/healthz?x=1", 400), ("/openapi.json?x=1", 400),
        ("/t/0/plan?" + "&".join(f"a{n}=1" for n in range(99)), 400), ("//[", 400), ("/favicon.ico", 404),
    ],
)  # fmt: skip
def test_addresses_that_mean_nothing_are_refused(site, target, status):
    """No name in an address reaches a file system."""
    response = ask(site, target)
    assert response.status == status
    assert b"root:" not in response.body
    assert "Traceback" not in response.body.decode()


def test_an_empty_partition_is_that_of_a_table_without_partitions(table):
    """There it means the whole table, as if it were left out."""
    site = Site((str(table("cow_nonpartitioned-1.1.1")),), opened, hosts=frozenset({HOST}))
    for name in ("files", "slices", "columns"):
        given, left_out = ask(site, f"/t/0/{name}?partition="), ask(site, f"/t/0/{name}")
        assert (given.status, given.body) == (200, left_out.body), name


def test_numbers_are_taken_whole_and_the_settings_of_the_server_are_the_default(run, table):
    """With zeros in front, too; a plan without settings is that of the server, with some it is that of these alone."""
    path = str(table("cow_cleaned-1.1.1"))
    site = Site((path,), opened, hosts=frozenset({HOST}), options={"commits_retained": 1})

    def told(*options):
        return run("clean", path, "--dry-run", "--json", *options).json["files"]

    def planned(query):
        return json.loads(ask(site, f"/t/0/plan{query}").body)["files"]

    assert told("--commits-retained", 1) != told("--commits-retained", 3)
    assert planned("") == told("--commits-retained", 1)
    assert planned("?commits_retained=000000003") == told("--commits-retained", 3)
    assert planned("?file_versions_retained=2") == told("--file-versions-retained", 2)


def test_what_a_server_keeps_of_a_table_is_hardly_more_than_it_sends(tmp_path):
    """It may serve hundreds of tables for weeks, and keeps of each what somebody once looked at."""
    builder = TableBuilder(2)
    for number in range(1, 200):
        builder.commit(at(number), {"p": ["f"]})
    site = Site((on_disk(builder, tmp_path / "t").storage.root,), opened, hosts=frozenset({HOST}))
    ask(site, "/t/0/version")  # modules are loaded now
    ask(site, "/t/0/findings")
    tracemalloc.start()
    try:
        size = len(ask(site, "/t/0/document").body)
        assert ask(site, "/t/0/").status == 200
        gc.collect()
        kept = sum(
            each.size
            for each in tracemalloc.take_snapshot().statistics("filename")
            if "/hudi_py/inspection/" in each.traceback[0].filename or "/json/" in each.traceback[0].filename
        )
    finally:
        tracemalloc.stop()
    assert size > 100_000
    assert kept < 1.5 * size


def test_a_page_is_collected_again_when_properties_change_or_it_is_old(tmp_path):
    """An orphan that was deleted, a setting that was mended: neither adds an instant."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    root = on_disk(builder, tmp_path / "t").storage.root
    clock = [0.0]
    site = Site((root,), opened, hosts=frozenset({HOST}), seconds=lambda: clock[0])

    def total():
        return json.loads(ask(site, "/t/0/document").body)["usage"]["total"]["files"]

    before, orphan = total(), tmp_path / "t" / "p" / f"11111111-1111-1111-1111-111111111111-0_0-1-1_{at(0)}.parquet"
    orphan.write_bytes(b"x")
    assert total() == before
    clock[0] = DOCUMENT_SECONDS_MAX
    assert total() == before + 1
    orphan.unlink()
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("fields=region", "fields=area"))
    assert total() == before


def test_other_sites_and_other_methods_are_refused(site):
    """By name, by origin, by what the browser says of the request; and nothing is written by any method."""
    assert ask(site, "/t/0/document", host="evil.example:8642").status == HTTPStatus.MISDIRECTED_REQUEST
    assert ask(site, "/t/0/document", host="").status == HTTPStatus.MISDIRECTED_REQUEST
    assert ask(site, "/t/0/document", origin="http://evil.example").status == HTTPStatus.FORBIDDEN
    assert ask(site, "/t/0/document", origin=f"http://{HOST}").status == HTTPStatus.OK
    assert ask(site, "/t/0/document", sec_fetch_site="cross-site").status == HTTPStatus.FORBIDDEN
    assert ask(site, "/t/0/document", sec_fetch_site="same-origin").status == HTTPStatus.OK
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert ask(site, "/t/0/", method).status == HTTPStatus.METHOD_NOT_ALLOWED


def test_a_token_lets_in_and_nothing_else_does(table):
    """As bearer, or once in the address, which makes it a cookie and takes it out of the address."""
    guarded = Site((str(table("cow_cleaned-1.1.1")),), opened, hosts=None, token=TOKEN)
    for headers in (
        {},
        {"authorization": "Bearer x"},
        {"cookie": f"{cookie_name(HOST)}=x"},
        {"cookie": f"{cookie_name(HOST)}={TOKEN}"},
        {"cookie": "a b;=;"},
    ):
        assert ask(guarded, "/t/0/version", **headers).status == HTTPStatus.UNAUTHORIZED
    assert ask(guarded, "/t/0/version?token=x").status == HTTPStatus.UNAUTHORIZED
    assert ask(guarded, "/t/0/version", authorization=f"Bearer {TOKEN}").status == HTTPStatus.OK
    entered = ask(guarded, f"/t/0/?token={TOKEN}&a=1", host="lake.example:1")
    assert (entered.status, entered.more["Location"]) == (303, "/t/0/?a=1")
    assert ask(guarded, f"//evil.example/?token={TOKEN}").more["Location"].startswith("/") is True
    for slashes in ("//", "///", "/\\", "\\\\", "/\\/", "/\t/"):
        target = ask(guarded, f"{slashes}evil.example/x?token={TOKEN}").more["Location"]
        assert not target.translate({ord("\\"): "/", ord("\t"): None}).startswith("//"), slashes
    assert entered.more["Set-Cookie"].startswith(f"{cookie_name('lake.example:1')}=")
    cookie = ask(guarded, f"/t/0/?token={TOKEN}").more["Set-Cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask(guarded, "/t/0/version", cookie=cookie.partition(";")[0]).status == HTTPStatus.OK
    assert TOKEN not in ask(guarded, "/t/0/", cookie=cookie.partition(";")[0]).body.decode()


def test_two_servers_of_one_machine_keep_their_cookies_apart(table):
    """A browser sends the cookies of a machine to all of its ports; entering one server leaves the other open."""
    path = str(table("cow_cleaned-1.1.1"))
    tokens = {"127.0.0.1:1": TOKEN, "127.0.0.1:2": TOKEN[::-1]}
    sites = {host: Site((path,), opened, hosts=None, token=token) for host, token in tokens.items()}
    jar = {}
    for host, site in sites.items():
        cookie = ask(site, f"/?token={tokens[host]}", host=host).more["Set-Cookie"].partition(";")[0]
        jar[cookie.partition("=")[0]] = cookie
    for host, site in sites.items():
        assert ask(site, "/t/0/version", host=host, cookie="; ".join(jar.values())).status == HTTPStatus.OK
        others = [cookie for name, cookie in jar.items() if name != cookie_name(host)]
        assert ask(site, "/t/0/version", host=host, cookie="; ".join(others)).status == HTTPStatus.UNAUTHORIZED


def test_addresses_that_others_reach_take_a_token(run, tmp_path):
    """Refused before anything is opened; a token that could be guessed too."""
    for arguments in (("--host", "0.0.0.0"), ("--host", "example.org"), ("--host", "::"), ("--token", "short"),
                      ("--token", "with; semicolons and spaces")):  # fmt: skip
        result = run("serve", tmp_path, *arguments)
        assert result.code == 2, arguments
    assert run("serve").code == 2


def test_many_who_ask_at_once_cost_one_look(site, monkeypatch):
    """The document is collected once for each state of the timeline."""
    from hudi_py.inspection import site as module

    looks = []
    collect = module.page_document
    monkeypatch.setattr(module, "page_document", lambda *a, **k: looks.append(1) or collect(*a, **k))
    threads = [threading.Thread(target=ask, args=(site, "/t/0/document")) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(looks) == 1


def test_a_table_that_is_gone_is_an_answer(tmp_path):
    """And so is a damaged one; the server goes on."""
    gone = Site((str(tmp_path / "none"),), opened, hosts=frozenset({HOST}))
    assert ask(gone, "/t/0/").status == HTTPStatus.NOT_FOUND
    (tmp_path / "none" / ".hoodie").mkdir(parents=True)
    (tmp_path / "none" / ".hoodie" / "hoodie.properties").write_bytes(b"\x00")
    assert ask(gone, "/t/0/").status >= 400


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_an_open_page_follows_the_table(tmp_path):
    """A commit that completes while the page is open appears on it."""
    builder = TableBuilder(2)
    for number in (1, 2):
        builder.commit(at(number), {"p": ["f"]})
    on_disk(builder, tmp_path / "t")
    with Server(("127.0.0.1", 0), socket.AF_INET) as server:
        port = server.server_port
        server.site = Site((str(tmp_path / "t"),), opened, hosts=frozenset({f"127.0.0.1:{port}"}))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with Browser(tmp_path / "profile") as browser:
            browser.open(f"http://127.0.0.1:{port}/")
            rows = "document.querySelectorAll('#history tbody tr').length"
            assert browser.evaluate(rows) == 2
            builder.commit(at(3), {"p": ["f"]})
            on_disk(builder, tmp_path / "t")
            browser.wait(f"{rows} === 3")
            assert "Updated" in browser.evaluate("document.getElementById('status').textContent")
            hosts = {url.split("/")[2] for url in browser.requests if url.startswith("http")}
            assert hosts == {f"127.0.0.1:{port}"}
            assert [each for each in browser.errors if "favicon" not in each and "404" not in each] == []
        server.shutdown()
