"""Tables that need a recovery, and the recovery with what always holds for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import State
from hudi_py.model.records import InstantInfo, RollbackMetadata
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from support.tables import NOW, SYNC, TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def healthy(layout: int) -> TableBuilder:
    """Three commits; the storage's clock stands an hour before the table's."""
    builder = TableBuilder(layout)
    moment = NOW - timedelta(hours=1)
    builder.storage._clock_ms = lambda: int(moment.timestamp() * 1000)
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a"]})
    return builder


def recovered(builder: TableBuilder, **settings: str) -> list[tuple[Problem, Step, bool]]:
    """Findings of a recovery; a dry run before finds the same first step, and a second run has nothing to do."""
    before = builder.storage.files()
    dry = Table(ReadOnlyStorage(builder.storage), settings=settings, clock=builder.clock).recover(dry_run=True)
    assert builder.storage.files() == before
    outcomes = Table(builder.storage, settings=settings, clock=builder.clock).recover()
    assert {(o.finding.problem, o.finding.time) for o in dry} <= {(o.finding.problem, o.finding.time) for o in outcomes}
    after = builder.storage.files()
    again = Table(builder.storage, settings=settings, clock=builder.clock).recover()
    assert not [each for each in again if each.done]
    assert builder.storage.files() == after
    return [(each.finding.problem, each.finding.step, each.done) for each in outcomes]


def troubled(layout: int) -> MemoryStorage:
    """A crash in every service at once."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3, 4):
        builder.commit(at(number), {"eu": ["a"], "us": ["b"]})
    builder.savepoint(at(4), {"eu": [builder.base_name("a", at(4))], "us": [builder.base_name("b", at(4))]})
    builder.instant(at(3), "savepoint", State.INFLIGHT)
    table = builder.table()
    table.services.clean(table.services.clean_config(commits_retained=2)).schedule()
    builder.put(f"eu/{builder.base_name('x', at(5))}")
    undone = RollbackMetadata(
        start_rollback_time=at(6),
        time_taken_ms=1,
        total_files_deleted=0,
        commits_rollback=(at(5),),
        partitions={},
        instants_rollback=(InstantInfo(at(5), "commit"),),
    )
    for state in (State.REQUESTED, State.INFLIGHT):
        builder.instant(at(6), "rollback", state)
    builder.instant(at(6), "rollback", State.COMPLETED, codec.encode_rollback_metadata(undone, SYNC))
    builder.commit(at(7), {"eu": ["c"]}, state=State.INFLIGHT)
    create_marker(builder.storage, at(7), Marker("eu", builder.base_name("c", at(7)), MarkerType.CREATE))
    builder.commit(at(8), {"us": ["d"]}, state=State.INFLIGHT)
    builder.put(f".hoodie/.heartbeat/{at(4)}", b"")
    builder.instant(at(9), "rollback", State.REQUESTED, b"Obj\x01 torn")
    builder.put("us/.hoodie_partition_metadata", b"commitTime=2026\x00")
    builder.put(".hoodie/.locks/table_lock.json", b'{"expired": false, "validUntil": 1, "owner": "gone"}')
    properties = builder.storage.read(".hoodie/hoodie.properties")
    builder.put(".hoodie/hoodie.properties.backup", properties)
    return builder.storage
