"""What every task of a write knows: the job, and who it is itself. Travels to executors by pickle."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow as pa

from hudi_py.fsview.build import ViewContext
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.precedence import MergeRules
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.storage.base import Storage
from hudi_py.writing.assign import SizingLimits


@attrs.frozen(kw_only=True)
class WriteJob:
    """
    One write, as every task needs to know it.

    Args:
        storage: Of the table.
        instant_time: Requested time of the commit.
        operation: ``UPSERT``, ``INSERT``, ``BULK_INSERT`` or ``DELETE``.
        context: The table's view before this commit.
        needed: Partition path to names of the base files that must be there before this commit; a bulk insert looks at
            none.
        schema: Storage schema.
        avro_schema: The same as Avro text.
        keys: How records and partitions are named.
        rules: Which of two rows wins.
        options: Layout of base files.
        limits: Sizing of file groups.
        record_bytes: Average size of a stored row.
        combine: Keep one row per key before an insert.
        randomness: For the ids of new file groups; tasks on other machines ask their own.
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
    randomness: Randomness = MACHINE

    def new_uuid(self) -> str:
        """What the id of a new file group begins with."""
        return new_uuid(self.randomness)

    @property
    def looks_up(self) -> bool:
        """Whether the operation asks which rows the table holds; inserts do not."""
        return self.operation in ("UPSERT", "DELETE")

    @property
    def combines(self) -> bool:
        """Whether of several rows with one key only one is written."""
        return self.looks_up or (self.operation == "INSERT" and self.combine)


@attrs.define
class TaskIdentity:
    """
    Who writes: makes write tokens and counts rows, so that no two files and no two rows share a name.

    Args:
        partition_id, stage_id, attempt_id: Of the task; the attempt differs between retries.
    """

    partition_id: int
    stage_id: int
    attempt_id: int
    rows_written: int = 0

    @property
    def write_token(self) -> str:
        """Part of the names of all files that this task writes."""
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"
