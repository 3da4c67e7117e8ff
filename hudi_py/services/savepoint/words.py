"""What a savepoint records besides its files, and what is said of one whose time is over."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple, TypedDict

from hudi_py.model.instant import Instant


class Expired(NamedTuple):
    """
    A savepoint whose time to live is over.

    Args:
        instant: The completed savepoint.
        stays_because: Why it cannot be deleted nevertheless; None if it can.
    """

    instant: Instant
    stays_because: str | None


class SavepointWords(TypedDict, total=False):
    """
    What a savepoint records besides the files that it protects.

    - ``user``, ``comment``: free text.
    - ``name``: for restores and deletions; unique in the table.
    - ``ttl``: time to live, a span or text as ``"36h"``, ``"30d"``; None: it never expires. When it is over, the next
      clean of hudi_py deletes the savepoint before it plans; a restore to it works until then. Apache Hudi ignores it.
    """

    user: str
    comment: str
    name: str | None
    ttl: str | timedelta | None
