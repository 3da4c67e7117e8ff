"""
Tests that take turns: where ``HUDI_TEST_DAY`` is a number, what is long runs every third or fourth day.

- A test against real Hudi runs every fourth day.
- A test that needs Spark runs on each of its two versions every fourth day; a slow one on the first every third.
- Of the other slow tests each case runs every third day, but random histories are played every day: those in
  ``tests/property``, and what is marked ``daily``.
- Of all others each case runs every day, or every so many as ``HUDI_TEST_TURNS`` says.

Which day it is follows from the test's name: each day has a like share, and so many days in a row have all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

import pytest

_DAY = os.environ.get("HUDI_TEST_DAY", "")
_TURNS = int(os.environ.get("HUDI_TEST_TURNS", "1"))
_IS_FIRST_SPARK = os.environ.get("HUDI_PY_TEST_SPARK", "3.5") == "3.5"


T = TypeVar("T")


def of_today(options: Sequence[T], number: int) -> Sequence[T]:
    """All options of a test with this number, or the one whose turn it is."""
    return options if not _DAY else (options[(number + int(_DAY)) % len(options)],)


def is_its_turn(item: pytest.Item) -> bool:
    """Whether a test runs today, on this version of Spark."""
    if not _DAY:
        return True
    marks = {mark.name for mark in item.iter_markers()}
    # Cases of the tests with a peer share what is slow to start, so those of one test run on the same day.
    is_by_case = not marks & {"oracle", "spark"}
    number = crc32((item.nodeid if is_by_case else item.nodeid.partition("[")[0]).encode()) + int(_DAY)
    if "oracle" in marks:
        return number % 4 == 0
    if "spark" in marks:
        return number % 3 == 1 and _IS_FIRST_SPARK if "slow" in marks else number % 4 == (1 if _IS_FIRST_SPARK else 3)
    if item.path.parent.name == "property" or "daily" in marks:
        return True
    return number % (3 if marks & {"slow", "s3", "browser"} else _TURNS) == 0
