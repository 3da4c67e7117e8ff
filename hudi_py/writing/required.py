"""
What every row of a write has to have: a key, ordering values where those choose among rows of one key, and a value
wherever the schema of the table or of the rows themselves requires one.

Asked of all rows before the first file is written, so that the refusal counts all that lack a value, and nothing has to
be taken back. Whoever writes files checks again the rows that it gets, as tasks on Spark cannot see all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs
import pyarrow as pa

from hudi_py.formats.arrow_types import compute
from hudi_py.formats.required_values import count_missing, refuse_missing, requires_values
from hudi_py.rows.keys import KeyGenerator, refuse_blank_keys
from hudi_py.rows.precedence import MergeRules, delete_mask, refuse_nulls
from hudi_py.rows.stored_keys import StoredKeys
from hudi_py.writing.job import WriteJob
from hudi_py.writing.pieces import DELETION


@attrs.frozen
class Required:
    """
    The columns that may not be empty.

    Args:
        keys: Computes the keys; None where rows have theirs already, or get new ones.
        ordering: Columns with ordering values; not asked of rows that are deletes.
        stored: Columns of the table; None where rows are not stored, and so may be anything.
    """

    keys: KeyGenerator | None
    ordering: Sequence[str] = ()
    stored: pa.Schema | None = None

    @classmethod
    def of(
        cls, keys: KeyGenerator, operation: str, rules: MergeRules, schema: pa.Schema, *, combines: bool
    ) -> Required:
        """Return what a write requires; arguments as the fields of `WriteJob`."""
        has_keys = keys.generates or isinstance(keys, StoredKeys)
        is_delete = operation == "DELETE"
        return cls(
            keys=None if has_keys else keys,
            ordering=rules.batch_fields if combines and not is_delete else (),
            stored=None if is_delete else schema,
        )

    @classmethod
    def of_job(cls, job: WriteJob) -> Required:
        """Return what a write that has begun requires."""
        return cls.of(job.keys, job.operation, job.rules, job.schema, combines=job.combines)

    def passed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """
        Yield batches as they are; after one that lacks a value none, but all that follow are counted.

        Raises:
            ConfigError: A key column is absent.
            WriteError: Rows lack a value; the message names the column and the number of rows.
        """
        counted = _Counted(self)
        for batch in batches:
            counted.add(batch)
            if not counted.has_found:
                yield batch
        counted.refuse()

    def check(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Raise as `passed`."""
        for _ in self.passed(batches):
            pass

    def missing(self, batches: Iterable[pa.RecordBatch]) -> Counter[str]:
        """Count the values that the schema of the table or of the rows requires, by path."""
        counted = _Counted(attrs.evolve(self, keys=None, ordering=()))
        for batch in batches:
            counted.add(batch)
        return counted.missing

    def refuse(self, without_key: int, without: Sequence[int]) -> None:
        """
        Raise for the numbers of rows without a key, and without each of the ordering columns.

        Raises:
            WriteError: One of the numbers is not zero.
        """
        if self.keys is not None:
            refuse_blank_keys(self.keys.key_columns, without_key)
        for name, count in zip(self.ordering, without, strict=True):
            refuse_nulls(name, count)


class _Counted:
    """Rows that lack something, counted batch by batch."""

    def __init__(self, required: Required) -> None:
        self._required = required
        self._without_key = 0
        self._without = [0] * len(required.ordering)
        self.missing: Counter[str] = Counter()

    @property
    def has_found(self) -> bool:
        return bool(self._without_key or any(self._without) or self.missing)

    def add(self, batch: pa.RecordBatch) -> None:
        if self._required.keys is not None:
            self._without_key += compute.sum(self._required.keys.blank_keys(batch)).as_py() or 0
        deletes = delete_mask(batch) if self._required.ordering else None
        for number, name in enumerate(self._required.ordering):
            position = batch.schema.get_field_index(name)
            if position < 0 or not batch.column(position).null_count:  # an absent one is refused by who needs it
                continue
            nulls = compute.is_null(batch.column(position))
            if deletes is not None:
                nulls = compute.and_not(nulls, deletes)
            self._without[number] += compute.sum(nulls).as_py() or 0
        if self._required.stored is not None:
            self._add_missing(batch, self._required.stored)

    def _add_missing(self, batch: pa.RecordBatch, stored: pa.Schema) -> None:
        asked = [
            each
            for field in batch.schema
            if field.name in stored.names
            for each in (field, stored.field(field.name))
            if requires_values(each)
        ]
        if asked and DELETION in batch.schema.names:  # of these only the key counts
            batch = batch.filter(compute.invert(batch.column(DELETION)))
        found: dict[str, int] = {}
        for each in asked:
            found.update(count_missing(batch.column(each.name), each))
        self.missing.update(found)

    def refuse(self) -> None:
        self._required.refuse(self._without_key, self._without)
        refuse_missing(self.missing)
