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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.arrow_types import Array, compute

Numbers = npt.NDArray[np.int64]

_PADDING: Final = bytes(16)
_SHIFT_MAX: Final = 63
_DECIMAL_BYTES: Final = 16
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


class _At:
    """The positions in n records: all bytes, and for each record the next position and its end."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: npt.NDArray[np.uint8], pos: Numbers, end: Numbers) -> None:
        self.data = data
        self.pos = pos
        self.end = end

    def __len__(self) -> int:
        return len(self.pos)

    def some(self, rows: Numbers) -> _At:
        return _At(self.data, self.pos[rows], self.end[rows])

    def skip(self, sizes: Numbers | int) -> Numbers:
        """Advance each record by its size; return the earlier positions."""
        began = self.pos
        is_beyond = sizes > self.end - began
        if is_beyond.any() or np.min(sizes, initial=0) < 0:
            raise ValueError("a value does not fit into its record")
        self.pos = began + sizes
        return began


Decode = Callable[[_At], Any]


class _Node(NamedTuple):
    """One type: the Arrow type of its values, how to decode them, and the smallest size of a value in bytes."""

    arrow: pa.DataType
    decode: Decode
    size_min: int


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
        at = _At(np.frombuffer(data + _PADDING, np.uint8), np.asarray(starts, np.int64), np.asarray(ends, np.int64))
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
def _fields_of(text: str) -> tuple[tuple[str, _Node], ...]:
    record = json.loads(text)
    if record["type"] != "record":
        raise ValueError("the schema is not that of a record")
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

    def node(self, avro: Any, enclosing: str, path: str) -> _Node:
        if isinstance(avro, list):
            return self._union(avro, enclosing, path)
        if isinstance(avro, str):
            namespace = enclosing.rpartition(".")[0]
            full = avro if avro in self._named else f"{namespace}.{avro}"
            if full not in self._named:
                return self._primitive(avro, None, path)
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
            return _decimal_of(avro)
        if kind == "fixed":
            return _fixed_of(int(avro["size"]))
        if kind == "enum":
            return _enum_of(avro["symbols"])
        return self._primitive(kind, avro.get("logicalType"), path)

    def _union(self, avro: list[Any], enclosing: str, path: str) -> _Node:
        branches = [at for at, branch in enumerate(avro) if branch != "null"]
        if len(branches) > 1:
            raise UnsupportedTable(f"column {path!r} is a union of {len(branches)} types; it cannot be read")
        if not branches:
            return _Node(pa.null(), lambda at: pa.nulls(len(_branches(at, len(avro)))), 1)
        inner = self.node(avro[branches[0]], enclosing, path)
        return _Node(inner.arrow, lambda at: _optional(at, inner, branches[0], len(avro)), 1)

    def _record(self, avro: Any, name: str, path: str) -> _Node:
        self._open.append(name)
        nodes = [(each, self.node(each["type"], name, f"{path}.{each['name']}")) for each in avro["fields"]]
        self._open.pop()
        fields = [pa.field(each["name"], node.arrow, _is_nullable(each["type"])) for each, node in nodes]

        def decode(at: _At) -> Any:
            make: Any = pa.StructArray.from_arrays
            if not fields:
                return pa.array([{}] * len(at), pa.struct([]))
            return make([node.decode(at) for _, node in nodes], fields=fields)

        return _Node(pa.struct(fields), decode, sum(node.size_min for _, node in nodes))

    def _primitive(self, kind: str, logical: str | None, path: str) -> _Node:
        if kind == "null":
            return _Node(pa.null(), lambda at: pa.nulls(len(at)), 0)
        if kind == "string":
            return _Node(pa.string(), lambda at: _texts(at, pa.string()), 1)
        if kind == "bytes":
            return _Node(pa.binary(), lambda at: _texts(at, pa.binary()), 1)
        if kind == "boolean":
            return _Node(pa.bool_(), _booleans, 1)
        if kind in ("float", "double"):
            return _float_of(4 if kind == "float" else 8)
        arrow = _TYPES.get((kind, logical), _TYPES.get((kind, None)))
        if arrow is None:
            raise UnsupportedTable(f"column {path!r} has the Avro type {kind}, which is not known")
        if kind == "int":
            return _Node(arrow, lambda at: _ints(at).view(arrow), 1)
        return _Node(arrow, lambda at: pa.array(_longs(at)).view(arrow), 1)


def _is_nullable(avro: Any) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


def _full_name(avro: Mapping[str, Any], enclosing: str) -> str:
    name: str = avro["name"]
    namespace = avro.get("namespace", enclosing.rpartition(".")[0])
    return name if "." in name or not namespace else f"{namespace}.{name}"


# --- values -----------------------------------------------------------------------------------------------------------
def _longs(at: _At) -> Numbers:
    """Numbers of variable length: seven bits per byte, the sign in the lowest bit."""
    pos = at.skip(1)
    byte = at.data[pos]
    more = (byte >= 0x80).nonzero()[0]
    found: Numbers
    if not len(more):
        short = byte.astype(np.int64)
        found = (short >> 1) ^ -(short & 1)
        return found
    value = (byte & 0x7F).astype(np.uint64)
    shift = 7
    end = at.pos
    while len(more):
        if shift > _SHIFT_MAX or (end[more] >= at.end[more]).any():
            raise ValueError("a number does not end")
        byte = at.data[end[more]]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        end[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    found = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
    return found


def _ints(at: _At) -> Any:
    return pa.array(_longs(at)).cast(pa.int32())


def _booleans(at: _At) -> Any:
    return pa.array(at.data[at.skip(1)] != 0)


def _gathered(at: _At, size: int) -> npt.NDArray[np.uint8]:
    """The next *size* bytes of each record; shape (n, size)."""
    began = at.skip(size)
    found: npt.NDArray[np.uint8] = at.data[began[:, None] + np.arange(size)]
    return found


def _float_of(size: int) -> _Node:
    kind = np.dtype(f"<f{size}")
    arrow = pa.float32() if size == kind.itemsize == 4 else pa.float64()
    return _Node(arrow, lambda at: pa.array(np.ascontiguousarray(_gathered(at, size)).view(kind).ravel()), size)


def _buffer(values: Any) -> Any:
    return pa.py_buffer(values)


def _picked(values: Any, places: Any) -> Any:
    return values.take(pa.array(places))


def _texts(at: _At, arrow: pa.DataType) -> Any:
    sizes = _longs(at)
    began = at.skip(sizes)
    # Summed in 64 bits: Arrow's offsets of strings have 32, and must not overflow silently.
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError("texts of one block are longer than 2 GiB together")
    values = at.data[np.repeat(began - offsets[:-1], sizes) + np.arange(offsets[-1])]
    parts = [None, _buffer(offsets.astype(np.int32)), _buffer(values)]
    return pa.Array.from_buffers(arrow, len(sizes), parts)


def _fixed_of(size: int) -> _Node:
    arrow = pa.binary(size)
    return _Node(arrow, lambda at: pa.Array.from_buffers(arrow, len(at), [None, _buffer(_gathered(at, size))]), size)


def _enum_of(symbols: Sequence[str]) -> _Node:
    return _Node(pa.string(), lambda at: _picked(pa.array(symbols, pa.string()), _branches(at, len(symbols))), 1)


def _decimal_of(avro: Mapping[str, Any]) -> _Node:
    arrow = pa.decimal128(avro["precision"], avro.get("scale", 0))
    fixed = int(avro["size"]) if avro["type"] == "fixed" else None

    def decode(at: _At) -> Any:
        sizes = np.full(len(at), fixed, np.int64) if fixed is not None else _longs(at)
        began = at.skip(sizes)
        ends = began + sizes
        # Avro has as many bytes as the number needs, big-endian; Arrow has 16, little-endian: extended by the sign.
        places = ends[:, None] + np.arange(-_DECIMAL_BYTES, 0)
        is_value = places >= began[:, None]
        is_negative = (at.data[began] >= 0x80) & (sizes > 0)
        filler = np.where(is_negative, 0xFF, 0).astype(np.uint8)[:, None]
        wide = np.where(is_value, at.data[np.maximum(places, 0)], filler)
        little = np.ascontiguousarray(wide[:, ::-1])
        return pa.Array.from_buffers(arrow, len(at), [None, _buffer(little)])

    return _Node(arrow, decode, 1 if fixed is None else fixed)


# --- containers of values ---------------------------------------------------------------------------------------------
def _branches(at: _At, count: int) -> Numbers:
    branches = _longs(at)
    if (branches < 0).any() or (branches >= count).any():
        raise ValueError("a union has no such branch")
    return branches


def _optional(at: _At, inner: _Node, branch: int, count: int) -> Any:
    began = at.skip(1)
    if branch < _SHORT_MAX and (at.data[began] == 2 * branch).all():  # no nulls: the usual case, and ten times faster
        return inner.decode(at)
    at.pos = began
    is_there = _branches(at, count) == branch
    rows = is_there.nonzero()[0]
    if len(rows) == len(at):
        return inner.decode(at)
    if not len(rows):
        return _nulls(len(at), inner.arrow)
    there = at.some(rows)
    values = inner.decode(there)
    at.pos[rows] = there.pos
    return values.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))


def _nulls(count: int, arrow: Any) -> Any:
    return pa.nulls(count, arrow)


def _list_of(element: _Node, avro: Any) -> _Node:
    arrow = pa.list_(pa.field("element", element.arrow, _is_nullable(avro)))

    def decode(at: _At) -> Any:
        offsets, (values,) = _elements(at, (element,))
        make: Any = pa.ListArray.from_arrays
        return make(offsets, values, type=arrow)

    return _Node(arrow, decode, 1)


def _map_of(value: _Node, avro: Any) -> _Node:
    make_type: Any = pa.map_  # the stubs only accept a type as value, but only a field can say "not null"
    arrow: pa.DataType = make_type(pa.string(), pa.field("value", value.arrow, _is_nullable(avro)))
    key = _Node(pa.string(), lambda at: _texts(at, pa.string()), 1)

    def decode(at: _At) -> Any:
        offsets, (keys, values) = _elements(at, (key, value))
        make: Any = pa.MapArray.from_arrays
        return make(offsets, keys, values, type=arrow)

    return _Node(arrow, decode, 1)


def _elements(at: _At, nodes: Sequence[_Node]) -> tuple[Array, list[Any]]:
    """Offsets of n lists, and for each node the values of all elements."""
    sizes = np.zeros(len(at), np.int64)
    rows_of: list[Numbers] = []
    pieces: list[list[Any]] = [[] for _ in nodes]
    rows = np.arange(len(at))
    while len(rows):  # a list is a series of blocks; the last block has no elements
        block = at.some(rows)
        counts = _longs(block)
        with_size = np.flatnonzero(counts < 0)  # a negative count is followed by the size of the block in bytes
        if len(with_size):
            sized = block.some(with_size)
            _longs(sized)
            block.pos[with_size] = sized.pos
        at.pos[rows] = block.pos
        counts = np.abs(counts)
        size_min = sum(node.size_min for node in nodes)
        bound = (block.end - block.pos) // size_min if size_min else _EMPTY_ELEMENTS_MAX
        if np.any(counts < 0) or np.any(counts > bound):
            raise ValueError("a list does not fit into its record")
        rows = rows[counts > 0]
        left = counts[counts > 0]
        sizes[rows] += left
        active = rows
        while len(active):
            one = at.some(active)
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
