r"""
Values computed from the columns of a row, read from text in the grammar of Spark SQL. Pure.

    sum      :  product (("+" | "-" | "||") product)*
    product  :  factor (("*" | "/" | "%") factor)*
    factor   :  "-" factor  |  "(" sum ")"  |  NUMBER  |  'text'  |  true | false | null  |  date '...'
             |  timestamp '...'  |  concat "(" sum ("," sum)* ")"  |  COLUMN

Numbers are divided as floating-point numbers, except for decimals; a division by zero gives null. A result that is too
large for its type is an error, never a wrong number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias

import pyarrow as pa

from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.conform import conform_array
from hudi_py.formats.schema_evolution import new_fields
from hudi_py.formats.stored_values import as_spark_casts
from hudi_py.rows.condition_times import day_of, moment_of

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<mark>\|\||[-+*/%(),])
    | (?P<word>\w+(?:\.\w+)*)
    )""",
    re.VERBOSE,
)
_LONG_DIGITS: Final = 19
_LITERALS: Final = {"true": True, "false": False, "null": None}
_Evaluate: TypeAlias = Callable[[pa.RecordBatch, pa.DataType], Any]


class Expression:
    """
    A value for each row of a batch.

    Args:
        text: The expression, in the grammar above.

    Attributes:
        text: As given.
        columns: Names of the columns that it needs, in order.

    Raises:
        ConfigError: The text is not a valid expression; the message says where.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.columns: list[str] = []
        self._tokens = _tokens(text)
        self._at = 0
        self._evaluate = self._sum()
        if self._kind() != "end":
            self._refuse()

    def values(self, batch: pa.RecordBatch, target: pa.DataType) -> Array:
        """
        Compute the values.

        Args:
            batch: n rows with the columns of `columns`.
            target: Type of the result; numbers are read as decimals if it is one.

        Returns:
            Array of length n.

        Raises:
            ConfigError: A column does not exist, or the types do not fit together.
            WriteError: A value does not fit *target*.
        """
        try:
            found: Any = self._evaluate(batch, target)
            if isinstance(found, pa.Scalar):
                repeat: Any = pa.repeat
                found = repeat(found, batch.num_rows)
            for name in new_fields(found.type, target, self.text):
                raise ConfigError(f"{name} is a field that the table does not have; upsert rows with it first")
            values = conform_array(found, target, self.text, as_spark_casts)
            # A float that overflows becomes infinite without an error; "too large" has to be an error for it, too.
            _refuse_infinite(found, values)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise WriteError(f"{self.text!r} gives a value that does not fit {target}: {error}") from error
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ConfigError(f"{self.text!r} cannot be computed as {target}: {error}") from error
        return values

    # --- the grammar ------------------------------------------------------------------------------------------------
    def _sum(self) -> _Evaluate:
        left = self._product()
        while (mark := self._takes("+", "-", "||")) is not None:
            left = _binary(mark, left, self._product())
        return left

    def _product(self) -> _Evaluate:
        left = self._factor()
        while (mark := self._takes("*", "/", "%")) is not None:
            left = _binary(mark, left, self._factor())
        return left

    def _factor(self) -> _Evaluate:
        if self._takes("-"):
            inner = self._factor()
            # Checked, because the least integer has no positive counterpart.
            return lambda batch, target: compute.negate_checked(inner(batch, target))
        if self._takes("("):
            inner = self._sum()
            self._require(")")
            return inner
        kind, text = self._next()
        if kind == "number":
            if math.isinf(float(text)):
                raise ConfigError(f"{self.text!r}: the number {text} is too large")
            return _number(text)
        if kind == "text":
            return _constant(text[1:-1].replace("''", "'"))
        if kind == "name":
            return self._column(text[1:-1].replace("``", "`"))
        if kind != "word":
            self._at -= 1
            self._refuse()
        return self._word(text)

    def _word(self, text: str) -> _Evaluate:
        lowered = text.lower()
        if lowered in _LITERALS:
            return _constant(_LITERALS[lowered])
        if lowered in ("date", "timestamp") and self._kind() == "text":
            quoted = self._next()[1][1:-1]
            return _constant(_moment(lowered, quoted))
        if self._takes("("):
            if lowered != "concat":
                raise ConfigError(f"{self.text!r}: the function {text} is not known; there is concat(...)")
            parts = [self._sum()]
            while self._takes(","):
                parts.append(self._sum())
            self._require(")")
            # A single part is joined with an empty text, so that the result is text in any case.
            whole = parts[0] if len(parts) > 1 else _binary("||", parts[0], _constant(""))
            for part in parts[1:]:
                whole = _binary("||", whole, part)
            return whole
        return self._column(text)

    def _column(self, name: str) -> _Evaluate:
        self.columns.append(name)

        def column(batch: pa.RecordBatch, _: pa.DataType) -> Any:
            position = batch.schema.get_field_index(name)
            if position < 0:
                raise ConfigError(f"{self.text!r}: there is no column {name!r}; a text is written in quotes: '{name}'")
            return batch.column(position)

        return column

    # --- its tokens -------------------------------------------------------------------------------------------------
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, *marks: str) -> str | None:
        kind, text = self._tokens[self._at]
        if kind != "mark" or text not in marks:
            return None
        self._at += 1
        return text

    def _require(self, mark: str) -> None:
        if self._takes(mark) is None:
            self._refuse()

    def _refuse(self) -> NoReturn:
        kind, text = self._tokens[self._at]
        where = "its end" if kind == "end" else repr(text)
        raise ConfigError(
            f"{self.text!r} is not understood at {where}; there are columns, numbers, 'texts', null, + - * / % || ( )"
        )


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConfigError(f"{text!r} is not understood at {text[position:].strip()!r}")
        found.append((match.lastgroup or "", match[match.lastgroup or 0]))
        position = match.end()
    return [*found, ("end", "")]


def _constant(value: Any) -> _Evaluate:
    scalar: Any = pa.scalar(value, pa.timestamp("us", "UTC")) if hasattr(value, "hour") else pa.scalar(value)
    return lambda _batch, _target: scalar


def _number(text: str) -> _Evaluate:
    is_whole = text.isdigit()

    def number(_: pa.RecordBatch, target: pa.DataType) -> Any:
        # By way of a float, a decimal would get other digits.
        if pa.types.is_decimal(target):
            return pa.scalar(Decimal(text))
        return pa.scalar(int(text), pa.int64()) if is_whole else pa.scalar(float(text))

    return number


def _moment(kind: str, text: str) -> Any:
    try:
        return day_of(text) if kind == "date" else moment_of(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a {kind}") from None


def _binary(mark: str, left: _Evaluate, right: _Evaluate) -> _Evaluate:
    def combined(batch: pa.RecordBatch, target: pa.DataType) -> Any:
        return _OPERATORS[mark](*_roomy(left(batch, target), right(batch, target)))

    return combined


def _roomy(left: Any, right: Any) -> tuple[Any, Any]:
    """Return decimals with room for any result: whether it fits is asked of the value, and not of the types."""
    types = (left.type, right.type)
    if not any(map(pa.types.is_decimal, types)) or not all(map(_is_exact, types)):
        return left, right
    return _wide(left), _wide(right)


def _wide(values: Any) -> Any:
    arrow = values.type
    precision, scale = (arrow.precision, arrow.scale) if pa.types.is_decimal(arrow) else (_LONG_DIGITS, 0)
    return values.cast(pa.decimal256(precision, scale))


def _is_exact(arrow: pa.DataType) -> bool:
    return pa.types.is_decimal(arrow) or pa.types.is_integer(arrow)


def _concat(left: Any, right: Any) -> Any:
    return compute.binary_join_element_wise(_cast(left, pa.string()), _cast(right, pa.string()), "")


def _divide(left: Any, right: Any) -> Any:
    if not (pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)):
        # As in Spark SQL, where 1 / 2 is 0.5.
        left, right = _cast(left, pa.float64()), _cast(right, pa.float64())
    return compute.divide_checked(left, _without_zeros(right))


def _remainder(left: Any, right: Any) -> Any:
    """Return the remainder of a division that rounds towards zero; its sign is that of *left*, as in Spark SQL."""
    divisor = _without_zeros(right)
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        quotient = compute.divide_checked(left, divisor)
    else:
        quotient = compute.trunc(compute.divide_checked(left, divisor))
    return compute.subtract_checked(left, compute.multiply_checked(quotient, divisor))


def _without_zeros(numbers: Any) -> Any:
    # Null, as in Spark SQL without its ANSI mode.
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal(numbers.type) else 0, numbers.type)
    return compute.if_else(compute.equal(numbers, zero), pa.scalar(None, numbers.type), numbers)


def _cast(values: Any, arrow: pa.DataType) -> Any:
    if isinstance(values, pa.Scalar):
        return _cast(pa.array([values.as_py()], values.type), arrow)[0]
    return conform_array(values, arrow, "", as_spark_casts)


def _refuse_infinite(found: Any, values: Any) -> None:
    """Raise if numbers became infinite because they are too large for the type: Arrow's casts do not."""
    is_narrower = pa.types.is_floating(values.type) and pa.types.is_floating(found.type) and found.type != values.type
    if is_narrower and compute.any(compute.and_not(compute.is_inf(values), compute.is_inf(found))).as_py():
        raise OverflowError(f"a number is too large for {values.type}")


# Checked, because Arrow's plain functions wrap around, and a wrong number would be stored.
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": compute.add_checked,
    "-": compute.subtract_checked,
    "*": compute.multiply_checked,
    "/": _divide,
    "%": _remainder,
    "||": _concat,
}
