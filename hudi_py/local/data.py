"""
Takes rows in the forms in which Python programs have them: Arrow, pandas, polars, DuckDB, files.

Columns get a type in which they can be stored if that loses nothing, see `hudi_py.local.stored_types`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_py.errors import ConfigError, ConflictError, WriteError
from hudi_py.formats.schema_evolution import with_known_types
from hudi_py.local.files import is_file_name, parquet_stream, read_files
from hudi_py.local.stored_types import stored_schema, stored_types
from hudi_py.local.stream import RowStream
from hudi_py.writing.shape import in_types

_FORMS: Final = (
    "an Arrow table, batch or stream (pyarrow, polars, DuckDB, anything with __arrow_c_stream__), a pandas DataFrame, "
    "or paths of Parquet, CSV or JSON-lines files"
)


def arrow_table(data: Any, stored: Callable[[], pa.Schema | None] = lambda: None) -> pa.Table:
    """
    Return all rows of *data* as an Arrow table.

    Args:
        data: Rows: an Arrow table, record batch, reader or any other object with ``__arrow_c_stream__`` (polars,
            DuckDB), a pandas DataFrame (without its index), or one or several paths of Parquet, CSV or JSON-lines
            files.
        stored: Returns the columns of the table, if it exists; values in CSV and JSON files are read as these types.
            Called only for paths.

    Raises:
        ConfigError: *data* has another form, or there is no such file.
        WriteError: A value does not fit a type in which it can be stored, or a file is damaged.
    """
    return stored_types(_table_of(data, stored))


def given_once(data: Any) -> Callable[[], Any]:
    """
    Return a function that returns *data*, a stream only once.

    Its second call raises `ConfigError`: the stream has no rows any more, which a merge would take for a source without
    rows.
    """
    left = [data]

    def take() -> Any:
        if not left:
            raise ConfigError("the rows are a stream, which was read already; give the rows again; nothing was done")
        return left.pop() if isinstance(data, pa.RecordBatchReader | Iterator) else data

    return take


def row_stream(data: Any) -> RowStream | None:
    """
    Return rows that can be read batch by batch; None for those that are in memory, or have to be read as a whole.

    Batches have types that can be stored, see `stored_types`. Streams can be read once only.

    Args:
        data: As for `arrow_table`. Text files are read as a whole, because their last line may decide about a type.

    Raises:
        ConfigError, WriteError: As `arrow_table`.
    """
    # They are in memory already; written batch by batch they would need a temporary file for nothing.
    if isinstance(data, pa.Table | pa.RecordBatch):
        return None
    # A single text is a path as well: a sequence of its letters would be taken for many files.
    paths = [data] if isinstance(data, str | os.PathLike) else data if _is_paths(data) else None
    if paths is not None:
        found = parquet_stream(paths)
    # The stream of a pandas DataFrame has its index among the columns.
    elif hasattr(data, "__arrow_c_stream__") and not _is_pandas(data):
        reader = _reader_of(data)
        found = read_once(reader.schema, reader)
    elif isinstance(data, Iterator):
        first = next(data, None)
        if first is None:
            raise ConfigError(
                f"the {type(data).__name__} gave no batch of rows, so their columns are not known; give an Arrow table "
                "without rows to write none"
            )
        if not isinstance(first, pa.RecordBatch):
            raise ConfigError(f"rows are given as {_FORMS}, not as {type(data).__name__}")
        found = read_once(first.schema, itertools.chain([first], data))
    else:
        return None
    if found is None:
        return None
    stream = found
    schema = stored_schema(stream.schema)
    return RowStream(schema, lambda: _stored(stream, schema))


def read_once(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> RowStream:
    """
    Return batches as a stream.

    Its second reading raises `ConflictError`: it would be an empty write.
    """
    left = [iter(batches)]

    def read() -> Iterator[pa.RecordBatch]:
        if not left:
            raise ConflictError("the rows are a stream, which was read already; give the rows again")
        return left.pop()

    return RowStream(schema, read)


def _stored(stream: RowStream, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in stream.read():
        # Iterators of the caller may yield anything.
        if not isinstance(batch, pa.RecordBatch):
            raise ConfigError(f"rows are given as {_FORMS}, not as batches with a {type(batch).__name__} among them")
        if batch.schema.names != schema.names:
            raise WriteError(f"a batch has the columns {batch.schema.names}, the first one {schema.names}")
        for found in stored_types(pa.Table.from_batches([batch])).to_batches():
            yield _alike(found, schema)


def _alike(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """
    Return a batch with the schema of the first one, which may differ in what it says of nulls.

    Raises:
        WriteError: It has other types, or nulls where the first one excludes them.
    """
    batch = in_types(batch, with_known_types(batch.schema, schema))
    for field, own, column in zip(schema, batch.schema, batch.columns, strict=True):
        if own.type != field.type:
            raise WriteError(
                f"column {field.name!r} is {own.type} in a batch, and {field.type} in the first one; give all batches "
                "the same types"
            )
        if own.nullable and not field.nullable and column.null_count:
            raise WriteError(f"column {field.name!r} has nulls in a batch, and excludes them in the first one")
    return batch if batch.schema == schema else pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _table_of(data: Any, stored: Callable[[], pa.Schema | None]) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, str | os.PathLike):
        return read_files([data], stored())
    if _is_paths(data):
        return read_files(data, stored())
    if _is_pandas(data):
        # Without the metadata: it describes pandas' index and types, which the table does not have.
        try:
            return pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(None)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            # Arrow names the column, and what it is made of.
            raise WriteError(f"the DataFrame cannot be converted to Arrow: {error}; nothing was written") from error
    if hasattr(data, "__arrow_c_stream__"):
        return _reader_of(data).read_all()
    if isinstance(data, Iterable) and not isinstance(data, bytes | dict):
        batches = list(data)
        if batches and all(isinstance(batch, pa.RecordBatch) for batch in batches):
            return pa.Table.from_batches(batches)
        # Names of files, one of them of another kind: the refusal names that one, and not a type of Python.
        if batches and all(isinstance(each, str) for each in batches) and not isinstance(data, str):
            return read_files(batches, stored())
    raise ConfigError(f"rows are given as {_FORMS}, not as {type(data).__name__}")


def _reader_of(data: Any) -> pa.RecordBatchReader:
    """
    Raises:
        ConfigError: The stream has a type that Arrow does not know here, objects of Python, or values and no rows.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    for name, kind in data.schema.items() if _is_of("polars", data) and hasattr(data, "schema") else ():
        if str(kind) == "Object":  # Arrow gets bytes, without a word of what they are
            raise ConfigError(f"column {name!r} has objects of Python, which no table can store; make values of them")
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"the {type(data).__name__} has columns that cannot be read: {error}") from error


def _is_pandas(data: Any) -> bool:
    return _is_of("pandas", data) and hasattr(data, "columns")


def _is_of(package: str, data: Any) -> bool:
    """Whether a package made *data*: by name, so that it need not be installed or imported."""
    return type(data).__module__.partition(".")[0] == package


def _is_paths(data: Any) -> bool:
    return (
        isinstance(data, Sequence)
        and bool(data)
        and all(isinstance(path, os.PathLike) or (isinstance(path, str) and is_file_name(path)) for path in data)
    )
