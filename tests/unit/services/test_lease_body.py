"""``with table.lease(ttl="3h") as snapshot``: what a reader sees while others do everything to the table."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConflictError, HudiError, NotFound, RefusedError
from support.writes import NEW, OLD, create_table, minutes, open_table, upsert

SHORT = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clustering.inline.max.commits": 1,
}


def shown(snapshot):
    return sorted(map(str, snapshot.rows().to_arrow().to_pylist()))


def again(rows, ts):
    """The rows with another ordering value."""
    return [{**row, "ts": ts} for row in rows]


def busy(storage, first):
    """Everything that takes files away, after writes that replace all that there was."""
    for ts in range(first, first + 4):
        upsert(storage, again(OLD, ts))
    is_merge_on_read = open_table(storage).is_merge_on_read
    for done in (*(("compact",) if is_merge_on_read else ()), "clean", "archive", "maintain"):
        getattr(open_table(storage, **SHORT), done)()
    upsert(storage, NEW, operation="INSERT_OVERWRITE_TABLE")
    for done in ("cluster", "clean", "archive", "maintain"):
        getattr(open_table(storage, **SHORT), done)()


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_snapshot_stays_whatever_is_done(version, kind):
    """Cleaned, compacted, clustered, overwritten, archived; what would undo it is refused until the block ends."""
    storage = create_table(version, **{"hoodie.table.type": kind})
    upsert(storage, OLD)
    first = open_table(storage).timeline.commits.completed()[-1].requested_time
    open_table(storage).create_savepoint(first)
    upsert(storage, again(OLD, 2))
    table = open_table(storage, **SHORT)
    with table.lease(ttl="3h") as snapshot:
        before, leased = shown(snapshot), open_table(storage).leases()[0].instant
        busy(storage, 3)
        assert shown(snapshot) == before
        assert shown(open_table(storage).as_of(leased)) == before
        for undo in (lambda: open_table(storage).restore(first), lambda: open_table(storage).rollback(leased)):
            with pytest.raises(RefusedError):
                undo()
        assert shown(snapshot) == before
    assert open_table(storage).leases() == ()
    busy(storage, 20)
    with pytest.raises(HudiError, match="clean"):
        shown(open_table(storage).as_of(leased))


def test_a_block_that_throws_releases_its_lease():
    """Its own error comes out, and nothing is kept for it any more."""
    storage = create_table(9)
    upsert(storage, OLD)
    table = open_table(storage)
    with pytest.raises(ZeroDivisionError), table.lease(ttl="3h"):
        assert len(open_table(storage).leases()) == 1
        raise ZeroDivisionError
    assert open_table(storage).leases() == ()


def test_a_block_whose_lease_was_lost_is_told_so():
    """Not to take a lease, which it had; another error of the block stays its own."""
    storage = create_table(9)
    upsert(storage, OLD)
    table = open_table(storage, **SHORT)
    with (
        pytest.raises(ConflictError, match=r"could not be renewed in time.*Take a new one"),
        table.lease(ttl="3h") as found,
    ):
        for _ in range(4 * 60):
            next(minutes)
        table.contents.store.clock.move(timedelta(hours=4))
        busy(storage, 3)
        shown(found)
    with pytest.raises(NotFound, match="another"), open_table(storage).lease(ttl="3h"):
        raise NotFound("another")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_block_that_outlives_a_lease_which_nobody_renewed_ends_with_an_error_or_right_rows(kind):
    """As after a suspended machine: no reading shows fewer rows."""
    storage = create_table(9, **{"hoodie.table.type": kind})
    upsert(storage, OLD)
    table = open_table(storage, **SHORT)
    with table.lease(ttl="3h") as snapshot:
        before = shown(snapshot)
        for _ in range(4 * 60):
            next(minutes)  # the clock of all that come after
        table.contents.store.clock.move(timedelta(hours=4))
        busy(storage, 3)
        with pytest.raises(HudiError, match="clean"):
            shown(snapshot)
    assert before
