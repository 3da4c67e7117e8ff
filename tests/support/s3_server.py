"""
An S3 server on a free port: moto, with conditional writes as atomic as those of S3.

moto looks whether a condition holds and then writes, and two requests can come in between. Here those that change
something take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


class TakingTurns:
    """A WSGI application whose changing requests run one at a time."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        if environ["REQUEST_METHOD"] in {"GET", "HEAD"}:
            return self._app(environ, start_response)
        with self._turn:
            return self._app(environ, start_response)


if __name__ == "__main__":
    run_simple("127.0.0.1", 0, TakingTurns(), threaded=True, request_handler=MotoRequestHandler)
