"""Rows of a copy-on-write table through PyArrow: a quick look, without Spark and in bounded memory."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.files import BaseFile, join_path

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.storage.base import Storage

_BATCH_ROWS: Final = 8192


def read_batches(
    storage: Storage,
    files: Sequence[tuple[str, BaseFile]],
    *,
    columns: Sequence[str] | None = None,
    with_meta: bool = False,
) -> Iterator[pa.RecordBatch]:
    """As `read_files`, of pairs of partition path and base file."""
    paths = (join_path(partition, base.name) for partition, base in files)
    return read_files(storage, paths, columns=columns, with_meta=with_meta)


def read_files(
    storage: Storage, paths: Iterable[str], *, columns: Sequence[str] | None = None, with_meta: bool = False
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of base files.

    Args:
        paths: Relative to the table.
        columns: Only these; all by default.
        with_meta: The five ``_hoodie_*`` columns too.

    Raises:
        ConfigError: A column exists in no file.
        CorruptMetadata: A base file is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in paths:
        try:
            with storage.open_read(path) as stream, pq.ParquetFile(stream) as file:
                wanted = _columns(file.schema_arrow.names, columns, with_meta, path)
                yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted)
        except pa.ArrowInvalid as error:
            raise CorruptMetadata(f"{storage.root}/{path} is not a readable Parquet file: {error}") from error


def _columns(names: Sequence[str], wanted: Sequence[str] | None, with_meta: bool, path: str) -> list[str]:
    if wanted is None:
        return [name for name in names if with_meta or name not in META_COLUMNS]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ConfigError(f"{path} has no column {', '.join(missing)}; it has {', '.join(names)}")
    return [
        *(META_COLUMNS if with_meta else ()),
        *(name for name in wanted if name not in META_COLUMNS or not with_meta),
    ]


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: decimals, dates and timestamps (in UTC) as text, bytes in Base64."""
    return [{name: plain(value) for name, value in row.items()} for row in batch.to_pylist()]


def plain(value: Any) -> Any:
    """One value as JSON can hold it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return str(value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, (Decimal, date, time_of_day, timedelta)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value
