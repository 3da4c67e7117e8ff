"""
Questions at random about a table that real Hudi made at random; both sides answer with the same rows.

``python tools/long_run.py questions --release 1.2.0`` asks about many tables.
"""

import pytest

from support.interop_sample import sized
from support.questions import Asked

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize("seed", [1, 2])
def test_both_sides_answer_with_the_same_rows(peer, plain_spark, tmp_path, seed):
    """Snapshots, earlier times, ranges and change logs, with conditions and some of the columns; ours on Spark, too."""
    asked = Asked(peer, tmp_path / "t", seed, peer.table_version, spark=plain_spark)
    asked.play(steps=sized(7, 5), questions=sized(24, 14))
    assert not asked.differences, str(asked)
    assert asked.counts.total() > sized(12, 7)
