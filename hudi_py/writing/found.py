"""The rows that a statement changes, and whether these were changed and no others. Pure but for what is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NoReturn

import attrs
import pyarrow as pa

from hudi_py.errors import RefusedError
from hudi_py.model.records import WriteStat
from hudi_py.model.words import counted
from hudi_py.rows.stored_keys import FILE, KEY, PATH
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.changes_in_logs import LogsBefore, file_id_of
from hudi_py.writing.pieces import DELETION

_NOT_MATCHED: Final = (
    "A merge matches by the columns that it is given, and null equals nothing: let them say the same as key and "
    "partition of the inserted row. This write was not committed"
)


@attrs.frozen(kw_only=True)
class Found:
    """
    Rows that a statement changes, with the meta columns that hold their keys.

    Args:
        rows: Rows to upsert, updated ones first.
        deleted: Rows to delete; only their keys matter.
        updated: Number of rows that replace stored ones.
        inserted: Number of rows that are new.
        before: What the table was before; None for a copy-on-write table.
    """

    rows: pa.Table | None = None
    deleted: pa.Table | None = None
    updated: int = 0
    inserted: int = 0
    before: LogsBefore | None = None

    @property
    def count(self) -> int:
        """Number of rows that change."""
        return self.updated + self.inserted + (0 if self.deleted is None else self.deleted.num_rows)

    @property
    def operation(self) -> str:
        """What writes the rows: ``DELETE`` if nothing but keys to delete was found."""
        return "DELETE" if self.rows is None or not self.rows.num_rows else "UPSERT"

    def to_write(self) -> pa.Table:
        """Return all rows, with those to delete marked by `hudi_py.writing.pieces.DELETION` where there are others."""
        rows, deleted = self.rows, self.deleted
        if rows is None or not rows.num_rows:
            return pa.table({KEY: pa.array([], pa.string())}) if deleted is None else deleted
        if deleted is None or not deleted.num_rows:
            return rows
        nullable = pa.schema([field.with_nullable(nullable=True) for field in rows.schema])
        parts = [_marked(rows.cast(nullable), is_deletion=False), _marked(deleted, is_deletion=True)]
        return pa.concat_tables(parts, promote_options="default")

    def check(self, instant_time: str, written: Iterable[WrittenFile]) -> None:
        """
        Raise if other rows changed than were found.

        Args:
            instant_time: Of the write.
            written: Its files.

        Raises:
            RefusedError: The table has several rows with the key of a found row, or has the key of an inserted one.
            WriteError: An inserted row would not be seen, because log files hold a later deletion of its key.
        """
        stats = [each.stat for each in written]
        changed = {str(stat.file_id): (stat.num_update_writes, stat.num_deletes) for stat in stats if _is_changed(stat)}
        wanted = self._by_file()
        again = {  # inserted rows whose keys the log files of a group delete: they are updates to the group
            file_id
            for file_id, (updates, deletes) in changed.items()
            if updates > wanted.get(file_id, (0, 0))[0] and deletes == wanted.get(file_id, (0, 0))[1]
        }
        same = {file_id: counts for file_id, counts in changed.items() if file_id not in again}
        others = {file_id: counts for file_id, counts in wanted.items() if file_id not in again}
        # Counts are compared by file group, not only in total: a duplicate that changed in one group and a row that was
        # missed in another would add up to the right total.
        updates = sum(updates for updates, _ in changed.values())
        inserted = sum(stat.num_inserts for stat in stats) + updates - self.updated
        if same != others or inserted != self.inserted or (again and self.before is None):
            self._refuse_duplicates()
        if again and self.before is not None:
            # Write stats cannot tell an insert over a deleted key from an update of a duplicate, or of another row, so
            # the rows are read as they are, and as they would be after the commit.
            present = self._keys(None) & self.before.keys_shown(again)
            if present:
                path, key = min(present)
                raise RefusedError(
                    f"the row to insert with the key {key!r} would replace another one: partition {path!r} has that "
                    f"key already. {_NOT_MATCHED}"
                )
            shown = self.before.rows_shown(instant_time, [stat for stat in stats if stat.file_id in again])
            if any(keys - self._keys(None) != self._keys(file_id) for file_id, keys in shown.items()):
                self._refuse_duplicates()

    def _refuse_duplicates(self) -> NoReturn:
        if self.inserted:
            raise RefusedError(
                f"found {counted(self.count, 'row')}, but the table has other rows with the same keys: either several "
                f"rows with a key that is changed (then delete the key, and upsert the row to keep), or a row with the "
                f"key of one that would be inserted. {_NOT_MATCHED}"
            )
        raise RefusedError(
            f"found {counted(self.count, 'row')}, but other rows have the same keys: the table has several rows with "
            "the same key, so the keys do not say which rows to change. This write was not committed; remove the "
            "duplicates first (delete the keys, then upsert the rows to keep)"
        )

    def _keys(self, file_id: str | None) -> set[tuple[str, str]]:
        """Return partition path and key of the rows to update in a file group, or of those to insert."""
        if self.rows is None:
            return set()
        rows = self.rows.slice(self.updated) if file_id is None else self.rows.slice(0, self.updated)
        names = rows.column(FILE).to_pylist()
        places = zip(rows.column(PATH).to_pylist(), rows.column(KEY).to_pylist(), names, strict=True)
        return {(str(path), str(key)) for path, key, name in places if file_id is None or file_id_of(name) == file_id}

    def _by_file(self) -> dict[str, tuple[int, int]]:
        """Return the number of rows to update and to delete in each file group."""
        found: dict[str, tuple[int, int]] = {}
        updated = None if self.rows is None else self.rows.slice(0, self.updated)
        for rows, is_deletion in ((updated, False), (self.deleted, True)):
            names = {} if rows is None else Counter(rows.column(FILE).to_pylist())
            for name, count in names.items():
                file_id = file_id_of(name)
                updates, deletes = found.get(file_id, (0, 0))
                found[file_id] = (updates, deletes + count) if is_deletion else (updates + count, deletes)
        return found


def _marked(rows: pa.Table, *, is_deletion: bool) -> pa.Table:
    marks: Any = pa.array([is_deletion] * rows.num_rows, pa.bool_())
    return rows.append_column(DELETION, marks)


def _is_changed(stat: WriteStat) -> bool:
    return bool(stat.num_update_writes or stat.num_deletes)
