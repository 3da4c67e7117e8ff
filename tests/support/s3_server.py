"""
An S3 server on a free port: moto, with conditional writes as atomic as those of S3.

moto looks whether a condition holds and then writes, and two requests can come in between. Here those that change
something take turns. In a bucket with versions it lists folders in which only deleted objects are; S3 does not.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import FakeDeleteMarker, S3Backend
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


_list_objects = S3Backend.list_objects


def _list_present(self: S3Backend, bucket: Any, *arguments: Any, **named: Any) -> Any:
    present = copy.copy(bucket)
    present.keys = {name: each for name, each in bucket.keys.items() if not isinstance(each, FakeDeleteMarker)}
    return _list_objects(self, present, *arguments, **named)


if __name__ == "__main__":
    S3Backend.list_objects = _list_present  # type: ignore[method-assign]
    run_simple("127.0.0.1", 0, TakingTurns(), threaded=True, request_handler=MotoRequestHandler)
