"""
The server under attack: raw bytes on its socket, and pages of other origins in a real browser.

Whatever is sent, the server answers with an error or with what it is there for: nothing outside of the table is told,
nothing in it is changed, and no text of a request gets into the head of an answer.
"""

from __future__ import annotations

import hmac
import http.server
import json
import socket
import threading
from contextlib import contextmanager, suppress
from functools import partial

import pytest

import hudi_py
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Site, cookie_name
from hudi_py.inspection.site_actions import Actions
from support.browser import CHROMIUM, Browser
from support.tables import TableBuilder, at, on_disk

TOKEN = "0123456789abcdefABCDEF"
SECRET = "what-nobody-may-be-told"
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
JSON = "Content-Type: application/json\r\n"
DO = '{"dry_run": false}'


@contextmanager
def running(folder, *, token=None, actions=False):
    """A server of a table with something to clean: its port. A secret lies beside the table."""
    builder = TableBuilder(2)
    for number in range(1, 5):
        builder.commit(at(number), {"p": ["f"]})
    on_disk(builder, folder / "t")
    (folder / "secret").write_text(SECRET)
    (folder / "t" / "secret").write_text(SECRET)
    with Server(("127.0.0.1", 0), socket.AF_INET) as server:
        port = server.server_port
        server.site = Site(
            (str(folder / "t"),), lambda where: hudi_py.open_table(where).read_only(), token=token,
            hosts=frozenset({f"127.0.0.1:{port}", f"localhost:{port}"}), options={"commits_retained": 1},
            actions=Actions(hudi_py.open_table, {"commits_retained": 1}) if actions else None,
        )  # fmt: skip
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield port
        server.shutdown()


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """Port of a server that only reads, and the folder of its table."""
    folder = tmp_path_factory.mktemp("reading")
    with running(folder) as port:
        yield port, folder


@pytest.fixture(scope="module")
def acting(tmp_path_factory):
    """Port of a server that takes actions of those who know the token, and the folder of its table."""
    folder = tmp_path_factory.mktemp("acting")
    with running(folder, token=TOKEN, actions=True) as port:
        yield port, folder


def sent(port, data):
    """The whole answer to some bytes; empty if the connection ends without one."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, suppress(OSError):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while piece := client.recv(65536):
            answer += piece
    return answer


def asked(port, target, method="GET", head="", body=""):
    """Status, head and body of the answer to a request."""
    length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
    host = "" if "Host:" in head else f"Host: 127.0.0.1:{port}\r\n"
    answer = sent(port, f"{method} {target} HTTP/1.1\r\n{host}{head}{length}\r\n{body}".encode("latin-1"))
    top, _, rest = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]) if top else 0, top.decode("latin-1"), rest


def state(folder):
    """All files below a folder with their content."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


UP = ("../", "..%2f", "%2e%2e/", "%2e%2e%2f", "%252e%252e%252f", "..\\", "..%5c", "%c0%ae%c0%ae/", "..;/", "....//")
PLACES = ("/{}secret", "/t/0/{}secret", "/t/{}secret", "/t/0/instant/{}secret", "/t/0/files?partition={}secret",
          "/t/0/explain?target={}secret", "/t/0/columns?partition={}", "/t/0/plan?{}=1")  # fmt: skip


@pytest.mark.parametrize("up", UP)
def test_no_way_leads_out_of_the_table(reading, up):
    """Encoded once, twice, with backslashes, with a NUL at its end; in the path and in each parameter."""
    port, _ = reading
    for place in PLACES:
        for many in (1, 6):
            for end in ("", "%00", "%00.parquet"):
                status, _, body = asked(port, place.format(up * many) + end)
                assert 400 <= status < 500, (place, up)
                assert SECRET.encode() not in body
                assert b"Traceback" not in body
    for target in (f"file:///{up}secret", "http://127.0.0.1/secret", "*", "secret", "//secret", "/\\secret"):
        assert 400 <= asked(port, target)[0] < 500, target


def test_other_names_of_this_machine_are_refused_on_the_socket(reading):
    """What a foreign name resolves to is no matter (DNS rebinding); neither is a second header beside the right one."""
    port, _ = reading
    right = f"127.0.0.1:{port}"
    assert asked(port, "/healthz", head=f"Host: {right.upper()}\r\n")[0] == 200
    for name in ("evil.example", f"evil.example:{port}", f"{right}.evil.example", f"evil@{right}", "127.0.0.1",
                 f"127.1:{port}", f"0.0.0.0:{port}",
                 f"[::ffff:127.0.0.1]:{port}", f"{right},evil.example", ""):  # fmt: skip
        assert asked(port, "/t/0/document", head=f"Host: {name}\r\n")[0] == 421, name
    for first, second in ((right, "evil.example"), ("evil.example", right)):
        assert asked(port, "/t/0/document", head=f"Host: {first}\r\nHost: {second}\r\n")[0] == 400
    for origin in (
        "null",
        "http://evil.example",
        "file://",
        f"http://{right}.evil.example",
        f"http://127.0.0.1:{port + 1}",
    ):
        assert asked(port, "/t/0/document", head=f"Origin: {origin}\r\n")[0] == 403, origin
        twice = f"Origin: http://{right}\r\nOrigin: {origin}\r\n"
        assert asked(port, "/t/0/document", head=twice)[0] == 400, origin


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_a_server_that_reads_changes_nothing(reading, method):
    """Whatever the method, the address and the body."""
    port, folder = reading
    before = state(folder)
    for target in ("/", "/t/0/", "/t/0/do/clean", "/t/0/do/maintain"):
        assert asked(port, target, method, JSON + BEARER, DO)[0] in (405, 501), target
    assert state(folder) == before


def test_no_text_of_a_request_gets_into_the_head_of_an_answer(acting):
    """Line ends, encoded or not, in the address and around the token, which is taken out of the address."""
    port, _ = acting
    for path in (
        "/%0d%0aX-Bad:%201",
        "/t/0/%0aX-Bad:1",
        "/\rX-Bad:1",
        "/\x0bX-Bad:1",
        "/\x85X-Bad:1",
        "//evil.example/%0d%0aX-Bad:1",
    ):
        for query in (f"token={TOKEN}", f"token={TOKEN}&a=%0d%0aX-Bad:1", f"a%0d%0aX-Bad:1=1&token={TOKEN}"):
            _, head, _ = asked(port, f"{path}?{query}")
            assert not [line for line in head.splitlines() if line.lower().startswith("x-bad")], (path, query)
            assert "evil.example" not in head.partition("Location: ")[2].split("/")[0]


def test_one_connection_has_one_answer(reading):
    """What is sent behind a request, or as its body, is no second request."""
    port, _ = reading
    second = f"GET /tables HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    for head in ("Connection: keep-alive\r\n", f"Content-Length: {len(second)}\r\n", "Transfer-Encoding: chunked\r\n",
                 "Content-Length: 0\r\nContent-Length: 5\r\n"):  # fmt: skip
        answer = sent(port, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{head}\r\n{second}".encode())
        assert answer.count(b"HTTP/1.0 ") == 1, head
        assert b'"table"' not in answer


def test_who_does_not_know_the_token_changes_and_learns_nothing(acting, monkeypatch):
    """Guesses of every form are compared in constant time, and nothing of the answer tells how close they were."""
    port, folder = acting
    before, compared = state(folder), []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or compare(a, b))
    guesses = ("", TOKEN[:-1], TOKEN + "0", TOKEN.lower(), TOKEN.swapcase(), "\xe9" * 22, "0" * 60_000)
    answers = set()
    for guess in guesses:
        for head in (
            f"Authorization: Bearer {guess}\r\n",
            f"Authorization: {guess}\r\n",
            f"Cookie: {cookie_name(f'127.0.0.1:{port}')}={guess}\r\n",
        ):
            for target, method in (
                ("/t/0/do/clean", "POST"),
                ("/t/0/document", "GET"),
                ("/tables", "GET"),
                ("/", "GET"),
                ("/v1/hoodie/view/refresh/", "POST"),
                ("/v1/hoodie/view/compactions/pending/?basepath=/", "GET"),
            ):
                status, _, body = asked(port, target, method, JSON + head, DO)
                answers.add((status, body))
    assert {status for status, _ in answers} == {401}
    assert len(answers) == 1
    assert {each.encode() for each in guesses if each.isascii() and each} <= set(compared)
    assert state(folder) == before


@contextmanager
def other_site(folder, text):
    """A site of somebody else on this machine: the same address, another port."""
    (folder / "index.html").write_text(text)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


ATTACK = """<!doctype html><title>attack</title><iframe name="frame"></iframe>
<form id="form" method="post" enctype="text/plain" target="frame" action="VICTIM/t/0/do/clean">
<input name='{"dry_run": false, "a": "' value='"}'></form>
<script>
const learned = [];
const tell = (name) => (answer) => answer.text().then((text) => { if (text) learned.push([name, text.slice(0, 80)]); });
const tries = [];
for (const credentials of ["include", "omit"]) {
  for (const path of ["/t/0/document", "/tables", "/metrics", "/healthz"]) {
    tries.push(fetch("VICTIM" + path, {credentials}).then(tell(path)));
    tries.push(fetch("VICTIM" + path, {credentials, mode: "no-cors"}).then(tell("opaque " + path)));
  }
  for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
    for (const mode of ["cors", "no-cors"]) {
      const options = {method: "POST", mode, credentials, headers: {"Content-Type": type}, body: '{"dry_run": false}'};
      tries.push(fetch("VICTIM/t/0/do/clean", options).then(tell("post " + type)));
    }
  }
}
const kinds = {script: "src", img: "src", link: "href", object: "data", iframe: "src"};
for (const [tag, attribute] of Object.entries(kinds)) {
  tries.push(new Promise((done) => {
    const element = document.createElement(tag);
    element.onload = () => {
      try { if (element.contentDocument.getElementById("data")) learned.push([tag, "read"]); } catch { }
      done();
    };
    element.onerror = done;
    if (tag === "link") element.rel = "stylesheet";
    element[attribute] = "VICTIM/t/0/";
    document.body.append(element);
    setTimeout(done, 3000);
  }));
}
document.getElementById("form").submit();
window.result = Promise.allSettled(tries).then(() => JSON.stringify(learned));
document.documentElement.dataset.ready = "yes";
</script>"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_a_page_of_another_origin_reads_and_does_nothing(tmp_path):
    """In the browser of somebody who is logged in, from another port and another name of the same machine."""
    (tmp_path / "site").mkdir()
    with running(tmp_path, token=TOKEN, actions=True) as port, Browser(tmp_path / "profile") as browser:
        table = tmp_path / "t"
        browser.open(f"http://127.0.0.1:{port}/t/0/?token={TOKEN}")
        before = state(table)
        for victim in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            with other_site(tmp_path / "site", ATTACK.replace("VICTIM", victim)) as other:
                browser.open(f"http://127.0.0.1:{other}/index.html")
                assert json.loads(browser.evaluate("window.result")) == []
                assert browser.evaluate("document.title") == "attack"
        assert state(table) == before
        # The page itself still may: the token was there all the time.
        browser.open(f"http://127.0.0.1:{port}/t/0/")
        done = browser.evaluate(
            "fetch('/t/0/do/clean', {method: 'POST', headers: {'Content-Type': 'application/json'},"
            " body: '{\"dry_run\": false}'}).then((answer) => answer.status)"
        )
        assert done == 200
        assert state(table) != before
