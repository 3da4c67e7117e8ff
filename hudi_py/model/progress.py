"""
How far a reader of changes has read: a time, and the writes up to it, so that one that is undone is noticed. Pure.

A time alone does not tell: once a newer write is there, the end of the range moves on whatever was taken back before
it. Writes that were archived meanwhile are still there; those that are neither on the timeline nor archived are undone,
lost with a part of the timeline, or of a table that was at the same place before.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Final

import attrs

from hudi_py.errors import ConfigError

_WRITE: Final = re.compile(r"(\d+)(?:_(\d+))?", re.ASCII)

LoadArchived = Callable[[str, str], Collection[str]]
"""Requested times of the archived writes between two times, both excluded."""


@attrs.frozen(kw_only=True)
class Progress:
    """
    What a reader has read.

    Args:
        until: The end of its last range, as ranges compare times; ``""`` before the first one.
        writes: Requested time of each write up to then to its completion time, or to ``""`` where ranges compare
            requested times; those that were active, at least the newest. None if it is not known.
    """

    until: str
    writes: Mapping[str, str] | None = None

    @property
    def is_by_completion(self) -> bool | None:
        """Whether its end is a completion time; None if that is not known."""
        return any(self.writes.values()) if self.writes else None

    def missing(self, active: Mapping[str, str], archived: LoadArchived) -> frozenset[str]:
        """
        Requested times of the writes that are no longer there.

        Args:
            active: Requested time of each completed write on the active timeline to its completion time or ``""``.
            archived: Asked only where a write is not active.
        """
        absent = {time for time, completed in (self.writes or {}).items() if not _is_same(completed, active.get(time))}
        gone = absent.difference(active)  # completed again under the same time, it is another run
        if gone:
            absent -= set(archived(_before(min(gone)), f"{max(gone)}0")) & gone
        return frozenset(absent)

    def encoded(self) -> str:
        """The writes as a short text."""
        texts = (f"{time}_{done}" if done else time for time, done in sorted((self.writes or {}).items()))
        return base64.b64encode(zlib.compress(",".join(texts).encode(), 9)).decode()


def decoded(until: str, text: str | None) -> Progress:
    """
    Args:
        until: The end of the last range.
        text: From `Progress.encoded`; None if it is not known.

    Raises:
        ConfigError: The text is not one of those.
    """
    if text is None:
        return Progress(until=until)
    try:
        texts = zlib.decompress(base64.b64decode(text, validate=True)).decode()
        found = [_WRITE.fullmatch(each) for each in texts.split(",")] if texts else []
        return Progress(until=until, writes={each[1]: each[2] or "" for each in found})  # type: ignore[index]
    except (ValueError, TypeError, zlib.error) as error:
        raise ConfigError(
            f"what was read until {until or 'the beginning'} is no list of writes ({error}): a checkpoint that was "
            "changed, or is of a newer hudi_py; begin with a new one"
        ) from error


def begin_after(progress: Progress, active: Mapping[str, str], archived: Mapping[str, str]) -> str | None:
    """
    Where the next range begins in a table that compares other times than when *progress* was made: it was upgraded.

    Args:
        progress: What was read; none of its writes is missing.
        active: Requested time of each completed write on the active timeline to the time that ranges compare now.
        archived: The same of archived writes, where *active* lacks some of those that were read.

    Returns:
        The new time; None if no time has all writes that were read before it, and all others behind it.
    """
    writes = progress.writes or {}
    # Archived writes that are older than all of those were read before them, for the oldest ones are archived first.
    later = {time: compared for time, compared in archived.items() if time > min(writes, default="")}
    begin = max((compared for time, compared in {**archived, **active}.items() if time in writes), default=None)
    first = min((compared for time, compared in {**later, **active}.items() if time not in writes), default=None)
    return begin if begin is not None and (first is None or begin < first) else None


def _is_same(completed: str, now: str | None) -> bool:
    # In one of the layouts there is no completion time, and the table may have been upgraded meanwhile.
    return now is not None and (now == completed or not now or not completed)


def _before(time: str) -> str:
    """A text just below a time of digits."""
    return str(int(time) - 1).zfill(len(time))
