"""A completed clustering is undone after other services in any order: no row changes, or nothing at all."""

import random
from contextlib import suppress

import pytest

from hudi_py.errors import ConflictError, HudiError, RefusedError
from support.laws import SHARE
from support.writes import ALONE, create_table, merged_rows_of, open_table, upsert

QUICK = ALONE | {
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.log.compaction.blocks.threshold": 1,
}
MOR = {"hoodie.table.type": "MERGE_ON_READ"}
STEPS = {
    "clean": lambda table: table.clean(),
    "clean all but the newest": lambda table: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1),
    "archive": lambda table: table.archive(),
    "savepoint": lambda table: table.create_savepoint(),
    "savepoint of the first write": lambda table: table.create_savepoint(first_write(table)),
    "lease": lambda table: table.lease(ttl="1h").__enter__(),
    "cluster": lambda table: table.cluster(),
    "plan a clustering": lambda table: table.services.clustering().schedule(),
    "restore to before it": lambda table: restore(table, *table.timeline.completed("commit", "deltacommit")),
    "restore to it": lambda table: restore(table, *table.timeline.completed("replacecommit")),
}
OF_LOGS = {
    "compact": lambda table: table.compact(),
    "plan a compaction": lambda table: table.schedule_compaction(),
    "plan a log compaction": lambda table: table.schedule_log_compaction(),
}


def first_write(table):
    return table.timeline.completed("commit", "deltacommit")[0].requested_time


def restore(table, *instants):
    """To a savepoint of the first of them, which may be there already; without any, nothing is done."""
    for instant in instants[:1]:
        if instant.requested_time not in {each.requested_time for each in table.timeline.completed("savepoint")}:
            table.create_savepoint(instant.requested_time)
        table.restore(instant.requested_time)


def insert(storage, settings):
    upsert(storage, [{"id": "n", "region": "ap", "ts": 1}], operation="INSERT", **settings)


def update(storage, settings):
    """Of a row that the clustering moved; refused while its file group is planned."""
    with suppress(ConflictError):
        upsert(storage, [{"id": "eu1", "region": "eu", "ts": 5}], **settings)


@pytest.mark.parametrize("seed", range(0, 24, SHARE))
def test_undone_whole_or_refused_whole(seed):
    """What refuses changes no file; afterwards services go on with the same rows, and the table is intact."""
    chance = random.Random(seed)
    version, is_merge_on_read = chance.choice((6, 9)), chance.random() < 0.5
    settings = QUICK | (MOR if is_merge_on_read else {})
    storage = create_table(version, **settings)
    for number in range(3):
        rows = [{"id": f"{region}{number}", "region": region, "ts": 1} for region in ("eu", "us")]
        upsert(storage, rows, operation="INSERT", **settings)
    upsert(storage, [{"id": "eu0", "region": "eu", "ts": 2}], **settings)

    def table():
        return open_table(storage, **settings)

    (done,) = table().cluster(sort_by="ts")
    steps = STEPS | (OF_LOGS if is_merge_on_read else {})
    played = chance.sample([*steps, "insert", "update"], chance.randrange(4))
    for name in played:
        if name in ("insert", "update"):
            {"insert": insert, "update": update}[name](storage, settings)
        else:
            with suppress(RefusedError):
                steps[name](table())
    before, files = merged_rows_of(storage), storage.files()
    try:
        table().rollback(done.instant)
    except HudiError:
        assert storage.files() == files, played
    assert merged_rows_of(storage) == before, played
    for name in ("cluster", "compact", "clean") if is_merge_on_read else ("cluster", "clean"):
        with suppress(RefusedError):
            steps[name](table())
        assert merged_rows_of(storage) == before, (played, name)
    assert not [str(each) for each in table().check() if each.severity.name == "ERROR"], played
