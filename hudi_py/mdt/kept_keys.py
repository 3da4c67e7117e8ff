"""
Computes the records that an action owes to the indexes of keys, `record_index` and `bloom_filters`.

A key's record in `record_index` changes when its row is added to a file group, or leaves one. What a compaction merges
stays where it is. A key that leaves a group, and that the index finds in another one, keeps its record: it was written
twice, and one of its rows is there still. Apache Hudi deletes the record.

Source: rules/data-files 11.3; Hudi 1.0.2, 1.1.1 ``BaseFileRecordParsingUtils``,
``HoodieTableMetadataUtil.convertMetadataToRecordIndexRecords``, ``convertMetadataToBloomFilterRecords``;
``HoodieBackedTableMetadataWriter.getRecordIndexAdditionalUpserts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from hudi_py.errors import NotFound, RefusedError
from hudi_py.mdt.bloom_filters import encode_filter
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.record_index import RecordIndex, RecordLocation, encode_location, refuse_long_keys
from hudi_py.mdt.statistics import key_suffix
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import BaseFile, join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import instant_epoch_ms
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.rows.file_keys import difference, keys_of_base_file, keys_of_log_file, texts
from hudi_py.rows.lookup import read_footer
from hudi_py.rows.written import NO_KEYS, KeyChanges
from hudi_py.storage.base import Storage
from hudi_py.timeline.timeline import Timeline

TrackedKeys = Mapping[str, KeyChanges]
"""Path of a file to what its writer gathered; of files that are missing the keys are read."""

_CLUSTER: Final = "CLUSTER"
_COMPACTIONS: Final = ("COMPACT", "LOG_COMPACT")


@attrs.frozen(kw_only=True)
class KeptRecordIndex:
    """
    The record index of one table, at one moment.

    Args:
        storage: Storage of the data table.
        table: The metadata table.
        timeline: Timeline of the data table; the action is pending there.
    """

    storage: Storage
    table: MetadataTable
    timeline: Timeline

    def of_commit(self, instant: Instant, metadata: CommitMetadata, tracked: TrackedKeys) -> dict[str, bytes | None]:
        """
        Return the records that a commit owes.

        Args:
            instant: The commit.
            metadata: Metadata of the commit.
            tracked: See `TrackedKeys`.

        Raises:
            CorruptMetadata: A file does not decode.
            RefusedError: The commit writes new rows of one key to several file groups (Apache Hudi refuses it, too), or
                a key for which the index has no room.
            UnsupportedTable: The index is of a form that is not known.
        """
        # The file group stays the same, and a record names the group, not the file.
        if metadata.compacted or metadata.operation_type in _COMPACTIONS:
            return {}
        come: dict[str, tuple[str, str]] = {}
        rewritten: dict[str, tuple[str, str]] = {}
        twice: set[str] = set()  # of the rewritten ones
        gone: dict[str, set[tuple[str, str]]] = {}
        is_clustering = metadata.operation_type == _CLUSTER
        for path, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                if stat.path is None:
                    continue
                keys = tracked.get(stat.path) or self._keys_of(path, stat)
                at = (path, stat.file_id or "")
                # The keys of a base file were compared with the file before, so they are new there. A log file does not
                # tell updates from inserts: the index has to be asked.
                new = dict.fromkeys(texts(keys.written), at)
                if stat.log_version is not None:
                    twice.update(key for key in rewritten.keys() & new if rewritten[key] != at)
                    rewritten.update(new)
                else:
                    if not is_clustering:
                        self._refuse_again(key for key in come.keys() & new if come[key] != at)
                    come.update(new)
                for key in texts(keys.deleted):
                    gone.setdefault(key, set()).add(at)
        # A clustering writes all rows of the groups that it replaces again, so each key comes elsewhere anyway.
        if not is_clustering:
            for key, at in self._replaced(metadata):
                gone.setdefault(key, set()).add(at)
        return self._encoded(instant, come, rewritten, twice, gone)

    def _encoded(
        self,
        instant: Instant,
        come: dict[str, tuple[str, str]],
        rewritten: dict[str, tuple[str, str]],
        twice: set[str],
        gone: dict[str, set[tuple[str, str]]],
    ) -> dict[str, bytes | None]:
        """
        Args:
            come: Key to the place of a row that is new there.
            rewritten: Key to the place of a row that may have been there before.
            twice: Those of them that are written to several places.
            gone: Key to the places that do not hold its row any more.
        """
        # Keys that come need no look-up: their record is written whatever it says now.
        asked = (rewritten.keys() | gone.keys()) - come.keys()
        known: dict[str, RecordLocation] = {}
        if asked:
            with RecordIndex(self.table, self.timeline) as index:
                known = index.locations(asked)
        # Rows that several inserts wrote are updated at each place; rows of an unknown key are new at each.
        self._refuse_again(twice - known.keys() - come.keys())
        for key, at in rewritten.items():
            # An update that stays in its group owes nothing: most of the rows of most updates.
            if key not in known or known[key][:2] != at:
                come.setdefault(key, at)
        refuse_long_keys(come, self.storage.root)
        encoded = dict(zip(come, self._values(instant, come.values()), strict=True))
        found: dict[str, bytes | None] = {**encoded}
        for key, places in gone.items():
            # A key that moved to another group in this or a later write is not deleted, though it left this group.
            if key not in come and key in known and known[key][:2] in places:
                found[key] = None
        return found

    def _refuse_again(self, keys: Iterable[str]) -> None:
        """Raise if there is one: the other row would be out of reach for updates and deletes that ask the index."""
        key = min(keys, default=None)
        if key is not None:
            raise RefusedError(
                f"{self.storage.root}: the rows hold the key {key!r} several times, for several file groups, and the "
                "record index of the metadata table knows one place for each key; nothing was committed. Give each key "
                "once, or write without hoodie.metadata.enable, which drops the index"
            )

    def _values(self, instant: Instant, places: Iterable[tuple[str, str]]) -> Iterator[bytes]:
        instant_ms = instant_epoch_ms(instant.requested_time, self.table.store.zone)
        known: dict[tuple[str, str], bytes] = {}
        for at in places:
            if at not in known:
                known[at] = encode_location(RecordLocation(*at, instant_ms), self.table.table_version)
            yield known[at]

    def _keys_of(self, path: str, stat: WriteStat) -> KeyChanges:
        """Compare a base file with the one before it, as Apache Hudi does; read a log file."""
        assert stat.path is not None
        if stat.log_version is not None:
            return keys_of_log_file(self.storage, stat.path)
        keys = keys_of_base_file(self.storage, stat.path)
        if not stat.prev_base_file:
            return KeyChanges(keys, NO_KEYS)
        before = keys_of_base_file(self.storage, join_path(path, stat.prev_base_file))
        return KeyChanges(difference(keys, before), difference(before, keys))

    def _replaced(self, metadata: CommitMetadata) -> Iterator[tuple[str, tuple[str, str]]]:
        """Keys that may have a row in the file groups that a commit replaces, with their places."""
        pending = {instant.requested_time for instant in self.timeline.pending()}
        for path, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            wanted = set(file_ids)
            newest: dict[str, BaseFile] = {}
            for entry in self.storage.list(path) if wanted else ():
                base, log = parse_base_file(entry.name), parse_log_file(entry.name)
                if base is not None and base.file_id in wanted and base.instant_time not in pending:
                    # The newest alone: keys that only older ones hold were deleted or moved since.
                    newest[base.file_id] = max(base, newest.get(base.file_id, base), key=lambda each: each.instant_time)
                elif log is not None and log.file_id in wanted and not log.is_cdc:
                    written = keys_of_log_file(self.storage, join_path(path, entry.name)).written
                    yield from ((key, (path, log.file_id)) for key in texts(written))
            for file_id, base in newest.items():
                keys = keys_of_base_file(self.storage, join_path(path, base.name))
                yield from ((key, (path, file_id)) for key in texts(keys))


def bloom_records(
    storage: Storage, table_version: int, instant_time: str, changes: ListingChanges
) -> dict[str, bytes | None]:
    """
    Return the records of `bloom_filters` that an action owes: the filters of its base files, and tombstones.

    Args:
        storage: Storage of the data table.
        table_version: Version of the metadata table.
        instant_time: Requested time of the action.
        changes: What it did.

    Raises:
        CorruptMetadata: A base file does not parse.
    """
    found: dict[str, bytes | None] = {}
    for path, names in changes.deleted.items():
        for name in (each.rpartition("/")[2] for each in names):
            if parse_base_file(name) is not None:
                found[key_suffix(path, name)] = encode_filter(None, None, instant_time, table_version)
    for path, sizes in changes.added.items():
        for name in sizes:
            if parse_base_file(name) is None:
                continue
            try:
                with storage.open_read(join_path(path, name)) as stream:
                    footer = read_footer(stream)
            except NotFound:  # deleted since; whoever deleted it records that
                continue
            if footer.bloom_text is not None:
                key = key_suffix(path, name)
                found[key] = encode_filter(footer.bloom_text, footer.bloom_type, instant_time, table_version)
    return found
