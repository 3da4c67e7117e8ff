"""The server under clients that are slow, many, malformed or gone: it goes on answering the others."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

import hudi_py
from hudi_py.inspection import server as module
from hudi_py.inspection.server import CONNECTIONS_MAX, Server
from hudi_py.inspection.site import Site
from support.tables import TableBuilder, at, on_disk


@contextmanager
def running(folder):
    """A server of one table: its port."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    on_disk(builder, folder / "t")
    with Server(("127.0.0.1", 0), socket.AF_INET) as server:
        port = server.server_port
        server.site = Site(
            (str(folder / "t"),), lambda where: hudi_py.open_table(where).read_only(),
            hosts=frozenset({f"127.0.0.1:{port}"}),
        )  # fmt: skip
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield port
        server.shutdown()


def connected(port):
    """A connection that waits ten seconds at most."""
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def request(port, target="/healthz"):
    """The bytes of a request."""
    return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()


def status(port, data=None):
    """Status that a request is answered with; 0 if the connection ends without an answer."""
    with connected(port) as client:
        client.sendall(request(port) if data is None else data)
        answer = b""
        with suppress(OSError):
            while b"\r\n" not in answer:
                piece = client.recv(4096)
                if not piece:
                    break
                answer += piece
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def at_work():
    """Number of threads that work on a request."""
    return sum("process_request" in each.name for each in threading.enumerate())


def until(condition):
    """Wait until something is so, at most 20 seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.02)


def test_clients_that_send_byte_by_byte_lose_their_places(tmp_path, monkeypatch):
    """All places are taken by them, others are told to come again, and soon there are places for those."""
    monkeypatch.setattr(module._Handler, "transfer_seconds_max", 1.0)
    with running(tmp_path) as port:
        slow = [connected(port) for _ in range(CONNECTIONS_MAX)]
        over = threading.Event()

        def drip():
            while not over.wait(0.1):
                for client in slow:
                    with suppress(OSError):
                        client.send(b"G")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        until(lambda: status(port) == 503)
        until(lambda: status(port) == 200)
        over.set()
        thread.join()
        for client in slow:
            client.close()


def test_clients_that_read_nothing_lose_their_places(tmp_path, monkeypatch):
    """An answer that is larger than what the system keeps waits for its reader, but not for ever."""
    monkeypatch.setattr(module._Handler, "transfer_seconds_max", 1.0)
    with running(tmp_path) as port:
        site = module.Response
        large = site(module.HTTPStatus.OK, "text/plain", b"x" * (64 << 20))
        monkeypatch.setattr(Site, "answer", lambda self, asked: large)
        clients = [connected(port) for _ in range(4)]
        for client in clients:
            client.sendall(request(port))
        until(lambda: at_work() == len(clients))
        until(lambda: at_work() == 0)
        for client in clients:
            client.close()


@pytest.mark.slow
def test_a_thousand_at_once_are_answered_or_told_to_come_again(tmp_path):
    """Never more at work than there are places, and the server is as before afterwards."""
    with running(tmp_path) as port:
        found = []
        begin = threading.Barrier(1000)
        most = []

        def ask():
            begin.wait()
            found.append(status(port))

        threads = [threading.Thread(target=ask, name="client") for _ in range(1000)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            most.append(at_work())
            threading.Event().wait(0.01)
        assert len(found) == 1000
        assert set(found) <= {200, 503}
        assert 200 in found
        assert max(most) <= CONNECTIONS_MAX
        assert status(port) == 200


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: 1\r\n" % n for n in range(200)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: " + b"a" * 70_000 + b"\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n",
        b"POST /t/0/ HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", b"GET http://evil.example/ HTTP/1.1\r\n\r\n",
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(tmp_path, data):
    """With an error, and without an end of the server."""
    with running(tmp_path) as port:
        assert status(port, data) in (0, 400, 403, 405, 414, 421, 431, 501, 505)
        assert status(port) == 200
