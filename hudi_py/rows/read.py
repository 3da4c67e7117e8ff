"""Reads rows of base files with PyArrow, in bounded memory."""

from __future__ import annotations

import base64
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import attrs

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound, UnsupportedTable, WriteError
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.fsview.expected import damaged_file, is_size_right
from hudi_py.model.files import BaseFile, SourceFile, join_path
from hudi_py.runtime.log import log

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hudi_py.formats.arrow_types import Array
    from hudi_py.formats.bloom import HashedKeys
    from hudi_py.rows.committed import Commits
    from hudi_py.rows.orc_file import OrcFile
    from hudi_py.rows.predicate import RowFilter
    from hudi_py.storage.base import Storage

_BATCH_ROWS: Final = 32768


def row_schema(storage: Storage, files: Callable[[], Sequence[tuple[str, BaseFile]]], text: str | None) -> pa.Schema:
    """
    The columns of a table's rows, without the ``_hoodie_*`` ones.

    Args:
        files: Returns partition path and base file of each file of the snapshot; called only if *text* is not enough.
        text: Avro schema of the table's rows. If it is None, or has a type that hudi_py does not know, the schema is
            read from the newest file.

    Raises:
        CorruptMetadata: The text is damaged, or the newest file is.
        UnsupportedTable: The text has a type that hudi_py does not know, and there is no file.
    """
    import pyarrow as pa

    from hudi_py.formats.read_types import ReadTypes
    from hudi_py.formats.record_schema import parse_record_schema

    unknown: UnsupportedTable | None = None
    if text is not None:
        try:
            # The commit's schema first: it needs no data file to be opened.
            return parse_record_schema(text, ReadTypes)
        except UnsupportedTable as error:
            log.info("read.schema.from.files", reason=str(error))
            unknown = error
    present = files()
    if unknown is not None and not present:  # the rows of log files would be returned without columns
        raise unknown
    if not present:
        return pa.schema([])
    # The newest file has the columns that were added last; older ones lack them.
    newest = max(present, key=lambda each: each[1].instant_time)
    return pa.schema([field for field in file_schema(storage, *newest) if field.name not in META_COLUMNS])


def file_schema(storage: Storage, partition_path: str, file: BaseFile) -> pa.Schema:
    """
    The columns of one base file, the ``_hoodie_*`` ones too; only its footer is read.

    Raises:
        CorruptMetadata: It is not a Parquet file.
    """
    with open_parquet(storage, join_path(partition_path, file.name), file) as opened:
        schema: pa.Schema = opened.schema_arrow.remove_metadata()
        return schema


def refuse_repeated(columns: Iterable[str]) -> None:
    """
    Refuse a column that is asked for twice: most readers of Arrow data cannot tell two of one name apart.

    Raises:
        ConfigError: There is such a column.
    """
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise ConfigError(f"columns name {', '.join(repeated)} more than once; name each column once")


def chosen_columns(schema: pa.Schema, columns: Sequence[str] | None, *, with_meta: bool = False) -> pa.Schema:
    """
    The columns asked for, in the form for `read_batches`; nullable, because older files may lack a column.

    Raises:
        ConfigError: The table has no such column, or *columns* is empty, no list of names, or has one of them twice.
    """
    import pyarrow as pa

    given: Any = columns
    if isinstance(given, str):  # a text is a collection, too: its letters would be taken for names
        raise ConfigError(f"columns={given!r} is a text, not a list; give a list: columns=[{given!r}]")
    if given is not None and not (isinstance(given, Collection) and all(isinstance(each, str) for each in given)):
        raise ConfigError(f"columns={given!r} is not a list of names; give a list: columns=['id']")
    if given is not None:
        refuse_repeated(given)

    meta = {name: pa.field(name, pa.string()) for name in META_COLUMNS}
    known = meta | {field.name: field.with_nullable(nullable=True) for field in schema}
    wanted = list(schema.names if columns is None else columns)
    missing = [name for name in wanted if name not in known]
    has = ", ".join(schema.names) or "none: no commit has completed"
    if missing:
        raise ConfigError(f"the table has no column {', '.join(missing)}; it has {has}")
    if columns is not None and not wanted:
        raise ConfigError(f"no column is named; the table has {has}")
    if with_meta:
        # Meta columns come first, as in files and as Apache Hudi shows them.
        wanted = [*META_COLUMNS, *(name for name in wanted if name not in META_COLUMNS)]
    return pa.schema([known[name] for name in wanted])


@attrs.define
class FileCount:
    """
    Number of files that `read_batches` read and skipped. Files after the last batch taken are not counted.

    Args:
        read: Files whose rows were read.
        skipped: Files in which no row can meet the conditions; the next four are parts of this number.
        by_partitions: Files that were not opened because of the paths of their partitions.
        by_record_index: Files that were not opened because the record index names others.
        by_metadata_table: Files that were not opened because of `column_stats` in the metadata table.
        by_bloom_filters: Files that were not read because of Bloom filters in the metadata table or in the files. The
            rest was skipped because of their footers' statistics.
    """

    read: int = 0
    skipped: int = 0
    by_partitions: int = 0
    by_record_index: int = 0
    by_metadata_table: int = 0
    by_bloom_filters: int = 0

    @property
    def skipped_by(self) -> dict[str, int]:
        """Number of skipped files by what ruled them out; the numbers add up to `skipped`."""
        named = {
            "partitions": self.by_partitions,
            "record_index": self.by_record_index,
            "metadata_table": self.by_metadata_table,
            "bloom_filters": self.by_bloom_filters,
        }
        return named | {"footers": self.skipped - sum(named.values())}

    def add(self, other: FileCount) -> None:
        """Add the counts of *other*."""
        self.read += other.read
        self.skipped += other.skipped
        self.by_partitions += other.by_partitions
        self.by_record_index += other.by_record_index
        self.by_metadata_table += other.by_metadata_table
        self.by_bloom_filters += other.by_bloom_filters


def read_batches(
    storage: Storage,
    files: Sequence[tuple[str, BaseFile]],
    schema: pa.Schema,
    filters: Sequence[RowFilter] = (),
    count: FileCount | None = None,
    keys: HashedKeys | None = None,
    *,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of base files, whatever schema each was written with.

    Args:
        files: Partition path and base file; a file whose size differs from the known one is refused.
        schema: Columns to return, see `chosen_columns`; null if a file lacks a column, and converted to today's type.
        filters: Conditions on columns of *schema*; row groups that cannot meet them are not read.
        count: Files read and skipped are added to it.
        keys: The only record keys that rows meeting *filters* can have; None if unknown.
        use_threads: Decode the columns of a file on several cores; not useful where several files are read at a time.

    Raises:
        CorruptMetadata: A base file is not Parquet or has another size, or its values do not fit the columns.
    """
    from hudi_py.formats.arrow_types import PARQUET_DAMAGE
    from hudi_py.rows.committed import Commits
    from hudi_py.rows.lookup import may_hold
    from hudi_py.rows.orc_file import conform_read
    from hudi_py.rows.predicate import chosen, filtered

    count = FileCount() if count is None else count
    early = [each for each in filters if isinstance(each, Commits)]  # before the other columns are converted
    for partition, base in files:
        path = join_path(partition, base.name)
        with open_parquet(storage, path, base, few_distinct=[each.column for each in early], wanted=schema) as file:
            # The footer's bounds are read already; a Bloom filter has to be decoded, so it comes second.
            groups = _candidates(file, filters)
            if not groups and filters:
                count.skipped += 1
                continue
            if keys is not None and not may_hold(file, keys):
                count.skipped += 1
                count.by_bloom_filters += 1
                continue
            count.read += 1
            stored = set(file.schema_arrow.names)  # built anew at each access
            present = [name for name in schema.names if name in stored]
            try:
                for batch in file.iter_batches(_BATCH_ROWS, groups, present, use_threads=use_threads):
                    left = batch
                    for each in early:
                        if each.column in present:
                            left = chosen(left, _mask_of_distinct(each, left.column(each.column)))
                    yield filtered(conform_read(file, left, schema), filters)
            except (*PARQUET_DAMAGE, WriteError) as error:
                raise CorruptMetadata(f"{storage.root}/{path} cannot be read: {one_line(error)}") from error


def _mask_of_distinct(commits: Commits, column: Any) -> Array:
    """Which rows meet the condition; it is evaluated once for each of the few distinct values."""
    mask: Array = commits.mask(column.dictionary.cast(commits.arrow)).take(column.indices)
    return mask


def _candidates(file: pq.ParquetFile, filters: Sequence[RowFilter]) -> list[int]:
    """The row groups whose statistics do not rule out that a row meets all of *filters*."""
    from hudi_py.rows.footer_bounds import bounds_of_groups
    from hudi_py.rows.pruning import may_match

    groups = list(range(file.metadata.num_row_groups))
    if not filters:
        return groups
    bounds = bounds_of_groups(file)
    return [group for group in groups if may_match(filters, partial(bounds, group))]


@contextmanager
def open_parquet(
    storage: Storage,
    path: str,
    base: BaseFile,
    *,
    few_distinct: Sequence[str] = (),
    alone: bool = False,
    wanted: pa.Schema | None = None,
) -> Iterator[Any]:
    """
    Open a base file: `pyarrow.parquet.ParquetFile`, `OrcFile`, `JoinedFile` (of a bootstrapped table) or `MovedFile`.

    Args:
        few_distinct: Columns with few distinct values, to be read as dictionaries.
        alone: Open the table's own file as it is, even if the columns are in another one or have other names today.
        wanted: Columns that will be read; one that the file lacks must not be one whose name is damaged.

    Raises:
        UnsupportedTable: The columns are in a file outside of the table, and *base* does not name it or is in ORC.
        CorruptMetadata: Its size differs from the known one, it is not in the format of its name, or its footer is
            damaged.
    """
    if base.lacks_columns and base.source is None and not alone:  # all columns would be null
        raise UnsupportedTable(
            f"{storage.root}/{path}: the table was bootstrapped, and the columns of this file are in another one; this "
            "is served for snapshots and ranges of rows only, read the table with Apache Hudi"
        )
    if base.source is not None and base.extension == "orc" and not alone:
        raise UnsupportedTable(
            f"{storage.root}/{path}: the table was bootstrapped, and files in ORC are not joined with those that it "
            "was made from; read the table with Apache Hudi"
        )
    with storage.open_read(path) as stream:
        size = stream.seek(0, os.SEEK_END)  # the stream knows it; no request
        is_cut_off = not size and base.size_bytes != 0  # a file that was written empty lost nothing: refused below
        if is_cut_off or not is_size_right(base.size_bytes or 0, size, is_log=False):
            raise CorruptMetadata(
                damaged_file(f"{storage.root}/{path}", size, base.size_bytes or 0, f"write {base.instant_time}")
            )
        if base.extension == "orc":
            orc = _orc_file(stream, f"{storage.root}/{path}", few_distinct)
            yield orc if alone else _as_today(orc, base)
            return
        with _parquet_file(stream, f"{storage.root}/{path}", few_distinct) as file:
            if base.source is None or alone:
                opened = file if alone else _as_today(file, base)
                _check_wanted(opened, wanted, {f"{storage.root}/{path}": file})
                yield opened
                return
            from hudi_py.rows.joined_file import JoinedFile

            own, uri = f"{storage.root}/{path}", base.source.uri
            with _source_stream(storage, base.source, own) as other, _parquet_file(other, uri, ()) as source:
                opened = _as_today(JoinedFile(file, source, base.source.values, f"{own} and {uri}"), base)
                _check_wanted(opened, wanted, {own: file, uri: source})
                yield opened


def _check_wanted(opened: Any, wanted: pa.Schema | None, files: Mapping[str, pq.ParquetFile]) -> None:
    from hudi_py.formats.arrow_types import PARQUET_DAMAGE
    from hudi_py.formats.parquet_file import check_names, lacks

    if wanted is None or not lacks(opened.schema_arrow, wanted):
        return
    for where, file in files.items():
        try:
            check_names(file)
        except PARQUET_DAMAGE as error:
            raise CorruptMetadata(f"{where}: {one_line(error)}; restore the file from a copy of the table") from error


def _as_today(file: Any, base: BaseFile) -> Any:
    """The file with its columns under their names of today."""
    if base.moved is None:
        return file
    from hudi_py.rows.moved_file import MovedFile

    return MovedFile(file, base.moved)


@contextmanager
def _parquet_file(stream: BinaryIO, where: str, few_distinct: Sequence[str]) -> Iterator[pq.ParquetFile]:
    import pyarrow.parquet as pq

    from hudi_py.formats.arrow_types import PARQUET_DAMAGE
    from hudi_py.formats.parquet_file import check_size

    try:
        file = pq.ParquetFile(stream, read_dictionary=list(few_distinct))
        check_size(file.metadata, stream.seek(0, os.SEEK_END))
    except PARQUET_DAMAGE as error:
        raise CorruptMetadata(f"{where} is not a readable Parquet file: {one_line(error)}") from error
    with file:
        yield file


def _orc_file(stream: BinaryIO, where: str, few_distinct: Sequence[str]) -> OrcFile:
    from hudi_py.formats.arrow_types import PARQUET_DAMAGE
    from hudi_py.rows.orc_file import OrcFile

    try:
        return OrcFile(stream, where, few_distinct)
    except PARQUET_DAMAGE as error:
        raise CorruptMetadata(f"{where} is not a readable ORC file: {one_line(error)}") from error


@contextmanager
def _source_stream(storage: Storage, source: SourceFile, own: str) -> Iterator[BinaryIO]:
    """The file outside of the table, which must be as it was when the table was made from it."""
    from hudi_py.storage.factory import open_beside

    folder, _, name = source.uri.rpartition("/")
    try:
        opened = open_beside(storage, folder).open_read(name)
    except NotFound as error:
        raise CorruptMetadata(
            f"{source.uri} is missing: the table was bootstrapped from it, and it has the columns of {own}; restore it"
        ) from error
    with opened as stream:
        size = stream.seek(0, os.SEEK_END)
        if source.size_bytes is not None and size != source.size_bytes:
            raise CorruptMetadata(
                f"{source.uri} has {size} bytes and had {source.size_bytes} when the table was bootstrapped: it may "
                f"not have the columns of {own} any more; restore it"
            )
        yield stream


def one_line(error: Exception) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """
    Rows as plain JSON values: decimals, dates and timestamps (in UTC) as text, bytes in Base64, maps as objects.

    Raises:
        UnsupportedTable: A time lies outside the years 1 to 9999, or a text is not UTF-8.
    """
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError as error:
        raise UnsupportedTable(
            f"a text is not UTF-8 and cannot be shown ({error}); choose other columns (--columns), or write the rows "
            "to a .parquet file (-o)"
        ) from error
    except (OverflowError, ValueError) as error:
        raise UnsupportedTable(
            f"a date or time cannot be shown ({error}); choose other columns (--columns), or write the rows to a "
            ".parquet file (-o)"
        ) from error
    return [{field.name: _plain(row[field.name], field.type) for field in batch.schema} for row in rows]


def flat_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch for text formats such as CSV: nested values as JSON, bytes in Base64."""
    import pyarrow as pa

    columns: list[Array] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_nested(field.type):
            rows = (row[field.name] for row in plain_rows(batch.select([field.name])))
            texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in rows]
            columns.append(pa.array(texts, pa.string()))
        elif pa.types.is_binary(field.type):
            columns.append(pa.array([_plain(value, field.type) for value in column.to_pylist()], pa.string()))
        else:
            columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(value: Any, arrow: pa.DataType) -> Any:
    """One plain JSON value; pyarrow returns a map as a list of pairs."""
    import pyarrow as pa

    if isinstance(value, list):
        if isinstance(arrow, pa.MapType):
            return {str(_plain(key, arrow.key_type)): _plain(each, arrow.item_type) for key, each in value}
        element: Any = arrow
        return [_plain(each, element.value_type) for each in value]
    if isinstance(value, dict) and isinstance(arrow, pa.StructType):
        return {field.name: _plain(value[field.name], field.type) for field in arrow}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return str(value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, (Decimal, date, time_of_day, timedelta)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value
