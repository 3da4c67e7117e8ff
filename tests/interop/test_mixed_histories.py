"""
Real Hudi and we take turns at random on one table with a metadata table; after every step everything agrees.

``HUDI_INTEROP_MIXED_STEPS`` steps per release (default 8, in the sample 5; 30 for a long run), from the seed
``HUDI_INTEROP_SEED``, another one for each release. The story is printed.
"""

from __future__ import annotations

import os
import random
from unittest import mock

import pytest

import hudi_py
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.services.check.findings import Severity
from hudi_py.writing.transaction import WriteTransaction
from support.interop_metadata import OurTable, Stop
from support.interop_model import PARTITIONED, Model
from support.interop_sample import seed_of, sized

pytestmark = pytest.mark.oracle

STEPS = int(os.environ.get("HUDI_INTEROP_MIXED_STEPS", sized(8, 5)))
SEED = int(os.environ.get("HUDI_INTEROP_SEED", "20260101"))
WITH_METADATA = {"hoodie.metadata.enable": True, "hoodie.clean.automatic": False}
COMPACTING = WITH_METADATA | {"hoodie.metadata.compact.max.delta.commits": 1}
OURS = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
OURS["hoodie.metadata.compact.max.delta.commits"] = 2  # so that ours, failed ones included, often begin with one
ARCHIVING = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.cleaner.commits.retained": 1}


class Mixed:
    """One table, its model, and one random step of either side at a time."""

    def __init__(self, seed, peer, we, path):
        self.peer, self.we, self.path, self.told = peer, we, path, []
        self.model = Model(PARTITIONED)
        self._random = random.Random(seed)
        self._version = self._keys = 0
        self.peer.write(path, self.model.upsert(self._batch(range(9))), "upsert", self._create() | WITH_METADATA)

    def step(self):
        """One random step."""
        ours = (self.our_upsert, self.our_upsert, self.our_upsert, self.our_delete, self.our_clean)
        ours += (self.our_failure, self.our_late_failure, self.our_rollback, self.our_compaction, self.our_archival)
        theirs = (self.their_upsert, self.their_upsert, self.their_delete, self.their_clean, self.their_failure)
        theirs += (self.their_rollback, self.their_compaction, self.their_archival)
        run = self._random.choice(ours if self._random.random() < 0.6 else theirs)
        self.told.append(run.__name__)
        run()

    def check(self):
        """Rows with the metadata table and without, its listing beside the disk, for both sides."""
        wanted = self.model.rows()
        for metadata in (True, False):
            assert wanted == self.peer.read(self.path, metadata=metadata), f"metadata={metadata}: {self}"
        assert wanted == self.we.read(), str(self)
        assert self.peer.file_slices(self.path) == self.peer.file_slices(self.path, use_metadata=True), str(self)
        found = hudi_py.open_table(str(self.path)).check()
        assert [] == [each for each in found if each.severity is Severity.ERROR or each.code[:3] == "mdt"], str(self)

    def __str__(self):
        return f"Hudi {self.peer.version}, {self.path}: {', '.join(self.told)}"

    # --- ours ----------------------------------------------------------------------------------------------------
    def our_upsert(self):
        self.we.write(self.model.upsert(self._batch(self._numbers())))

    def our_delete(self):
        self.we.write(self.model.delete(self._batch(self._some(2))), "delete")

    def our_clean(self):
        self.we.clean(commits_retained=self._random.randint(1, 3))

    def our_failure(self):
        """We die with our files written, before the metadata table is told."""
        with mock.patch.object(WriteTransaction, "commit", side_effect=Stop), pytest.raises(Stop):
            self.we.write(self._batch(self._some(4)))

    def our_late_failure(self):
        """We die between the metadata table's delta commit and our commit."""
        record = MetadataTableKeeper.record_commit

        def die(*arguments, **words):
            record(*arguments, **words)
            raise Stop

        with mock.patch.object(MetadataTableKeeper, "record_commit", die), pytest.raises(Stop):
            self.we.write(self._batch(self._some(4)))

    def our_rollback(self):
        hudi_py.open_table(str(self.path)).rollback_failed_writes()

    def our_compaction(self):
        OurTable(self.path).compact()

    def our_archival(self):
        hudi_py.open_table(str(self.path)).archive(keep_min_commits=3, keep_max_commits=4)

    # --- theirs --------------------------------------------------------------------------------------------------
    def their_upsert(self):
        self.peer.write(self.path, self.model.upsert(self._batch(self._numbers())), "upsert", WITH_METADATA)

    def their_delete(self):
        self.peer.write(self.path, self.model.delete(self._batch(self._some(2))), "delete", WITH_METADATA)

    def their_clean(self):
        self.peer.clean(self.path, {"hoodie.cleaner.commits.retained": self._random.randint(1, 3)})

    def their_failure(self):
        self.peer.fail_write(self.path, self._batch(self._some(4)), "upsert", WITH_METADATA)

    def their_rollback(self):
        self.peer.rollback(self.path)

    def their_compaction(self):
        self.peer.write(self.path, self.model.upsert(self._batch(self._some(3))), "upsert", COMPACTING)

    def their_archival(self):
        self.peer.archive(self.path, ARCHIVING)

    # --- parts ---------------------------------------------------------------------------------------------------
    def _create(self):
        return PARTITIONED.create(self.peer.table_version)

    def _batch(self, numbers):
        self._version += 1
        return PARTITIONED.batch(numbers, self._version)

    def _some(self, count):
        return self._random.sample(range(self._keys or 9), count)

    def _numbers(self):
        self._keys = max(self._keys, 9) + 1
        return [*self._some(self._random.randint(2, 6)), self._keys - 1]


def test_every_step_of_either_side_leaves_the_metadata_table_true(peer, ours, tmp_path):
    """Commits, deletes, cleans, failures, rollbacks, archivals, and compactions of the metadata table."""
    path = tmp_path / "t"
    we = ours(path, OURS)
    mixed = Mixed(seed_of(peer.version, SEED), peer, we, path)
    mixed.check()
    for _ in range(STEPS):
        mixed.step()
        mixed.check()
    print(mixed)  # noqa: T201  (pytest shows it on failure, or with -s)
