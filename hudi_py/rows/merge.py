"""
Rewrites one base file with the changes of a commit.

Rows keep their order: an updated row takes the place of the old one, inserted rows follow at the end. A row that is
only copied keeps all its meta columns except the file name. Memory: the changes of this file group, the keys of one row
group, one batch of rows and one row group of the new file; neither the old file nor rows known to be new are held.

Source: Hudi 0.15.0, 1.0.2, 1.1.1: ``HoodieMergeHandle``, ``HoodieMergeHelper``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.bloom import BloomFilter
from hudi_py.formats.conform import refuse_null_elements
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import meta_fields
from hudi_py.formats.renamed import renamed_batch
from hudi_py.formats.stored_values import conform_stored
from hudi_py.model.files import BaseFile
from hudi_py.rows.base_file import BaseFileOptions, BaseFileWriter
from hudi_py.rows.change_log_file import ChangeLogEncoder
from hudi_py.rows.lookup import footer_of, open_base_file
from hudi_py.rows.precedence import MergeRules, combine_before_write, incoming_wins, refuse_null_ordering
from hudi_py.rows.written import NO_KEYS, FileTarget, KeyChanges, WrittenFile, of_their_own, written_file
from hudi_py.runtime.clock import MONOTONIC, Seconds

_BATCH_ROWS: Final = 65_536
_KEY, _COMMIT_TIME, _SEQUENCE_NUMBER = (
    META_COLUMNS.index(name) for name in ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno")
)


@attrs.frozen(eq=False)
class RowChanges:
    """
    The changes of a commit to one file group: n rows, at most one per key.

    Args:
        rows: Rows in the storage schema, without meta columns, as a single batch.
        keys: Their record keys.
        deletes: Booleans without nulls, True where the row is a delete; None if no row is. For a delete only the key
            and the ordering fields matter.
    """

    rows: pa.RecordBatch
    keys: Array
    deletes: Array | None = None

    @property
    def has_deletes(self) -> bool:
        """Whether a row is a delete."""
        return self.deletes is not None and bool(compute.any(self.deletes).as_py())


def key_deletes(keys: Array, schema: pa.Schema) -> RowChanges:
    """
    Return the changes that delete records by key alone.

    Args:
        keys: Distinct record keys.
        schema: Storage schema of the commit. All columns are null: without an ordering value a delete always wins.
    """
    nulls: Any = [pa.nulls(len(keys), field.type) for field in schema]
    deletes: Array = pa.array(np.ones(len(keys), dtype=np.bool_))
    return RowChanges(pa.RecordBatch.from_arrays(nulls, schema=schema), keys, deletes)


def combine_changes(rows: pa.Table, keys: Array, rules: MergeRules, deletes: Array | None = None) -> RowChanges:
    """
    Check and deduplicate rows of one file group (or of one partition).

    Args:
        rows: Rows in the storage schema, in order of arrival.
        keys: Their record keys.
        rules: The table's rules.
        deletes: As in `RowChanges`.

    Raises:
        WriteError: A row that is not a delete has no ordering value, or a list has a null element.
    """
    refuse_null_ordering(rows, rules.batch_fields, deletes)
    winners = combine_before_write(rows, keys, rules.batch_fields)
    if winners is not None:
        rows, keys = rows.take(winners), keys.take(winners)
        deletes = None if deletes is None else deletes.take(winners)
    columns: Any = [_flat(column) for column in rows.columns]
    batch = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    # Of a delete only the key and the ordering fields are used, so its other columns may hold anything.
    refuse_null_elements(batch if deletes is None else batch.filter(compute.invert(deletes)))
    return RowChanges(batch, keys, deletes)


def merge_base_file(
    source: BinaryIO,
    previous: BaseFile,
    changes: RowChanges,
    *,
    sink: BinaryIO,
    target: FileTarget,
    avro_schema: str,
    rules: MergeRules,
    options: BaseFileOptions,
    first_row_index: int = 0,
    append_only: bool = False,
    change_log: ChangeLogEncoder | None = None,
    new: Iterable[tuple[pa.RecordBatch, Array]] = (),
    monotonic: Seconds = MONOTONIC,
) -> WrittenFile:
    """
    Write the next slice of a file group: the rows of *source* with *changes* applied, then *new* rows.

    Args:
        source: Seekable stream of the old base file, written by hudi_py or by Hudi; closed by the caller.
        previous: The old base file, with where its columns are today.
        changes: The file group's changes. Rows whose key the old file lacks are inserted, deletes of such keys ignored.
        sink: Stream of the new file; closed by the caller, see `BaseFileWriter`.
        target: Names the new file.
        avro_schema: Record schema of the commit, without meta columns; the old file may lack its newer columns.
        rules: The table's rules.
        options: Layout of the new file.
        first_row_index: See `BaseFileWriter`.
        append_only: Add all rows at the end without looking for their keys, as an insert does (its duplicates stay).
        change_log: Takes each single change; None if the table has no change data capture.
        new: Rows in the schema of *changes* and their keys, none of which the old file or *changes* have, or which are
            added all the same; consumed one batch at a time.
        monotonic: Clock in seconds.

    Returns:
        Counts and size. After a crash the old slice is unchanged, and the new file has no completed instant.

    Raises:
        WriteError: A stored value does not fit the schema, or a list of a new row holds a null element.
        CorruptMetadata: The old file is not a base file.
    """
    started = monotonic()
    schema = changes.rows.schema
    stored_schema = pa.schema([*meta_fields(), *schema])
    # A column whose name is damaged would be rewritten as nulls.
    file = open_base_file(source, stored_schema)
    known = None if changes.has_deletes else _known_keys(file, options)
    writer = BaseFileWriter(sink, target, schema, avro_schema, options, first_row_index, known)
    try:
        merge = _Merge(changes, rules, writer, change_log, tracks_keys=options.tracks_keys)
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            nowhere = np.full(count if append_only else 0, -1, dtype=np.int64)
            places = nowhere if append_only else merge.places(_stored_keys(file, group, previous))
            start = 0
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group]):
                rows = batch if previous.moved is None else renamed_batch(batch, previous.moved)
                merge.copy(conform_stored(rows, stored_schema), places[start : start + batch.num_rows])
                start += batch.num_rows
        # At the end, because only now all stored keys have been seen.
        merge.insert_rest()
        for rows, keys in new:
            merge.insert(rows, keys)
        size_bytes = writer.close()
    except BaseException:
        # Without a footer no reader takes the file for a whole one, and its marker leads the rollback to it.
        writer.abandon()
        raise
    return written_file(
        target,
        rows=writer.num_rows,
        size_bytes=size_bytes,
        elapsed_ms=round((monotonic() - started) * 1000),
        previous=previous,
        inserted=merge.inserted,
        updated=merge.updated,
        deleted=merge.deleted,
        ranges=writer.ranges(),
        keys=merge.key_changes() if options.tracks_keys else None,
    )


def _known_keys(file: Any, options: BaseFileOptions) -> BloomFilter | None:
    """The filter of the old file where the new one, which has all its rows, can go on with it."""
    try:
        bloom = footer_of(file).bloom()
    except HudiError:  # nothing of it is needed
        return None
    return None if bloom is None else bloom.carried_on(options.bloom, file.metadata.num_rows)


class _Merge:
    """State of one merge: the changes that have met a stored row, and the counts."""

    def __init__(
        self,
        changes: RowChanges,
        rules: MergeRules,
        writer: BaseFileWriter,
        change_log: ChangeLogEncoder | None,
        *,
        tracks_keys: bool,
    ) -> None:
        self.inserted = 0
        self.updated = 0
        self.deleted = 0
        self._changes = changes
        self._fields = rules.stored_fields
        self._writer = writer
        self._change_log = change_log
        self._new_keys: list[Array] | None = [] if tracks_keys else None
        self._met = np.zeros(len(changes.keys), dtype=np.bool_)
        self._dropped = np.zeros(len(changes.keys), dtype=np.bool_)
        if changes.deletes is None:
            self._is_delete = np.zeros(len(changes.keys), dtype=np.bool_)
        else:
            self._is_delete = changes.deletes.to_numpy(zero_copy_only=False)

    def places(self, stored_keys: Array) -> npt.NDArray[np.int64]:
        """Return the change that meets each stored row, -1 where none does."""
        found: Any = compute.index_in(stored_keys, value_set=self._changes.keys)
        places: npt.NDArray[np.int64] = found.fill_null(-1).to_numpy().astype(np.int64)
        # Also for a change that loses against its stored row: it must not be inserted at the end as if its key were
        # new.
        self._met[places[places >= 0]] = True
        return places

    def copy(self, stored: pa.RecordBatch, places: npt.NDArray[np.int64]) -> None:
        """Write stored rows, replaced or dropped where a change wins."""
        writer = self._writer
        replaced = places >= 0
        if replaced.any():
            # Only rows that meet a change are compared; the assignment through the mask leaves the others as they are.
            replaced[replaced] = self._wins(stored, replaced, places)
            # Before deleted rows are filtered out, because the change log needs their last values.
            self._log_changes(stored, replaced, places)
            dropped = replaced & self._is_delete[places]
            if dropped.any():
                kept = ~dropped
                self._dropped[places[dropped]] = True
                stored, places, replaced = stored.filter(pa.array(kept)), places[kept], replaced[kept]
                self.deleted += int(dropped.sum())
        columns: list[Any] = list(stored.columns)
        updates = int(replaced.sum())
        if updates:
            self.updated += updates
            fresh = pa.array(replaced)
            count = stored.num_rows
            sequence_numbers = writer.sequence_numbers(count)
            # A copied row keeps the time of its own commit, or incremental reads would return it again.
            columns[_COMMIT_TIME] = compute.if_else(fresh, writer.target.instant_time, columns[_COMMIT_TIME])
            columns[_SEQUENCE_NUMBER] = compute.if_else(fresh, sequence_numbers, columns[_SEQUENCE_NUMBER])
            used = _numbers(places[replaced])
            # Old and new rows are put into one array, and each row is taken from it by its number: Arrow arrays
            # cannot be changed in place.
            origins = np.arange(count)
            origins[replaced] = np.arange(count, count + updates)
            for index, new in enumerate(self._changes.rows.columns, start=len(META_COLUMNS)):
                columns[index] = pa.concat_arrays([columns[index], new.take(used)]).take(_numbers(origins))
        rows = pa.RecordBatch.from_arrays(columns[len(META_COLUMNS) :], schema=self._changes.rows.schema)
        writer.write_rows(rows, columns[_KEY], columns[_COMMIT_TIME], columns[_SEQUENCE_NUMBER])

    def insert_rest(self) -> None:
        """Write the changes that met no stored row; deletes among them are dropped."""
        rest = _numbers(np.flatnonzero(~self._met & ~self._is_delete))
        self.insert(self._changes.rows.take(rest), self._changes.keys.take(rest))

    def insert(self, rows: pa.RecordBatch, keys: Array) -> None:
        """Write new rows at the end."""
        self._writer.write_new(rows, keys)
        if self._change_log is not None:
            self._change_log.add("i", keys, None, rows)
        self.inserted += len(keys)
        if self._new_keys is not None:
            self._new_keys.append(of_their_own(keys))

    def key_changes(self) -> KeyChanges:
        """Return which keys came and went."""
        # Updated keys stay where they are, so the record index need not hear of them.
        written = pa.concat_arrays([NO_KEYS, *(self._new_keys or ())])
        return KeyChanges(written, self._changes.keys.take(_numbers(np.flatnonzero(self._dropped))))

    def _log_changes(self, stored: pa.RecordBatch, won: npt.NDArray[np.bool_], places: npt.NDArray[np.int64]) -> None:
        """Pass on the stored rows against which a change *won*, and what becomes of them."""
        if self._change_log is None:
            return
        rows = self._changes.rows
        before = pa.RecordBatch.from_arrays(list(stored.columns)[len(META_COLUMNS) :], schema=rows.schema)
        for operation, chosen in (("u", won & ~self._is_delete[places]), ("d", won & self._is_delete[places])):
            old, new = _numbers(np.flatnonzero(chosen)), _numbers(places[chosen])
            after = rows.take(new) if operation == "u" else None
            self._change_log.add(operation, self._changes.keys.take(new), before.take(old), after)

    def _wins(
        self, stored: pa.RecordBatch, met: npt.NDArray[np.bool_], places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Decide for each stored row that meets a change whether the change wins."""
        # Without ordering fields the later commit wins.
        if not self._fields:
            return np.ones(int(met.sum()), dtype=np.bool_)
        rows, chosen = _numbers(np.flatnonzero(met)), _numbers(places[met])
        new: list[Array] = [self._changes.rows.column(name).take(chosen) for name in self._fields]
        old: list[Array] = [stored.column(name).take(rows) for name in self._fields]
        return incoming_wins(new, old)


def _stored_keys(file: Any, group: int, previous: BaseFile) -> Array:
    try:
        keys = file.read_row_group(group, columns=["_hoodie_record_key"]).column(0)
    except IndexError as error:
        raise CorruptMetadata(f"{previous.name} has no column _hoodie_record_key; it is not a base file") from error
    return _flat(keys)


def _numbers(rows: npt.NDArray[Any]) -> Array:
    """Row numbers, for ``take``."""
    numbers: Array = pa.array(rows, pa.int64())
    return numbers


def _flat(column: Any) -> Array:
    """One array out of a chunked one, without copying when it has a single chunk."""
    flat: Array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return flat
