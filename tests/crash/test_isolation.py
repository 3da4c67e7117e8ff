"""Random writes that begin and complete while others run: each level of isolation keeps what it promises."""

from __future__ import annotations

import logging
import os
import random

import pytest

from hudi_py.errors import HudiError
from support.drawn_writes import INDEXES, Write, overlap
from support.laws import SHARE
from support.many_writers import contents, table
from support.simulation import SerialOrders

CASES = 12


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    yield
    logging.getLogger("hudi_py").setLevel(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["SERIALIZABLE", "WRITE_SERIALIZABLE"])
@pytest.mark.parametrize("index", INDEXES)
def test_writes_that_overlap_end_like_some_serial_order(index, level):
    """Of two or three; a deletion of keys that are not there counts at any moment, unless the order counts."""
    settings = {**INDEXES[index], "hoodie_py.write.isolation": level}
    chance = random.Random(f"{index} {level} {os.environ.get('HUDI_TEST_DAY', '')}")
    for _ in range(-(-CASES // SHARE)):
        kind = chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
        start = table(chance.choice((6, 8, 9)), kind, settings=settings)
        # With a global index a deletion looks everywhere.
        deletes = level == "SERIALIZABLE" or index != "SIMPLE"
        all_writes = [Write(chance, settings, deletes_keys=deletes) for _ in range(chance.choice((2, 3, 3)))]
        is_nested = chance.random() < 0.5
        storage, done = start.copy(), []

        def run(number, others=None, *, storage=storage, done=done, all_writes=all_writes):
            try:
                all_writes[number].do(storage, others)
            except HudiError:
                return
            done.append(number)

        overlap(all_writes, run, is_nested=is_nested)
        expected = SerialOrders(start.copy, [each.do for each in all_writes], contents).of(done)
        assert contents(storage) in expected, (kind, is_nested, done, all_writes)
