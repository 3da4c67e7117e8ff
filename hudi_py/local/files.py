"""Reads the user's own files with rows: Parquet, CSV and JSON lines; the end of the name decides which."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import PARQUET_DAMAGE, Array, compute
from hudi_py.formats.parquet_file import check_names
from hudi_py.formats.schema_evolution import new_fields
from hudi_py.local.inferred import is_doubtful, settled, settled_decimals
from hudi_py.local.stream import RowStream

_Path = str | os.PathLike[str]
# The largest precision of Spark SQL, half of it behind the point: enough to tell whether decimals are exact.
_EXACT: Final = pa.decimal128(38, 18)
_BATCH_ROWS: Final = 65_536
_SHORTEST_TIME: Final = len("2026-11-22T08:30")


def is_file_name(name: str) -> bool:
    """Return whether the end of a name says which kind of file it is."""
    return _kind_of(name) is not None


def read_files(paths: Sequence[_Path], stored: pa.Schema | None) -> pa.Table:
    """
    Read the rows of files.

    Args:
        paths: Local paths. A column that one file lacks is null in its rows.
        stored: Columns of the table, if it exists; values in CSV and JSON files are read as these types.

    Raises:
        ConfigError: There is no such file, its name does not end like that of a known kind, or two of its columns have
            one name.
        WriteError: A file is damaged, or the files have a column with different types.
    """
    names = [os.fspath(path) for path in paths]
    tables = [_read_file(name, stored) for name in names]
    _together(names, [table.schema for table in tables])  # raises with the names of files
    return pa.concat_tables(tables, promote_options="default")


def parquet_stream(paths: Sequence[_Path]) -> RowStream | None:
    """
    Return the rows of Parquet files; None if one of the files is of another kind. Raises as `read_files`.
    """
    names = [os.fspath(path) for path in paths]
    if {_kind_of(name) for name in names} != {".parquet"}:
        return None
    schema = _together(names, [_opened(name).schema_arrow.remove_metadata() for name in names])
    return RowStream(schema, lambda: (batch for name in names for batch in _parquet_batches(name, schema)))


def _opened(path: str) -> Any:
    import pyarrow.parquet as pq

    _require_file(path)
    with _reading(path, ".parquet"):
        file = pq.ParquetFile(path)
        check_names(file)
    return file


def _parquet_batches(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    file = _opened(path)
    names = set(file.schema_arrow.names)
    with _reading(path, ".parquet"):
        for batch in file.iter_batches(_BATCH_ROWS):
            columns: Any = [
                batch.column(field.name).cast(field.type)
                if field.name in names
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _together(paths: Sequence[str], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """
    Return the columns of all files.

    Raises:
        ConfigError: A file has two columns of one name.
        WriteError: A column has types in two files that are not one.
    """
    found: dict[str, tuple[str, pa.Field[Any]]] = {}
    for path, schema in zip(paths, schemas, strict=True):
        twice = [name for name, count in Counter(schema.names).items() if count > 1]
        if twice:
            raise ConfigError(f"{path}: several columns are called {twice[0]!r}; rename or drop all but one")
        for field in schema:
            first, known = found.setdefault(field.name, (path, field))
            try:
                (both,) = pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="default")
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise WriteError(
                    f"column {field.name!r} is {known.type} in {first} and {field.type} in {path}; write the files one "
                    "after the other, or give the column one type in both"
                ) from error
            found[field.name] = (first if both.type == known.type else path, both)
    return pa.schema([field for _, field in found.values()])


@contextmanager
def _reading(path: str, kind: str) -> Iterator[None]:
    try:
        yield
    except PARQUET_DAMAGE as error:
        raise WriteError(f"{path}: cannot be read as {kind[1:]}: {' '.join(str(error).split())}") from error


def _require_file(path: str) -> None:
    if not Path(path).is_file():
        raise ConfigError(f"{path}: there is no such file" + (" on this machine" if "://" in path else ""))


def _kind_of(name: str) -> str | None:
    # Arrow decompresses by the same suffix.
    plain = name.lower().removesuffix(".gz")
    return next((end for end in _READERS if plain.endswith(end)), None)


def _read_file(path: str, stored: pa.Schema | None) -> pa.Table:
    kind = _kind_of(path)
    if kind is None:
        raise ConfigError(f"{path}: not known as a file of rows; its name has to end in {', '.join(_READERS)}")
    _require_file(path)
    known = {} if stored is None else {field.name: field.type for field in stored}
    with _reading(path, kind):
        return _READERS[kind](path, known)


def _read_parquet(path: str, _known: Mapping[str, pa.DataType]) -> pa.Table:
    table: pa.Table = _opened(path).read().replace_schema_metadata(None)
    return table


def _read_csv(path: str, known: Mapping[str, pa.DataType]) -> pa.Table:
    """Read a CSV file with a header. An empty field is null, unless it is quoted in a column of text."""
    import pyarrow.csv as pc

    def read(types: dict[str, pa.DataType], columns: list[str] | None = None) -> pa.Table:
        options = pc.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=columns,
        )
        # Arrow splits files at line ends otherwise, also at those within quotes.
        return pc.read_csv(path, parse_options=pc.ParseOptions(newlines_in_values=True), convert_options=options)

    table = read({name: arrow for name, arrow in known.items() if not pa.types.is_nested(arrow)})
    # Only new columns: known ones were read as the types that the table has.
    doubtful = [field.name for field in table.schema if field.name not in known and is_doubtful(field.type)]
    if not doubtful or len(set(table.column_names)) < table.num_columns:
        return table
    # The file is read a second time, for these columns alone: Arrow keeps no text of what it converts.
    texts = read(dict.fromkeys(doubtful, pa.string()), doubtful)
    for name in doubtful:
        column = settled(table.column(name), texts.column(name))
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _read_json(path: str, known: Mapping[str, pa.DataType]) -> pa.Table:
    """Read one JSON object a line. Times are text, and binary values base64 text, as ``hudi-py read`` prints them."""
    import pyarrow.json as pj

    explicit: Any = [
        (name, pa.string() if pa.types.is_binary(arrow) else arrow)
        for name, arrow in known.items()
        if not _is_inferred_in_json(arrow)
    ]

    def read(fields: Any, others: Literal["infer", "ignore"] = "infer") -> pa.Table:
        options = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior=others)
        return pj.read_json(path, parse_options=options)

    table = read(explicit)
    # A column that is asked for comes back as nulls where no line has it; it would count as a column of the file.
    empty = [name for name, _ in explicit if table.column(name).null_count == table.num_rows]
    table = table.drop_columns([name for name in empty if name not in _named_in_json(path, empty)])
    for position, name in enumerate(table.column_names):
        arrow = known.get(name, table.schema.field(position).type)
        if arrow != table.schema.field(position).type:
            column = table.column(position)
            for each in new_fields(column.type, arrow, name):
                raise WriteError(
                    f"{path}: {each} is a field that the table does not have, and the type that JSON gives it is a "
                    "guess; write the first rows with it from Parquet or Arrow"
                )
            if _is_inferred_in_json(arrow) and not _holds_times(column.type):
                raise WriteError(f"{path}: column {name!r} is {arrow}, whose values are given as text, not as numbers")
            values: Any = _from_base64(column, name) if pa.types.is_binary(arrow) else column.cast(arrow)
            table = table.set_column(position, pa.field(name, arrow), values)
    for position, field in enumerate(table.schema):
        if field.name not in known and field.type == pa.float64():
            table = table.set_column(position, field.name, _numbers_of_json(read, table.column(position), field.name))
        elif field.name not in known and pa.types.is_timestamp(field.type):
            texts = read([(field.name, pa.string())], "ignore").column(0)
            if compute.any(compute.less(compute.utf8_length(texts), _SHORTEST_TIME)).as_py():  # days alone
                table = table.set_column(position, field.name, texts)
    return table


def _numbers_of_json(read: Callable[..., pa.Table], guessed: Any, name: str) -> Any:
    """Return numbers of a new column so that none of them changes, as far as decimals can hold them."""
    try:
        exact = read([(name, _EXACT)], "ignore").column(0)
    except pa.ArrowInvalid:  # very small or very large ones, which only floating-point numbers hold
        return guessed
    return settled_decimals(guessed, exact)


def _named_in_json(path: str, names: Collection[str]) -> set[str]:
    """Return those of some columns that an object of the file has, if only with null."""
    texts = {name: {json.dumps(name, ensure_ascii=plain).encode() for plain in (True, False)} for name in names}
    found: set[str] = set()
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as lines:
        for line in lines if names else ():
            maybe = {name for name in texts if name not in found and any(text in line for text in texts[name])}
            if maybe:
                try:
                    found |= maybe & json.loads(line).keys()
                except (ValueError, AttributeError):  # several objects in a line, or a part of one
                    found |= maybe
    return found


def _is_inferred_in_json(arrow: pa.DataType) -> bool:
    """Return whether Arrow recognizes values of a type in JSON texts only by itself, not on request."""
    return pa.types.is_date(arrow) or pa.types.is_timestamp(arrow)


def _holds_times(arrow: pa.DataType) -> bool:
    types = pa.types
    return types.is_timestamp(arrow) or types.is_date(arrow) or types.is_string(arrow) or types.is_null(arrow)


def _from_base64(column: Any, name: str) -> Array:
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()]
    except ValueError as error:
        raise WriteError(f"column {name!r} is binary, so its values are given as base64 text: {error}") from error
    decoded: Array = pa.array(values, pa.binary())
    return decoded


_READERS: Final[Mapping[str, Callable[[str, Mapping[str, pa.DataType]], pa.Table]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".json": _read_json,
}
