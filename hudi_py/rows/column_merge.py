"""
Merges the records of log files column by column: updates that have only some columns, and rows that do not give all
values (`hudi_py.rows.filling`). Pure.

Source: Hudi 1.1.1 ``PartialUpdateBufferedRecordMerger``, ``EventTimePartialRecordMerger``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.rows.filling import Filling
from hudi_py.rows.log_records import Kind, LogRecords

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEVER: Final = -1


def held_by_blocks(records: Sequence[LogRecords], names: Sequence[str]) -> dict[str, Mask]:
    """For each column, which records have it: those of blocks with this column."""
    sizes = [len(each.keys) for each in records]
    return {
        name: np.repeat(np.array([each.columns is None or name in each.columns for each in records], np.bool_), sizes)
        for name in names
    }


def held_by_values(rows: pa.Table, row_of: Numbers, filling: Filling) -> dict[str, Mask]:
    """For each column of *rows*, which records give a value; *row_of* has the number of each record's row."""
    is_row = row_of >= 0
    found = {}
    for name in rows.column_names:
        holds = np.zeros(len(row_of), np.bool_)
        holds[is_row] = filling.given(rows.column(name).combine_chunks())[row_of[is_row]]
        found[name] = holds
    return found


def winners_of_columns(
    order: Numbers,
    code: Numbers,
    kinds: npt.NDArray[np.uint8],
    row_of: Numbers,
    count: int,
    holds: Mapping[str, Mask],
) -> tuple[Numbers, dict[str, Numbers]]:
    """
    Choose for each key and column the row of highest precedence that has the column.

    Args:
        order: Numbers of the records that count, sorted by key and precedence.
        code: For each record, the number of its key, less than *count*.
        kinds: `Kind` of each record.
        row_of: For each record, the number of its row.
        count: Number of keys.
        holds: By column, which records have it.

    Returns:
        For each key the number of the record that wins; and by column, for each key the number of the row that the
        value comes from: the row of highest precedence with this column since the last delete, `_NEVER` if none has it.
    """
    winners = np.zeros(count, np.int64)
    winners[code[order]] = order
    place = np.arange(len(order))
    is_delete = kinds[order] != Kind.ROW
    last_delete = np.full(count, _NEVER, np.int64)
    # In order of precedence, not of arrival: a delete that loses to an earlier row takes no columns away from it.
    last_delete[code[order][is_delete]] = place[is_delete]
    kept = order[place > last_delete[code[order]]]
    places = {}
    for name, mask in holds.items():
        holding = kept[mask[kept]]
        found = np.full(count, _NEVER, np.int64)
        found[code[holding]] = row_of[holding]
        places[name] = found
    return winners, places


def fold_late_rows(
    winners: Numbers,
    places: Mapping[str, Numbers],
    order: Numbers,
    code: Numbers,
    kinds: npt.NDArray[np.uint8],
    rank: Numbers,
    row_of: Numbers,
    holds: Mapping[str, Mask],
) -> None:
    """
    Merge again, one record after the other as Hudi does, the keys whose records did not arrive in order of precedence.

    A row that arrives late fills what the newer rows before it do not give, but nothing takes the place of a value that
    an even older row filled in before: the result depends on the order of arrival.

    Args:
        winners, places: As from `winners_of_columns`; they are changed.
        order, code, kinds, row_of, holds: As for `winners_of_columns`.
        rank: For each record, a number in the order of the ordering values.
    """
    same_key = code[order[1:]] == code[order[:-1]]
    is_late = same_key & (order[1:] < order[:-1])
    is_meant = np.zeros(len(winners), np.bool_)
    is_meant[code[order[1:][is_late]]] = True
    # Whether such a delete wins depends on what came before it, which no rank expresses.
    is_meant[code[kinds == Kind.ALWAYS]] = True
    if not is_meant.any():
        return
    newest: dict[int, int] = {}
    for at in np.flatnonzero(is_meant[code]).tolist():
        key = int(code[at])
        known = newest.get(key)
        wins = known is None or _wins(kinds[known], rank[known], kinds[at], rank[at])
        starts_anew = known is None or kinds[at] != Kind.ROW or kinds[known] != Kind.ROW
        if wins:
            newest[key] = at
        elif starts_anew:
            continue  # a deletion that lost, or a row that came before the deletion: neither has a value to give
        for name, place in places.items():
            if starts_anew:
                place[key] = row_of[at] if holds[name][at] else _NEVER
            elif holds[name][at] and (wins or place[key] < 0):
                place[key] = row_of[at]
    for key, at in newest.items():
        winners[key] = at


def _wins(known: int, known_rank: int, new: int, new_rank: int) -> bool:
    """Whether a record wins over an earlier one, by their kinds and ranks."""
    # Any row after it wins, whatever its ordering value (rules/data-files 9.3).
    if known == Kind.ALWAYS:
        return new != Kind.DELETE
    return new == Kind.ALWAYS or new_rank >= known_rank
