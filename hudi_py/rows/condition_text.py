r"""
Parses conditions from text, in the grammar of Spark SQL. Pure.

    condition  :  all ("or" all)*
    all        :  negated ("and" negated)*
    negated    :  "not" negated  |  "(" condition ")"  |  comparison
    comparison :  COLUMN ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") VALUE
               |  COLUMN ["not"] "in" "(" VALUE ("," VALUE)* ")"
               |  COLUMN ["not"] "like" VALUE
               |  COLUMN ["not"] "between" VALUE "and" VALUE
               |  COLUMN "is" ["not"] "null"
    COLUMN     :  NAME ("." NAME)*, a name of any characters in backticks
    VALUE      :  number | text in ' or " | true | false | null | date '...' | timestamp '...' | words

A quote within a text is doubled, and a backslash is an ordinary character, as in Spark with
``spark.sql.parser.escapedStringLiterals``. A number with an exponent is a double, one with a point a decimal. Words
without quotes are text here, but a column for Spark SQL: `hudi_py.rows.predicate` refuses a word if the table has a
column of that name.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NoReturn

import attrs

from hudi_py.errors import ConfigError
from hudi_py.rows.condition import (
    COMPARISONS,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    Like,
    Not,
    Path,
    Value,
    Word,
    all_of,
    any_of,
)
from hudi_py.rows.condition_times import day_of, moment_of

OTHER_SPELLINGS: Final = {"==": "=", "<>": "!="}
_DEPTH_MAX: Final = 100
_RESERVED: Final = frozenset({"and", "or", "not"})
"""Not the name of a column, unless in backticks."""
_KEYWORDS: Final = _RESERVED | {"in", "like", "between", "is", "null"}
"""Words that end a value without quotes."""
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<operator>!= | <> | <= | >= | == | = | < | >)
    | (?P<mark>[(),])
    | (?P<word>[^\s'"`=!<>(),]+)
    )""",
    re.VERBOSE,
)
NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?P<point>\.[0-9]*)?|(?P<begin>\.[0-9]+))(?P<exponent>[eE][+-]?[0-9]+)?")


@attrs.frozen
class _Token:
    """
    A piece of a text.

    Args:
        kind: The group of `_TOKEN`; ``end`` after the last token.
        text: The token itself.
        start: Index of its first character.
        end: Index after its last character.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in lower case, to recognize keywords; empty for other tokens."""
        return self.text.lower() if self.kind == "word" else ""


def parse_condition(text: str) -> Condition:
    """
    Parse a condition; a text can combine several with ``and`` and ``or``.

    Raises:
        ConfigError: The text is not a valid condition; the message names the place and what was expected there.
    """
    return _Parser(text).whole()


class _Parser:
    """A recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._any()
        if self._next.kind != "end":
            self._refuse("and, or, or the end")
        return found

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        while self._text[at:].strip():
            found = _TOKEN.match(self._text, at)
            if found is None:
                begin = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                raise ConfigError(
                    f"{self._where(begin)}: a quote that is not closed, or a character that has no meaning here"
                )
            kind = str(found.lastgroup)
            tokens.append(_Token(kind, found[kind], found.start(kind), found.end(kind)))
            at = found.end()
        return [*tokens, _Token("end", "", len(self._text), len(self._text))]

    # --- the grammar ----------------------------------------------------------------------------------------------
    def _any(self) -> Condition:
        parts = [self._all()]
        while self._takes_word("or"):
            parts.append(self._all())
        return any_of(parts)

    def _all(self) -> Condition:
        parts = [self._negated()]
        while self._takes_word("and"):
            parts.append(self._negated())
        return all_of(parts)

    def _negated(self) -> Condition:
        self._depth += 1
        if self._depth > _DEPTH_MAX:  # else Python's own limit would end the run with a RecursionError
            raise ConfigError(f"{self._where(self._next.start)}: more than {_DEPTH_MAX} levels of parentheses and not")
        if self._takes_word("not"):
            found = ~self._negated()
        elif self._takes("("):
            found = self._any()
            self._require(")", "and, or, or )")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        path = self._column()
        token = self._next
        if token.kind == "operator":
            self._at += 1
            return Comparison(path, OTHER_SPELLINGS.get(token.text, token.text), self._value())
        if self._takes_word("is"):
            is_negated = self._takes_word("not")
            if not self._takes_word("null"):
                self._refuse("null" if is_negated else "null or not null")
            return Not(IsNull(path)) if is_negated else IsNull(path)
        is_negated = self._takes_word("not")
        found = self._worded(path)
        if found is None:
            expected = "in, like or between" if is_negated else f"one of {' '.join(COMPARISONS)}, in, like, between, is"
            self._refuse(expected)
        return Not(found) if is_negated else found

    def _worded(self, path: Path) -> Condition | None:
        if self._takes_word("in"):
            return IsIn(path, self._values())
        if self._takes_word("like"):
            return self._like(path)
        if self._takes_word("between"):
            low = self._value()
            if not self._takes_word("and"):
                self._refuse("and, with the other end of the range")
            return all_of((Comparison(path, ">=", low), Comparison(path, "<=", self._value())))
        return None

    def _like(self, path: Path) -> Condition:
        token, value = self._next, self._value()
        # Without quotes a pattern is text, too.
        if isinstance(value, Word):
            value = value.text
        if value is None or isinstance(value, str):
            return Like(path, value)
        raise ConfigError(f"{self._where(token.start)}: expected a pattern in quotes, as in like 'a%'")

    def _values(self) -> tuple[Value, ...]:
        self._require("(", "( and values")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._require(")", ", or )")
        return tuple(values)

    # --- names and values -----------------------------------------------------------------------------------------
    def _column(self) -> Path:
        """A name with its dots; next to a part in backticks, the dots belong to the words around it."""
        parts, is_open, end = [""], True, -1
        while self._next.kind in ("word", "name"):
            token = self._next
            # A blank ends the name: the next word belongs to the condition.
            if token.start != end and end >= 0:
                break
            if token.kind == "name":
                if not is_open:
                    break
                parts[-1], is_open = token.text[1:-1].replace("``", "`"), False
            elif end < 0 and token.word in _RESERVED:
                break
            else:
                first, *more = token.text.split(".")
                if first and not is_open:
                    break
                parts[-1] = parts[-1] or first
                parts += more
                is_open = not parts[-1]
            end = token.end
            self._at += 1
        if not all(parts):
            self._refuse("the name of a column")
        return tuple(parts)

    def _value(self) -> Value:
        token = self._next
        if token.kind == "text":
            self._at += 1
            return _unquoted(token.text)
        if token.word in ("date", "timestamp") and self._tokens[self._at + 1].kind == "text":
            self._at += 2
            return self._moment(token, _unquoted(self._tokens[self._at - 1].text))
        if self._takes_word("null"):
            return None
        if token.kind != "word" or token.word in _KEYWORDS:
            self._refuse("a value (a number, text in quotes, true, false, null, date '2026-11-21', timestamp '...')")
        # Words in a row are one value, with the blanks between them: names of places need no quotes.
        last = token
        while self._next.kind == "word" and self._next.word not in _KEYWORDS:
            last = self._next
            self._at += 1
        return _bare(self._text[token.start : last.end])

    def _moment(self, token: _Token, text: str) -> Value:
        try:
            return day_of(text) if token.word == "date" else moment_of(text)
        except ValueError:
            raise ConfigError(
                f"{self._where(token.start)}: {text!r} is not a {token.word}; dates are written 2026-11-21, times "
                "2026-11-21T08:30:00 (UTC without an offset)"
            ) from None

    # --- tokens ---------------------------------------------------------------------------------------------------
    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _takes_word(self, word: str) -> bool:
        found = self._next.word == word
        self._at += found
        return found

    def _takes(self, mark: str) -> bool:
        found = self._next.kind == "mark" and self._next.text == mark
        self._at += found
        return found

    def _require(self, mark: str, expected: str) -> None:
        if not self._takes(mark):
            self._refuse(expected)

    def _refuse(self, expected: str) -> NoReturn:
        token = self._next
        found = "the end of the text" if token.kind == "end" else token.text
        is_behind_value = expected.startswith("and") and token.kind != "end"
        hint = "; put text with signs or such words in it in quotes" if is_behind_value else ""
        raise ConfigError(f"{self._where(token.start)}: expected {expected}, found {found}{hint}")

    def _where(self, start: int) -> str:
        return f"{self._text!r} is not a condition, at character {start + 1}"


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


def _bare(text: str) -> Value:
    """A value without quotes."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    found = NUMBER.fullmatch(text)
    if found is None:
        return Word(text)
    if found["exponent"]:
        return float(text)
    if found["point"] or found["begin"]:
        return Decimal(text)
    return int(text) if text == str(int(text)) else Word(text)  # 007 may be text, and is 7 as a number
