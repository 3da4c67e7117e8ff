"""A table as it was at one time: a value to look at, which never turns into the present and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import RefusedError
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.model.files import BaseFile, FileSlice
from hudi_py.snapshot.select import base_files, slices_as_of, with_recorded_sizes
from hudi_py.storage.base import Storage

if TYPE_CHECKING:
    from hudi_py.mdt.read_statistics import StatisticsReader
    from hudi_py.rows.condition import Where
    from hudi_py.snapshot.rows import Rows

__all__ = ["Snapshot"]


@attrs.frozen(kw_only=True, eq=False)
class Snapshot:
    """
    What a table showed at one time, from the files that there were when it was opened.

    Args:
        storage: Of the table.
        config: Of the table.
        requested_time: The time, as an instant.
        view_context: What decides about file slices at that time.
        listing: Where partitions and files are looked up.
        first_gone: Gives, of what is left of that time, the path of a file that a clean took from it; None for none.
        check_rows: Raises where the rows of that time cannot be read.
        schema: Gives the Avro text of the rows at that time.
        statistics: Gives what the metadata table knows of columns.
        recorded: Gives partition path to names and sizes in bytes of its files, as far as commits recorded them.
    """

    storage: Storage = attrs.field(repr=False)
    config: TableConfig = attrs.field(repr=False)
    requested_time: str
    view_context: ViewContext = attrs.field(repr=False)
    _listing: Listing = attrs.field(repr=False)
    _first_gone: Callable[[Sequence[tuple[str, BaseFile]]], str | None] = attrs.field(repr=False)
    _check_rows: Callable[[], None] = attrs.field(repr=False)
    _schema: Callable[[], str | None] = attrs.field(repr=False)
    _statistics: Callable[[], StatisticsReader | None] = attrs.field(repr=False)
    _recorded: Callable[[], Mapping[str, Mapping[str, int]]] = attrs.field(repr=False)

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of all partitions, those that came later too, sorted."""
        return tuple(sorted(path for path, _ in self._listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """The file groups of one partition at that time; sizes are known."""
        entries = self._listing.partition(partition_path, details=True)
        return build_partition(self.view_context, partition_path, ((e.name, e.size_bytes) for e in entries))

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """The newest slice at that time of each file group of one partition that was live then."""
        return latest_slices(self.view_context, self.partition(partition_path))

    def base_files(self) -> tuple[tuple[str, BaseFile], ...]:
        """
        Partition path and base file of everything that held rows at that time.

        Raises:
            RefusedError: A clean deleted one of them, or began to.
            UnsupportedTable: As `TableView.base_files`.
            CorruptMetadata: One is missing, and nothing removed it.
        """
        self._check_rows()
        found: list[tuple[str, BaseFile]] = []
        for path, entries in self._listing.walk():
            partition = build_partition(self.view_context, path, ((e.name, e.size_bytes) for e in entries))
            found += base_files(slices_as_of(partition), self.storage.root)
        gone = self._first_gone(found)
        if gone is not None:
            raise RefusedError(
                f"the table cannot be read as of {self.requested_time}: a clean deleted {gone}, which held rows at "
                "that time; read a later instant, or the latest snapshot"
            )
        return tuple(sorted(found, key=lambda each: (each[0], each[1].name)))

    def rows(self, *, where: Where = (), columns: Sequence[str] | None = None, with_meta: bool = False) -> Rows:
        """
        The rows at that time as Arrow batches, without Spark; arguments as `TableView.rows`.

        Raises:
            ConfigError: There is no such column, or a condition makes no sense.
            RefusedError, UnsupportedTable, CorruptMetadata: As `base_files`.
        """
        from hudi_py.rows.read import row_schema
        from hudi_py.snapshot.rows import Rows

        files = with_recorded_sizes(self.base_files(), self._recorded)
        schema = row_schema(self.storage, files, self._schema())
        return Rows(
            self.storage, files, schema,
            columns=columns, where=where, with_meta=with_meta, statistics=self._statistics,
            partition_fields=self.config.partition_fields,
        )  # fmt: skip

    def schema_text(self) -> str | None:
        """Avro text of the rows at that time, without meta columns; before the first commit that of the newest."""
        return self._schema()
