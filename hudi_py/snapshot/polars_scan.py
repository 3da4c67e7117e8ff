"""
Rows as a lazy frame of polars; columns, conditions and limits of a query are pushed down to the reader.

polars passes the columns that a query needs, and its conditions as an expression. The parts of the expression that are
understood become conditions of hudi_py, by which files are skipped; then polars applies the whole expression to the
rows. So a part that is not understood costs time only. Understood are comparisons of columns of text, integers, dates
and timestamps with values of the same type, ``is_in``, ``is_between``, ``is_null``, ``is_not_null``, joined by ``&``
and ``|``. Floats are not: polars compares them in another width than Spark SQL.

Source: polars ``polars.io.plugins.register_io_source``; the JSON form of its expressions, as polars 1 and 2 write it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from hudi_py.errors import HudiError
from hudi_py.model.instant_time import EPOCH
from hudi_py.rows.condition import Comparison, Condition, IsIn, IsNull
from hudi_py.runtime.log import log

if TYPE_CHECKING:
    import pyarrow as pa

_OPERATORS: Final = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CLOSED: Final = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_INTEGER: Final = re.compile(r"U?Int[0-9]+")
_FIRST_DAY: Final = date(1970, 1, 1)


class _Unknown(Exception):
    """An expression that is not understood."""


_OTHER_FORM: Final = (_Unknown, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class Narrowed(Protocol):
    """Rows that can be read in part."""

    def __call__(self, columns: Sequence[str] | None, *where: Condition) -> Iterable[pa.RecordBatch]:
        """The rows that meet all of *where*; with these columns, or all for None."""


def scan(schema: pa.Schema, narrowed: Narrowed, polars: Any) -> Any:
    """
    A `polars.LazyFrame`; the rows are read each time it is collected.

    Args:
        schema: All columns.
        narrowed: Reads the rows.
        polars: The polars module.
    """
    from polars.io.plugins import register_io_source

    shown = polars.from_arrow(schema.empty_table()).schema
    return register_io_source(partial(_frames, schema, narrowed, polars), schema=shown)


def _frames(
    schema: pa.Schema,
    narrowed: Narrowed,
    polars: Any,
    columns: list[str] | None,
    predicate: Any,
    limit: int | None,
    _: int | None,
) -> Iterator[Any]:
    """The source that polars calls: frames with the columns that it asks for, of rows that meet its expression."""
    rows = narrowed(columns)
    # With a limit, polars wants the first rows of all, and of these the ones that meet the expression: the reader must
    # not choose among others. A limit behind a condition it keeps for itself.
    condition = None if predicate is None or limit is not None else understood(predicate, schema)
    if condition is not None:
        try:
            rows = narrowed(columns, condition)
        except HudiError as error:  # a condition that only polars understands, or on values that are shown differently
            log.info("read.condition.unused", condition=str(condition), reason=str(error))
    for batch in rows:
        frame = polars.from_arrow(batch)
        if limit is not None:
            frame = frame.head(limit)
            limit -= frame.height
        yield frame if predicate is None else frame.filter(predicate)
        if limit == 0:
            return


def understood(predicate: Any, schema: pa.Schema) -> Condition | None:
    """
    A condition that is met wherever the expression of polars is (and perhaps elsewhere); None if none is understood.

    Args:
        predicate: A `polars.Expr`.
        schema: Columns of the rows.
    """
    import warnings

    from polars.exceptions import PolarsError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # polars says that the form may change: what is unknown is not used
            tree = json.loads(predicate.meta.serialize(format="json"))
        return _condition(tree, schema)
    except (*_OTHER_FORM, PolarsError) as error:  # the form is polars' own, and any of its releases may change it
        log.debug("read.condition.unused", condition=str(predicate), reason=repr(error))
        return None


def _condition(tree: Any, schema: pa.Schema) -> Condition:
    (kind, content), *others = tree.items()
    if others:
        raise _Unknown(kind)
    if kind == "BinaryExpr":
        operator, left, right = content["op"], content["left"], content["right"]
        if operator in ("And", "LogicalAnd"):
            return _both(left, right, schema)
        # Both sides or none: rows that meet the side which is not understood would be lost.
        if operator in ("Or", "LogicalOr"):
            return _condition(left, schema) | _condition(right, schema)
        return _comparison(operator, left, right, schema)
    if kind == "Function":
        return _function(content["function"]["Boolean"], content["input"], schema)
    raise _Unknown(kind)


def _both(left: Any, right: Any, schema: pa.Schema) -> Condition:
    """Both conditions, or the one that is understood: polars applies the other."""
    known = []
    for part in (left, right):
        try:
            known.append(_condition(part, schema))
        except _OTHER_FORM:
            continue
    if not known:
        raise _Unknown("And")
    return known[0] if len(known) == 1 else known[0] & known[1]


def _comparison(operator: str, left: Any, right: Any, schema: pa.Schema) -> Condition:
    sign = _OPERATORS[operator]
    if "Column" not in left:
        # ``5 < fare`` is ``fare > 5``; conditions have the column first.
        left, right, sign = right, left, _TURNED[sign]
    name = _column(left, schema)
    return Comparison((name,), sign, _value(right, schema.field(name).type))


def _function(function: Any, given: Sequence[Any], schema: pa.Schema) -> Condition:
    path = (_column(given[0], schema),)
    arrow = schema.field(path[0]).type
    if function == "IsNull":
        return IsNull(path)
    if function == "IsNotNull":
        return ~IsNull(path)
    if set(function) == {"IsIn"} and not function["IsIn"]["nulls_equal"]:
        return IsIn(path, tuple(_listed(given[1], arrow)))
    if set(function) == {"IsBetween"}:
        low, high = _CLOSED[function["IsBetween"]["closed"]]
        return Comparison(path, low, _value(given[1], arrow)) & Comparison(path, high, _value(given[2], arrow))
    raise _Unknown(str(function))


def _column(tree: Any, schema: pa.Schema) -> str:
    (kind, name), *others = tree.items()
    # With two columns of a name it is unknown which of them polars means.
    if kind != "Column" or others or schema.names.count(name) != 1:
        raise _Unknown(kind)
    return str(name)


def _value(tree: Any, arrow: pa.DataType) -> Any:
    """A value of exactly the column's type; for any other, polars converts the column before it compares."""
    ((kind, stored),) = tree["Literal"]["Scalar"].items()
    import pyarrow as pa

    found: Any = None
    if pa.types.is_integer(arrow) and _INTEGER.fullmatch(kind):
        found = int(stored)
    elif pa.types.is_string(arrow) and kind == "String":
        found = str(stored)
    elif pa.types.is_date32(arrow) and kind == "Date":
        found = _FIRST_DAY + timedelta(days=stored)
    elif kind == "Datetime" and arrow in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        found = _moment(stored, arrow)
    if found is None:
        raise _Unknown(kind)
    return found


def _moment(stored: Any, arrow: Any) -> datetime:
    number, unit, zone = stored
    # A time without a zone and one with a zone do not compare, so polars has to decide.
    if unit != "Microseconds" or (arrow.tz is None) != (zone is None):
        raise _Unknown(unit)
    moment = EPOCH + timedelta(microseconds=number)
    return moment.replace(tzinfo=None) if zone is None else moment.astimezone(timezone.utc)


def _listed(tree: Any, arrow: pa.DataType) -> list[Any]:
    """The values of a list, which polars writes as a stream of Arrow."""
    import pyarrow as pa

    column = pa.ipc.open_stream(bytes(tree["Literal"]["Scalar"]["List"])).read_all().column(0)
    is_same = pa.types.is_string(arrow) and (
        pa.types.is_large_string(column.type) or pa.types.is_string(column.type) or str(column.type) == "string_view"
    )
    if not is_same and not (pa.types.is_integer(arrow) and pa.types.is_integer(column.type)):
        raise _Unknown(str(column.type))
    return list(column.to_pylist())
