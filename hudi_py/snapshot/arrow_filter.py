"""
Filters of Arrow datasets as conditions of hudi_py, by which files are skipped.

Arrow shows what an expression consists of as Substrait only, a message of protocol buffers that says which function is
applied to which columns and values. Of it, comparisons of columns of text, signed integers, booleans, decimals, dates
and timestamps of microseconds with values of the same type are understood, lists of such values, ``is_null`` and
``is_valid``, and ``and``, ``or``, ``invert`` of all these. Arrow applies the whole filter to the rows, so that the rest
costs time only: of an ``and`` the other parts count, all else rules nothing out. Floats are never understood, because
Arrow compares NaN otherwise than Spark SQL.

Where Arrow's answer for a row is null, a condition may say anything: such a row is not selected, whatever stands around
that part of the filter.

Source: Substrait ``extended_expression.proto``, ``algebra.proto``; pyarrow ``Expression.to_substrait``, 20 to 26.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from hudi_py.model.instant_time import EPOCH
from hudi_py.rows.condition import Comparison, Condition, IsIn, IsNull, Path, all_of
from hudi_py.rows.predicate import names_in
from hudi_py.runtime.log import log

_COMPARISONS: Final = {"equal": "=", "not_equal": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_TURNED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FIRST_DAY: Final = date(1970, 1, 1)
_DEPTH_MAX: Final = 12
"""Deeper filters are not looked into: with each level pyarrow takes twice the time and the space to convert them."""
_TEXT_IN_FILTER: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)

# Numbers of fields in the messages of Substrait.
_LITERAL, _SELECTION, _CALL, _IF_THEN, _ONE_OF = 1, 2, 3, 6, 8
_NULLABLE, _NULL = 50, 29
_BOOLEAN, _TEXT, _LOCAL_TIME, _DAY, _DECIMAL, _TIME = 1, 12, 14, 16, 24, 27
_INTEGERS: Final = frozenset({2, 3, 5, 7})

_Message: TypeAlias = dict[int, list[Any]]
"""Values by the number of their field: numbers, and bytes of texts and other messages."""


class _Unknown(Exception):
    """A part of a filter that is not understood."""


_OTHER_FORM: Final = (_Unknown, LookupError, ValueError, ArithmeticError)


def understood(expression: Any, schema: pa.Schema) -> Condition | None:
    """
    A condition that is met wherever a filter of Arrow is (and perhaps elsewhere); None if nothing is understood.

    Args:
        expression: A `pyarrow.compute.Expression`.
        schema: Columns of the rows.
    """
    if _depth(str(expression), schema) > _DEPTH_MAX:
        log.debug("read.condition.unused", condition=str(expression), reason="it is nested too deeply")
        return None
    try:  # parts of it that Substrait does not have make all of it unknown
        message = _fields(bytes(expression.to_substrait(schema)))
        (referred,) = message[3]
        functions = {}
        for each in message.get(2, ()):
            function = _fields(_only(_fields(each), 3))
            functions[_number(function, 2)] = _only(function, 3).decode().partition(":")[0]
        return _Reader(schema, functions).condition(_only(_fields(referred), 1))
    # Releases of pyarrow differ in what they can convert, and some are built without Substrait.
    except (*_OTHER_FORM, pa.ArrowException, ImportError) as error:
        log.debug("read.condition.unused", condition=str(expression), reason=repr(error))
        return None


def _depth(text: str, schema: pa.Schema) -> int:
    """How deep the parentheses of a filter are nested, or more."""
    if any(mark in name for name in names_in(schema) for mark in '"()'):  # names are written as they are
        return text.count("(")
    depth = deepest = 0
    for mark in _TEXT_IN_FILTER.sub("", text):
        depth += (mark == "(") - (mark == ")")
        deepest = max(deepest, depth)
    return deepest


@attrs.frozen
class _Reader:
    schema: pa.Schema
    functions: dict[int, str]

    def condition(self, message: bytes, *, is_exact: bool = False) -> Condition:
        """
        Args:
            is_exact: Whether the condition has to be false, too, wherever the filter is.
        """
        kind, content = _one_of(message)
        if kind == _CALL:
            return self._call(_fields(content), is_exact=is_exact)
        if kind == _ONE_OF and not is_exact:  # to Arrow null is in no list; to conditions that is unknown
            listed = _fields(content)
            path, arrow = self._column(_only(listed, 1))
            return IsIn(path, tuple(_value(each, arrow) for each in listed.get(2, ())))
        if kind == _IF_THEN:  # as DuckDB asks for a list: null where the column is null
            parts = _fields(content)
            if _NULL not in _fields(_literal(_only(parts, 2))):
                raise _Unknown("else")
            return self.condition(_only(_fields(_only(parts, 1)), 2), is_exact=is_exact)
        raise _Unknown(kind)

    def _call(self, call: _Message, *, is_exact: bool) -> Condition:
        name = self.functions[_number(call, 1)]
        if not call.keys() <= {1, 3, 4}:  # options may change what it means
            raise _Unknown(name)
        given = [_only(_fields(each), 3) for each in call[4]]
        if name == "not":
            (part,) = given
            return ~self.condition(part, is_exact=True)
        if name == "or":  # all sides or none: rows that meet the side which is not understood would be lost
            left, right = (self.condition(each, is_exact=is_exact) for each in given)
            return left | right
        if name == "and":
            return self._all(given, is_exact=is_exact)
        if name in ("is_null", "is_not_null"):
            (column,) = given
            path, arrow = self._column(column)
            if pa.types.is_floating(arrow):  # NaN may count as null
                raise _Unknown(name)
            return IsNull(path) if name == "is_null" else ~IsNull(path)
        sign = _COMPARISONS[name]
        left_side, right_side = given
        if _one_of(left_side)[0] == _LITERAL:  # ``5 < fare`` is ``fare > 5``; conditions have the column first
            left_side, right_side, sign = right_side, left_side, _TURNED[sign]
        path, arrow = self._column(left_side)
        return Comparison(path, sign, _value(right_side, arrow))

    def _all(self, given: list[bytes], *, is_exact: bool) -> Condition:
        known = []
        for each in given:
            try:
                known.append(self.condition(each, is_exact=is_exact))
            except _OTHER_FORM:
                if is_exact:
                    raise
        if not known:
            raise _Unknown("and")
        return all_of(known)

    def _column(self, message: bytes) -> tuple[Path, pa.DataType]:
        """A column, or a field of structs, and its type; anything computed is unknown."""
        kind, content = _one_of(message)
        if kind != _SELECTION:
            raise _Unknown(kind)
        selection = _fields(content)
        if not selection.keys() <= {1, 4}:
            raise _Unknown("root")
        path: list[str] = []
        within: Any = self.schema
        step: bytes | None = _only(selection, 1)
        while step is not None:
            segment = _fields(_only(_fields(step), 2))
            at = _number(segment, 1)
            field = within.field(at)
            if within.get_field_index(field.name) != at:  # one of two of a name
                raise _Unknown(field.name)
            path.append(field.name)
            within = field.type
            step = _only(segment, 2) if 2 in segment else None
            if step is not None and not pa.types.is_struct(within):
                raise _Unknown(field.name)
        return tuple(path), within


def _value(message: bytes, arrow: pa.DataType) -> Any:
    """A value of exactly the column's type."""
    literal = _fields(_literal(message))
    literal.pop(_NULLABLE, None)
    ((kind, (stored,)),) = literal.items()  # a value of a variation of a type has a field more
    if pa.types.is_signed_integer(arrow) and kind in _INTEGERS:
        return _signed(stored)
    if pa.types.is_string(arrow) and kind == _TEXT:
        return stored.decode()
    if pa.types.is_boolean(arrow) and kind == _BOOLEAN:
        return bool(stored)
    if pa.types.is_date32(arrow) and kind == _DAY:
        return _FIRST_DAY + timedelta(days=_signed(stored))
    if pa.types.is_decimal(arrow) and kind == _DECIMAL:
        number = _fields(stored)
        unscaled = int.from_bytes(_only(number, 1), "little", signed=True)
        return Decimal(unscaled).scaleb(-_number(number, 3))
    if (kind, arrow) in ((_TIME, pa.timestamp("us", "UTC")), (_LOCAL_TIME, pa.timestamp("us"))):
        moment: datetime = EPOCH + timedelta(microseconds=_signed(stored))
        return moment if kind == _TIME else moment.replace(tzinfo=None)
    raise _Unknown(kind)


def _literal(message: bytes) -> bytes:
    kind, content = _one_of(message)
    if kind != _LITERAL:
        raise _Unknown(kind)
    return content


def _one_of(message: bytes) -> tuple[int, bytes]:
    """The one field that an expression has."""
    ((kind, (content,)),) = _fields(message).items()
    return kind, content


def _only(message: _Message, number: int) -> bytes:
    (found,) = message[number]
    if not isinstance(found, bytes):
        raise _Unknown(number)
    return found


def _number(message: _Message, number: int) -> int:
    """A whole number, which is left out where it is 0."""
    (found,) = message.get(number, [0])
    return int(found)


def _signed(stored: int) -> int:
    return stored - (1 << 64) if stored >= 1 << 63 else stored


def _fields(data: bytes) -> _Message:
    """The fields of a message of protocol buffers; raises `ValueError` or `LookupError` if it is none."""
    found: _Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + size], at + size
        if at > len(data):
            raise ValueError("a message is cut off")
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, least significant first, and the place after it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
