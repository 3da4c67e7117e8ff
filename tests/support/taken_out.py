"""Parts of the product taken out, for runs that have to find the bug which each of them prevents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

from hudi_py.model.instant import advance
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn import commit as stages
from hudi_py.txn.beginners import Beginners
from hudi_py.txn.conflict import Verdict
from hudi_py.txn.file_lock import FileLock
from hudi_py.writing import files
from hudi_py.writing.rivals import Rivals
from hudi_py.writing.transaction import WriteTransaction


def _without_looking(
    store: Any, instant: Any, said: Any = None, *, completion_time: Any = None, before: Any = None
) -> Any:
    following = advance(instant, completion_time=completion_time)
    store._create(following, said, before)
    return following


_PARTS: Final[dict[str, tuple[tuple[Any, str, Any], ...]]] = {
    "check": ((Rivals, "check", lambda *_: None),),
    "lock": (
        # With the lock nobody meets a write of ours that has begun and not looked yet; here it would be waited for.
        (Beginners, "of", classmethod(lambda *_: None)),
        (FileLock, "try_acquire", lambda *_: True),
        (FileLock, "is_ours", lambda *_: True),
        (FileLock, "release", lambda *_: None),
    ),
    "look": (
        (stages, "judge", lambda *_: Verdict.CLEAR),
        (WriteTransaction, "_check_heart", lambda _: None),
        (TimelineStore, "transition", _without_looking),
    ),
    "fence": ((files, "is_fenced", lambda *_: False),),
}
FINDING: Final = {
    "check": ("upsert new", "upsert new"),
    "lock": ("upsert new", "upsert new"),
    "look": ("upsert new", "rollback pending"),
    "fence": ("upsert new", "rollback pending"),
}
"""By part: actors that find a bug without it, in seconds."""


@contextmanager
def taken_out(part: str) -> Iterator[None]:
    """Run the body without the lock, the conflict check, the look at one's own instant, or the fence."""
    with ExitStack() as stack:
        for owner, name, instead in _PARTS[part]:
            stack.enter_context(mock.patch.object(owner, name, instead))
        yield
