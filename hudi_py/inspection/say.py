"""
What the command line prints, with every control character escaped, on a terminal or not.

Names of partitions and files, a table's name, comments of savepoints and messages that quote them are whatever
somebody wrote into the table: an escape sequence among them could forge, hide or type what the reader sees.
"""

from __future__ import annotations

import re
import sys
import traceback
from types import TracebackType
from typing import Final, TextIO

# C0 with line ends and tabs, DEL, C1, marks that turn the direction of text, line separators, invisible tags.
_CONTROL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""*text* with controls as Python writes them, ``\x1b`` or ``\u202e``; one line, whatever it was."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(chunk: str) -> str:
    r"""JSON text with the controls that JSON allows inside of strings as ``\u`` escapes; it means the same."""
    if chunk.isascii() and "\x7f" not in chunk:
        return chunk
    return _CONTROL.sub(_json_escape, chunk)


def say(text: object = "", *, file: TextIO | None = None) -> None:
    """Print one line."""
    print(visible(str(text)), file=file)


def show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What ``--debug`` shows; to be ``sys.excepthook``."""
    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        say(line, file=sys.stderr)


def _json_escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in "\n\t\r":  # of the layout; in strings JSON itself escapes them
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
