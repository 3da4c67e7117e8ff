"""Leases with a savepoint: cleaners that know no leases keep the files as long as the lease counts, and no longer."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import count

import pytest

from hudi_py.errors import ConflictError, HudiError, RefusedError
from hudi_py.model.lease import savepoint_name
from hudi_py.table import Table
from hudi_py.testing import FailNth, interruptions
from hudi_py.timeline.leases import LeaseFolder
from support.meanwhile import Meanwhile
from support.tables import TableBuilder, at, data_files

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
UNAWARE = {"hoodie_py.leases.ignored": True}
"""As Apache Hudi cleans, which knows savepoints and no leases."""


def made(layout=2):
    builder = TableBuilder(layout)
    for number in range(1, 4):
        builder.commit(at(number), {"r0": ["f"]})
    return builder


def opened(builder, **settings):
    return Table(builder.storage, settings=settings, clock=builder.clock)


def clean(builder, **settings):
    builder.clock.move(timedelta(seconds=1))
    return [path for each in opened(builder, **settings).clean(commits_retained=1) for path in each.deleted_files]


def first(builder):
    return f"r0/{builder.base_name('f', at(1))}"


def savepoints(builder):
    return {each.requested_time for each in builder.table().timeline.completed("savepoint")}


@LAYOUTS
def test_a_cleaner_that_knows_no_leases_keeps_its_files_until_it_is_released(layout):
    """Without the savepoint the same clean deletes them; after the release it does."""
    plain = made(layout)
    plain.table().take_lease(ttl="3h", at=at(1))
    assert first(plain) in clean(plain, **UNAWARE)
    builder = made(layout)
    lease = builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    assert savepoints(builder) == {at(1)}
    assert first(builder) not in clean(builder, **UNAWARE)
    assert builder.table().release_lease(lease.id)
    assert savepoints(builder) == set()
    builder.commit(at(4), {"r0": ["f"]})
    assert first(builder) in clean(builder, **UNAWARE)


def test_leases_on_one_commit_share_a_savepoint():
    """It goes with the last of them, and with nobody before."""
    builder = made()
    one, other = (builder.table().take_lease(ttl="3h", at=at(1), savepoint=True) for _ in range(2))
    third = builder.table().take_lease(ttl="3h", at=at(1))
    ((_, content),) = builder.table().services.savepoint().savepoints()
    assert content.name == savepoint_name(at(1))
    builder.table().release_lease(one.id)
    assert savepoints(builder) == {at(1)}
    builder.table().release_lease(other.id)
    assert savepoints(builder) == set()
    assert [each.id for each in builder.table().leases()] == [third.id]


@LAYOUTS
def test_with_the_lease_its_savepoint_expires(layout):
    """The clean that deletes the dead lease deletes its savepoint before it plans; a dry run says the same."""
    builder = made(layout)
    builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    builder.clock.move(timedelta(hours=2, minutes=59))
    assert first(builder) not in clean(builder)
    builder.clock.move(timedelta(minutes=3))
    builder.commit(at(4), {"r0": ["f"]})
    planned = builder.table().plan_clean(commits_retained=1)
    assert first(builder) in {file.path for group in planned.files.values() for file in group}
    assert first(builder) in clean(builder)
    assert (savepoints(builder), builder.table().leases()) == (set(), ())


def test_the_with_block_releases_both():
    """Reads inside, nothing left outside."""
    builder = made()
    with builder.table().lease(ttl="3h", at=at(1), savepoint=True):
        assert savepoints(builder) == {at(1)}
    assert (savepoints(builder), builder.table().leases()) == (set(), ())


def test_the_savepoint_of_a_person_is_used_and_stays():
    """If it is deleted meanwhile, the next renewal makes one; if its time is over, it stays while a lease needs it."""
    builder = made()
    builder.table().create_savepoint(at(1), name="mine", ttl="1h")
    lease = builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    builder.clock.move(timedelta(hours=2))
    assert builder.table().remove_expired_savepoints() == ()
    builder.table().release_lease(lease.id)
    assert len(builder.table().remove_expired_savepoints()) == 1
    builder.table().create_savepoint(at(2), name="other")
    lease = builder.table().take_lease(ttl="3h", at=at(2), savepoint=True)
    for path in [each for each in builder.storage.files() if at(2) in each and ".savepoint" in each]:
        builder.storage.delete(path)  # as Apache Hudi does, which asks for no leases
    builder.table().renew_lease(lease.id, "3h")
    assert savepoints(builder) == {at(2)}
    builder.table().create_savepoint(at(1), name="mine")
    shared = builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    builder.table().release_lease(shared.id)
    assert savepoints(builder) == {at(1), at(2)}


def test_a_savepoint_that_a_lease_needs_is_not_deleted():
    """The message names the lease."""
    builder = made()
    lease = builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    with pytest.raises(RefusedError, match=lease.id):
        builder.table().delete_savepoint(at(1))


def test_a_commit_that_cannot_be_savepointed_gets_no_such_lease():
    """Nothing is left of the attempt."""
    builder = made()
    clean(builder)
    with pytest.raises(RefusedError):
        builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    assert (savepoints(builder), builder.table().leases()) == (set(), ())


def stored_later(builder):
    """Path and content of the plan of a cleaner that knows no leases and looked at the table before."""
    ended = made(builder.layout.version)
    storage = FailNth(ended.storage, 0, None, verbs=["delete_many"])
    with pytest.raises(HudiError):
        Table(storage, settings=UNAWARE, clock=ended.clock).clean(commits_retained=1)
    (path,) = [each for each in ended.storage.files() if each.endswith(".clean.requested")]
    return path, ended.storage.read(path)


@LAYOUTS
def test_a_plan_that_was_made_before_the_savepoint_and_is_stored_beside_it_refuses_the_lease(layout):
    """A-15: Apache Hudi plans without the lock, so at any call of ours its plan may appear; nothing is left of ours."""
    for n in count():
        builder = made(layout)
        path, content = stored_later(builder)
        meanwhile = Meanwhile(builder.storage, partial(builder.storage.create_new, path, content), n=n)
        table = Table(meanwhile, clock=builder.clock)
        try:
            table.take_lease(ttl="3h", at=at(1), savepoint=True)
        except (RefusedError, ConflictError) as error:
            assert path.rpartition("/")[2].partition(".")[0] in str(error), n
        else:
            assert meanwhile.fired is None, n
            assert (savepoints(builder), len(builder.table().leases())) == ({at(1)}, 1)
            break
        assert (savepoints(builder), builder.table().leases()) == (set(), ()), n
    assert n > 2


def test_a_damaged_lease_leaves_the_savepoint():
    """It may be the one that needs it; once it is released, the next clean deletes the savepoint."""
    builder = made()
    lease = builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
    (path,) = [each for each in builder.storage.files() if lease.id in each]
    builder.storage.replace(path, b"{")
    assert builder.table().remove_expired_savepoints() == ()
    builder.table().release_lease(lease.id)
    assert savepoints(builder) == {at(1)}
    clean(builder)
    assert savepoints(builder) == set()


@pytest.mark.slow
@LAYOUTS
@pytest.mark.parametrize("does", ["take", "release"])
def test_after_a_crash_at_each_call_no_savepoint_outlives_its_leases(layout, does):
    """While a lease is there its files are; once none is, the next clean deletes the savepoint, and no other."""

    def start():
        builder = made(layout)
        if does == "release":
            builder.table().take_lease(ttl="3h", at=at(1), savepoint=True)
        return builder

    def act(builder):
        table = builder.table()
        if does == "take":
            table.take_lease(ttl="3h", at=at(1), savepoint=True)
        else:
            for each in table.leases():
                table.release_lease(each.id)

    for case in interruptions(lambda: start().storage):
        builder = made(layout)

        def with_storage(storage, builder=builder):
            builder.storage = storage
            act(builder)

        case.run(with_storage)
        builder.storage = case.storage
        held = LeaseFolder(case.storage, builder.clock).all()
        # Half a savepoint protects nothing, so `recover` deletes it, also while the lease counts for which it was made.
        builder.table().recover()
        assert not builder.table().timeline.pending()
        clean(builder)
        if held:
            assert first(builder) in data_files(builder.storage)
            builder.clock.move(timedelta(hours=4))
            builder.commit(at(4), {"r0": ["f"]})
            clean(builder)
        assert (savepoints(builder), builder.table().leases()) == (set(), ())
        assert not builder.table().timeline.pending()
