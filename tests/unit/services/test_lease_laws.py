"""Leases beside random commits and cleans: no lease ever loses a file, and nothing is kept once it is released."""

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.model.instant import State
from support.laws import examples
from support.tables import TableBuilder, at, data_files

POLICIES = ({"commits_retained": 1}, {"commits_retained": 2}, {"file_versions_retained": 1}, {"min_commits": 2})


class Life:
    """A table with random steps; each held lease with the files that its reader sees."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.builder = TableBuilder(self.rng.choice((1, 2)))
        self.policy = self.rng.choice(POLICIES)
        self.groups = {"r0": ["a", "b"], "r1": ["c"]}
        self.number, self.pending, self.held = 0, {}, {}
        self.commit()

    def commit(self):
        """Most write some groups again; some replace a group by a new one; some stay pending for a while."""
        self.number += 1
        some = {path: [each for each in ids if self.rng.random() < 0.6] for path, ids in self.groups.items()}
        some = {path: ids for path, ids in some.items() if ids} or {"r0": ["a"]}
        if self.number > 1 and self.rng.random() < 0.2:
            path, old = "r1", self.groups["r1"][0]
            new = f"{old[0]}{self.number}"
            self.builder.commit(at(self.number), {path: [new]}, replaced={path: [old]})
            self.groups[path] = [new]
        elif self.number > 1 and self.rng.random() < 0.2:
            self.pending[self.number] = {path: ids for path, ids in some.items() if path == "r0"} or {"r0": ["a"]}
            self.builder.commit(at(self.number), self.pending[self.number], state=State.INFLIGHT)
        else:
            self.builder.commit(at(self.number), some)

    def complete(self):
        if self.pending:
            number = self.rng.choice(sorted(self.pending))
            self.builder.commit(at(number), self.pending.pop(number), completed_at=f"{at(self.number)[:10]}45{'0' * 5}")

    def take(self):
        table = self.builder.table()
        time = self.rng.choice((None, None, at(self.rng.randint(1, self.number))))
        try:
            view = table if time is None else table.as_of(time)
            seen = {f"{p}/{n}" for p in view.partitions() for each in view.file_slices(p) for n in each.file_names}
            lease = table.take_lease(ttl="1h", at=time, holder="a test")
        except (RefusedError, ConfigError):
            return
        self.held[lease.id] = seen

    def release(self):
        if self.held:
            lease = self.rng.choice(sorted(self.held))
            assert self.builder.table().release_lease(lease)
            del self.held[lease]

    def clean(self):  # twice planned, by names alone and by slices
        table = self.builder.table()
        quick = table.plan_clean(**self.policy)
        full = table.plan_clean(**self.policy, details=True)
        assert {p: sorted(quick.files.names(p)) for p in quick.files} == {
            p: sorted(full.files.names(p)) for p in full.files
        }
        self.builder.table(clean_incremental_enabled=True).clean(**self.policy)

    def step(self):
        kinds = (self.commit, self.commit, self.commit, self.complete, self.take, self.take, self.release, self.clean)
        self.rng.choice(kinds)()
        there = set(data_files(self.builder.storage))
        for lease, files in self.held.items():
            assert files <= there, (lease, files - there)


@examples(60)
@given(st.integers(0, 2**32))
def test_no_lease_loses_a_file_and_nothing_is_kept_after_it(seed):
    """Files of leased snapshots stay while leases last; afterwards incremental cleans delete what a full one would."""
    life = Life(seed)
    for _ in range(25):
        life.step()
    for lease in life.held:
        life.builder.table().release_lease(lease)
    while life.pending:
        life.complete()
    life.number += 1
    life.builder.commit(at(life.number), life.groups)
    life.builder.table().clean(**life.policy)
    left = life.builder.table(clean_incremental_enabled=False).plan_clean(**life.policy)
    assert not left.file_count, dict(left.files)


@pytest.mark.parametrize("layout", [1, 2])
def test_an_expired_lease_is_honoured_for_the_margin_of_clocks_and_then_deleted(layout):
    """B14: dead leases go before a plan is made, and hold nothing; one that may live for another clock still holds."""
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a"]})
    builder.table().take_lease(ttl="1h", at=at(1), holder="a test")
    builder.commit(at(3), {"r0": ["a"]})
    builder.clock.move(timedelta(hours=1, seconds=30))
    assert builder.table().clean(commits_retained=1) == []
    assert len(builder.table().leases()) == 1
    builder.clock.move(timedelta(seconds=30))
    assert builder.table().plan_clean(commits_retained=1).file_count == 1
    assert len(builder.table().leases()) == 1
    (done,) = builder.table().clean(commits_retained=1)
    assert len(done.deleted_files) == 1
    assert builder.table().leases() == ()


def test_an_expired_lease_is_not_brought_back():
    """Files may be deleted already: its reader is told, whatever is left of the margin."""
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["a"]})
    table = builder.table()
    lease = table.take_lease(ttl="1h", holder="a test")
    builder.clock.move(timedelta(minutes=50))
    assert table.renew_lease(lease.id, "1h").expires == lease.expires + timedelta(minutes=50)
    assert table.renew_lease(lease.id, "1m").expires == lease.expires + timedelta(minutes=50)
    builder.clock.move(timedelta(hours=1))
    with pytest.raises(ConflictError, match="has expired"):
        table.renew_lease(lease.id, "1h")


def test_what_no_lease_can_be_read_from_stops_every_deletion():
    """It is unknown what its reader needs; releasing it, or ignoring leases, goes on."""
    builder = TableBuilder()
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    builder.put(".hoodie/.aux/hudi_py/leases/abc.json", b'{"version": 1')
    before = builder.storage.files()
    for call in (lambda table: table.clean(commits_retained=1), lambda table: table.rollback(at(3))):
        with pytest.raises(Exception, match="hudi-py lease release TABLE abc"):
            call(builder.table())
    assert builder.storage.files() == before
    assert builder.table().release_lease("abc")
    assert builder.table().clean(commits_retained=1)[0].metadata.total_files_deleted == 1
