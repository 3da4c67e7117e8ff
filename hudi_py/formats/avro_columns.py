"""
Decodes Avro records to Arrow columns, all records of a block at once.

Record by record, Python would need some microseconds per field. Here each step decodes one field of all records: an
array has the position of each record in the bytes. Lists and maps take one step per element of the longest one.

Every length is compared with the end of its record before anything is read, so damaged or hostile bytes never cost more
memory than their own size.

Source: Avro 1.11 specification, binary encoding; types as `hudi_py.formats.record_schema`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.avro_values import (
    At,
    Node,
    Numbers,
    booleans,
    branches_of,
    decimal_of,
    enum_of,
    fixed_of,
    float_of,
    ints,
    longs,
    texts,
)
from hudi_py.formats.bounds import check_columns

_PADDING: Final = bytes(16)
_SHORT_MAX: Final = 1 << 6  # smaller numbers take one byte
_SCHEMAS_MAX: Final = 64  # compiled schemas that are kept: log files of a table have one or two
_EMPTY_ELEMENTS_MAX: Final = 1 << 16
"""Limit for elements that take no bytes; for all others the size of the record is the limit."""
_TYPES: Final[Mapping[tuple[str, str | None], pa.DataType]] = {
    ("int", None): pa.int32(),
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", None): pa.int64(),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def decode_columns(
    data: bytes, starts: Numbers, ends: Numbers, schema_text: str, source: str, columns: frozenset[str] | None = None
) -> pa.RecordBatch:
    """
    Decode n records.

    Args:
        data: The bytes of all records.
        starts: Shape (n,), the begin of each record in *data*.
        ends: Shape (n,), the end of each record; decoding must end exactly there.
        schema_text: Avro JSON of the schema that the records were written with.
        source: Where the bytes come from, for messages.
        columns: Names of the fields to return; None for all.

    Returns:
        n rows with the fields in the order and types of the schema, ``_hoodie_*`` columns too.

    Raises:
        CorruptMetadata: The bytes or the schema are damaged.
        UnsupportedTable: A field has a type that Hudi does not write.
    """
    try:
        fields = _fields_of(schema_text)
        # Padded, so that numbers of a fixed width can be read at the last record without a test of each position.
        at = At(np.frombuffer(data + _PADDING, np.uint8), np.asarray(starts, np.int64), np.asarray(ends, np.int64))
        found: dict[str, Array] = {}
        for name, node in fields:  # unwanted fields too: only decoding them shows where the next field begins
            column = node.decode(at)
            if columns is None or name in columns:
                column.validate(full=True)
                found[name] = column
        if np.any(at.pos != at.end):
            raise ValueError("a record has bytes left over")
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise CorruptMetadata(f"{source}: records do not decode: {error}") from error
    if not found:
        return pa.RecordBatch.from_struct_array(pa.nulls(len(at), pa.struct([])))  # rows without columns
    return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


@functools.lru_cache(_SCHEMAS_MAX)
def _fields_of(text: str) -> tuple[tuple[str, Node], ...]:
    record = json.loads(text)
    if record["type"] != "record":
        raise ValueError("the schema is not that of a record")
    check_columns(record)
    compiler = _Compiler()
    compiler.enter(record, "")
    name = _full_name(record, "")
    return tuple((each["name"], compiler.node(each["type"], name, each["name"])) for each in record["fields"])


class _Compiler:
    """Converts Avro types to nodes; keeps named types, because Avro defines a type only where it first occurs."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def enter(self, avro: Any, enclosing: str) -> None:
        self._named[_full_name(avro, enclosing)] = avro

    def node(self, avro: Any, enclosing: str, path: str) -> Node:
        if isinstance(avro, list):
            return self._union(avro, enclosing, path)
        if isinstance(avro, str):
            namespace = enclosing.rpartition(".")[0]
            # A name without a namespace means the one of the enclosing record.
            full = avro if avro in self._named else f"{namespace}.{avro}"
            if full not in self._named:
                return self._primitive(avro, None, path)
            # Decoding goes by type, not by record, so a type within itself would never end.
            if full in self._open:
                raise UnsupportedTable(f"column {path!r} contains itself; such columns cannot be read")
            return self.node(self._named[full], full, path)
        kind = avro["type"]
        if isinstance(kind, (dict, list)):
            return self.node(kind, enclosing, path)
        if kind in ("record", "fixed", "enum"):
            self.enter(avro, enclosing)
        if kind == "record":
            return self._record(avro, _full_name(avro, enclosing), path)
        if kind == "array":
            return _list_of(self.node(avro["items"], enclosing, f"{path}.element"), avro["items"])
        if kind == "map":
            return _map_of(self.node(avro["values"], enclosing, f"{path}.value"), avro["values"])
        if avro.get("logicalType") == "decimal":
            return decimal_of(avro)
        if kind == "fixed":
            return fixed_of(int(avro["size"]))
        if kind == "enum":
            return enum_of(avro["symbols"])
        return self._primitive(kind, avro.get("logicalType"), path)

    def _union(self, avro: list[Any], enclosing: str, path: str) -> Node:
        branches = [at for at, branch in enumerate(avro) if branch != "null"]
        if len(branches) > 1:
            raise UnsupportedTable(f"column {path!r} is a union of {len(branches)} types; it cannot be read")
        if not branches:
            return Node(pa.null(), lambda at: pa.nulls(len(branches_of(at, len(avro)))), 1)
        inner = self.node(avro[branches[0]], enclosing, path)
        return Node(inner.arrow, lambda at: _optional(at, inner, branches[0], len(avro)), 1)

    def _record(self, avro: Any, name: str, path: str) -> Node:
        self._open.append(name)
        nodes = [(each, self.node(each["type"], name, f"{path}.{each['name']}")) for each in avro["fields"]]
        self._open.pop()
        fields = [pa.field(each["name"], node.arrow, _is_nullable(each["type"])) for each, node in nodes]

        def decode(at: At) -> Any:
            make: Any = pa.StructArray.from_arrays
            if not fields:
                return pa.array([{}] * len(at), pa.struct([]))
            return make([node.decode(at) for _, node in nodes], fields=fields)

        return Node(pa.struct(fields), decode, sum(node.size_min for _, node in nodes))

    def _primitive(self, kind: str, logical: str | None, path: str) -> Node:
        if kind == "null":
            return Node(pa.null(), lambda at: pa.nulls(len(at)), 0)
        if kind == "string":
            return Node(pa.string(), lambda at: texts(at, pa.string()), 1)
        if kind == "bytes":
            return Node(pa.binary(), lambda at: texts(at, pa.binary()), 1)
        if kind == "boolean":
            return Node(pa.bool_(), booleans, 1)
        if kind in ("float", "double"):
            return float_of(4 if kind == "float" else 8)
        arrow = _TYPES.get((kind, logical), _TYPES.get((kind, None)))
        if arrow is None:
            raise UnsupportedTable(f"column {path!r} has the Avro type {kind}, which is not known")
        if kind == "int":
            return Node(arrow, lambda at: ints(at).view(arrow), 1)
        return Node(arrow, lambda at: pa.array(longs(at)).view(arrow), 1)


def _is_nullable(avro: Any) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


def _full_name(avro: Mapping[str, Any], enclosing: str) -> str:
    name: str = avro["name"]
    namespace = avro.get("namespace", enclosing.rpartition(".")[0])
    return name if "." in name or not namespace else f"{namespace}.{name}"


# --- containers of values ---------------------------------------------------------------------------------------------
def _optional(at: At, inner: Node, branch: int, count: int) -> Any:
    began = at.skip(1)
    if branch < _SHORT_MAX and (at.data[began] == 2 * branch).all():  # no nulls: the usual case, and ten times faster
        return inner.decode(at)
    at.pos = began
    is_there = branches_of(at, count) == branch
    rows = is_there.nonzero()[0]
    if len(rows) == len(at):
        return inner.decode(at)
    if not len(rows):
        return _nulls(len(at), inner.arrow)
    # Only the records that have a value are decoded; then each record takes the value of its number, or null.
    there = at.of_rows(rows)
    values = inner.decode(there)
    at.pos[rows] = there.pos
    return values.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


def _nulls(count: int, arrow: Any) -> Any:
    return pa.nulls(count, arrow)


def _list_of(element: Node, avro: Any) -> Node:
    arrow = pa.list_(pa.field("element", element.arrow, _is_nullable(avro)))

    def decode(at: At) -> Any:
        offsets, (values,) = _elements(at, (element,))
        make: Any = pa.ListArray.from_arrays
        return make(offsets, values, type=arrow)

    return Node(arrow, decode, 1)


def _map_of(value: Node, avro: Any) -> Node:
    make_type: Any = pa.map_  # the stubs only accept a type as value, but only a field can say "not null"
    arrow: pa.DataType = make_type(pa.string(), pa.field("value", value.arrow, _is_nullable(avro)))
    key = Node(pa.string(), lambda at: texts(at, pa.string()), 1)

    def decode(at: At) -> Any:
        offsets, (keys, values) = _elements(at, (key, value))
        make: Any = pa.MapArray.from_arrays
        return make(offsets, keys, values, type=arrow)

    return Node(arrow, decode, 1)


def _elements(at: At, nodes: Sequence[Node]) -> tuple[Array, list[Any]]:
    """Offsets of n lists, and for each node the values of all elements."""
    sizes = np.zeros(len(at), np.int64)
    rows_of: list[Numbers] = []
    pieces: list[list[Any]] = [[] for _ in nodes]
    rows = np.arange(len(at))
    while len(rows):  # a list is a series of blocks; the last block has no elements
        block = at.of_rows(rows)
        counts = longs(block)
        with_size = np.flatnonzero(counts < 0)  # a negative count is followed by the size of the block in bytes
        if len(with_size):
            sized = block.of_rows(with_size)
            longs(sized)
            block.pos[with_size] = sized.pos
        at.pos[rows] = block.pos
        counts = np.abs(counts)
        size_min = sum(node.size_min for node in nodes)
        # Each element takes at least *size_min* bytes, so a larger count cannot be true and would only reserve memory.
        bound = (block.end - block.pos) // size_min if size_min else _EMPTY_ELEMENTS_MAX
        if np.any(counts < 0) or np.any(counts > bound):
            raise ValueError("a list does not fit into its record")
        rows = rows[counts > 0]
        left = counts[counts > 0]
        sizes[rows] += left
        active = rows
        while len(active):
            one = at.of_rows(active)
            for node, values in zip(nodes, pieces, strict=True):
                values.append(node.decode(one))
            at.pos[active] = one.pos
            rows_of.append(active)
            left = left - 1
            active, left = active[left > 0], left[left > 0]
    offsets = np.zeros(len(at) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    if not rows_of:
        return pa.array(offsets), [pa.array([], node.arrow) for node in nodes]
    # Elements were decoded first of all lists, then second ...; a stable sort by list puts each list together.
    order = pa.array(np.argsort(np.concatenate(rows_of), kind="stable"))
    return pa.array(offsets), [compute.take(pa.concat_arrays(values), order) for values in pieces]
