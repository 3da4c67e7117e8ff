"""
Merges the records of a slice's log files among themselves: one record per key, to be merged with the base file.

Source: see `hudi_py.rows.log_rules`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.rows.column_merge import fold_late_rows, held_by_blocks, held_by_values, winners_of_columns
from hudi_py.rows.log_records import Kind, LogRecords, RecordShape
from hudi_py.rows.log_rules import LogRules
from hudi_py.rows.ordering import sequence_parts
from hudi_py.rows.payload_fold import Arrivals, fold_payloads, held_by_payload
from hudi_py.rows.precedence import comparable

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEVER: Final = -1


@attrs.frozen(kw_only=True)
class MergedLogs:
    """
    The merged records of log files, one for each of n keys.

    Args:
        keys: Strings, all different.
        kinds: `Kind` of each key's merged record.
        ordering: Its ordering values, one array for each field.
        rows: n rows; all columns are null for deletes.
        held: For updates of some columns, and where newer rows do not give all values: column name to the rows whose
            value comes from the log files. None if every row has all columns.
        meets_copies: Whether a record is merged with every row of the base file that has its key; otherwise with the
            first one, and the others stay as they are.
    """

    keys: Array
    kinds: npt.NDArray[np.uint8]
    ordering: tuple[Array, ...]
    rows: pa.Table
    held: Mapping[str, Mask] | None = None
    meets_copies: bool = False

    def __len__(self) -> int:
        return len(self.keys)


def merge_records(records: Sequence[LogRecords], shape: RecordShape, rules: LogRules) -> MergedLogs:
    """
    Merge the records of `hudi_py.rows.log_records.records_of`, in its order.

    Args:
        records: Records of all blocks of a slice, oldest first.
        shape: The shape that they were read with.
        rules: The table's rules.
    """
    keys = _joined([each.keys for each in records], pa.string())
    kinds = np.concatenate([each.kinds for each in records]) if records else np.zeros(0, np.uint8)
    ordering = tuple(
        _joined([record.ordering[at] for record in records], field.type) for at, field in enumerate(shape.ordering)
    )
    encoded: Any = keys.dictionary_encode()
    code = encoded.indices.to_numpy().astype(np.int64)
    count = len(encoded.dictionary)
    rank = _ranks(ordering, as_bytes=rules.deletes_reset) if rules.orders_logs else np.zeros(len(code), np.int64)
    row_of = _row_numbers(records)
    rows = pa.Table.from_batches([each.rows for each in records if each.rows is not None], shape.schema)
    merged: pa.Table
    held: Mapping[str, Mask] | None
    if rules.payload is not None and rules.merges_in_turn:
        arrivals = _arrivals(code, kinds, rank, ordering, rows, row_of, rules)
        winners, places = fold_payloads(arrivals, count, rules)
        merged = _rows_at(rows, row_of[winners], places)
        held = held_by_payload(merged, places, rules.payload)
    elif rules.fills_logs or any(each.columns is not None for each in records):
        order = _in_order(code, kinds, rank, rules, deletes_win=_deletes_win(ordering, rules))
        holds = (
            held_by_blocks(records, shape.schema.names)
            if rules.filling is None
            else held_by_values(rows, row_of, rules.filling)
        )
        winners, places = winners_of_columns(order, code, kinds, row_of, count, holds)
        if rules.filling is not None and rules.orders_logs:  # else they are merged in order of arrival
            fold_late_rows(winners, places, order, code, kinds, rank, row_of, holds)
        merged = _rows_at(rows, row_of[winners], places)
        held = {name: place >= 0 for name, place in places.items()}
    else:
        winners = _winners(code, kinds, rank, count, rules, deletes_win=_deletes_win(ordering, rules))
        merged = _rows_at(rows, row_of[winners], {})
        held = None if rules.payload is None else held_by_payload(merged, {}, rules.payload)
    won = pa.array(winners)
    return MergedLogs(
        keys=encoded.dictionary,
        kinds=kinds[winners],
        ordering=tuple(each.take(won) for each in ordering),
        rows=merged.combine_chunks(),
        held=held,
    )


def _joined(arrays: Sequence[Array], arrow: pa.DataType) -> Any:
    return pa.concat_arrays([array.cast(arrow) for array in arrays]) if arrays else pa.array([], arrow)


def _indices(places: Numbers) -> Array:
    return pa.array(places, mask=places < 0)


def _rows_at(rows: pa.Table, newest: Numbers, places: Mapping[str, Numbers]) -> pa.Table:
    """Rows by number; values of the columns in *places* are from there. One that no row has is as the newest says."""
    if not places:
        return rows.take(_indices(newest))
    columns: list[Any] = [
        rows.column(name).take(_indices(np.where(places[name] >= 0, places[name], newest)))
        for name in rows.column_names
    ]
    return pa.table(columns, schema=rows.schema)


def _deletes_win(ordering: Sequence[Array], rules: LogRules) -> bool:
    return rules.text_deletes_win and rules.orders_logs and pa.types.is_string(ordering[0].type)


def _arrivals(
    code: Numbers,
    kinds: npt.NDArray[np.uint8],
    rank: Numbers,
    ordering: tuple[Array, ...],
    rows: pa.Table,
    row_of: Numbers,
    rules: LogRules,
) -> Arrivals:
    assert rules.payload is not None
    by_numbers = rules.payload.by_sequence and rules.orders_logs and not rules.deletes_reset
    return Arrivals(
        code=code,
        kinds=kinds,
        row_of=row_of,
        rank=_ranks(sequence_parts(ordering[0]), as_bytes=False) if by_numbers else rank,
        delete_rank=rank,
        deletes_win=_deletes_win(ordering, rules),
        holds=held_by_values(rows, row_of, rules.filling) if rules.fills_logs and rules.filling is not None else {},
    )


def _row_numbers(records: Sequence[LogRecords]) -> Numbers:
    """For each record, the number of its row among all rows; `_NEVER` for a delete."""
    numbers, start = [np.zeros(0, np.int64)], 0
    for record in records:
        if record.rows is None:
            numbers.append(np.full(len(record.keys), _NEVER, np.int64))
        else:
            numbers.append(np.arange(start, start + len(record.keys)))
            start += len(record.keys)
    return np.concatenate(numbers)


def _ranks(ordering: Sequence[Array], *, as_bytes: bool) -> Numbers:
    """
    Numbers in the order of the ordering values; null comes first, NaN last.

    Args:
        as_bytes: Between log records, Hudi 0.15 compares decimals by their bytes without a sign: negative ones are
            greater than all others.
    """
    total: Numbers | None = None
    for each in ordering:
        values = comparable(each)
        rank: Numbers = compute.rank(values, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
        # Dense ranks begin at 1, so 0 is before all values.
        rank[values.is_null().to_numpy(zero_copy_only=False)] = 0
        if as_bytes and pa.types.is_decimal(values.type):
            is_negative = compute.less(values, pa.scalar(Decimal(0), values.type)).fill_null(False)
            rank[is_negative.to_numpy(zero_copy_only=False)] += rank.max(initial=0)
        # Like digits of a number: the rank of an earlier field outweighs all ranks of the later ones.
        total = rank if total is None else total * (int(rank.max(initial=0)) + 1) + rank
    assert total is not None
    return total


def _winners(
    code: Numbers, kinds: npt.NDArray[np.uint8], rank: Numbers, count: int, rules: LogRules, *, deletes_win: bool
) -> Numbers:
    """For each key, the number of the record that wins; *deletes_win* over all records before them."""
    winners = np.zeros(count, np.int64)
    if rules.deletes_reset:
        order = np.lexsort((rank, code))
        winners[code[order]] = order
        _fold_resets(winners, code, kinds, rank, deletes_win=deletes_win)
        return winners
    order = _in_order(code, kinds, rank, rules, deletes_win=deletes_win)
    winners[code[order]] = order  # of one key the last assignment counts
    return winners


def _in_order(
    code: Numbers, kinds: npt.NDArray[np.uint8], rank: Numbers, rules: LogRules, *, deletes_win: bool
) -> Numbers:
    """Numbers of the records that count, sorted by key and precedence: the last record of a key wins."""
    number = np.arange(len(code))
    counts = np.ones(len(code), np.bool_)
    if deletes_win:
        deletes = np.flatnonzero(kinds == Kind.DELETE)
        cut = np.zeros(int(code.max(initial=0)) + 1, np.int64)
        cut[code[deletes]] = deletes
        counts = number >= cut[code]
    resets = np.flatnonzero((kinds == Kind.ALWAYS) & counts)
    rank = rank.copy()
    if len(resets) and rules.orders_logs:
        # A delete without ordering values discards all records before it, and the first row after it wins over it.
        # Deletes with ordering values between the two have no effect.
        size = int(code.max(initial=0)) + 1
        last = np.full(size, _NEVER, np.int64)
        last[code[resets]] = resets
        is_behind = number > last[code]
        is_row = is_behind & (kinds <= Kind.FLAGGED)
        first = np.full(size, len(code), np.int64)
        np.minimum.at(first, code[is_row], number[is_row])
        is_reset = last[code] >= 0
        counts &= ~is_reset | (number == last[code]) | (is_behind & (number >= first[code]))
        # Below every row behind it: the first of them wins over it whatever its ordering value.
        rank[resets] = rank.min(initial=0) - 1
    chosen = np.flatnonzero(counts)
    found: Numbers = chosen[np.lexsort((rank[chosen], code[chosen]))]
    return found


def _fold_resets(
    winners: Numbers, code: Numbers, kinds: npt.NDArray[np.uint8], rank: Numbers, *, deletes_win: bool
) -> None:
    """Merge the keys with deletes as Hudi 0.15 does, one record after the other: the result depends on their order."""
    with_deletes = np.unique(code[kinds >= Kind.DELETE])
    if not len(with_deletes):
        return
    is_meant = np.zeros(len(winners), np.bool_)
    # One Python step for each record is slow; only the keys that have deletes need it, and all others are decided by
    # the sort.
    is_meant[with_deletes] = True
    left: dict[int, int] = {}
    for at in np.flatnonzero(is_meant[code]).tolist():
        key = int(code[at])
        known = left.get(key)
        if known is not None:
            if kinds[at] == Kind.ALWAYS:
                is_later = True
            elif kinds[at] == Kind.DELETE:
                is_later = deletes_win or kinds[known] == Kind.ALWAYS or rank[known] <= rank[at]
            else:
                is_later = kinds[known] >= Kind.DELETE or rank[known] <= rank[at]
            if not is_later:
                continue
        left[key] = at
    for key, at in left.items():
        winners[key] = at
