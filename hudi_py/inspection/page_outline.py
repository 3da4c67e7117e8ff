"""
What the page of a long timeline shows at once: its instants, from their names alone.

The rest takes seconds for ten thousand instants, each of which is read; the page asks for it as soon as it is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hudi_py.inspection.instant_entry import instant_entry
from hudi_py.inspection.life_commands import numbers_entry
from hudi_py.inspection.page_data import EVENTS_MAX, about_table, place_of_time
from hudi_py.snapshot.history import Numbers, seconds_by_name

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant
    from hudi_py.table import Table

INSTANTS_MIN: Final = 1_000
"""Shorter timelines are read whole before anything is shown: that takes a fraction of a second."""


def page_outline(opened: Table) -> dict[str, Any]:
    """
    Return a document as `page_document` does, of which only the active instants are there, without what they hold.

    ``partial`` is true, and ``version`` that of no table: whoever compares it asks for the whole document. What all
    events have in common is in ``nothing``, because there may be tens of thousands.
    """
    instants = opened.timeline.instants
    return {
        "schema_version": 1,
        "partial": True,
        "version": "",
        "generated_at": opened.contents.store.clock.now().isoformat(timespec="seconds"),
        "table": about_table(opened),
        "findings": [],
        "usage": None,
        "meanings": {},
        "partitions": None,
        "files": [],
        "files_left_out": 0,
        "nothing": _NOTHING,
        "events": [_event(opened, each) for each in instants[-EVENTS_MAX:]],
        "events_left_out": max(0, len(instants) - EVENTS_MAX),
        "stored": [],
        "contents": {},
        "simulations": [],
        "not_simulated": None,
        "problems": [],
    }


def _event(opened: Table, instant: Instant) -> dict[str, Any]:
    at, offset = place_of_time(opened, instant.requested_time)
    return {
        **instant_entry(instant),
        "seconds": seconds_by_name(instant, opened.zone),
        "at": at,
        "utc_offset": offset,
    }


_NOTHING: Final[dict[str, Any]] = {
    **numbers_entry(Numbers()),
    "archived": False,
    "partitions": [],
    "partition_count": 0,
    "parameters": {},
}
