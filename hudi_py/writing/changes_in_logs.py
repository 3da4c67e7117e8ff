"""
Changes of stored rows that would not have the effect of a statement once they are in log files.

A base file that is rewritten holds the changed row and nothing else. A log file comes in addition to the earlier row:
every reader orders the two again, and merges the log record with the rows of the base file that have the key. Apache
Hudi commits such changes, and readers ignore them. Source: see `hudi_py.rows.log_rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import RefusedError, WriteError
from hudi_py.formats.arrow_types import compute
from hudi_py.model.files import FileSlice, join_path, parse_base_file, parse_log_file
from hudi_py.model.records import WriteStat
from hudi_py.rows.log_reading import log_reading
from hudi_py.rows.log_rules import LogRules
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.precedence import incoming_wins
from hudi_py.rows.slice_reader import read_slices
from hudi_py.rows.stored_keys import FILE, KEY, PATH
from hudi_py.storage.base import Storage

_KEY_AND_TIME: Final = pa.schema([(KEY, pa.string()), ("_hoodie_commit_time", pa.string())])


@attrs.frozen(kw_only=True)
class LogsBefore:
    """
    A merge-on-read table before a statement changes it.

    Args:
        storage: Of the table.
        slices: Of its snapshot.
        schema: Columns of its rows.
        rules: How log records are merged.
        is_completed: Answers whether the write of a time is completed.
    """

    storage: Storage
    slices: tuple[FileSlice, ...]
    schema: pa.Schema
    rules: LogRules
    is_completed: Callable[[str], bool]

    def check(self, stored: pa.Table, updated: pa.Table | None = None) -> None:
        """
        Raise if changes of stored rows would not have the effect of the statement once they are in log files.

        Args:
            stored: Rows as they are read from the table, with their meta columns.
            updated: The same rows with their new values; None where they are deleted.

        Raises:
            RefusedError: A base file holds one of their keys twice: a log file cannot say which row it changes.
            WriteError: Readers would ignore an updated row, because the stored one has the greater ordering value.
        """
        if stored.num_rows:
            self._refuse_duplicates(stored)
            if updated is not None:
                _refuse_overruled(stored, updated, self.rules)

    def _refuse_duplicates(self, stored: pa.Table) -> None:
        distinct = stored.select([PATH, FILE]).group_by([PATH, FILE]).aggregate([])
        names = zip(distinct.column(PATH).to_pylist(), distinct.column(FILE).to_pylist(), strict=True)
        groups = {(path, file_id_of(name)) for path, name in names}
        wanted = stored.column(KEY).combine_chunks()
        for file_slice in self.slices:
            if file_slice.base_file is None or (file_slice.partition_path, file_slice.file_id) not in groups:
                continue
            path = join_path(file_slice.partition_path, file_slice.base_file.name)
            with self.storage.open_read(path) as stream:
                found = read_keys(stream)
            counts = found.filter(compute.is_in(found, value_set=wanted)).value_counts()
            twice = counts.filter(compute.greater(counts.field(1), 1))
            if len(twice):
                raise RefusedError(
                    f"{self.storage.root}/{path} has several rows with the key {_first(twice)!r}, so the "
                    "key does not say which row to change. This write was not committed; remove the duplicates first "
                    "(delete the key, then upsert the row to keep)"
                )

    def keys_shown(self, file_ids: Collection[str]) -> set[tuple[str, str]]:
        """Return partition path and key of the rows that readers see in file groups before the write."""
        found: set[tuple[str, str]] = set()
        for file_slice in self.slices:
            if file_slice.file_id in file_ids:
                reading = log_reading(self.rules, self.is_completed, None, self.schema, self.storage.root)
                for part in read_slices(self.storage, [file_slice], _KEY_AND_TIME, reading):
                    found.update((file_slice.partition_path, str(key)) for key in part.column(0).to_pylist())
        return found

    def rows_shown(self, instant_time: str, stats: Iterable[WriteStat]) -> dict[str, set[tuple[str, str]]]:
        """
        Read file groups as if a write were committed.

        Args:
            instant_time: Of the write.
            stats: Of its log files.

        Returns:
            File id to partition path and key of the rows of that write.

        Raises:
            WriteError: A row of it is not shown.
        """
        logs = {str(stat.file_id): stat for stat in stats if stat.log_version is not None}
        slices = {file_slice.file_id: file_slice for file_slice in self.slices}
        root = self.storage.root

        def counts(time: str) -> bool:
            return time == instant_time or self.is_completed(time)

        found: dict[str, set[tuple[str, str]]] = {}
        for file_id, stat in logs.items():
            file = parse_log_file(str(stat.path).rpartition("/")[2])
            assert file is not None
            after = attrs.evolve(slices[file_id], log_files=(*slices[file_id].log_files, file))
            reading = log_reading(self.rules, counts, None, self.schema, root)
            parts = read_slices(self.storage, [after], _KEY_AND_TIME, reading)
            keys = [
                str(key)
                for part in parts
                for key, time in zip(part.column(0).to_pylist(), part.column(1).to_pylist(), strict=True)
                if time == instant_time
            ]
            if len(keys) != stat.num_update_writes:
                raise WriteError(
                    f"{stat.num_update_writes - len(keys)} inserted rows would not be seen: their keys were deleted, "
                    f"and rows or deletions before them have a greater {', '.join(self.rules.ordering_fields)}. "
                    "Nothing was committed; give them values that are not smaller"
                )
            found[file_id] = {(stat.partition_path or "", key) for key in keys}
        return found


def file_id_of(name: str | None) -> str:
    """
    Return the file group of a stored row; rows of base files hold the name of the file, rows of log files its id.

    Raises:
        RefusedError: It is neither.
    """
    file = parse_base_file(name or "")
    if file is not None:
        return file.file_id
    if not name or "." in name:
        raise RefusedError(f"a stored row says that it is in {name!r}, which is not the name of a data file")
    return name


def _first(counts: Any) -> Any:
    return counts.field(0)[0].as_py()


def _refuse_overruled(stored: pa.Table, updated: pa.Table, rules: LogRules) -> None:
    loses = _loses(stored, updated, rules)
    if loses.any():
        at = int(np.flatnonzero(loses)[0])
        names = [name for name in rules.ordering_fields if name in stored.column_names]
        before, after = (", ".join(str(rows.column(name)[at]) for name in names) for rows in (stored, updated))
        fields = ", ".join(names)
        raise WriteError(
            f"{int(loses.sum())} updated rows would not be seen: readers of this merge-on-read table take the row with "
            f"the greater {fields}, and key {stored.column(KEY)[at].as_py()!r} would get {after} after {before}. "
            f"Nothing was committed; set {fields} to a value that is not smaller, or leave such rows out by a condition"
        )


def _loses(stored: pa.Table, updated: pa.Table, rules: LogRules) -> npt.NDArray[np.bool_]:
    names = [name for name in rules.ordering_fields if name in stored.column_names]
    # Without ordering values the later record wins in any case.
    if not rules.orders_logs or not names or not stored.num_rows:
        return np.zeros(stored.num_rows, dtype=np.bool_)
    new, old = ([rows.column(name).combine_chunks() for name in names] for rows in (updated, stored))
    loses = ~incoming_wins(new, old)
    for after, before in zip(new, old, strict=True):
        loses |= ~_valid(after) & _valid(before)  # in log files a row without a value is before all others
    if rules.orders_base:
        return loses
    in_logs: npt.NDArray[np.bool_] = np.array(
        [parse_base_file(name or "") is None for name in stored.column(FILE).to_pylist()]
    )
    # Against rows of base files, log records of this table win without a comparison.
    return loses & in_logs


def _valid(column: Any) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid
