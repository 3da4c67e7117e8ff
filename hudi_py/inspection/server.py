"""The server of pages: threads, limits and time-outs around `hudi_py.inspection.site`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from typing import Any, Final

from hudi_py.inspection.say import say
from hudi_py.inspection.site import Request, Response, Site
from hudi_py.inspection.site_actions import BODY_BYTES_MAX

CONNECTIONS_MAX: Final = 64
"""Requests that are worked on at once; further ones are answered with 503."""
IDLE_SECONDS_MAX: Final = 10
"""For one wait for a client."""
TRANSFER_SECONDS_MAX: Final = 60
"""For a whole request to come in, and for a whole answer to go out: a client must not hold its place byte by byte."""
_SINGLE: Final = (
    "host",
    "origin",
    "authorization",
    "content-length",
    "content-type",
    "transfer-encoding",
    "sec-fetch-site",
)
_BUSY: Final = (
    b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nbusy\n"
)


class Server(ThreadingHTTPServer):
    """
    Serves a site until it is stopped.

    Args:
        address: Host and port; port 0 for any that is free.
        family: Of the address.

    Attributes:
        site: What answers; to be set before the first request.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], family: socket.AddressFamily) -> None:
        self.address_family = family
        self.site: Site | None = None
        self._places = BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking for the name of the address, which may take long."""
        # The port is free again as soon as the server stops, not minutes later.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the request a thread, or answer that there are too many."""
        # Not queued: a client that waits for a place would hold a connection, and those are limited by the system.
        if not self._places.acquire(blocking=False):
            try:
                # This runs in the thread that accepts connections: a client that reads nothing must not stop it.
                request.settimeout(1)
                request.sendall(_BUSY)
            except OSError:
                pass  # the client has closed the connection, or reads nothing
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            # Also after an error, or the server would run out of places.
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that go away; anything else is one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            say(f"hudi-py: serve: unexpected {type(error).__name__}: {error}", file=sys.stderr)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    transfer_seconds_max: float = TRANSFER_SECONDS_MAX
    server_version = "hudi-py"
    sys_version = ""
    timeout = IDLE_SECONDS_MAX
    error_content_type = "text/plain"
    error_message_format = "%(code)d %(message)s\n"

    def handle_one_request(self) -> None:
        """Answer one request; the time for reading it ends when it is complete."""
        self._reading = self._limit()
        try:
            super().handle_one_request()
        finally:
            self._reading.cancel()

    def _limit(self) -> Timer:
        """End the connection, from another thread, when the time is over."""

        def end() -> None:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        timer = Timer(self.transfer_seconds_max, end)
        timer.daemon = True
        timer.start()
        return timer

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_POST(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        assert self.server.site is not None
        # Two of them mean different things to different programs: which one counts must not be a matter of order.
        if any(len(self.headers.get_all(name, ())) > 1 for name in _SINGLE):
            self.send_error(HTTPStatus.BAD_REQUEST, "a header that stands for itself was sent twice")
            return
        # Names of headers may be written in any case.
        headers = {name.lower(): value for name, value in self.headers.items()}
        # Only where it is of any use: a server that only reads looks at no body.
        takes_body = self.command == "POST" and self.command in self.server.site.methods
        body = self._body(headers) if takes_body else b""
        # Working on an answer may take as long as it takes: a table may be large.
        self._reading.cancel()
        if body is None:
            return
        try:
            response = self.server.site.answer(Request(self.command, self.path, headers, body))
        except Exception as error:  # noqa: BLE001 - one bad request must not end without an answer
            say(f"hudi-py: serve: unexpected {type(error).__name__}: {error}", file=sys.stderr)
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", b"unexpected error\n")
        writing = self._limit()
        try:
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            # HEAD is answered with the same headers, length included, and nothing behind them.
            if with_body:
                self.wfile.write(response.body)
        finally:
            writing.cancel()

    def _body(self, headers: Mapping[str, str]) -> bytes | None:
        """The body of a request; None after an answer that says what is wrong with it."""
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not (length.isascii() and length.isdecimal()):
            self.send_error(HTTPStatus.LENGTH_REQUIRED, "give the length of the body")
            return None
        # The length of the number first: one of a million digits takes long to read.
        if len(length) > len(str(BODY_BYTES_MAX)) or int(length) > BODY_BYTES_MAX:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too long")
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.send_error(HTTPStatus.BAD_REQUEST, "the body is cut off")
            return None
        return body

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name of the base class
        """Log nothing: addresses may have a token in them."""
