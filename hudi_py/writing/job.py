"""What every task of a write needs: the job, and the identity of the task. Pickled for executors."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow as pa

from hudi_py.config.bulk_insert import BulkInsertLayout
from hudi_py.config.duplicates import Duplicates
from hudi_py.formats.column_history import MovedColumns
from hudi_py.fsview.build import ViewContext
from hudi_py.model.change_logging import LoggingMode
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.bucket_index import BucketIndex
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.precedence import MergeRules
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.storage.base import Storage
from hudi_py.txn.early import EarlyLook
from hudi_py.writing.assign import SizingLimits
from hudi_py.writing.log_slices import LogWriting
from hudi_py.writing.replacing import OVERWRITES


@attrs.frozen(kw_only=True)
class GlobalIndex:
    """
    Keys are looked up in all partitions, see `hudi_py.writing.anywhere`.

    Args:
        in_record_index: Whether the record index of the metadata table is asked, otherwise the files.
        moves_rows: Whether a row whose key lies in another partition moves to its own.
        forgets_deleted: Whether a key that log files have deleted counts as new before they are compacted.
    """

    in_record_index: bool
    moves_rows: bool
    forgets_deleted: bool


@attrs.frozen(kw_only=True)
class WriteJob:
    """
    A write, with all that its tasks need.

    Args:
        storage: Storage of the table.
        instant_time: Requested time of the commit.
        operation: ``UPSERT``, ``INSERT``, ``BULK_INSERT``, ``DELETE``, ``INSERT_OVERWRITE`` or
            ``INSERT_OVERWRITE_TABLE``.
        context: View of the table before this commit.
        needed: Partition path to names of base files that must exist before this commit; empty for a bulk insert,
            which does not read any.
        schema: Storage schema of the rows.
        avro_schema: The same as Avro text.
        keys: Computes record keys and partition paths.
        rules: Decides which of two rows with the same key is kept.
        options: Layout of base files.
        limits: Limits for the size of files.
        record_bytes: Average size of a stored row.
        combine: Whether an insert or overwrite writes only one row per key.
        duplicates: What an insert does with keys that the table has.
        layout: How a bulk insert spreads and sorts its rows.
        buckets: Bucket index of the table, None where the files are searched for keys.
        anywhere: Global index; None where keys are looked up in their own partition.
        logs: How changes of existing rows are written in a merge-on-read table; None in a copy-on-write table.
        moved: Where the columns of older files are today; None if all have kept their names.
        change_logs: What is logged of the changes of a rewritten base file; None without change data capture.
        randomness: Source of ids for new file groups; on other machines, tasks use the source of that machine.
        clock: Time that a new partition's metafile names as its date of creation.
        early: Looks before each file for running writes that touch its file group; None if nobody asked for it.
        is_shared: Whether other writers are expected beside this one.
    """

    storage: Storage
    instant_time: str
    operation: str
    context: ViewContext
    needed: Mapping[str, frozenset[str]]
    schema: pa.Schema
    avro_schema: str
    keys: KeyGenerator
    rules: MergeRules
    options: BaseFileOptions
    limits: SizingLimits
    record_bytes: int
    combine: bool = False
    duplicates: Duplicates = Duplicates.ADDED
    layout: BulkInsertLayout = attrs.field(factory=BulkInsertLayout)
    buckets: BucketIndex | None = None
    anywhere: GlobalIndex | None = None
    logs: LogWriting | None = None
    moved: MovedColumns | None = None
    change_logs: LoggingMode | None = None
    randomness: Randomness = MACHINE
    clock: Clock = attrs.field(factory=SystemClock)
    early: EarlyLook | None = None
    is_shared: bool = False

    def new_uuid(self) -> str:
        """Return the first part of the id of a new file group."""
        return new_uuid(self.randomness)

    @property
    def looks_up(self) -> bool:
        """Whether the operation changes rows whose keys it looks up; inserts do not."""
        return self.operation in ("UPSERT", "DELETE")

    @property
    def searches(self) -> bool:
        """Whether keys are looked up at all: to change their rows, or to insert no row with a known key."""
        return self.looks_up or self.duplicates is not Duplicates.ADDED

    @property
    def combines(self) -> bool:
        """Whether only one of several rows with the same key is written."""
        return self.looks_up or self.combine

    @property
    def overwrites(self) -> bool:
        """Whether the rows go to new file groups, which replace the earlier ones."""
        return self.operation in OVERWRITES


@attrs.define
class TaskIdentity:
    """
    Identity of a task. Its write tokens and row counts keep names of files and sequence numbers of rows unique.

    Args:
        partition_id: Partition of the task.
        stage_id: Stage of the task.
        attempt_id: Attempt; differs between retries of the same task.
        rows_written: Number of rows that the task has written so far.
    """

    partition_id: int
    stage_id: int
    attempt_id: int
    rows_written: int = 0

    @property
    def write_token(self) -> str:
        """Part of the names of all files that this task writes."""
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"

    def number_rows(self, count: int) -> int:
        """Return the number of the first of *count* rows that the task writes next."""
        start = self.rows_written
        self.rows_written += count
        return start
