"""Bounds of the values in the row groups of a base file, from its footer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.bounds import bounds_of_chunk
from hudi_py.rows.joined_file import JoinedFooter
from hudi_py.rows.moved_file import MovedFile
from hudi_py.rows.orc_file import OrcFooter
from hudi_py.rows.predicate import UNKNOWN, Bounds

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hudi_py.rows.condition import Path


def bounds_of_groups(file: pq.ParquetFile | MovedFile) -> Callable[[int, Path, pa.DataType], Sequence[Bounds]]:
    """Bounds from a file's footer: a function of the number of a row group, a column, and its type today."""
    if isinstance(file, MovedFile):
        return partial(_bounds_of_meta, bounds_of_groups(file.stored))
    if isinstance(file.metadata, JoinedFooter | OrcFooter):  # of two files, and in ORC, they are not known here
        return _unknown
    places = {file.schema.column(at).path: at for at in range(len(file.schema))}
    return partial(_bounds, file, places, file.schema_arrow)


def _bounds_of_meta(
    bounds: Callable[[int, Path, pa.DataType], Sequence[Bounds]], group: int, path: Path, arrow: pa.DataType
) -> Sequence[Bounds]:
    """Those of meta columns; those of others are under other names, if the file has them at all."""
    return bounds(group, path, arrow) if path[0] in META_COLUMNS else _unknown(group, path, arrow)


def _unknown(_group: int, _path: Path, _arrow: pa.DataType) -> Sequence[Bounds]:
    return [UNKNOWN]


def _bounds(
    file: pq.ParquetFile, places: Mapping[str, int], stored: pa.Schema, group: int, path: Path, arrow: pa.DataType
) -> Sequence[Bounds]:
    if path[0] not in stored.names:
        return [Bounds(has_only_nulls=True)]
    place = places.get(".".join(path))
    was = _stored_type(path, stored)
    if place is None or was is None:  # a nested column, or a field that was added later
        return [UNKNOWN]
    return [bounds_of_chunk(file.metadata.row_group(group).column(place), was, arrow)]


def _stored_type(path: Path, stored: pa.Schema) -> pa.DataType | None:
    """Type of a column, or of a field of structs, in a file; None if the file lacks it, or if it is nested."""
    arrow = stored.field(path[0]).type
    for name in path[1:]:
        if not isinstance(arrow, pa.StructType) or arrow.get_field_index(name) < 0:
            return None
        arrow = arrow.field(name).type
    if isinstance(arrow, pa.DictionaryType):
        value: pa.DataType = arrow.value_type
        return value
    return None if pa.types.is_nested(arrow) else arrow
