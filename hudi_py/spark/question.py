"""What is asked of a table: which of its rows, at which time, in which columns. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs
import pyarrow as pa

from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError
from hudi_py.rows.condition import Where
from hudi_py.rows.read import chosen_columns
from hudi_py.snapshot.batches import Batches
from hudi_py.snapshot.change_log import change_schema
from hudi_py.snapshot.deleted import marked_schema
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.table_view import TableView


@attrs.frozen(kw_only=True)
class Question:
    """
    What is asked of a table; fields as the arguments of `hudi_py.read`.

    Raises:
        ConfigError: Two questions are asked at once, or a flag is no bool.
    """

    where: Where = ()
    columns: Sequence[str] | None = None
    as_of: str | datetime | None = None
    savepoint: str | None = None
    start: str | datetime | None = None
    end: str | datetime | None = None
    read_optimized: bool = False
    with_deletes: bool = False
    change_log: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("read_optimized", "with_deletes", "change_log"):
            if not isinstance(value := getattr(self, name), bool):  # the text "false" would count as true
                raise ConfigError(f"{name}={value!r} is neither True nor False")
        of_snapshots = {"as_of": self.as_of, "savepoint": self.savepoint, "read_optimized": self.read_optimized}
        of_ranges = {"start": self.start, "end": self.end, "with_deletes": self.with_deletes,
                     "change_log": self.change_log}  # fmt: skip
        snapshot, ranges = (
            # What was not given has one of these two values.
            [name for name, value in given.items() if value is not None and value is not False]
            for given in (of_snapshots, of_ranges)
        )
        if snapshot and ranges:
            raise ConfigError(
                f"{ranges[0]} asks for changes, {snapshot[0]} for a snapshot; give one of them (start, end, "
                "with_deletes and change_log go together, and so do as_of or savepoint and read_optimized)"
            )
        if self.change_log and (self.with_deletes or self.where):
            raise ConfigError(
                "change_log gives each single change, deletes among them, without conditions; leave out "
                f"{'with_deletes' if self.with_deletes else 'where, and filter the changes'}"
            )

    @property
    def is_range(self) -> bool:
        """Whether changes are asked for, not a snapshot."""
        return self.start is not None or self.end is not None or self.with_deletes or self.change_log

    def snapshot(self, table: TableView) -> Snapshot:
        """
        The snapshot that is asked for.

        Raises:
            ConfigError, RefusedError: As `hudi_py.Table.snapshot`.
        """
        savepoint = None if self.savepoint is None else table.resolve_time(self.savepoint, exact=True)
        return table.snapshot(self.as_of, savepoint=savepoint)

    def schema(self, snapshot: Snapshot) -> pa.Schema:
        """Columns of the answer; *snapshot* comes from `snapshot`, for ranges the latest one. Opens no data files."""
        if self.change_log:
            return change_schema(chosen_columns(snapshot.schema, self.columns))
        found = snapshot.shown_schema(self.columns, with_meta=self.columns is None)
        return marked_schema(found) if self.with_deletes else found

    def rows_of(self, snapshot: Snapshot) -> Batches:
        """The answer, from a snapshot of `snapshot`."""
        return snapshot.rows(
            where=self.where,
            columns=self.columns,
            with_meta=self.columns is None,
            read_optimized=self.read_optimized,
        )

    def batches(self, table: TableView) -> Batches:
        """
        The answer; without named columns, the ``_hoodie_*`` columns come first.

        Raises:
            As `hudi_py.Table.rows`, `hudi_py.Table.changes` or `hudi_py.Table.change_log`.
        """
        if not self.is_range:
            table.require(Use.READ)
            return self.rows_of(self.snapshot(table))
        if self.change_log:
            return table.change_log(self.start, self.end, columns=self.columns)
        return table.changes(
            self.start,
            self.end,
            with_deletes=self.with_deletes,
            where=self.where,
            columns=self.columns,
            with_meta=self.columns is None,
        )
