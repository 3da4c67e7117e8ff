"""
Checks before a write completes that no other writer changed what it read or wrote.

Called under the table's lock with the timeline of that moment. A write that passes is put onto the newer state as it
is: its files say what they replace, so nothing of it has to be written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.concurrency import SEVERAL_WRITERS, Concurrency, Isolation, Strategy
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConflictError
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.row_schema import column_ids
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.conflict import Kind, Reads, Scope
from hudi_py.txn.touched import LOOKED_UP, READS_WIDELY, Other, kind_of, read_others, touched_by
from hudi_py.writing.commit_words import CommitWords
from hudi_py.writing.replacing import DELETE_PARTITION

_OTHERS_MAY_CHANGE: Final = ("hoodie.table.metadata.", "hoodie_py.")
"""What the metadata table has is asked for when the write is recorded; no file depends on our own switches."""
_NOT_COMPARED: Final = ("hoodie.table.checksum",)
_DELETED_COLUMN: Final = "_hoodie_is_deleted"
_ALL: Final = "INSERT_OVERWRITE_TABLE"
_UNEXPECTED: Final = (
    f"write again, and set {keys.CONCURRENCY_MODE.name}={SEVERAL_WRITERS} and one {keys.LOCK_PROVIDER.name} for all "
    "writers if they are to run beside each other"
)


@attrs.frozen(kw_only=True)
class BasedOn:
    """
    What a write is based on, in addition to the timeline.

    Args:
        schema: Avro schema of the rows before this write; None if there were none.
        ids: Columns with their ids before this write; None without schema on read.
        by_bucket: Whether the table has a bucket index.
        by_condition: Whether the rows to change were found by a condition.
        may_hold: Which partitions that condition does not rule out; None for all.
        dropped: Partitions that the write drops.
        everywhere: Whether keys were looked up in all partitions, as with a global index.
        known_keys: What became of known keys, if an insert looked its keys up (`hudi_py.txn.touched.LOOKED_UP`).
        by_presence: Whether rows that were found kept others from being written, as in a merge that inserts.

    The commit repeats some of it for writers that are still running: `entries`.
    """

    schema: str | None
    ids: str | None = None
    by_bucket: bool = False
    by_condition: bool = False
    may_hold: Callable[[str], bool] | None = None
    dropped: Collection[str] = ()
    everywhere: bool = False
    known_keys: str = ""
    by_presence: bool = False

    @property
    def entries(self) -> dict[str, str]:
        """Entries of the commit that tell other writers what it read."""
        looked_up = {LOOKED_UP: self.known_keys} if self.known_keys else {}
        read = "condition" if self.by_condition else "keys of all partitions" if self.everywhere else ""
        return {**looked_up, READS_WIDELY: read} if read else looked_up


@attrs.frozen(kw_only=True)
class Rivals:
    """
    The other writers of a table, while ours writes.

    Args:
        concurrency: What counts as a conflict.
        contents: Contents of the timeline.
        table: Properties of the table that the write is based on.
        before: Timeline that it is based on, loaded after it began.
        based_on: What else it is based on.
        words: Entries of its commit in addition to its files.
        passed: Requested times of the writes of others that it was put onto; filled by `check`.
    """

    concurrency: Concurrency
    contents: Contents
    table: TableConfig
    before: Timeline
    based_on: BasedOn
    words: CommitWords
    passed: list[str] = attrs.field(factory=list)

    def settle(self, now: Timeline, instant: Instant, metadata: CommitMetadata) -> Mapping[str, str]:
        """
        Check that the write may complete; see `check`.

        Returns:
            Entries of its metadata that depend on the commits before it.

        Raises:
            ConflictError: As `check`; or another process has committed this write key.
        """
        # Conflicts first: a conflict is worth another attempt, and that attempt looks for the write key before it
        # writes anything.
        self.check(now, instant, metadata)
        if column_ids(self.contents, now) != self.based_on.ids:  # the files would be taken to have other columns
            raise ConflictError(
                f"{self.contents.store.storage.root}: {instant} was not committed, because the columns of the table "
                "were changed at this moment; write again"
            )
        if self.words.committed_before(now, self.contents) is not None:
            raise ConflictError(
                f"{self.contents.store.storage.root}: another process has committed the write key of {instant}, or a "
                "later version of it, at this moment; nothing was committed, look at the newest commit"
            )
        return self.words.entries(instant.requested_time, now, self.contents)

    def check(self, now: Timeline, instant: Instant, metadata: CommitMetadata) -> None:
        """
        Raise if another writer is in the way.

        Where only one is expected, nothing is read unless the timeline shows another one after all: a job that was
        left out when a lock was set up, or a repair by hand. Without this look the rows of one of them were lost.

        Args:
            now: The timeline, loaded under the lock.
            instant: Our inflight write.
            metadata: What it is about to complete with.

        Raises:
            ConflictError: The write has to be done again on the current state.
            CorruptMetadata: A commit since it began is damaged.
        """
        for reason in self._reasons(now, instant, metadata):
            raise ConflictError(
                f"{self.contents.store.storage.root}: {instant} was not committed, because another writer was faster: "
                f"{reason}; {'write again' if self.concurrency.is_shared else _UNEXPECTED}"
            )

    def _reasons(self, now: Timeline, instant: Instant, metadata: CommitMetadata) -> Iterator[str]:
        """Reasons not to complete, found one after another; those that cost a request come last."""
        scope = Scope(
            before=self.before,
            now=now,
            strategy=self.concurrency.strategy,
            slices_by_completion=not self.table.format.log_naming.tells_slice,
        )
        # In order of cost: the timeline alone, then the metadata of other commits, then a request for the properties.
        for restore in now.pending(Action.RESTORE):
            yield f"{restore} takes the table back"
        undone = scope.undone()
        if undone is not None:
            yield f"{undone} was undone, and this write may be based on it"
        archived_meanwhile = scope.archived_meanwhile()
        if archived_meanwhile is not None:
            yield f"{archived_meanwhile} is archived, so it is unknown what it changed"
        candidates = scope.candidates(instant, kind_of(metadata))
        if not self.concurrency.is_shared:
            candidates = tuple(each for each in candidates if scope.is_new(each))
            if not candidates:
                return
        others = list(read_others(self.contents, candidates))
        ours = attrs.evolve(touched_by(instant, metadata), reads=self._reads(metadata))
        # With buckets, a new file group of another writer may be that of the same bucket under another id.
        by_bucket = self.based_on.by_bucket or self.concurrency.strategy is Strategy.BUCKETS
        touched = (other.touched for other in others)
        conflict = scope.first_conflict(ours, touched, self.concurrency.isolation, by_bucket=by_bucket)
        if conflict is not None:
            yield str(conflict)
        for other in others:
            if other.schema is not None and self._is_other_schema(other.schema, metadata):
                yield f"{other.touched.instant} changed the columns of the table"
            if other.schema is not None and self._is_hidden_by(other, instant, metadata):
                yield f"{other.touched.instant} was requested later, so its columns would count, and not the new ones"
        yield from self._properties_changed()
        self.passed.extend(each.requested_time for each in candidates if each.is_completed and scope.is_new(each))

    def _reads(self, metadata: CommitMetadata) -> Reads:
        """
        What the write read. Without a global index every key that it found or added is in a partition that it wrote to.

        Deletes of absent keys write nothing, so where the order of the timeline counts they read all partitions.
        """
        based_on = self.based_on
        found_in = None if based_on.by_presence else frozenset[str]()
        # An insert looks for no keys, so no other write can change what it found.
        if kind_of(metadata) is Kind.APPEND:
            return Reads()
        if based_on.by_condition or metadata.operation_type == _ALL:
            by_condition = based_on.by_condition
            return Reads(partitions=None, may_hold=based_on.may_hold, by_condition=by_condition, found_in=found_in)
        if based_on.everywhere:  # another write may have added the same key to any partition
            return Reads(partitions=None, found_in=found_in)
        text = metadata.extra_metadata.get("schema") or ""
        deletes = metadata.operation_type == "DELETE" or _DELETED_COLUMN in text
        if deletes and self.concurrency.isolation is Isolation.SERIALIZABLE:
            return Reads(partitions=None)
        replaced = metadata.partition_to_replace_file_ids or {}
        dropped = self.based_on.dropped if metadata.operation_type == DELETE_PARTITION else ()
        read = frozenset({*metadata.partition_to_write_stats, *replaced, *dropped})
        return Reads(partitions=read, found_in=found_in)

    def _is_other_schema(self, theirs: str, metadata: CommitMetadata) -> bool:
        """Whether another write left columns that are neither those we found nor those that we leave."""
        ours = metadata.extra_metadata.get("schema")
        if theirs in (ours, self.based_on.schema):
            return False
        known = {text for text in (ours, self.based_on.schema) if text}
        # Parsed before they are compared, because the same columns can be written as different texts.
        columns = parse_record_schema(theirs)
        return all(parse_record_schema(text) != columns for text in known)

    def _is_hidden_by(self, other: Other, instant: Instant, metadata: CommitMetadata) -> bool:
        """Whether the columns that ours leaves would not be seen: readers take those of the last requested write."""
        ours = metadata.extra_metadata.get("schema")
        if other.schema == ours or other.touched.instant.requested_time < instant.requested_time or not ours:
            return False
        return parse_record_schema(other.schema or "") != parse_record_schema(ours)

    def _properties_changed(self) -> Iterator[str]:
        """Whether the table was upgraded or its properties were changed, but for `_OTHERS_MAY_CHANGE`."""
        now = _compared(read_table_config(self.contents.store.storage).properties)
        then = _compared(self.table.properties)
        for name in sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name)):
            yield f"{name} of the table was changed from {then.get(name)!r} to {now.get(name)!r}"


def _compared(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text
        for name, text in properties.items()
        if not name.startswith(_OTHERS_MAY_CHANGE) and name not in _NOT_COMPARED
    }
