"""
What the merged records of log files do to the rows of a base file.

Source: rules/data-files 9; Hudi 1.1.1 ``KeyBasedFileGroupRecordBuffer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import compute
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.log_merge import MergedLogs
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.log_records import Kind
from hudi_py.rows.ordering import sequence_parts
from hudi_py.rows.precedence import incoming_wins

if TYPE_CHECKING:
    from hudi_py.rows.log_rules import LogRules
    from hudi_py.rows.payloads import Payload
    from hudi_py.rows.predicate import Bounds

_BATCH_ROWS: Final = 32768
_NEVER: Final = -1

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@attrs.define
class MergeCount:
    """
    Counts of the rows that merging one file slice changed.

    Args:
        logged: Number of keys that the log files hold.
        updated: Number of rows of the base file that the log files replace.
        deleted: Number of rows of the base file that they delete.
        inserted: Number of rows that only they hold.
    """

    logged: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0


class Group(NamedTuple):
    """
    The effect of the logs on the rows of one row group.

    Args:
        is_left: Which rows stay as they are; None for all.
        updated: Numbers of the rows in which some or all columns are replaced.
        by: Numbers of the log keys that replace them.
        is_newer: Which of these log records are newer than the row; the others only fill in what the row does not give.
    """

    is_left: Mask | None
    updated: Numbers
    by: Numbers
    is_newer: Mask


_NONE: Final = np.zeros(0, np.int64)
UNTOUCHED: Final = Group(None, _NONE, _NONE, np.zeros(0, np.bool_))


class Pending:
    """
    Merged log records while the base file is read.

    A record applies to the first row with its key. Where it applies to further ones, it is shown in the place of each.
    """

    def __init__(self, logs: MergedLogs, reading: LogReading, merges: MergeCount) -> None:
        self.logs = logs
        self._reading = reading
        self._merges = merges
        merges.logged += len(logs)
        self._is_met = np.zeros(len(logs), np.bool_)
        self.is_shown = logs.kinds == Kind.ROW

    def may_meet(self, bounds: Bounds) -> bool:
        """Whether a row with a key within *bounds* may have one of the log keys."""
        # Without bounds any key may be among the rows.
        if bounds.minimum is None or bounds.maximum is None:
            return not bounds.has_only_nulls
        is_within = compute.and_(
            compute.greater_equal(self.logs.keys, pa.scalar(bounds.minimum, pa.string())),
            compute.less_equal(self.logs.keys, pa.scalar(bounds.maximum, pa.string())),
        )
        return bool(is_within.true_count)

    def meet(self, keys: Any, ordering: Callable[[Numbers], list[Any]]) -> Group:
        """
        Args:
            keys: Keys of the rows of one row group.
            ordering: Returns the ordering values of rows by their numbers.
        """
        places = compute.index_in(keys, value_set=self.logs.keys).fill_null(_NEVER).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(places != _NEVER)
        met = places[rows].astype(np.int64)
        is_first = np.zeros(len(rows), np.bool_)
        is_first[np.unique(met, return_index=True)[1]] = True
        # A key that an earlier row group had is merged already.
        is_first &= ~self._is_met[met]
        if not self.logs.meets_copies:  # further rows of a key that the table has several times stay as they are
            rows, met, is_first = rows[is_first], met[is_first], is_first[is_first]
        if not len(rows):
            return UNTOUCHED
        self._is_met[met] = True
        wins = self._wins(rows, met, ordering)
        is_row = self.logs.kinds[met] == Kind.ROW
        # The stored row is newer, so the record of the logs is not shown for it.
        self.is_shown[met[~wins & is_first]] = False
        self._merges.updated += int((wins & is_row).sum())
        self._merges.deleted += int((wins & ~is_row).sum())
        in_place = wins & is_row & ~is_first
        if self.logs.held is not None:
            # An older record of the logs has values to give only where rows may leave them out.
            in_place = is_row if self._reading.rules.fills_older else is_row & wins
            self.is_shown[met[in_place]] = False  # shown in place of the stored row, whose other columns it takes
        is_left = np.ones(len(places), np.bool_)
        is_left[rows[wins | in_place]] = False
        return Group(is_left, rows[in_place], met[in_place], wins[in_place])

    def _wins(self, rows: Numbers, met: Numbers, ordering: Callable[[Numbers], list[Any]]) -> Mask:
        rules, kinds = self._reading.rules, self.logs.kinds[met]
        if not rules.orders_base:
            return np.ones(len(rows), np.bool_)
        new, old = [each.take(as_array(met)) for each in self.logs.ordering], ordering(rows)
        wins = incoming_wins(new, old)
        if rules.payload is not None:
            # In 0.15 a row that marks a deletion is compared as any row, if at all.
            is_row = (kinds == Kind.ROW) | ((kinds == Kind.FLAGGED) & rules.deletes_reset)
            wins = np.where(is_row, _row_wins(rules.payload, new, old), wins)
            wins |= (kinds == Kind.FLAGGED) & rules.deletes_reset & rules.payload.flags_reset
        # A delete without an ordering value has nothing by which it could lose.
        wins |= kinds == Kind.ALWAYS
        # In 0.15 a delete by key wins over the base file whatever its ordering value (rules/data-files 9.3).
        if rules.deletes_reset:
            wins |= kinds == Kind.DELETE
        return wins

    def rest(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of the logs that are newer than those of the base file, or that the base file lacks."""
        numbers = np.flatnonzero(self.is_shown)
        self._merges.inserted += int((self.is_shown & ~self._is_met).sum())
        for start in range(0, len(numbers), _BATCH_ROWS):
            taken = self.logs.rows.select(schema.names).take(as_array(numbers[start : start + _BATCH_ROWS]))
            yield from taken.combine_chunks().to_batches()


def _row_wins(payload: Payload, new: list[Any], old: list[Any]) -> Mask:
    if not payload.orders_base:
        return np.ones(len(new[0]), np.bool_)
    if payload.by_sequence:
        new, old = sequence_parts(new[0]), sequence_parts(old[0])
    return incoming_wins(new, old, wins_ties=not payload.ties_to_older)


def updated_rows(
    logs: MergedLogs, rules: LogRules, batch: pa.RecordBatch, by: Numbers, is_newer: Mask
) -> pa.RecordBatch:
    """
    Return rows of the base file, with the columns that log records replace or fill in.

    Args:
        logs: Records.
        rules: The table's rules.
        batch: The rows.
        by, is_newer: For each row, as in `Group`.
    """
    picked = as_array(by)
    columns = []
    for field in batch.schema:
        logged: Any = logs.rows.column(field.name).take(picked)
        if logs.held is None:
            columns.append(whole(logged))
            continue
        stored: Any = batch.column(field.name)
        is_logged = logs.held[field.name][by]
        # With a payload class, the times and keys shown are those of the record that was written last.
        is_late_too = rules.payload is not None and field.name in META_COLUMNS
        if rules.filling is not None and not is_late_too and not is_newer.all():
            is_logged = np.where(is_newer, is_logged, ~rules.filling.given(stored))
        both = pa.concat_arrays([stored, whole(logged)])
        number = np.arange(len(by))
        columns.append(both.take(as_array(np.where(is_logged, number + len(by), number))))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def as_array(places: Numbers) -> Any:
    """Return row numbers as an Arrow array."""
    return pa.array(places)


def whole(column: Any) -> Any:
    """Return a column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
