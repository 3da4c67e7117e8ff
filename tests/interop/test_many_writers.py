"""Apache Hudi and processes of ours that write, clean and rewrite one table at the same time under one lock."""

from __future__ import annotations

import logging
import os

import pytest

from support.interop_sample import releases, seed_of, sized
from support.rival_hudi import play_beside
from support.rival_places import PLACES

pytestmark = pytest.mark.oracle
SEED = int(os.environ.get("HUDI_INTEROP_SEED", "1"))


@pytest.mark.parametrize("peer", releases(), indirect=True)
@pytest.mark.parametrize("lock", ["zookeeper", "file"])
def test_no_row_is_lost_nor_doubled(peer, tmp_path, lock, record_property):
    """What a side was told to be committed is there once, what failed is not, and each increment counts."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    peer.start()
    for seed in range(seed_of(peer.version, SEED), seed_of(peer.version, SEED) + sized(2, 1)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with PLACES[lock](folder) as place:
            wrong, counts = play_beside(peer, folder, seed, place, count=sized(8, 6))
        assert wrong == [], f"seed {seed}"
        record_property(f"seed {seed}", dict(counts))
