"""
Global indexes: a key is looked for in all partitions of the table, because it has one row in all of them together.

A row whose key lies in another partition either stays where it is, with the new values (a record index by default), or
moves: its old row is deleted and the new one inserted, in one commit. A row that loses against the stored one by
ordering values moves nothing.

Rows of any partition may meet the same stored row, so all rows of a key are placed together: in a small write all rows
in one task, beyond the memory the rows of some keys at a time (`hudi_py.local.placed`).

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``HoodieIndexUtils.tagGlobalLocationBackToRecords``,
``mergeForPartitionUpdatesIfNeeded``, ``HoodieGlobalSimpleIndex``, ``HoodieGlobalBloomIndex``,
``SparkMetadataTableRecordIndex``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config import keys as settings_keys
from hudi_py.config.duplicates import Duplicates
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConflictError, CorruptMetadata, HudiError, NotFound
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.stored_values import as_hudi_reads, conform_given
from hudi_py.fsview.listing import walk_partitions
from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.mdt.record_index import RecordIndex, is_between_states
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import FileSlice, join_path
from hudi_py.rows.file_keys import texts
from hudi_py.rows.log_reading import log_reading
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.rows.lookup import open_base_file
from hudi_py.rows.merge import key_deletes
from hudi_py.rows.precedence import combine_before_write, delete_mask, incoming_wins, refuse_null_ordering
from hudi_py.rows.slice_reader import read_slices
from hudi_py.rows.stored_keys import KEY
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.duplicates import refuse_known
from hudi_py.writing.job import GlobalIndex, WriteJob
from hudi_py.writing.log_slices import deleted_in_logs
from hudi_py.writing.partition import PartitionFiles, load_partition
from hudi_py.writing.pieces import Piece

_Place = tuple[str, str]
"""Partition path and file id."""
_Places = Mapping[str, tuple[_Place, ...]]
"""Key to its places."""
_NOWHERE: Final = ("", "")


def global_index_of(settings: Settings, config: TableConfig) -> GlobalIndex | None:
    """
    Return the global index that the settings ask for; None for another index.

    A record index that the table does not have is replaced by a search of its files, as in Hudi.
    """
    name = settings[settings_keys.INDEX_TYPE]
    moves = _MOVES.get(name)
    if moves is None:
        return None
    is_kept = name not in _OF_FILES and RECORD_INDEX in config.metadata_partitions
    return GlobalIndex(
        in_record_index=is_kept,
        moves_rows=settings[moves],
        forgets_deleted=settings[moves] or config.format.forgets_deleted_keys,
    )


_OF_FILES: Final = ("GLOBAL_BLOOM", "GLOBAL_SIMPLE")
_MOVES: Final = {
    "GLOBAL_BLOOM": settings_keys.BLOOM_MOVES_ROWS,
    "GLOBAL_SIMPLE": settings_keys.SIMPLE_MOVES_ROWS,
    "RECORD_INDEX": settings_keys.RECORD_INDEX_MOVES_ROWS,
    "GLOBAL_RECORD_LEVEL_INDEX": settings_keys.RECORD_INDEX_MOVES_ROWS,
}


def placed_pieces(
    job: WriteJob, index: GlobalIndex, batches: Iterable[pa.RecordBatch], table: WrittenTable | None = None
) -> Iterator[Piece]:
    """
    Yield the rows of a write in the partitions where they have to go, with the file groups of their keys.

    Args:
        job: The write; it looks up keys.
        index: Its index.
        batches: All its rows, or all those of some keys, in order of arrival.
        table: The table, where it is asked for several times; what it has loaded is kept.

    Raises:
        WriteError: A row has no ordering value.
        ConflictError: Others have changed the table since the write began, and the record index tells of that.
        CorruptMetadata: A file, or the record index, is damaged.
        UnsupportedTable: A row moves away from log files that hudi_py does not read.
    """
    rows = _Rows.of(job, [batch for batch in batches if batch.num_rows])
    if rows is None:
        return
    table = table or WrittenTable(job)
    found = table.places(index, rows.keys)
    if job.duplicates is not Duplicates.ADDED:
        rows, found = rows.without(table.known(job, rows.keys, found)), {}
    # Several pairs of a row whose key has several rows: each of them is updated, deleted, or left behind.
    pairs = [(number, place) for number, key in enumerate(rows.keys) for place in found.get(key, (_NOWHERE,))]
    elsewhere = [place is not _NOWHERE and place[0] != rows.paths[number] for number, place in pairs]
    # A deletion stays where the key is found: it would delete nothing in another partition.
    moving = np.array(elsewhere, dtype=np.bool_) & index.moves_rows
    moving &= ~rows.are_deletes[[number for number, _ in pairs]]
    stays = [pair for pair, moves in zip(pairs, moving.tolist(), strict=True) if not moves]
    left = [pair for pair, moves in zip(pairs, moving.tolist(), strict=True) if moves]
    # Stored rows are read only for rows that move: those that stay are compared when their file is merged.
    if left:
        left = table.beaten(job, rows, left)
        # A row that moves is an insert in its new partition, under a new file group or an existing small one; unless
        # its key has a row there, too, which is updated.
        stays += [(number, _NOWHERE) for number in sorted({number for number, _ in left} - {each for each, _ in stays})]
    groups: dict[str, list[tuple[int, str]]] = {}
    for number, place in stays:
        if place is not _NOWHERE or not rows.are_deletes[number]:
            path = rows.paths[number] if place is _NOWHERE else place[0]
            groups.setdefault(path, []).append((number, place[1]))
    for path, rows_here in groups.items():
        yield rows.piece(path, *zip(*rows_here, strict=True))
    leaving: dict[str, list[tuple[int, str]]] = {}
    for number, place in left:
        leaving.setdefault(place[0], []).append((number, place[1]))
    for path, rows_here in leaving.items():
        gone: Array = pa.array([rows.keys[number] for number, _ in rows_here], pa.string())
        ids: Array = pa.array([file_id for _, file_id in rows_here], pa.string())
        yield Piece(path, key_deletes(gone, job.schema).rows, gone, are_deletions=True, file_ids=ids)


@attrs.frozen(kw_only=True)
class _Rows:
    """
    All rows of a write, one for each key.

    Args:
        rows: n rows in the storage schema; of a delete operation as they were given.
        keys: Their record keys.
        paths: Partitions that their values say.
        are_deletes: Shape (n,), which of them delete.
    """

    rows: pa.Table
    keys: list[str]
    paths: list[str]
    are_deletes: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, job: WriteJob, batches: Sequence[pa.RecordBatch]) -> _Rows | None:
        """Return rows as they came, which decides between rows of a key that order alike; None if there are none."""
        if not batches:
            return None
        conformed = batches if job.operation == "DELETE" else [conform_given(each, job.schema) for each in batches]
        rows = pa.Table.from_batches(conformed)
        keys: Any = pa.chunked_array([job.keys.record_keys(batch) for batch in batches], pa.string())
        paths = [path for batch in batches for path in texts(job.keys.partition_paths(batch))]
        deletes = None if job.operation == "DELETE" else delete_mask(rows)
        fields = () if job.operation == "DELETE" else job.rules.batch_fields
        if job.combines:
            refuse_null_ordering(rows, fields, deletes)
        mask = np.full(len(keys), job.operation == "DELETE", dtype=np.bool_)
        if deletes is not None:
            mask = deletes.to_numpy(zero_copy_only=False)
        found = cls(rows=rows, keys=texts(keys.combine_chunks()), paths=paths, are_deletes=mask)
        # An insert that only compares its keys with those of the table may have several rows of one.
        winners = combine_before_write(rows, keys, fields) if job.combines else None
        return found if winners is None else found._taken(winners.to_numpy())

    def without(self, mask: npt.NDArray[np.bool_]) -> _Rows:
        """Return the rows but those of a mask."""
        return self if not mask.any() else self._taken(np.flatnonzero(~mask))

    def piece(self, path: str, numbers: Sequence[int], file_ids: Sequence[str]) -> Piece:
        """Return some rows as a piece of a partition; an empty file id is that of a new key."""
        keys: Array = pa.array([self.keys[number] for number in numbers], pa.string())
        ids: Array = pa.array([file_id or None for file_id in file_ids], pa.string())
        batch = self.rows.take(pa.array(numbers, pa.int64())).combine_chunks().to_batches()
        return Piece(path, batch[0], keys, file_ids=ids)

    def _taken(self, numbers: npt.NDArray[np.int64]) -> _Rows:
        chosen = numbers.tolist()
        return _Rows(
            rows=self.rows.take(pa.array(numbers, pa.int64())),
            keys=[self.keys[number] for number in chosen],
            paths=[self.paths[number] for number in chosen],
            are_deletes=self.are_deletes[numbers],
        )


class WrittenTable:
    """The table that is written, its partitions loaded as they are asked for."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job
        self._loaded: dict[str, PartitionFiles] = {}

    def places(self, index: GlobalIndex, keys: Sequence[str]) -> _Places:
        """
        Return the places of each key that has one.

        Several, where inserts that look up no keys wrote a key more than once. The record index knows the last of them.
        """
        storage = self._job.storage
        config = read_table_config(storage)
        # This write itself has dropped the metadata table if its settings say so.
        if not index.in_record_index or RECORD_INDEX not in config.metadata_partitions:
            return self._searched(index, keys)
        timeline = TimelineStore(storage, config).load()
        if is_between_states(timeline):
            return self._searched(index, keys)
        looked_up = self._looked_up(timeline, keys)
        if looked_up is None:
            return self._searched(index, keys)
        found = {key: (location,) for key, location in looked_up.items()}
        # Checked before anything is written: an index that names a missing group would send rows to nowhere.
        for place in {place for places in found.values() for place in places}:
            if place[1] not in self.partition(place[0]).file_ids:
                raise self._unknown(place)
        return found

    def _looked_up(self, timeline: Timeline, keys: Sequence[str]) -> dict[str, _Place] | None:
        """
        Return the place of each key that the record index knows; None if it was dropped meanwhile.

        Raises:
            ConflictError: Others changed the metadata table meanwhile, as by making the index again.
            CorruptMetadata, NotFound: A file of it is damaged or missing.
        """
        storage = self._job.storage
        table = MetadataTable(storage)
        metadata = table.store.load()
        try:
            with RecordIndex(table, timeline, metadata) as record_index:
                return {key: location[:2] for key, location in record_index.locations(keys).items()}
        except (CorruptMetadata, NotFound) as error:
            # Only now, for it costs requests: nobody is kept from dropping an index while a write reads it.
            if RECORD_INDEX not in read_table_config(storage).metadata_partitions:
                return None
            if table.store.load().instants == metadata.instants:
                raise
            raise ConflictError(
                f"{storage.root}: another process changed the record index while this write looked its keys up; write "
                f"again ({error})"
            ) from error

    def _unknown(self, place: _Place) -> HudiError:
        """
        Return the error about a file group that the index names and this write does not know.

        The index tells of the present, and the write is based on the table as it was when it began: if others have
        committed since, nothing is damaged.
        """
        storage, (path, file_id) = self._job.storage, place
        what = f"the record index of the metadata table knows rows in file group {file_id} of partition {path!r}"
        # Read only now, because commits may have come after the index was opened.
        writes = TimelineStore(storage, read_table_config(storage)).load().writes
        since = {each.requested_time for each in writes.completed()} - self._job.context.completed_times
        if since:
            return ConflictError(
                f"{storage.root}: another writer has changed the table while this write looked its keys up: {what}, "
                f"which is not in the table that it is based on ({max(since)} has completed since); write again"
            )
        return CorruptMetadata(
            f"{storage.root}: {what}, which has no such group; nothing was written; hudi-py check compares the index "
            "with the files, and hoodie.metadata.enable=false drops it"
        )

    def _searched(self, index: GlobalIndex, keys: Sequence[str]) -> _Places:
        found: dict[str, list[_Place]] = {}
        wanted: Array = pa.array(keys, pa.string())
        for path, _ in walk_partitions(self._job.storage):
            partition = self.partition(path)
            owners = partition.owners_of(self._job.storage, wanted)
            first = np.flatnonzero(owners.first >= 0)
            numbers = np.concatenate([first, owners.again[0]]).tolist()
            for number, owner in zip(numbers, [*owners.first[first].tolist(), *owners.again[1].tolist()], strict=True):
                found.setdefault(keys[number], []).append((path, partition.file_ids[owner]))
        # A key stays in its base file until a compaction, so log files may have deleted it in some groups, or in all.
        asked = {place for places in found.values() if index.forgets_deleted or len(places) > 1 for place in places}
        gone = {place: self._deleted(place) for place in asked}
        lives: dict[str, tuple[_Place, ...]] = {}
        for key, places in found.items():
            living = tuple(place for place in places if key not in gone.get(place, ()))
            if living or not index.forgets_deleted:
                lives[key] = living or (places[0],)
        return lives

    def _deleted(self, place: _Place) -> set[str]:
        """Keys that log files delete: those of rows that moved away are in the base file until a compaction."""
        path, file_id = place
        logs = self.partition(path).logs.get(file_id)
        return set() if logs is None else deleted_in_logs(self._job.storage, path, logs)

    def known(self, job: WriteJob, keys: Sequence[str], found: _Places) -> npt.NDArray[np.bool_]:
        """Return which keys of an insert have a row; raises `WriteError` if the settings forbid that."""
        gone = {place: self._deleted(place) for place in {each for places in found.values() for each in places}}
        known = [any(key not in gone[place] for place in found.get(key, ())) for key in keys]
        refuse_known(job, [key for key, is_known in zip(keys, known, strict=True) if is_known][:1], sum(known))
        return np.array(known, dtype=np.bool_)

    def beaten(self, job: WriteJob, rows: _Rows, pairs: Sequence[tuple[int, _Place]]) -> list[tuple[int, _Place]]:
        """Return those of the pairs whose row wins against all stored ones at its place."""
        fields = job.rules.stored_fields
        by_place: dict[_Place, list[int]] = {}
        for number, place in pairs if fields else ():
            by_place.setdefault(place, []).append(number)
        losing: set[tuple[int, _Place]] = set()
        for place, numbers in by_place.items():
            stored = self._stored(place, fields)
            keys: Any = pa.array([rows.keys[number] for number in numbers], pa.string())
            met: Any = compute.index_in(stored.column(KEY).combine_chunks(), value_set=keys)
            mine = np.array(numbers)[met.drop_null().to_numpy()]
            taken: Any = pa.array(mine, pa.int64())
            new: list[Any] = [rows.rows.column(name).take(taken).combine_chunks() for name in fields]
            old: list[Any] = [
                # The write may promote a column, whose type in the old file is narrower.
                as_hudi_reads(stored.column(name).filter(met.is_valid()).combine_chunks(), each.type, name)
                for name, each in zip(fields, new, strict=True)
            ]
            losing |= {(number, place) for number in mine[~incoming_wins(new, old)].tolist()}
        return [pair for pair in pairs if pair not in losing]

    def _stored(self, place: _Place, fields: Sequence[str]) -> pa.Table:
        """Return keys and ordering values of a file group, its log files merged."""
        path, file_id = place
        job, partition = self._job, self.partition(path)
        base, logs = partition.latest.get(file_id), partition.logs.get(file_id)
        columns = pa.schema([pa.field(KEY, pa.string()), *(job.schema.field(name) for name in fields)])
        if logs is None or not logs.behind:
            if base is None:
                return columns.empty_table()
            with job.storage.open_read(join_path(path, base.name)) as stream:
                rows: pa.Table = open_base_file(stream, columns).read(columns=columns.names)
                return rows
        rules = log_rules_of(read_table_config(job.storage).properties, job.storage.root)
        reading = log_reading(rules, logs.completed, None, job.schema, job.storage.root)
        whole = FileSlice(
            partition_path=path,
            file_id=file_id,
            base_instant_time=logs.file_slice.base_instant_time,
            base_file=base,
            log_files=logs.behind,
        )
        return pa.Table.from_batches(read_slices(job.storage, [whole], columns, reading), columns)

    def partition(self, path: str) -> PartitionFiles:
        """Return a partition before the write."""
        if path not in self._loaded:
            # Kept, because a write with several parts asks for each partition again and again.
            self._loaded[path] = load_partition(self._job, path)
        return self._loaded[path]
