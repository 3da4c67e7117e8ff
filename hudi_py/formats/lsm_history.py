"""
The archived timeline of layout 2: Parquet files of instants, listed in a numbered manifest (rules/timeline 5.3).

To read it: `decode_version` of ``_version_`` (or the largest number of a manifest when that file is missing or
unreadable), `decode_manifest` of ``manifest_<n>``, then `read_history` of the files whose range is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.bounds import INFLATED_RATIO_MAX
from hudi_py.formats.commit_json import decode_json, encode_json

VERSION_FILE: Final = "_version_"
_MANIFEST_NAME: Final = re.compile(r"manifest_(\d+)")
_DATA_FILE_NAME: Final = re.compile(r"(\d+)_(\d+)_(\d)\.parquet")
_TIMES: Final = ("instantTime", "completionTime", "action")
_CONTENTS: Final = ("metadata", "plan")
_ROW_VERSION: Final = 1
_GROUP_ROWS_MAX: Final = 1 << 20  # Hudi and hudi_py write some thousands
_COLUMN_BYTES_MAX: Final = 1 << 29  # uncompressed size of a column in one row group
_COLUMN_BYTES_ALWAYS: Final = 1 << 24


@attrs.frozen(slots=True)
class HistoryFile:
    """
    A Parquet file in a manifest.

    Args:
        name: ``<first requested time>_<last requested time>_<level>.parquet``.
        size_bytes: Size of the file.
    """

    name: str
    size_bytes: int

    @property
    def time_range(self) -> tuple[str, str]:
        """First and last requested time in the file."""
        match = _DATA_FILE_NAME.fullmatch(self.name)
        assert match is not None  # checked when the manifest was decoded
        return match[1], match[2]

    @property
    def level(self) -> int:
        """How often the file was merged."""
        return int(self.name.removesuffix(".parquet")[-1])


@attrs.frozen(slots=True)
class HistoryRow:
    """
    An archived instant, always completed.

    Args:
        requested_time: Requested time, as on the active timeline.
        completion_time: Completion time, as on the active timeline.
        action: The action, as on the active timeline.
        metadata: Bytes of the completed file; None if it was empty.
        plan: Bytes of the requested file (clean, compaction, clustering, replacecommit), else None.
    """

    requested_time: str
    completion_time: str | None
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None


def history_file_name(first: str, last: str, level: int) -> str:
    """Return the name of a file with the instants from *first* to *last*."""
    return f"{first}_{last}_{level}.parquet"


def is_history_file(name: str) -> bool:
    """Return whether a name is that of a Parquet file of the history."""
    return _DATA_FILE_NAME.fullmatch(name) is not None


def manifest_name(number: int) -> str:
    """Return the name of the manifest with this number."""
    return f"manifest_{number}"


def manifest_number(name: str) -> int | None:
    """Return n of ``manifest_<n>``, or None for any other name, temporary ones included."""
    match = _MANIFEST_NAME.fullmatch(name)
    return int(match[1]) if match else None


def decode_version(data: bytes, source: str) -> int:
    """
    Decode ``_version_``: the number of the newest manifest.

    Raises:
        CorruptMetadata: The file does not contain a number; callers then use the manifest with the largest number.
    """
    text = data.decode("ascii", "replace").strip()
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise CorruptMetadata(f"{source}: {text[:40]!r} is not a manifest number (byte 0 of {len(data)})")
    return int(text)


def encode_version(number: int) -> bytes:
    """Encode ``_version_``."""
    return str(number).encode()


def decode_manifest(data: bytes, source: str) -> tuple[HistoryFile, ...]:
    """
    Decode ``manifest_<n>``: all Parquet files of that snapshot.

    Raises:
        CorruptMetadata: The content is not a manifest, or it names a file that cannot be part of the history.
    """
    value = decode_json(data, source)
    try:
        files = tuple(HistoryFile(entry["fileName"], int(entry["fileLen"])) for entry in value["files"])
        strays = [file.name for file in files if not _DATA_FILE_NAME.fullmatch(file.name)]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptMetadata(f"{source}: not a manifest of the timeline history: {error!r}") from error
    # A name is joined to a folder and read, so it must not lead anywhere else.
    if strays:
        raise CorruptMetadata(f"{source}: names {strays[0]!r}, which is not a file of the timeline history")
    # A few megabytes could ask for one file a hundred thousand times.
    if len({file.name for file in files}) < len(files):
        raise CorruptMetadata(f"{source}: names a file of the timeline history more than once")
    return files


def encode_manifest(files: Sequence[HistoryFile]) -> bytes:
    """Encode ``manifest_<n>``."""
    return encode_json({"files": [{"fileName": file.name, "fileLen": file.size_bytes} for file in files]})


def read_history(stream: BinaryIO | bytes, source: str, *, with_contents: bool = False) -> tuple[HistoryRow, ...]:
    """
    Read the rows of one Parquet file of the history, ascending by requested time as in the file.

    Args:
        stream: Seekable stream or bytes.
        source: Where it comes from, for messages.
        with_contents: Also load the bytes of completed and plan files; without them only three columns are read.

    Raises:
        CorruptMetadata: It is not such a Parquet file.
    """
    batches = iterate_history(stream, source, with_contents=with_contents)
    return tuple(row for rows in batches for row in rows)


def iterate_history(
    stream: BinaryIO | bytes, source: str, *, with_contents: bool = False
) -> Iterator[tuple[HistoryRow, ...]]:
    """Yield the rows of one Parquet file row group by row group; arguments and errors as `read_history`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [*_TIMES, *_CONTENTS] if with_contents else list(_TIMES)
    try:
        # Columns stay dictionary-encoded until their decoded size is known: see `_values`.
        source_file = pa.BufferReader(stream) if isinstance(stream, bytes) else stream
        file = pq.ParquetFile(source_file, read_dictionary=columns)
        for number in range(file.num_row_groups):
            bounds = _bounds(file.metadata.row_group(number))
            table = file.read_row_group(number, columns=columns)
            cells: list[list[Any]] = [_values(table.column(name), bounds[name]) for name in columns]
            # The columns are nullable in Parquet, but an instant without time or action could not be placed on the
            # timeline.
            if not all(isinstance(text, str) for text in (*cells[0], *cells[2])):
                raise CorruptMetadata(f"{source}: a row of the timeline history has no time or no action")
            yield tuple(map(HistoryRow, *cells))
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        raise CorruptMetadata(f"{source}: not a Parquet file of the timeline history: {error}") from error


def _bounds(group: Any) -> dict[str, int]:
    """Return the size limit in bytes of each column in a row group. Raises `ValueError` if the footer exceeds one."""
    if group.num_rows > _GROUP_ROWS_MAX:
        raise ValueError(f"{group.num_rows} rows in one group are too many")
    chunks = [group.column(number) for number in range(group.num_columns)]
    bounds = {
        chunk.path_in_schema: min(
            _COLUMN_BYTES_MAX, max(_COLUMN_BYTES_ALWAYS, chunk.total_compressed_size * INFLATED_RATIO_MAX)
        )
        for chunk in chunks
    }
    for chunk in chunks:
        _check_bytes(chunk.total_uncompressed_size, bounds[chunk.path_in_schema])
    return bounds


def _check_bytes(size: int, bound: int) -> None:
    if not 0 <= size <= bound:
        raise ValueError(f"{size} bytes in one column of a row group are too many")


def _values(column: Any, bytes_max: int) -> list[Any]:
    """Return a column's values after checking their size: a dictionary can repeat a long value a million times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values: list[Any] = []
    for chunk in column.chunks:
        if isinstance(chunk, pa.DictionaryArray):
            dictionary: Any = chunk.dictionary
            lengths = pc.binary_length(dictionary).take(chunk.indices)
            _check_bytes(pc.sum(lengths.cast(pa.int64())).as_py() or 0, bytes_max)
            chunk = chunk.dictionary_decode()
        values += chunk.to_pylist()
    return values


def write_history(stream: BinaryIO, batches: Iterable[Sequence[HistoryRow]]) -> None:
    """
    Write one Parquet file of the history, a row group per batch, so that only one batch is in memory.

    Args:
        stream: Stream to write to; the caller closes it.
        batches: Rows, ascending by requested time over all batches.

    Source: Hudi 1.1.1, ``LSMTimelineWriter``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Hudi reads the rows through Avro, and takes their schema from these footer keys.
    footer: dict[bytes | str, bytes | str] = {
        "parquet.avro.schema": schema_text("HoodieLSMTimelineInstant"),
        "writer.model.name": "avro",
    }
    fields = [pa.field(name, pa.string()) for name in _TIMES] + [pa.field(name, pa.binary()) for name in _CONTENTS]
    schema = pa.schema([*fields, pa.field("version", pa.int32(), nullable=False)], metadata=footer)
    with pq.ParquetWriter(stream, schema, compression="gzip", store_schema=False) as writer:
        for rows in batches:
            columns: list[list[Any]] = [
                [row.requested_time for row in rows],
                [row.completion_time for row in rows],
                [row.action for row in rows],
                [row.metadata for row in rows],
                [row.plan for row in rows],
                [_ROW_VERSION] * len(rows),
            ]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
