"""Recovery interrupted at every storage call, in every way; recovered twice; states compared with a calm recovery."""

from __future__ import annotations

import pytest

from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import State
from hudi_py.model.records import InstantInfo, RestorePlan
from hudi_py.storage.memory import MemoryStorage
from support.crash_points import interruptions
from support.history_tables import fixture_in_memory, open_in, state_of
from support.recoveries import troubled
from support.tables import SYNC, TableBuilder, at


def restoring(layout: int) -> MemoryStorage:
    """A restore that had just begun, and a write that had not ended."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a"]})
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    plan = RestorePlan(
        instants_to_rollback=(InstantInfo(at(3), "commit"), InstantInfo(at(2), "commit")),
        savepoint_to_restore_timestamp=at(1),
    )
    builder.instant(at(5), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    builder.commit(at(6), {"eu": ["b"]}, state=State.INFLIGHT)
    return builder.storage


def ghost(name: str) -> MemoryStorage:
    """A table of real Hudi whose metadata table was not told of a clean, so that it lists files that are gone."""
    storage = fixture_in_memory(name)
    untold = {path: storage.read(path) for path in storage.files() if path.startswith(".hoodie/metadata/")}
    assert open_in(storage).clean(commits_retained=1)[0].deleted_count
    for path in storage.files():
        if path.startswith(".hoodie/metadata/"):
            storage.delete(path)
    for path, content in untold.items():
        storage.create_new(path, content)
    return storage


CASES = {
    "troubled, layout 1": lambda: troubled(1),
    "troubled, layout 2": lambda: troubled(2),
    "restoring, layout 1": lambda: restoring(1),
    "restoring, layout 2": lambda: restoring(2),
    **{
        f"{kind}-{version}": lambda kind=kind, version=version: fixture_in_memory(f"{kind}-{version}")
        for kind in ("cow_mixed", "cow_failed_write", "cow_clean_inflight")
        for version in ("0.15.0", "1.0.2", "1.1.1")
    },
    **{
        f"ghost-{version}": lambda version=version: ghost(f"cow_partitioned-{version}")
        for version in ("0.15.0", "1.0.2", "1.1.1")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_recovery_survives_every_interruption(name, record_property):
    """Recovered again after any interruption, the table is what a calm recovery makes of it; a third run is idle."""
    fresh = CASES[name]
    calm = fresh()
    first = open_in(calm).recover()
    assert [each for each in first if each.done]
    assert not [each.error for each in first if each.error]
    wanted = state_of(calm)
    assert not [pending for pending in wanted["pending"] if pending[1].value not in ("clustering", "compaction")]
    cases = 0
    for cases, case in enumerate(interruptions(fresh), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).recover())
        outcomes = open_in(case.storage).recover()
        assert not [each.error for each in outcomes if each.error], case
        assert state_of(case.storage) == wanted, case
        files = case.storage.files()
        assert not [each for each in open_in(case.storage).recover() if each.done], case
        assert case.storage.files() == files, case
    record_property("interruptions", cases)
