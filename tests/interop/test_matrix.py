"""
Each operation of both engines on each kind of table, beside real Hudi; any two factors meet in some table.

``python tools/long_run.py matrix --release 1.1.1`` plays all of them with each other.
"""

import itertools

import pytest

from support.matrix import ENGINES, INDEXES, OPERATIONS, TYPES, Played, pairwise


def test_any_two_factors_meet():
    """Type, index, metadata table, operation and engine: no pair of values is left out."""
    values = (TYPES, INDEXES, (False, True), OPERATIONS, ENGINES)
    wanted = {
        (one, a, other, b)
        for one, other in itertools.combinations(range(len(values)), 2)
        for a, b in itertools.product(values[one], values[other])
    }
    for case in pairwise():
        for step in case.steps:
            met = (case.table_type, case.index, case.metadata, *step)
            wanted -= {(one, met[one], other, met[other]) for one, other in itertools.combinations(range(5), 2)}
    assert not wanted


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("case", pairwise(), ids=str)
def test_real_hudi_reads_every_operation_and_goes_on(case, peer, plain_spark, tmp_path):
    """It upserts behind each without duplicates, compacts and cleans; we go on behind it, and the indexes are true."""
    Played(case, peer, plain_spark, tmp_path / "t").play()
