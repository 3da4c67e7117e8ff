"""
Rows of a snapshot that meet conditions, read from as few files as statistics allow.

If the conditions fix the record key, the record index of the metadata table names the files, or Bloom filters rule
files out. Files that `column_stats` of the metadata table rules out are not opened either; of the others, the footer
decides which row groups are read. Every row that is read is then tested against the conditions, so statistics change
the time and never the result. If the metadata table cannot be read, that is logged and all files are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.errors import HudiError, NotFound
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.mdt.statistics import COLUMN_STATS, column_prefix, key_suffix
from hudi_py.rows.condition import Condition, Where
from hudi_py.rows.read import FileCount, chosen_columns
from hudi_py.rows.where import conditions_of
from hudi_py.runtime.ahead import Source, in_turn, joined
from hudi_py.runtime.log import log
from hudi_py.snapshot.batches import Batches, Pieces, require
from hudi_py.snapshot.select import size_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from hudi_py.formats.bloom import HashedKeys
    from hudi_py.mdt.read_statistics import StatisticsReader
    from hudi_py.model.files import FileSlice
    from hudi_py.rows.condition import Path
    from hudi_py.rows.log_reading import LogReading
    from hudi_py.rows.partition_values import PartitionValues
    from hudi_py.rows.path_columns import PathColumns
    from hudi_py.rows.predicate import Bounds, ColumnFilter, Filter, RowFilter
    from hudi_py.rows.time_partitions import TimePartitions
    from hudi_py.snapshot.key_index import KeyIndexes
    from hudi_py.storage.base import Storage

_FEW_SLICES: Final = 8
"""Opening this many files costs no more than reading column statistics from the metadata table."""

OpenStatistics = Callable[[], "StatisticsReader | None"]
"""Opens `column_stats`; None where the table has none."""


_TOGETHER_BYTES: Final = 1 << 20
"""Local files up to this size together are read by one thread."""
_AHEAD_BYTES_MAX: Final = 256 << 20
"""Total size of files that are read at the same time; a single larger slice is still read."""
_LOCAL_THREADS_MAX: Final = 4


@attrs.frozen(kw_only=True)
class ReadSlice:
    """
    Reads the rows of one file slice; can be pickled and sent to another process.

    Args:
        storage: The table's storage.
        stored: Columns that are read: those asked for, and those that *filters* need.
        names: Names of the columns asked for.
        filters: Conditions that all have to be met.
        logs, time_partitions, lost, path_columns, partition_values: As for `Rows`.
        wanted: The only record keys that rows meeting *filters* can have; None if unknown.
        use_threads: As for `hudi_py.rows.read.read_batches`.
    """

    storage: Storage
    stored: pa.Schema
    names: tuple[str, ...]
    filters: tuple[RowFilter, ...]
    logs: LogReading | None
    time_partitions: TimePartitions | None
    lost: Callable[[FileSlice, NotFound], NotFound] | None
    path_columns: PathColumns | None
    wanted: HashedKeys | None
    partition_values: PartitionValues | None = None
    use_threads: bool = True

    @property
    def shows_other_values(self) -> bool:
        """Whether some values are shown differently from how they are stored."""
        from hudi_py.formats.read_types import has_vectors

        return self.time_partitions is not None or self.path_columns is not None or any(map(has_vectors, self.stored))

    def __call__(self, file_slice: FileSlice, count: FileCount | None = None) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._shown_rows(file_slice, count):
                yield batch if len(self.stored) == len(self.names) else batch.select(list(self.names))
        except NotFound as error:
            if self.lost is None:
                raise
            raise self.lost(file_slice, error) from error

    def counted(self, file_slice: FileSlice) -> Generator[tuple[FileCount | None, pa.RecordBatch | None], None, None]:
        """The same batches, the first one with the counts of the slice; the counts alone if no batch comes."""
        count = FileCount()
        left: FileCount | None = count
        for batch in self(file_slice, count):
            yield left, batch
            left = None
        if left is not None:
            yield left, None

    def _shown_rows(self, file_slice: FileSlice, count: FileCount | None) -> Iterator[pa.RecordBatch]:
        times = self.time_partitions
        if times is None:
            yield from self._stored_rows(file_slice, count, self.filters)
            return
        from hudi_py.rows.predicate import Filter, filtered

        late = [each for each in self.filters if isinstance(each, Filter) and times.decides(each, self.stored)]
        early = [each for each in self.filters if each not in late]
        for batch in self._stored_rows(file_slice, count, early):
            yield filtered(times.shown(batch), late)

    def _stored_rows(
        self, file_slice: FileSlice, count: FileCount | None, filters: Sequence[RowFilter]
    ) -> Iterator[pa.RecordBatch]:
        from hudi_py.rows.predicate import filtered
        from hudi_py.rows.slice_reader import read_slices

        columns = self.path_columns
        paths = self.partition_values
        if columns is None and paths is not None and (file_slice.is_plain or paths.are_texts):
            values = paths.shown(file_slice.partition_path, self.stored)
            if values:
                yield from self._rows_with(values, file_slice, count, filters)
                return
        # Statistics know nothing of columns that files lack, so conditions are applied once the values are filled in.
        early = filters if columns is None else ()
        for batch in read_slices(
            self.storage,
            [file_slice],
            self.stored,
            self.logs,
            early,
            count,
            self.wanted,
            use_threads=self.use_threads,
        ):
            if columns is None:
                yield batch
            else:
                yield filtered(columns.filled(batch, file_slice.partition_path), filters)

    def _rows_with(
        self, values: Mapping[str, Any], file_slice: FileSlice, count: FileCount | None, filters: Sequence[RowFilter]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a slice whose partition columns have the values of its path; stored ones are not read."""
        import pyarrow as pa

        from hudi_py.rows.partition_values import with_values
        from hudi_py.rows.predicate import Filter, filtered
        from hudi_py.rows.slice_reader import read_slices

        early: list[RowFilter] = []
        late: list[RowFilter] = []
        for each in filters:
            is_late = isinstance(each, Filter) and any(leaf.path[0] in values for leaf in each.leaves)
            (late if is_late else early).append(each)
        others = [field for field in self.stored if field.name not in values]
        stored = pa.schema(others) if others else self.stored  # a batch needs a column to have a length
        for batch in read_slices(
            self.storage, [file_slice], stored, self.logs, early, count, self.wanted, use_threads=self.use_threads
        ):
            yield filtered(with_values(batch, values, self.stored), late)


class Rows(Batches):
    """
    Rows as Arrow batches, see `Batches`.

    Args:
        storage: The table's storage.
        slices: File slices of the snapshot.
        schema: All columns of the table, without the ``_hoodie_*`` ones.
        columns: Names of the columns to return; None for all.
        where: Conditions that all have to be met, see `Where`.
        with_meta: Return the ``_hoodie_*`` columns too.
        statistics: Opens the column statistics of the metadata table.
        commits: A filter by the commit that changed a row last; None for all rows.
        logs: How log files are read; None if no slice has any.
        time_partitions: How partition values of time-based keys are shown; None for the stored values.
        lost: Explains an error about a file of a slice that is missing when it is read.
        path_columns: Columns that files lack; None if they have all.
        indexes: Indexes of record keys; None without any.
        partition_values: What paths tell of the values of partition columns; None for nothing.

    Attributes:
        schema: Columns of the batches, a `pyarrow.Schema`.
        count: Files read and skipped by the last iteration.

    Raises:
        ConfigError: A column does not exist, or a condition is invalid.
    """

    def __init__(
        self,
        storage: Storage,
        slices: Sequence[FileSlice],
        schema: pa.Schema,
        *,
        columns: Sequence[str] | None = None,
        where: Where = (),
        with_meta: bool = False,
        statistics: OpenStatistics | None = None,
        commits: ColumnFilter | None = None,
        logs: LogReading | None = None,
        time_partitions: TimePartitions | None = None,
        lost: Callable[[FileSlice, NotFound], NotFound] | None = None,
        path_columns: PathColumns | None = None,
        indexes: KeyIndexes | None = None,
        partition_values: PartitionValues | None = None,
    ) -> None:
        # Without columns and conditions, which `narrowed` replaces.
        self._again = partial(
            Rows, storage, slices, schema, statistics=statistics, commits=commits,
            logs=logs, time_partitions=time_partitions, lost=lost, path_columns=path_columns, indexes=indexes,
            partition_values=partition_values,
        )  # fmt: skip
        self._lost = lost
        self._storage = storage
        self._slices = slices
        self._logs = logs
        self._path_columns = path_columns
        self._statistics = statistics if path_columns is None else None  # statistics lack columns that files lack
        self._indexes = indexes
        self._partition_values = partition_values
        self.schema = chosen_columns(schema, columns, with_meta=with_meta)
        self._read_schema = self.schema
        self._filters: tuple[Filter, ...] = ()
        self._conditions = conditions = conditions_of(where)
        if conditions:
            self._bind(schema, conditions, schema if time_partitions is None else time_partitions.schema(schema))
        self._time_partitions = time_partitions
        if time_partitions is not None:
            self.schema = time_partitions.schema(self.schema)
        self._commits = commits
        if commits is not None:
            self._read_also(chosen_columns(schema, [commits.column]))
        self.count = FileCount()

    def _bind(self, schema: pa.Schema, conditions: Sequence[Condition], shown: pa.Schema) -> None:
        from hudi_py.rows.bound_where import bound_filters
        from hudi_py.rows.predicate import columns_of

        self._filters = bound_filters(conditions, shown)
        self._read_also(chosen_columns(schema, columns_of(conditions, [*META_COLUMNS, *schema.names])))

    def _read_also(self, columns: pa.Schema) -> None:
        import pyarrow as pa

        more = [field for field in columns if field.name not in self._read_schema.names]
        self._read_schema = pa.schema([*self._read_schema, *more])

    def _facts(self) -> Mapping[str, object]:
        where = [str(each.condition) for each in self._filters]
        return {"table": self._storage.root, "files": self.file_count, "columns": len(self.schema), "where": where}

    @property
    def file_count(self) -> int:
        """Number of file slices of the snapshot: base files with their log files."""
        return len(self._slices)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        from hudi_py.rows.log_reading import REMOTE_THREADS

        self.count = FileCount()
        found = self.in_pieces()
        # Remote reads wait for answers, not for cores; local ones decompress, and log files are merged in Python.
        is_remote = "://" in self._storage.root
        threads = REMOTE_THREADS if is_remote else min(_LOCAL_THREADS_MAX, os.cpu_count() or 1)
        read: ReadSlice = found.read  # type: ignore[assignment]
        # One file on all cores only where files alone do not keep them busy.
        are_alike = max(found.sizes, default=0) * threads <= sum(found.sizes)
        read = attrs.evolve(read, use_threads=is_remote or not are_alike)
        pieces = zip(found.pieces, found.sizes, strict=True)
        sources = [Source(partial(read.counted, each), size) for each, size in pieces]
        # Each remote file is waited for, however small; a local one of some kilobytes is read faster than handed over.
        sources = sources if is_remote else list(joined(sources, _TOGETHER_BYTES))
        for count, batch in in_turn(sources, threads=threads, weight_max=_AHEAD_BYTES_MAX):
            if count is not None:
                self.count.add(count)
            if batch is not None:
                yield batch

    def in_pieces(self) -> Pieces:
        """One piece per file slice that indexes and statistics do not rule out."""
        keys = self._asked_keys()
        wanted = None if keys is None else _hashed(keys)
        slices = tuple(self._chosen(keys, wanted))
        commits: list[RowFilter] = [] if self._commits is None else [self._commits]
        read = ReadSlice(
            storage=self._storage,
            stored=self._read_schema,
            names=tuple(self.schema.names),
            filters=(*commits, *self._filters),
            logs=self._logs,
            time_partitions=self._time_partitions,
            lost=self._lost,
            path_columns=self._path_columns,
            wanted=wanted,
            partition_values=self._partition_values,
        )
        return Pieces(read=read, pieces=slices, sizes=tuple(map(size_of, slices)))

    def narrowed(self, columns: Sequence[str] | None = None, *where: Condition) -> Rows:
        """
        The rows that meet further conditions, with fewer columns.

        Args:
            columns: Columns of `schema`, in this order; None for all of them.
            where: Further conditions on columns of the table.

        Raises:
            ConfigError: As the class.
        """
        wanted = self.schema.names if columns is None else columns
        # polars asks for no column when it counts rows; a batch needs one to have a length. A table without commits has
        # none.
        return self._again(columns=wanted or self.schema.names[:1] or None, where=[*self._conditions, *where])

    def to_polars_lazy(self) -> Any:
        """
        The rows as a `polars.LazyFrame`, which reads what a query needs when it is collected.

        Columns, conditions and limits of the query are pushed down: files that cannot hold a row of the answer are not
        opened. polars applies all conditions itself, so those that are not understood cost time only.

        Raises:
            ConfigError: polars is not installed.
        """
        from hudi_py.snapshot.polars_scan import scan

        return scan(self.schema, self.narrowed, require("polars"))

    def to_dataset(self) -> ds.Dataset:
        """
        The rows as a `pyarrow.dataset.Dataset`, for DuckDB, `polars.scan_pyarrow_dataset` and pyarrow.

        Columns and filters of each query are pushed down: files that cannot hold a row of the answer are not opened.
        Arrow applies all filters itself, so those that are not understood cost time only.
        """
        from hudi_py.snapshot.arrow_dataset import RowsDataset

        return RowsDataset(self)

    @property
    def skipped(self) -> Mapping[str, int]:
        """
        Number of files that the last iteration skipped, by what ruled them out.

        ``partitions`` (their paths), ``record_index``, ``metadata_table`` (its `column_stats`), ``bloom_filters`` (of
        the metadata table or in the files) and ``footers`` (the files' own statistics).
        """
        return self.count.skipped_by

    def _asked_keys(self) -> Mapping[str, str] | None:
        """The only record keys that rows meeting the conditions can have; None if unknown."""
        if not self._filters or self._indexes is None or not self._indexes.config.populate_meta_fields:
            return None
        from hudi_py.rows.asked_keys import asked_keys

        filters = [each for each in self._filters if not self._is_of_texts(each)]  # keys are made of what is stored
        return asked_keys(filters, self._indexes.key_fields) if filters else None

    def _is_of_texts(self, condition: Filter) -> bool:
        """Whether a condition is about texts that a key generator or a reader made of what is stored."""
        values, times = self._partition_values, self._time_partitions
        if times is not None and times.decides(condition, self._read_schema):
            return True
        return values is not None and values.are_texts and values.decides(condition)

    def _is_of_paths(self, condition: Filter) -> bool:
        values = self._partition_values
        return values is not None and values.decides(condition)

    def _chosen(self, keys: Mapping[str, str] | None, wanted: HashedKeys | None) -> Sequence[FileSlice]:
        """The slices that the metadata table does not rule out, and so have to be opened."""
        from hudi_py.snapshot.key_index import slices_of_keys, without_keys_ruled_out

        slices, count = self._slices, self.count
        # The most selective first: the record index leaves few slices, and then statistics are not worth their reading.
        named = None
        if keys is not None and self._indexes is not None:
            named = slices_of_keys(slices, keys, partial(self._indexes.record_index, slices))
            if named is not None:
                count.by_record_index = len(slices) - len(named)
                slices = named
        left = self._in_partitions(slices)
        count.by_partitions = len(slices) - len(left)
        slices = left
        # What is stored of a column that shows the path does not rule out what is shown.
        stored = [each for each in self._filters if not self._is_of_paths(each) and not self._is_of_texts(each)]
        # A few named slices are opened at once: statistics would cost more requests than they save.
        if stored and self._statistics is not None and (named is None or len(named) > _FEW_SLICES):
            left = _not_ruled_out(slices, stored, self._statistics)
            count.by_metadata_table = len(slices) - len(left)
            slices = left
        if wanted is not None and self._indexes is not None and named is None:
            left = without_keys_ruled_out(slices, wanted, self._indexes.bloom_filters)
            count.by_bloom_filters = len(slices) - len(left)
            slices = left
        count.skipped = len(self._slices) - len(slices)
        return slices

    def _in_partitions(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        """The slices of partitions that may hold rows, by their paths."""
        may_hold = None if self._partition_values is None else self._partition_values.chooser(self._filters)
        if may_hold is None:
            return slices
        # Other files of a bootstrapped table, and those with renamed columns, are looked into.
        return [each for each in slices if not each.is_plain or may_hold(each.partition_path)]


def _hashed(keys: Iterable[str]) -> HashedKeys:
    import pyarrow as pa

    from hudi_py.formats.bloom import HashedKeys

    return HashedKeys(pa.array(sorted(keys), pa.string()))


def _not_ruled_out(
    slices: Sequence[FileSlice], filters: Sequence[Filter], statistics: OpenStatistics
) -> Sequence[FileSlice]:
    """
    *slices* without those in which no row can meet *filters*, by the metadata table.

    Each value of a merged row comes from one file of its slice, so a condition on one column is ruled out for the slice
    if it is for each of its files.
    """
    from hudi_py.rows.bounds import PathBounds
    from hudi_py.rows.pruning import may_match, paths_of

    try:
        reader = statistics()
        if reader is None:
            return slices
        with reader:
            # One look-up for each column and not for each file: records of a column are neighbours in the metadata
            # table.
            of_columns = {path: reader.of_column(".".join(path)) for path in paths_of(filters)}
    except HudiError as error:
        log.warning("read.statistics.unusable", partition=COLUMN_STATS, reason=str(error))
        return slices
    prefixes = {path: column_prefix(".".join(path)) for path in of_columns}
    readers: dict[Path, PathBounds] = {}

    def bounds_in(suffixes: Sequence[str], path: Path, arrow: pa.DataType) -> Sequence[Bounds]:
        bounds = readers.get(path)
        if bounds is None:
            bounds = readers[path] = PathBounds(path, arrow)
        known, prefix = of_columns[path], prefixes[path]
        return [bounds.of(known.get(prefix + suffix)) for suffix in suffixes]

    def suffixes(file_slice: FileSlice) -> list[str]:
        return [key_suffix(file_slice.partition_path, name) for name in file_slice.file_names]

    # Of a bootstrapped file, the metadata table knows the meta columns only; of renamed columns, their old names.
    return [each for each in slices if not each.is_plain or may_match(filters, partial(bounds_in, suffixes(each)))]
