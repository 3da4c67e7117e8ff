"""
What the server of pages answers: a request becomes a response, without a socket.

Everything is read-only, but for the actions of a server that was started with ``--allow-actions``. A path is matched as
a whole against few patterns, so no name in it reaches a file system; a table is named by its number. Requests of other
sites are refused: by the names under which the server may be asked (a foreign name that resolves to this address is
refused), by origin, and by a token where there is one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import attrs

from hudi_py.errors import ConfigError, HudiError, RefusedError, TableNotFound
from hudi_py.inspection.hudi_view import Behind, answer, bare_location, is_path, is_posted
from hudi_py.inspection.json_stream import json_text
from hudi_py.inspection.open_metrics import CONTENT_TYPE
from hudi_py.inspection.page_data import page_document, version_of
from hudi_py.inspection.page_file import api_html, error_html, html_of_json, list_html, policy
from hudi_py.inspection.page_outline import INSTANTS_MIN, page_outline
from hudi_py.inspection.served_tables import ServedTables
from hudi_py.inspection.site_actions import ACTIONS, Actions, Busy, find_action
from hudi_py.inspection.site_api import NoSuchThing, api_rows, find_endpoint, openapi, read_query
from hudi_py.inspection.site_metrics import SiteMetrics
from hudi_py.runtime.clock import MONOTONIC

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.table import Table

COOKIE: Final = "hudi_py_token"
DOCUMENT_SECONDS_MAX: Final = 60.0
"""What a page shows is collected again after this time, counted from the end: collecting may take long."""
_TABLE: Final = re.compile(r"/t/([0-9]{1,6})/([a-z]*(?:/[0-9]+)?)")
_DO: Final = re.compile(r"/t/([0-9]{1,6})/do/([a-z]+)")
# Pages for people are not among them: links to those collect parameters on their way.
_WITHOUT_QUERY: Final = frozenset({"/healthz", "/tables", "/metrics", "/openapi.json"})
# The page needs nothing of other sites, and they need nothing of it.
_SECURITY: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_STATUSES: Final[Mapping[type[Exception], HTTPStatus]] = {
    NoSuchThing: HTTPStatus.NOT_FOUND,
    TableNotFound: HTTPStatus.NOT_FOUND,
    ConfigError: HTTPStatus.BAD_REQUEST,
    Busy: HTTPStatus.CONFLICT,
    RefusedError: HTTPStatus.CONFLICT,
    HudiError: HTTPStatus.BAD_GATEWAY,
}
"""Kinds of errors to how requests are answered, the last one for all others."""
_OF_TABLE: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.BAD_GATEWAY})


@attrs.frozen
class Request:
    """
    A request.

    Args:
        method: In capitals.
        target: Path and query, as sent.
        headers: Names in lower case.
        body: What came with it.
    """

    method: str
    target: str
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""


@attrs.frozen
class Response:
    """Status, kind of content, content, and headers besides those that every response has."""

    status: HTTPStatus
    kind: str
    body: bytes
    more: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """All headers."""
        return {"Content-Type": self.kind, "Content-Length": str(len(self.body)), **_SECURITY, **self.more}


def cookie_name(host: str) -> str:
    """Name of the cookie: browsers have one set for all ports of a machine, and two servers may have two tokens."""
    port = re.search(r":([0-9]{1,5})$", host)
    return COOKIE if port is None else f"{COOKIE}_{port[1]}"


class Refused(Exception):
    """The request is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Site:
    """
    The pages of some tables.

    Args:
        tables: Locations, or those of sources in which others may come.
        open_table: Opens a location, for reading only.
        hosts: Names (with port) under which the server may be asked; None for any, which takes a token.
        token: What requests have to know; None for none.
        options: Settings of cleaning, given at the start.
        actions: What requests may change; None for nothing. Takes a token.
        seconds: Clock for the age of what was collected.
    """

    def __init__(
        self,
        tables: tuple[str, ...] | ServedTables,
        open_table: Callable[[str], Table],
        *,
        hosts: frozenset[str] | None,
        token: str | None = None,
        options: CleanOptions | None = None,
        actions: Actions | None = None,
        seconds: Callable[[], float] = MONOTONIC,
    ) -> None:
        assert hosts is not None or token is not None
        assert actions is None or token is not None
        self._tables = tables if isinstance(tables, ServedTables) else ServedTables(tables)
        self._open, self._hosts, self._token = open_table, hosts, token
        self._options, self._actions = options, actions
        self._locks: dict[int, Lock] = {}
        self._documents: dict[int, _Collected] = {}
        self._seconds = seconds
        self._metrics = SiteMetrics(lambda: self.tables, open_table, options or {}, seconds=seconds)

    @property
    def tables(self) -> tuple[str, ...]:
        """Locations in the order of their numbers, of tables that are gone, too."""
        return self._tables.all

    def warm(self) -> None:
        """Load what the first request would have to wait for: modules, and the timeline of the first table."""
        with suppress(HudiError, OSError):  # whoever asks for the table is told
            page_outline(self._open(self.tables[0]))

    def answer(self, request: Request) -> Response:
        """Answer a request; never raises an error of the library."""
        try:
            return self._answer(request)
        except Refused as refused:
            return _error(request, {"message": str(refused)}, refused.status)
        except (ConfigError, TableNotFound, NoSuchThing, Busy, HudiError) as error:
            status = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
            # Of those that are about the table, programs want to tell one from another.
            kind = {"kind": type(error).__name__} if status in _OF_TABLE else {}
            return _error(request, {**kind, "message": str(error)}, status)

    def _answer(self, request: Request) -> Response:
        # Before anything else, even before the token: without actions nothing here can be changed by any request.
        # Hudi's clients post what only asks to read again.
        if request.method not in self.methods and not (
            request.method == "POST" and is_posted(request.target.partition("?")[0])
        ):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this server only reads; see hudi-py serve --allow-actions")
        self._refuse_strangers(request)
        try:
            url = urlsplit(request.target)
            # Bounded, because a query with a million fields would take memory before it is looked at.
            # With empty values: a parameter that is left empty is wrong, and not left out.
            query = parse_qs(url.query, keep_blank_values=True, max_num_fields=20)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the address is malformed") from error
        # Before any page, the front page too: it names the tables.
        entered = self._admit(request, url.path, query)
        if entered is not None:
            return entered
        if is_path(url.path):
            return self._view_of_hudi(url.path, url.query)
        if request.method == "POST":
            return self._act(request, url.path, query)
        if url.path == "/":
            return self._front()
        fixed = self._fixed(url.path, query)
        if fixed is not None:
            return fixed
        # Whole: a path that goes on behind a match is another path.
        found = _TABLE.fullmatch(url.path)
        if found is None or int(found[1]) >= len(self.tables):
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")
        return self._of_table(int(found[1]), found[2], query)

    # --- who may ask ---------------------------------------------------------------------------------------------
    def _refuse_strangers(self, request: Request) -> None:
        # Any page that a browser shows may send requests here; the browser names the address that it believes in.
        host = request.headers.get("host", "").lower()
        if self._hosts is not None and host not in self._hosts:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server is not known under that name")
        origin = request.headers.get("origin")
        # Both, because a proxy before this server may speak TLS to the browser.
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise Refused(HTTPStatus.FORBIDDEN, "requests of other sites are refused")
        # Browsers send this, and pages cannot change it; other clients, which no page controls, leave it out.
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused(HTTPStatus.FORBIDDEN, "requests of other sites are refused")

    def _admit(self, request: Request, path: str, query: dict[str, list[str]]) -> Response | None:
        """Let those pass who know the token; one in the address becomes a cookie, so that it is not seen in links."""
        if self._token is None:
            return None
        if len(query.get("token", ())) > 1:
            raise Refused(HTTPStatus.BAD_REQUEST, "token is given twice")
        if self._is_token(query.get("token", [""])[0]):
            # The rest of the address stays as it was: only the token goes, from the address and from the history.
            rest = urlencode([(name, value) for name, values in query.items() if name != "token" for value in values])
            # Browsers take two slashes, and a backslash for one, for the name of another server.
            clean = "/" + quote(path.lstrip("/\\"), safe="/%")
            # Scripts cannot read it, and browsers do not send it for other sites.
            name = cookie_name(request.headers.get("host", ""))
            cookie = f"{name}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
            return Response(
                HTTPStatus.SEE_OTHER,
                "text/plain; charset=utf-8",
                b"",
                {"Location": f"{clean}?{rest}" if rest else clean, "Set-Cookie": cookie},
            )
        bearer = request.headers.get("authorization", "")
        if bearer.lower().startswith("bearer ") and self._is_token(bearer[len("bearer ") :].strip()):
            return None
        try:
            cookies = SimpleCookie(request.headers.get("cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        given = cookies.get(cookie_name(request.headers.get("host", "")))
        if given is not None and hmac.compare_digest(given.value.encode(), self._secret.encode()):
            return None
        raise Refused(HTTPStatus.UNAUTHORIZED, "give the token: ?token=..., or the header Authorization: Bearer ...")

    @cached_property
    def _secret(self) -> str:
        """What the cookie holds: browsers send it to every server on this machine, which must not learn the token."""
        assert self._token is not None
        return hmac.digest(self._token.encode(), b"the cookie of hudi-py serve", "sha256").hex()

    def _is_token(self, given: str) -> bool:
        assert self._token is not None
        # In constant time: comparing from the left would tell how much of a guess is right.
        return hmac.compare_digest(given.encode(), self._token.encode())

    # --- pages ---------------------------------------------------------------------------------------------------
    def _front(self) -> Response:
        self._tables.look()
        if len(self.tables) == 1:
            return Response(HTTPStatus.SEE_OTHER, "text/plain; charset=utf-8", b"", {"Location": "/t/0/"})
        links = [(f"/t/{number}/", table) for number, table in self._tables.listed]
        return _html(list_html(links), policy("'none'"))

    def _fixed(self, path: str, query: dict[str, list[str]]) -> Response | None:
        """Answer what is not about one table."""
        if path in _WITHOUT_QUERY:
            read_query(path, {}, query)
        if path == "/healthz":
            return _json({"tables": len(self._tables.listed)})
        if path == "/tables":
            self._tables.look()
            return _json([{"number": number, "table": table} for number, table in self._tables.listed])
        if path == "/metrics":
            self._tables.look()
            return Response(HTTPStatus.OK, CONTENT_TYPE, self._metrics.text().encode())
        if path == "/openapi.json":
            return _json(openapi(self._actions is not None))
        if path == "/api":
            return _html(api_html(api_rows(openapi(self._actions is not None))), policy("'none'"))
        return None

    def _of_table(self, number: int, page: str, query: dict[str, list[str]]) -> Response:
        if page in ("version", "document"):
            read_query(page, {}, query)
        if page == "version":
            return _json({"version": version_of(self._open(self.tables[number]))})
        if page not in ("", "document"):
            found = find_endpoint(page)
            if found is None:
                raise Refused(HTTPStatus.NOT_FOUND, "there is no such page; /api lists them")
            endpoint, instant = found
            given = read_query(endpoint.path, endpoint.query, query)
            return _json(endpoint.answer(self._open(self.tables[number]), given, instant, self._options or {}))
        collected = self._document(number) if page == "document" else self._document_at_once(number)
        if page == "document":
            return _json_of(collected.text.encode())
        # The policy of the page itself, in its head, names the hashes of its scripts.
        return _html(html_of_json(collected.text, f"{collected.name}: hudi-py serve"), None)

    def _view_of_hudi(self, path: str, query_text: str) -> Response:
        """Answer a client of Apache Hudi."""
        # An empty partition is that of a table without partitions.
        pairs = parse_qs(query_text, keep_blank_values=True, max_num_fields=20)
        query = {name: values[0] for name, values in pairs.items()}
        wanted = bare_location(query.get("basepath", ""))
        table = self._called(wanted)
        if table is None:  # made since
            self._tables.look()
            table = self._called(wanted)
        if table is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"this server does not serve {wanted}")
        try:
            found = answer(self._open(table), path, query)
        except Behind as error:
            raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from error
        except RefusedError as error:
            raise Refused(HTTPStatus.NOT_IMPLEMENTED, str(error)) from error
        return _json(found)

    def _called(self, bare: str) -> str | None:
        return next((each for each in self.tables if bare_location(each) == bare), None)

    def _act(self, request: Request, path: str, query: dict[str, list[str]]) -> Response:
        """Take an action on a table, or try it."""
        assert self._actions is not None
        found = _DO.fullmatch(path)
        action = None if found is None else find_action(found[2])
        if found is None or action is None or int(found[1]) >= len(self.tables):
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such action; /api lists them")
        if query:
            raise Refused(HTTPStatus.BAD_REQUEST, "an action takes no parameters in its address")
        # No form of another site can send this kind of content, whatever the browser makes of the rest.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body as application/json")
        status, answer = self._actions.run(self.tables[int(found[1])], action, request.body)
        return _json(answer, status)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods of requests that are answered; bodies are read of ``POST`` only."""
        return ("GET", "HEAD") if self._actions is None else ("GET", "HEAD", "POST")

    def _document(self, number: int) -> _Collected:
        """
        Collected once for each state of the timeline, however many ask at the same time; again when it is old.

        Findings come and go with time alone (a write that is stuck), and with files that no instant names (orphans).
        """
        # One lock for each table: a slow one must not keep the others waiting.
        with self._locks.setdefault(number, Lock()):
            opened = self._open(self.tables[number])
            known = self._known(number, opened)
            if known is None:
                known = self._documents[number] = self._collected(number, page_document(opened, options=self._options))
            return known

    def _document_at_once(self, number: int) -> _Collected:
        """As `_document`; of a long timeline that nobody has read yet its outline, behind which the page asks again."""
        opened = self._open(self.tables[number])
        known = self._known(number, opened)
        if known is None and len(opened.timeline.instants) >= INSTANTS_MIN:
            return self._collected(number, page_outline(opened))
        return known or self._document(number)

    def _known(self, number: int, opened: Table) -> _Collected | None:
        """The document, if it is there and neither old nor of another state."""
        known = self._documents.get(number)
        is_old = known is None or self._seconds() - known.at >= DOCUMENT_SECONDS_MAX
        return None if known is None or is_old or known.version != version_of(opened) else known

    def _collected(self, number: int, document: dict[str, Any]) -> _Collected:
        more: dict[str, Any] = {"live": f"/t/{number}/", "list": len(self.tables) > 1}
        if self._actions is not None:
            more["actions"] = [{"name": each.name, "summary": each.summary} for each in ACTIONS]
        text = json_text({**document, **more}, ensure_ascii=True)
        return _Collected(self._seconds(), document["version"], document["table"]["name"], text)


@attrs.frozen
class _Collected:
    """
    The document of a page, as the text that is sent: it is asked for more often than it changes, and takes less memory.

    Args:
        at: Reading of the clock when it was collected.
        version: See `version_of`.
        name: Of the table.
        text: JSON, ASCII only.
    """

    at: float
    version: str
    name: str
    text: str


def _json(document: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return _json_of(json_text(document, ensure_ascii=True).encode(), status)


def _json_of(data: bytes, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(status, "application/json", data, {"Content-Security-Policy": "default-src 'none'"})


def _error(request: Request, error: dict[str, str], status: HTTPStatus) -> Response:
    """An error as JSON, and as a page for a browser that was sent to an address by a person."""
    if "text/html" not in request.headers.get("accept", ""):
        return _json({"error": error}, status)
    more = {"Content-Security-Policy": policy("'none'")}
    return Response(status, "text/html; charset=utf-8", error_html(status.phrase, error["message"]).encode(), more)


def _html(text: str, content_policy: str | None) -> Response:
    more = {} if content_policy is None else {"Content-Security-Policy": content_policy}
    return Response(HTTPStatus.OK, "text/html; charset=utf-8", text.encode(), more)
