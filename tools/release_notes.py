#!/usr/bin/env python3
"""
Print the notes of a release: its part of CHANGELOG.md, without its heading.

    release_notes.py [VERSION]     # without a version: what is not released yet
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

CHANGELOG: Final = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(text: str, version: str = "Unreleased") -> str:
    """
    Return the notes of a version in the text of a changelog.

    Raises:
        LookupError: The changelog has no such version, or nothing below it.
    """
    heading = re.compile(
        rf"^## \[{re.escape(version.removeprefix('v'))}\][^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
    )
    found = heading.search(text)
    if found is None or not found[1].strip():
        known = ", ".join(re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE))
        raise LookupError(f"{CHANGELOG.name} has no notes of {version}; it has those of {known}")
    return found[1].strip() + "\n"


if __name__ == "__main__":
    try:
        print(notes(CHANGELOG.read_text(encoding="utf-8"), *sys.argv[1:2]), end="")
    except LookupError as error:
        sys.exit(str(error))
