"""
Which of several rows with one key wins: inside a batch, and against the stored row.

Two rows are compared by the table's ordering fields, in Java's order (strings by UTF-16 code unit, NaN above all
numbers, -0.0 below 0.0). Every row except a delete must have ordering values, as Hudi requires; a delete without one
always wins. A stored row without an ordering value always loses.

Source: Hudi 0.15.0 ``OverwriteWithLatestAvroPayload``, ``DefaultHoodieRecordPayload``; 1.1.1
``EventTimeRecordMerger``, ``HoodieAvroUtils.getNestedFieldVal``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config.payload_class import hudis_payload
from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import Array, Column, compute
from hudi_py.formats.key_order import java_numbers, java_order
from hudi_py.model.words import counted
from hudi_py.versions.served import format_of

Mask = npt.NDArray[np.bool_]

_PAYLOADS: Final = {
    "OverwriteWithLatestAvroPayload": "OVERWRITE_WITH_LATEST",
    "DefaultHoodieRecordPayload": "EVENT_TIME_ORDERING",
}
DELETED_COLUMN: Final = "_hoodie_is_deleted"


class MergeMode(Enum):
    """How a row of a commit is merged with the stored row of the same key."""

    OVERWRITE_WITH_LATEST = "OVERWRITE_WITH_LATEST"  # version 6: the commit wins; ordering decides inside a batch
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"  # the greater or equal ordering value wins
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"  # the commit wins, and the later row inside a batch


@attrs.frozen
class MergeRules:
    """
    A table's merge mode and ordering fields.

    Args:
        mode: See `MergeMode`.
        ordering_fields: Top-level columns, the first one decides first; may be empty unless the mode is event time.
    """

    mode: MergeMode
    ordering_fields: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        """Event time without a field would silently be commit time."""
        if self.mode is MergeMode.EVENT_TIME_ORDERING and not self.ordering_fields:
            raise ConfigError("merge mode EVENT_TIME_ORDERING needs hoodie.table.ordering.fields")

    @property
    def batch_fields(self) -> tuple[str, ...]:
        """Fields that decide between rows of one batch."""
        return () if self.mode is MergeMode.COMMIT_TIME_ORDERING else self.ordering_fields

    @property
    def stored_fields(self) -> tuple[str, ...]:
        """Fields that are compared with the stored row; if empty, the commit wins."""
        return self.ordering_fields if self.mode is MergeMode.EVENT_TIME_ORDERING else ()


def merge_rules_of(properties: Mapping[str, str]) -> MergeRules:
    """
    Read the merge rules from a table's properties.

    Raises:
        UnsupportedTable: The table uses a custom merger or another payload class.
    """
    fields = properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field") or ""
    ordering = tuple(part.strip() for part in fields.split(",") if part.strip())
    payload = properties.get("hoodie.compaction.payload.class", "")
    mode = properties.get("hoodie.record.merge.mode", "")
    if not mode:
        if format_of(properties).has_merge_mode:
            mode = "EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING"
        else:
            short = hudis_payload(payload)
            mode = (payload if short is None else _PAYLOADS.get(short, short)) or "OVERWRITE_WITH_LATEST"
    if mode not in MergeMode.__members__:
        raise UnsupportedTable(
            f"rows of this table are merged by {mode} ({payload}), which hudi_py does not write; use Apache Hudi"
        )
    if mode == "EVENT_TIME_ORDERING" and not ordering:  # nothing to compare, so the commit wins
        mode = "COMMIT_TIME_ORDERING"
    return MergeRules(MergeMode[mode], ordering)


def delete_mask(rows: pa.RecordBatch | pa.Table) -> Array | None:
    """Return the rows where ``_hoodie_is_deleted`` is true; None if there is no such boolean column."""
    position = rows.schema.get_field_index(DELETED_COLUMN)
    if position < 0 or rows.schema.field(position).type != pa.bool_():
        return None
    column: Any = rows.column(position)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    mask: Array = column.fill_null(False)
    return mask


def combine_before_write(
    rows: pa.Table, keys: Column, ordering_fields: Sequence[str], partition_paths: Column | None = None
) -> Array | None:
    """
    Choose one row per key: the highest ordering value, the latest among equals.

    Args:
        rows: n rows in order of arrival.
        keys: Their record keys.
        ordering_fields: Columns of *rows*; if empty, the latest row wins. Null counts as the highest value: only
            deletes may have it, see `refuse_null_ordering`.
        partition_paths: Partition paths of the rows, if the same key in two partitions means two records.

    Returns:
        Ascending row numbers to keep, for ``rows.take``; None when all keys differ.
    """
    codes = _codes(keys)
    if partition_paths is not None:
        paths = _codes(partition_paths)
        codes = codes * (int(paths.max(initial=0)) + 1) + paths
    if len(np.unique(codes)) == len(codes):
        return None
    columns: dict[str, Any] = {"key": pa.array(codes)}
    columns.update({f"o{index}": comparable(rows.column(name)) for index, name in enumerate(ordering_fields)})
    columns["row"] = pa.array(np.arange(len(codes)))
    order = pa.table(columns).sort_by([(name, "ascending") for name in columns]).column("row").to_numpy()
    # Sorted by key, ordering values and arrival, so the last row of each key is the one to keep.
    is_last = np.append(codes[order[1:]] != codes[order[:-1]], True)
    # Back in order of arrival: rows are written in the order in which the user gave them.
    winners: Array = pa.array(np.sort(order[is_last]))
    return winners


def refuse_null_ordering(rows: pa.Table, ordering_fields: Sequence[str], deletes: Array | None) -> None:
    """
    Check that every row except deletes has ordering values.

    Raises:
        ConfigError: An ordering column does not exist.
        WriteError: A value is null.
    """
    for name in ordering_fields:
        if name not in rows.column_names:
            raise ConfigError(f"ordering field {name!r} is not a column of the rows")
        nulls = compute.is_null(rows.column(name))
        if deletes is not None:
            nulls = compute.and_not(nulls, deletes)
        refuse_nulls(name, compute.sum(nulls).as_py() or 0)


def refuse_nulls(ordering_field: str, count: int) -> None:
    """
    Raise if there are rows without an ordering value.

    Raises:
        WriteError: There are.
    """
    if count:
        raise WriteError(
            f"ordering field {ordering_field!r} is null in {counted(count, 'row')}; Hudi cannot order such rows, fill "
            "it in"
        )


def incoming_wins(incoming: Sequence[Array], stored: Sequence[Array], *, wins_ties: bool = True) -> Mask:
    """
    Compare n pairs of rows by their ordering values.

    Args:
        incoming: One array of length n per ordering field, at least one.
        stored: The same for the stored rows, of equal types.
        wins_ties: Whether the incoming row wins where all values are equal.

    Returns:
        Shape (n,), True where the incoming row's values are greater or equal, or one side's first value is null.
    """
    # From the last field to the first, so that an earlier field overrules later ones unless its values are equal.
    wins = np.full(len(incoming[0]), wins_ties, dtype=np.bool_)
    for new, old in zip(reversed(incoming), reversed(stored), strict=True):
        left, right = comparable(new), comparable(old)
        greater, equal = _mask(compute.greater(left, right)), _mask(compute.equal(left, right))
        absent = _mask(compute.is_null(left)) | _mask(compute.is_null(right))
        wins = absent | greater | (equal & wins)
    return wins


def _codes(column: Column) -> npt.NDArray[np.int64]:
    """Number the distinct values."""
    encoded: Any = column.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries()
        parts = [chunk.indices.to_numpy().astype(np.int64) for chunk in encoded.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return codes


def refuse_types_without_order(schema: pa.Schema, fields: Sequence[str]) -> None:
    """
    Raise if rows cannot be compared by one of *fields*, before there are two rows to compare.

    Raises:
        ConfigError: The column has a type without an order.
    """
    for name in fields:
        if name in schema.names and not _has_order(schema.field(name).type):
            raise ConfigError(
                f"column {name!r} is {schema.field(name).type} and cannot be an ordering field; name another column in "
                "hoodie.table.ordering.fields, or cast it"
            )


def _has_order(arrow: pa.DataType) -> bool:
    return not (pa.types.is_nested(arrow) or pa.types.is_binary(arrow))


def comparable(column: Any) -> Any:
    """
    Convert a column so that Arrow compares it in Java's order.

    Raises:
        ConfigError: Its type has no order.
    """
    arrow = column.type
    if pa.types.is_string(arrow) or pa.types.is_floating(arrow):
        convert, wanted = (java_order, pa.large_binary()) if pa.types.is_string(arrow) else (java_numbers, pa.int64())
        if isinstance(column, pa.ChunkedArray):
            return pa.chunked_array([convert(chunk) for chunk in column.chunks], wanted)
        return convert(column)
    if not _has_order(arrow):
        raise ConfigError(f"a column of type {arrow} cannot be an ordering field")
    return column


def _mask(values: Any) -> Mask:
    mask: Mask = values.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
