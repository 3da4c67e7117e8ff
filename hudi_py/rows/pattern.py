r"""
The patterns of ``like``, as in Spark SQL: ``%``, ``_``, and ``\`` before either or before itself. Pure.

Source: Spark 3.5 ``StringUtils.escapeLikeRegex``.
"""

from __future__ import annotations

import re
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, compute

_WILDCARDS: Final = {"%": ".*", "_": "."}


@attrs.frozen
class Pattern:
    """
    A pattern that texts are matched with.

    Args:
        prefix: The fixed begin of every matching text; bounds can be compared with it.
        regex: The rest as a regular expression; ``""`` for nothing, ``.*`` for anything.
    """

    prefix: str
    regex: str

    def mask(self, column: Array) -> Array:
        """Which texts match; null for nulls."""
        found: Array
        if not self.regex:
            found = compute.equal(column, pa.scalar(self.prefix, column.type))
        elif self.regex == ".*":
            found = compute.starts_with(column, self.prefix)
        else:
            # ``(?s)``, because ``%`` matches line breaks, too; ``\A`` and ``\z``, because the whole text has to match.
            found = compute.match_substring_regex(column, rf"(?s)\A{re.escape(self.prefix)}{self.regex}\z")
        return found

    def may_match(self, low: str, high: str) -> bool:
        """Whether a text between these two may match."""
        return low <= high and low[: len(self.prefix)] <= self.prefix <= high

    def may_differ(self, low: str, high: str) -> bool:
        """Whether a text between these two may fail to match."""
        if not self.regex:
            return not low == self.prefix == high
        return self.regex != ".*" or not (low.startswith(self.prefix) and high.startswith(self.prefix))


def pattern_of(text: str, condition: str) -> Pattern:
    r"""
    Parse a pattern.

    Args:
        text: The pattern.
        condition: The condition as text, for the error.

    Raises:
        ConfigError: A ``\`` is before a character that cannot be escaped, or at the end.
    """
    prefix, regex, at = "", "", 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            char = text[at : at + 1]
            if char not in ("%", "_", "\\"):
                raise ConfigError(
                    rf"{condition}: in a pattern, \ is allowed only before %, _ or \, which then mean themselves"
                )
            literal = char
        else:
            literal = "" if char in _WILDCARDS else char
        if regex or not literal:
            regex += re.escape(literal) if literal else _WILDCARDS[char]
        else:
            prefix += literal
        at += 1
    return Pattern(prefix, regex)
