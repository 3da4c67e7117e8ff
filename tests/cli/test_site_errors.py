"""Errors of the server: a status that says who can mend it, and for people a page."""

from __future__ import annotations

import json
import shutil

import pytest

import hudi_py
from hudi_py.inspection.site import Request, Site

HOST = "127.0.0.1:8642"
BROWSER = {"host": HOST, "accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def site_of(*tables, token=None):
    return Site(
        tuple(map(str, tables)), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}),
        token=token,
    )  # fmt: skip


def test_a_time_that_a_clean_passed_is_no_fault_of_the_storage(table):
    """Monitors take 502 for a server that is down."""
    site = site_of(table("cow_archived-0.15.0"))
    answer = site.answer(Request("GET", "/t/0/files?as_of=2020-01-01", {"host": HOST}))
    assert answer.status == 409
    assert json.loads(answer.body)["error"]["kind"] == "RefusedError"


@pytest.mark.parametrize("target", ["/t/0/", "/t/7/", "/t/1/files?as_of=2020-01-01"])
def test_people_get_a_page_and_programs_json(table, target):
    """Of a table that was deleted meanwhile, too; the names in it are text."""
    gone = table("cow_cleaned-1.1.1")
    named = gone.rename(gone.with_name("<b>gone"))
    site = site_of(named, table("cow_archived-0.15.0"))
    shutil.rmtree(named)
    page, document = (site.answer(Request("GET", target, headers)) for headers in (BROWSER, {"host": HOST}))
    assert page.status == document.status >= 400
    assert page.kind.startswith("text/html")
    assert b"<h1>" in page.body and b'href="/"' in page.body
    assert b"<b>gone" not in page.body
    assert json.loads(document.body)["error"]["message"]


def test_the_page_of_an_error_tells_a_stranger_nothing(table):
    """Without the token it names no table."""
    path = table("cow_cleaned-1.1.1")
    answer = site_of(path, token="0123456789abcdef").answer(Request("GET", "/", BROWSER))
    assert answer.status == 401
    assert answer.kind.startswith("text/html")
    assert path.name.encode() not in answer.body
