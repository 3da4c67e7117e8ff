"""
Java properties: ``hoodie.properties`` and ``.hoodie_partition_metadata``, and the checksum of the former.

Source: Javadoc of ``java.util.Properties`` (``load`` and ``store``); rules/timeline 1.1 and 1.2.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.kept import kept_if_small

_BYTES_MAX: Final = 1 << 23
_BLANKS: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_KEY: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED_BLANK: Final = "\\ "
_SPECIAL: Final = re.compile(r"[\\\t\n\r\f=:#!]|[^\x20-\x7e]")
_LETTERS: Final = {char: f"\\{letter}" for letter, char in _ESCAPED.items()}


def parse_properties(data: bytes, source: str) -> dict[str, str]:
    r"""
    Parse properties; if a key occurs twice, its last value is used.

    Raises:
        CorruptMetadata: A ``\u`` escape does not have four hex digits (the only error in Java too) or is half of a
            character, or there are more bytes than properties of any table have.
    """
    if len(data) > _BYTES_MAX:
        raise CorruptMetadata(f"{source}: {len(data)} bytes are too many for properties; the limit is {_BYTES_MAX}")
    return dict(_parsed(data, source))  # a copy, because callers change theirs


@kept_if_small
def _parsed(data: bytes, source: str) -> dict[str, str]:
    entries = {}
    for offset, line in _logical_lines(data.decode("iso-8859-1")):
        key = _KEY.match(line)
        assert key is not None  # it matches the empty text
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        try:
            entries[_unescape(key[0])] = _unescape(line[separator.end() :])
        except ValueError as error:
            raise CorruptMetadata(f"{source}: {error} (line at byte {offset} of {len(data)})") from error
    return entries


def format_properties(entries: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    r"""
    Write properties as ``Properties.store`` does, with ``\n`` line ends and the order of *entries*.

    Args:
        entries: Keys and values, any text.
        comments: Lines for the top without their ``#``; Hudi writes two, the purpose and the date.
    """
    assert not any(_LINE_END.search(comment) for comment in comments), comments
    lines = [f"#{comment}\n" for comment in comments]
    lines += [f"{_escape(key).replace(' ', _ESCAPED_BLANK)}={_escape_value(value)}\n" for key, value in entries.items()]
    return "".join(lines).encode("iso-8859-1")


def checksum(database: str | None, table_name: str) -> str:
    """
    Return the value of ``hoodie.table.checksum``: CRC-32 of ``<database>.<table>``, unsigned, in decimal.

    Source: Hudi 1.1.1, ``HoodieTableConfig.generateChecksum``.
    """
    return str(zlib.crc32(f"{database or ''}.{table_name}".encode()))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield offset and text of lines that are not comments; an odd number of backslashes at the end joins two lines."""
    start, pending, position = 0, "", 0
    continued = False
    for line in _LINE_END.split(text):
        content = line.lstrip(_BLANKS)
        if not continued:
            start = position
        end = _LINE_END.match(text, position + len(line))
        position += len(line) + (len(end[0]) if end else 0)
        if not pending and not (content and (continued or content[0] not in "#!")):
            continued = False
            continue
        # An even number of backslashes is a series of escaped backslashes; only an odd one leaves a backslash for the
        # line end.
        backslashes = len(content) - len(content.rstrip("\\"))
        continued = backslashes % 2 == 1
        pending += content[:-1] if continued else content
        if not continued:
            yield start, pending
            pending = ""
    if pending:
        yield start, pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape_one, text)
    # Escapes are UTF-16 code units, so two of them can be the halves of one character.
    try:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("a \\u escape of half a character") from None  # no file and no terminal could take it


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] == "u":
        if len(escape) == 1:
            raise ValueError("a \\u escape without four hex digits")
        return chr(int(escape[1:], 16))
    return _ESCAPED.get(escape, escape)


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escape_one, text)


def _escape_one(match: re.Match[str]) -> str:
    char = match[0]
    if char in _LETTERS:
        return _LETTERS[char]
    if char in "\\=:#!":
        return f"\\{char}"
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def _escape_value(value: str) -> str:
    # Java drops blanks before a value, so a leading one has to be escaped, and only that one.
    escaped = _escape(value)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
