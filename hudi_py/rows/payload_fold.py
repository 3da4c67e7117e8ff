"""
Merges log records one after the other, as a payload class of Apache Hudi does: the result depends on their order. Pure.

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


@attrs.define
class _Merged:
    """What is left of a key: the record that decides, and by column the row of its value."""

    newest: int
    places: dict[str, int]


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
    winners = np.zeros(count, np.int64)
    winners[given.code] = np.arange(len(given.code))
    places = {}
    for name, mask in given.holds.items():
        places[name] = np.full(count, _NEVER, np.int64)
        places[name][given.code] = np.where(mask, given.row_of, _NEVER)
    # One Python step for each record is slow; keys with one record need none.
    several = np.bincount(given.code, minlength=count) > 1
    fold = _Fold(given, rules)
    left: dict[int, _Merged] = {}
    for at in np.flatnonzero(several[given.code]).tolist():
        key = int(given.code[at])
        left[key] = fold.merged(left.get(key), at)
    for key, merged in left.items():
        winners[key] = merged.newest
        for name, place in merged.places.items():
            places[name][key] = place
    return winners, places


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
    """Merges a record with what is left of those before it."""

    def __init__(self, given: Arrivals, rules: LogRules) -> None:
        assert rules.payload is not None
        self._given = given
        self._payload = rules.payload
        self._resets = rules.deletes_reset
        self._fills = rules.fills_logs
        payload = rules.payload
        self._ties_to_older = payload.ties_to_older_in_logs if rules.deletes_reset else payload.ties_to_older
        # ``preCombine`` of 0.15 compares ordering values in any class, even where there are none.
        self._orders_rows = rules.deletes_reset or (rules.orders_logs and rules.payload.orders_base)

    def merged(self, known: _Merged | None, at: int) -> _Merged:
        """Return what is left with the record *at*."""
        if known is None:
            return self._whole(at)
        kinds = self._given.kinds
        if self._is_delete(int(kinds[at])) or self._is_delete(int(kinds[known.newest])):
            return self._whole(at) if self._delete_decides(known.newest, at) else known
        is_newer = self._is_newer(known.newest, at)
        if self._fills:
            return self._filled(known, at, is_newer=is_newer)
        return self._whole(at) if is_newer else known

    def _whole(self, at: int) -> _Merged:
        row = int(self._given.row_of[at])
        return _Merged(at, {name: row if mask[at] else _NEVER for name, mask in self._given.holds.items()})

    def _is_delete(self, kind: int) -> bool:
        # ``preCombine`` of 0.15 takes a row that marks a deletion for a row like any other.
        return kind >= (Kind.DELETE if self._resets else Kind.FLAGGED)

    def _delete_decides(self, known: int, at: int) -> bool:
        """Whether the record *at* wins, where one of the two is a delete."""
        kinds, rank = self._given.kinds, self._given.delete_rank
        if kinds[at] == Kind.ALWAYS or (kinds[at] == Kind.DELETE and self._given.deletes_win):
            return True
        if self._resets and not self._is_delete(int(kinds[at])):
            return True
        if kinds[known] == Kind.ALWAYS:
            return self._resets or kinds[at] != Kind.DELETE
        return bool(rank[known] <= rank[at])

    def _is_newer(self, known: int, at: int) -> bool:
        if not self._orders_rows:
            return True
        rank = self._given.rank
        return bool(rank[known] < rank[at] or (rank[known] == rank[at] and not self._ties_to_older))

    def _filled(self, known: _Merged, at: int, *, is_newer: bool) -> _Merged:
        kinds = self._given.kinds
        if kinds[at] == Kind.FLAGGED or (not is_newer and kinds[known.newest] == Kind.FLAGGED):
            return self._whole(at)  # in 0.15, whatever came before
        if not is_newer and not self._payload.fills_older:
            return known
        found = self._whole(at)
        upper, lower = (found, known) if is_newer else (known, found)
        places = {name: place if place >= 0 else lower.places[name] for name, place in upper.places.items()}
        # The times and keys shown are those of the record that was written last.
        places.update({name: found.places[name] for name in META_COLUMNS if name in places})
        return _Merged(upper.newest, places)
