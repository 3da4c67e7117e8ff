"""An instant that was named, and is not pending: what is there in its place."""

from __future__ import annotations

from hudi_py.errors import ConfigError
from hudi_py.timeline.timeline import Timeline


def not_pending(root: str, word: str, requested_time: str, timeline: Timeline) -> ConfigError:
    """
    Return the error for an instant that does not wait to be carried out.

    Args:
        root: Where the table is.
        word: ``compaction``, ``log compaction`` or ``clustering``.
        requested_time: As it was named.
        timeline: The active timeline.
    """
    found = timeline.find(requested_time)
    seen = "hudi-py timeline shows what is pending" if found is None else f"that is {found}"
    return ConfigError(f"{root} has no pending {word} {requested_time}; {seen}")
