"""A write under the failed-writes policy LAZY, interrupted anywhere: its heart tells others when it may go."""

from datetime import timedelta

import pytest

from support.crash_points import EVERY, interruptions
from support.writes import CHANGES, NEW, OLD, LazyWorld, assert_tidy, create_table, upsert


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_lazy_write_interrupted_anywhere_is_spared_while_it_may_live_and_goes_afterwards(record_property, version):
    """B-3, B-5: nothing of it is touched before its heart has stood still for 120 s; then the clean removes it all."""
    world = LazyWorld()
    create_table(version, world.storage, world.clock)
    upsert(world.storage, OLD, world.open(world.storage))
    assert ".heartbeat" not in " ".join(world.storage.files())
    count = spared = 0
    for case in interruptions(world.storage.copy):
        count += case.run(lambda faulty: upsert(faulty, CHANGES, world.open(faulty)))
        storage = case.storage
        seen = world.rows(storage)
        assert seen in (OLD, NEW), case
        pending = world.open(storage).timeline.pending()
        hearts = [path for path in storage.files() if ".heartbeat" in path]
        # One that fails while it begins, and lives on, forgets its heartbeat: it has written nothing, and nobody waits.
        assert hearts or not pending or not case.mode.name.startswith("stop"), case
        if pending and hearts:
            spared += 1
            before = storage.files()
            world.open(storage).clean()
            world.open(storage).recover()
            kept = {path: data for path, data in before.items() if "/aux/" not in path}
            assert kept.items() <= storage.files().items(), case
        world.clock.move(timedelta(seconds=130))
        for _ in range(2):
            world.open(storage).clean()
            world.open(storage).recover()
            assert world.rows(storage) == seen, case
            assert_tidy(storage, case)
            assert ".heartbeat" not in " ".join(storage.files()), case
        upsert(storage, CHANGES, world.open(storage))
        assert world.rows(storage) == NEW, case
    record_property("interruptions", count)
    assert count * EVERY > 60
    assert spared * EVERY > 20
