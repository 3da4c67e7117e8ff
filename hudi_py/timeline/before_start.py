"""
Finds writes from before the active timeline that active instants mention: those must be archived. Pure.

If an archive is lost as a whole, the table looks as if it was never archived. But a commit names the base files that
it replaced, and a clean the files that it deleted and the last commit that it saw. Writes that a rollback or restore
undid were never archived; as long as there is no archive, all rollbacks and restores are active, but those rollbacks
that a later restore removed.

Source: rules/table-services A-25; Hudi ``HoodieWriteStat.prevCommit``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hudi_py.formats.avro_file import MAGIC, SYNC_SIZE_BYTES
from hudi_py.model.files import parse_base_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import is_time
from hudi_py.model.records import CleanMetadata, CommitMetadata
from hudi_py.timeline.completions import undone_by
from hudi_py.timeline.timeline import Timeline

_FIRST_TIME: Final = "00000000000100"
"""Times below stand for the initial load of a table, not for a write."""
_DIGITS: Final = re.compile(rb"[0-9]{%d,}" % len(_FIRST_TIME))
_SECOND: Final = len("20240101000000")


class Earlier(NamedTuple):
    """
    A completed write from before the active timeline.

    Args:
        time: Its requested time.
        why: The instant that mentions it, as a sentence.
    """

    time: str
    why: str


class Before:
    """
    Decides which times are those of archived writes, from the contents of the active timeline.

    Args:
        timeline: The active timeline.
        contents: Its instants with their contents (`model.records`); only commits, cleans, rollbacks and restores
            matter.
    """

    def __init__(self, timeline: Timeline, contents: Iterable[tuple[Instant, object]]) -> None:
        self._contents = tuple(contents)
        self._start = timeline.first_not_savepointed
        known = {each.requested_time for each in timeline}
        for instant, content in self._contents:
            if instant.action in (Action.ROLLBACK, Action.RESTORE):
                # A time that was rolled back is on no timeline either, yet it was never archived.
                known |= undone_by(content) or set()
        self._known = known
        # A restore removes the rollbacks behind its savepoint: what they undid is named nowhere any more.
        writes = [each.requested_time for each in timeline.writes.completed()]
        self._restored = [
            (max((time for time in writes if time < restore), default=restore), restore)
            for restore in (each.requested_time for each in timeline.completed(Action.RESTORE))
        ]

    def is_archived(self, time: str) -> bool:
        """Whether a completed write of that time must be archived: it is older than the active timeline, not undone."""
        is_early = self._start is not None and _FIRST_TIME <= time < self._start
        # Stats have the text "null" for a new file group (rules/data-files 8), and cleans an empty one.
        is_of_write = is_time(time) and len(time) >= len(_FIRST_TIME)
        if not is_early or not is_of_write or time in self._known:
            return False
        return not any(savepoint < time < restore for savepoint, restore in self._restored)

    def earlier(self) -> Iterator[Earlier]:
        """Archived writes that the instants mention, some of them more than once."""
        for instant, content in self._contents:
            for each in _mentioned_by(instant, content):
                if self.is_archived(each.time):
                    yield each


def may_mention_earlier(data: bytes, start: str) -> bool:
    """
    Whether the content of a commit or clean may mention a write from before *start*; if not, it need not be decoded.

    Decoding ten thousand commits takes four times as long as a look at their digits.

    Args:
        data: The instant's file, JSON or Avro.
        start: Requested time.
    """
    body = 0
    if data.startswith(MAGIC):
        # Behind the schema, which ends with the marker that ends the file; of a damaged one all is searched.
        body = data.find(data[-SYNC_SIZE_BYTES:])
    if (b"deflate" in data[:body]) if body else (b"\\u" in data):
        return True  # compressed, or JSON with escapes: a time may stand in other bytes than its digits
    first = start.encode()
    for digits in _DIGITS.findall(data, body):
        # Behind a time of whole seconds the next number of an Avro file may look like one more digit.
        if digits < first or (digits[:_SECOND] == first[:_SECOND] and digits != first):
            return True
    return False


def _mentioned_by(instant: Instant, content: object) -> Iterator[Earlier]:
    if isinstance(content, CommitMetadata):
        for stats in content.partition_to_write_stats.values():
            for stat in stats:
                if stat.prev_commit and not (stat.path or "").rpartition("/")[2].startswith("."):
                    yield Earlier(stat.prev_commit, f"{instant} built on what {stat.prev_commit} wrote")
    elif isinstance(content, CleanMetadata):
        seen = content.last_completed_commit_timestamp
        yield Earlier(seen, f"{instant} saw {seen} as the last completed commit")
        for done in content.partitions.values():
            for base in filter(None, map(parse_base_file, done.delete_path_patterns)):
                yield Earlier(base.instant_time, f"{instant} deleted {base.name}")
