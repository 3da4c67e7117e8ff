"""
Tests that take turns: where ``HUDI_TEST_DAY`` is a number, what is long runs every other day.

On a day each test against real Hudi runs or not, and each test that needs Spark runs on one of its two versions. Which
follows from its name, so that a day has half of them, and two days in a row have all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

import pytest

_DAY = os.environ.get("HUDI_TEST_DAY", "")
_IS_FIRST_SPARK = os.environ.get("HUDI_PY_TEST_SPARK", "3.5") == "3.5"


T = TypeVar("T")


def of_today(options: Sequence[T], number: int) -> Sequence[T]:
    """All options of a test with this number, or the one whose turn it is."""
    return options if not _DAY else (options[(number + int(_DAY)) % len(options)],)


def is_its_turn(item: pytest.Item) -> bool:
    """Whether a test runs today, on this version of Spark."""
    marks = {mark.name for mark in item.iter_markers()}
    if not _DAY or not marks & {"oracle", "spark"}:
        return True
    is_odd = (crc32(item.nodeid.partition("[")[0].encode()) + int(_DAY)) % 2 == 1
    if "oracle" in marks:
        return is_odd
    return "slow" in marks or is_odd == _IS_FIRST_SPARK  # slow ones run on the first version only
