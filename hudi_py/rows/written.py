"""The stat that a commit records for a written base file. Pure. Source: rules/data-files 8."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.model.files import BaseFile, format_base_file, join_path
from hudi_py.model.records import RuntimeStats, WriteStat
from hudi_py.rows.column_ranges import ColumnRange


@attrs.frozen(kw_only=True)
class FileTarget:
    """
    The name and place of a base file to write.

    Args:
        partition_path: Relative path, ``""`` without partitions.
        file_id: The group's file id.
        write_token: ``<task partition id>-<stage id>-<attempt id>``; differs between attempts, so that a repeated task
            never writes to the file of its predecessor.
        instant_time: Requested time of the commit.
    """

    partition_path: str
    file_id: str
    write_token: str
    instant_time: str

    @property
    def name(self) -> str:
        """File name."""
        return format_base_file(self.file_id, self.write_token, self.instant_time)

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return join_path(self.partition_path, self.name)

    @property
    def task_partition_id(self) -> str:
        """First part of the write token; second part of every sequence number."""
        return self.write_token.partition("-")[0]


def sequence_numbers(target: FileTarget, start: int, count: int) -> Array:
    """Return the ``_hoodie_commit_seqno`` of *count* rows of a task, beginning with its row number *start*."""
    indexes: Any = pa.array(np.arange(start, start + count)).cast(pa.string())
    prefix = f"{target.instant_time}_{target.task_partition_id}_"
    numbers: Array = compute.binary_join_element_wise(pa.scalar(prefix), indexes, "")
    return numbers


NO_KEYS: Final[Array] = pa.array([], pa.string())


def of_their_own(keys: Array) -> Array:
    """Return keys in memory of their own: a slice holds the rows that it is a slice of, with all their columns."""
    return pa.concat_arrays([NO_KEYS, keys])


@attrs.frozen(eq=False)
class KeyChanges:
    """
    Which record keys a file brought to its file group, and which it took from it.

    Args:
        written: Keys of the rows that are new in the group; of a log file those of all its rows.
        deleted: Keys whose rows are in the group no longer.
    """

    written: Array
    deleted: Array


@attrs.frozen
class WrittenFile:
    """
    A base file or log file that was written.

    Args:
        stat: The stat that the commit records.
        prev_size_bytes: Size of the file that it replaces, as it was listed; None for a new group.
        ranges: Ranges of the columns whose statistics are kept.
        keys: Gathered where the options say so (`BaseFileOptions.tracks_keys`), else None.
    """

    stat: WriteStat
    prev_size_bytes: int | None = None
    ranges: tuple[ColumnRange, ...] = ()
    keys: KeyChanges | None = attrs.field(default=None, eq=False, repr=False)


def written_file(
    target: FileTarget,
    *,
    rows: int,
    size_bytes: int,
    elapsed_ms: int,
    previous: BaseFile | None = None,
    inserted: int | None = None,
    updated: int = 0,
    deleted: int = 0,
    ranges: tuple[ColumnRange, ...] = (),
    keys: KeyChanges | None = None,
) -> WrittenFile:
    """
    Args:
        rows: All rows in the file, copied ones included.
        size_bytes: Exact size of the file.
        previous: The file that it replaces, None for a new group.
        inserted, updated, deleted: Rows that changed; all of them are inserted by default.
        ranges, keys: See `WrittenFile`.
    """
    is_new = previous is None
    stat = WriteStat(
        file_id=target.file_id,
        path=target.path,
        partition_path=target.partition_path,
        # The word, not a JSON null: so Hudi marks an insert (rules/data-files 8).
        prev_commit="null" if previous is None else previous.instant_time,
        prev_base_file=None if previous is None else previous.name,
        num_writes=rows,
        num_deletes=deleted,
        num_update_writes=updated,
        num_inserts=rows if inserted is None else inserted,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        runtime_stats=RuntimeStats(
            # Hudi has a field for each kind of file, and sums them up separately.
            total_create_time=elapsed_ms if is_new else 0,
            total_upsert_time=0 if is_new else elapsed_ms,
        ),
    )
    return WrittenFile(stat, None if previous is None else previous.size_bytes, ranges, keys)
