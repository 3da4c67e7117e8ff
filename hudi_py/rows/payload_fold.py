"""
Merges log records in their order of arrival, as a payload class of Apache Hudi does: the result depends on it. Pure.

Source: see `hudi_py.rows.payloads`; Hudi 0.15.0 ``HoodieMergedLogRecordScanner``, 1.0.2 ``FileGroupRecordBuffer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
import numpy.typing as npt

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.log_records import Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.rows.log_rules import LogRules
    from hudi_py.rows.payloads import Payload

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEVER: Final = -1


@attrs.frozen(kw_only=True)
class Arrivals:
    """
    Records in order of arrival, n of them.

    Args:
        code: The number of each record's key.
        kinds: `Kind` of each.
        row_of: The number of each record's row, `_NEVER` for a delete.
        rank: Numbers in the order in which rows are compared with rows.
        delete_rank: Numbers in the order in which deletes are compared with rows.
        deletes_win: Whether a delete wins over everything before it, whatever its ordering value.
        holds: By column, which records give its value; empty where rows replace each other whole.
    """

    code: Numbers
    kinds: npt.NDArray[np.uint8]
    row_of: Numbers
    rank: Numbers
    delete_rank: Numbers
    deletes_win: bool
    holds: Mapping[str, Mask]


def fold_payloads(given: Arrivals, count: int, rules: LogRules) -> tuple[Numbers, dict[str, Numbers]]:
    """
    Args:
        given: The records.
        count: Number of keys.
        rules: The table's rules, of a payload class.

    Returns:
        For each key the number of the record that wins; and by column of *given.holds* the number of the row that the
        value comes from, `_NEVER` if no row gives one.
    """
    fold = _Fold(given, count, rules)
    order = np.argsort(given.code, kind="stable")
    sorted_codes = given.code[order]
    is_first = np.append(True, sorted_codes[1:] != sorted_codes[:-1])[: len(order)]
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    # The first record of every key, then the second of those that have one, and so on: no key is in a step twice.
    fold.take(order[starts])
    for turn in range(1, int(sizes.max(initial=0))):
        starts, sizes = starts[sizes > turn], sizes[sizes > turn]
        fold.merge(order[starts + turn])
    return fold.newest, fold.places


def held_by_payload(rows: pa.Table, places: Mapping[str, Numbers], payload: Payload) -> dict[str, Mask] | None:
    """
    Return which values of merged records count, see `hudi_py.rows.log_merge.MergedLogs`.

    Args:
        rows: The merged records.
        places: As from `fold_payloads`.
        payload: How they meet the base file.
    """
    if payload.filling is None:
        return None
    if places:
        return {name: place >= 0 for name, place in places.items()}
    return {name: payload.filling.given(rows.column(name).combine_chunks()) for name in rows.column_names}


class _Fold:
    """What is left of each key: the record that decides, and by column the row of its value."""

    def __init__(self, given: Arrivals, count: int, rules: LogRules) -> None:
        assert rules.payload is not None
        self.newest = np.zeros(count, np.int64)
        self.places = {name: np.full(count, _NEVER, np.int64) for name in given.holds}
        self._given = given
        self._payload = rules.payload
        self._resets = rules.deletes_reset
        self._fills = rules.fills_logs
        payload = rules.payload
        self._ties_to_older = payload.ties_to_older_in_logs if rules.deletes_reset else payload.ties_to_older
        # ``preCombine`` of 0.15 compares ordering values in any class, even where there are none.
        self._orders_rows = rules.deletes_reset or (rules.orders_logs and rules.payload.orders_base)

    def take(self, at: Numbers) -> None:
        """Let the records *at*, each of another key, be all that is left of their keys."""
        keys = self._given.code[at]
        self.newest[keys] = at
        for name, place in self.places.items():
            place[keys] = self._row(name, at)

    def merge(self, at: Numbers) -> None:
        """Merge the records *at*, each of another key, with what is left of those before them."""
        kinds = self._given.kinds
        known = self.newest[self._given.code[at]]
        with_delete = self._is_delete(kinds[at]) | self._is_delete(kinds[known])
        is_newer = self._is_newer(known, at)
        takes = np.where(with_delete, self._delete_decides(known, at), is_newer)
        if not self._fills:
            self.take(at[takes])
            return
        # In 0.15 a row that marks a deletion counts whatever came before.
        is_marked = (kinds[at] == Kind.FLAGGED) | (~is_newer & (kinds[known] == Kind.FLAGGED))
        self.take(at[np.where(with_delete, takes, is_marked)])
        is_filled = ~with_delete & ~is_marked
        self._fill_newer(at[is_filled & is_newer])
        if self._payload.fills_older:
            self._fill_older(at[is_filled & ~is_newer])

    def _fill_newer(self, at: Numbers) -> None:
        """Values that the records *at* do not give stay."""
        keys = self._given.code[at]
        self.newest[keys] = at
        for name, place in self.places.items():
            row = self._row(name, at)
            place[keys] = np.where(row >= 0, row, place[keys])

    def _fill_older(self, at: Numbers) -> None:
        """Values that are not given so far are those of the records *at*."""
        keys = self._given.code[at]
        for name, place in self.places.items():
            # The times and keys shown are those of the record that was written last.
            is_kept = (place[keys] >= 0) & (name not in META_COLUMNS)
            place[keys] = np.where(is_kept, place[keys], self._row(name, at))

    def _row(self, name: str, at: Numbers) -> Numbers:
        return np.where(self._given.holds[name][at], self._given.row_of[at], _NEVER)

    def _is_delete(self, kinds: npt.NDArray[np.uint8]) -> Mask:
        # ``preCombine`` of 0.15 takes a row that marks a deletion for a row like any other.
        found: Mask = kinds >= (Kind.DELETE if self._resets else Kind.FLAGGED)
        return found

    def _delete_decides(self, known: Numbers, at: Numbers) -> Mask:
        """Whether the records *at* win, where one of the two is a delete."""
        kinds, rank = self._given.kinds, self._given.delete_rank
        wins = rank[known] <= rank[at]
        is_reset = kinds[known] == Kind.ALWAYS
        wins = np.where(is_reset, self._resets | (kinds[at] != Kind.DELETE), wins)
        if self._resets:
            wins |= ~self._is_delete(kinds[at])
        found: Mask = wins | (kinds[at] == Kind.ALWAYS) | ((kinds[at] == Kind.DELETE) & self._given.deletes_win)
        return found

    def _is_newer(self, known: Numbers, at: Numbers) -> Mask:
        if not self._orders_rows:
            return np.ones(len(at), np.bool_)
        rank = self._given.rank
        return rank[known] < rank[at] if self._ties_to_older else rank[known] <= rank[at]
