"""
Prints text with all control characters escaped, on a terminal or not.

Names of partitions, files and tables, comments of savepoints, and messages that quote them may contain anything that
other users wrote into the table. An escape sequence in them could forge or hide output, or enter text at the prompt.
"""

from __future__ import annotations

import re
import sys
import traceback
from types import TracebackType
from typing import Final, TextIO

# C0 (including line ends and tabs), DEL, C1, marks that change the direction of text, line separators, invisible tags;
# and surrogates, which stand for bytes in names that are not UTF-8: no stream takes them.
_CONTROL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Return *text* on one line, with control characters escaped as in Python: ``\x1b``, ``\u202e``."""
    # Nearly every line, and much faster than the expression.
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(chunk: str) -> str:
    r"""Return JSON text with control characters that JSON allows in strings as ``\u`` escapes; same meaning."""
    if chunk.isascii() and "\x7f" not in chunk:
        return chunk
    return _CONTROL.sub(_json_escape, chunk)


def say(text: object = "", *, file: TextIO | None = None) -> None:
    """Print one line; on standard error at once, whatever buffers it."""
    print(visible(str(text)), file=file, flush=file is sys.stderr)


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback, escaped; used as ``sys.excepthook`` for ``--debug``."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        say(line, file=sys.stderr)


def _json_escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in "\n\t\r":  # layout between JSON values; inside strings these are already escaped
        return char
    # JSON escapes units of UTF-16, two for a character beyond U+FFFF.
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
