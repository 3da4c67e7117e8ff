"""A pending compaction whose plan is gone: a slice that nobody knows of may have been opened by it."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConflictError, CorruptMetadata
from hudi_py.model.instant import Action, Instant, State
from support import writes

TIME = "20260101230000000"


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
@pytest.mark.parametrize("version", [6, 9])
def test_a_pending_compaction_without_its_plan_is_damage_and_says_what_to_do(version, action):
    """It is inflight without a requested file, as after an interrupted withdrawal; a withdrawn one is just gone."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    writes.upsert(storage, writes.OLD)
    store = writes.open_table(storage).contents.store
    requested = store.request(action, TIME, b"")
    store.transition(requested)
    store.remove(requested)
    with pytest.raises(CorruptMetadata, match="hudi-py recover shows"):
        writes.rows_of(storage)
    opened = writes.open_table(storage)
    assert opened.timeline.pending(action)
    store.remove(Instant(TIME, action, State.INFLIGHT))
    with pytest.raises(ConflictError, match="or rolled it back meanwhile; try again"):
        opened.rows()
    assert len(writes.rows_of(storage)) == len(writes.OLD)


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])
@pytest.mark.parametrize("version", [6, 9])
def test_one_that_was_completed_and_archived_since_the_table_was_opened_is_no_damage(version, action, is_begun):
    """Whoever opens the table again reads it, as after any other change of another process."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    writes.upsert(storage, writes.OLD)
    store = writes.open_table(storage).contents.store
    requested = store.request(action, TIME, b"")
    begun = store.transition(requested) if is_begun else None
    opened = writes.open_table(storage)
    assert opened.timeline.pending(action)
    for each in filter(None, (requested, begun)):
        store.remove(each)
    for read in (opened.rows, lambda: opened.changes("0", TIME), lambda: opened.as_of(TIME)):
        with pytest.raises(ConflictError, match="or rolled it back meanwhile; try again"):
            read()
    assert len(writes.rows_of(storage)) == len(writes.OLD)
