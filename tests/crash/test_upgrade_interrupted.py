"""Apache Hudi's upgrade moves one instant after the other; what others do in between, or where it was interrupted."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest

from hudi_py.errors import ConflictError
from hudi_py.testing import Crash, StopBefore
from support import writes
from support.many_writers import contents, table
from support.upgrading import upgrade

_made = cache(table)


def upgraded_in_part(kind, seed):
    """The table after each change that an upgrade of Apache Hudi makes; the last one is whole."""
    for n in itertools.count():
        storage = _made(6, kind).copy()
        try:
            upgrade(writes.open_table(StopBefore(storage, n)), chance=random.Random(seed))
        except Crash:
            yield storage
        else:
            yield storage
            return


WHILE_IT_MOVES = {
    "read": lambda opened: contents(opened.storage),
    "upsert": lambda opened: writes.upsert(opened.storage, [{"id": "d", "region": "eu", "ts": 9}]),
    "clean": lambda opened: opened.clean(file_versions_retained=1),
    "archive": lambda opened: opened.archive(keep_min_commits=1, keep_max_commits=2),
    "orphans": lambda opened: opened.orphans(older_than="0m", delete=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("action", WHILE_IT_MOVES)
def test_while_the_timeline_moves_nobody_goes_by_a_part_of_it(action, kind):
    """Whoever comes in between, or after an upgrade that was interrupted, is told; no row is hidden, none is lost."""
    told = 0
    before = contents(_made(6, kind))
    for storage in upgraded_in_part(kind, seed=1):
        data = set(filter(writes.is_data, storage.files()))
        try:
            found = WHILE_IT_MOVES[action](writes.open_table(storage))
        except ConflictError as error:
            assert "is being upgraded" in str(error)
            assert set(filter(writes.is_data, storage.files())) == data
            told += 1
        else:
            assert action != "read" or found == before
    assert told > 5
