"""The rules of ``docs/rules``: which ids it defines, and where the repository names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.repository import ROOT, text_files

FOLDER = ROOT / "docs" / "rules"
DOCUMENTS = ("timeline", "table-services", "data-files")
LETTERED = "table-services"
"""The document whose ids have letters, which are enough to find a rule: A-12, F.1."""

_HEADING = re.compile(r"^#{2,} ([A-Z]|\d+|[A-Z0-9]+\.\d+)\.? ")
_ROW = re.compile(r"^\| ([A-Z]-\d+[a-z]?|\d+\.\d+) \|")
_ID = r"(?:[A-Z]-\d+[a-z]?|[A-Z]\.\d+|[A-Z]\b|\d+(?:\.\d+)?)"
_CITED = re.compile(rf"rules/({'|'.join(DOCUMENTS)})((?:,?\s+(?:and\s+|to\s+)?{_ID}(?![\w-]))+)")
_LETTERED = re.compile(r"(?<![\w./-])([A-KZ]-\d+[a-z]?|[A-KZ]\.\d+)(?![\w.]*\w)")
_OWN_SECTION = re.compile(r"\bsections? (\d+(?:\.\d+)?)")
_OTHER_SPELLINGS = re.compile(
    rf"(?<!rules/)\b(?:{'|'.join(DOCUMENTS)})\.md\s+(?:section )?{_ID}\b|\bformat/(?:{'|'.join(DOCUMENTS)})"
)


class Reference(NamedTuple):
    """A place that names a rule."""

    document: str
    rule: str
    place: str


@cache
def defined(document: str) -> tuple[str, ...]:
    """The ids of a document in their order, repeated ones repeated: its headings, and the first cells of its rows."""
    found, section = [], ""
    for line in (FOLDER / f"{document}.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            section = heading[1]
            found.append(section)
        # a release in the first cell, as 0.15, is no rule: those with a number begin with that of their section
        elif (row := _ROW.match(line)) and (row[1][0].isalpha() or row[1].partition(".")[0] == section):
            found.append(row[1])
    return tuple(found)


def references() -> Iterator[Reference]:
    """Every rule that code, tests, tools and documents name."""
    for path, text in _readable():
        for cited in _CITED.finditer(text):
            for rule in re.findall(_ID, cited[2]):
                yield Reference(cited[1], rule, _place(path, text, cited.start()))
        for lettered in _LETTERED.finditer(text):
            yield Reference(LETTERED, lettered[1], _place(path, text, lettered.start()))
        if path.parent == FOLDER and path.stem in DOCUMENTS:
            for own in _OWN_SECTION.finditer(text):
                yield Reference(path.stem, own[1], _place(path, text, own.start()))


def other_spellings() -> list[str]:
    """Places that name a rule in a way that `references` does not see."""
    return [
        _place(path, text, found.start()) for path, text in _readable() for found in _OTHER_SPELLINGS.finditer(text)
    ]


def _readable() -> Iterator[tuple[Path, str]]:
    for path, text in text_files():
        if "fixtures" not in path.parts and path != Path(__file__).resolve():
            yield path, text


def _place(path: Path, text: str, offset: int) -> str:
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}"
