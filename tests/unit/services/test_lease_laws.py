"""Leases beside random commits and cleans: no lease ever loses a file, and nothing is kept once it is released."""

import random
import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.model.instant import State
from hudi_py.model.lease import Lease
from hudi_py.services.archive.plan import Bound
from hudi_py.table import Table
from support.laws import examples
from support.tables import NOW, TableBuilder, at, data_files, done

POLICIES = ({"commits_retained": 1}, {"commits_retained": 2}, {"file_versions_retained": 1}, {"min_commits": 2})


class Life:
    """A table with random steps; each held lease with the files that its reader sees."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.builder = TableBuilder(self.rng.choice((1, 2)))
        self.policy = self.rng.choice(POLICIES)
        self.groups = {"r0": ["a", "b"], "r1": ["c"]}
        self.number, self.pending, self.held, self.unread = 0, {}, {}, None
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
        """One of the pending writes, after later ones."""
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

    def read_changes(self):
        """A consumer has read everything; what it needs from now on is the newest slices and all that come."""
        table = self.builder.table()
        seen = {f"{p}/{n}" for p in table.partitions() for each in table.file_slices(p) for n in each.file_names}
        try:
            table.consumer("job").at(table.changed_until())
        except RefusedError:  # in layout 1 ranges end before a pending write, and a clean by versions went further
            return
        self.unread = seen

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
        verifying = {"hoodie_py.clean.verify": self.rng.random() < 0.5}
        Table(self.builder.storage, settings=verifying, clock=self.builder.clock).clean(**self.policy)

    def step(self):
        kinds = (self.commit, self.commit, self.commit, self.complete, self.take, self.take, self.release, self.clean)
        before = set(data_files(self.builder.storage))
        self.rng.choice((*kinds, self.clean, self.read_changes))()
        there = set(data_files(self.builder.storage))
        if self.unread is not None:
            self.unread |= there - before
            assert self.unread <= there, self.unread - there
        for lease, files in self.held.items():
            assert files <= there, (lease, files - there)


@examples(30)
@given(st.integers(0, 2**32))
def test_no_lease_loses_a_file_and_nothing_is_kept_after_it(seed):
    """Files of leased snapshots stay while leases last; afterwards incremental cleans delete what a full one would."""
    life = Life(seed)
    for _ in range(25):
        life.step()
    for lease in life.held:
        life.builder.table().release_lease(lease)
    life.builder.table().consumer("job").delete()
    while life.pending:
        life.complete()
    life.number += 1
    life.builder.commit(at(life.number), life.groups)
    life.builder.table().clean(**life.policy)
    left = life.builder.table(clean_incremental_enabled=False).plan_clean(**life.policy)
    assert not left.file_count, dict(left.files)


@pytest.mark.parametrize("is_consumer", [False, True])
def test_the_law_fails_where_leases_or_the_progress_of_consumers_are_ignored(is_consumer, monkeypatch):
    """Else it would show nothing: the same lives, beside a planner that does not know what these readers need."""
    needs = Lease.needs
    monkeypatch.setattr(
        Lease, "needs", lambda lease, *times: lease.is_consumer is not is_consumer and needs(lease, *times)
    )
    found = set()
    for seed in range(40):
        life = Life(seed)
        try:
            for _ in range(25):
                life.step()
        except (AssertionError, RefusedError) as error:
            found.add(type(error))
        if AssertionError in found:
            return
    pytest.fail(f"no file was lost in 40 lives: {found}")


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


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("policy", [{"commits_retained": 1}, {"file_versions_retained": 1}])
def test_a_write_that_completes_later_does_not_take_what_a_lease_showed(layout, policy):
    """Its reader began without that write, so the file that it superseded stays, and its own one, for those who ask."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "b"]})
    builder.commit(at(2), {"r0": ["a"]}, state=State.INFLIGHT)
    builder.commit(at(3), {"r0": ["b"]})
    assert builder.table().take_lease(ttl="1h", holder="a test").pending == (at(2),)
    builder.commit(at(2), {"r0": ["a"]}, completed_at=f"{at(3)[:10]}4500000")
    for number in (4, 5, 6):
        builder.commit(at(number), {"r0": ["a", "b"]})
    builder.table().clean(**policy)
    left = set(data_files(builder.storage))
    wanted = {("a", 1), ("a", 2), ("b", 3)}
    assert {f"r0/{TableBuilder.base_name(group, at(number))}" for group, number in wanted} <= left
    assert f"r0/{TableBuilder.base_name('b', at(1))}" not in left


@pytest.mark.parametrize("layout", [1, 2])
def test_a_consumer_keeps_changes_until_it_goes_on(layout):
    """Ranges from its progress stay complete beside cleans; what it has read goes, and it cannot go back there."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    job = builder.table().consumer("job-7")
    assert job.instant is None
    job.at(at(1) if layout == 1 else done(at(1)))
    for number in (4, 5):
        builder.commit(at(number), {"r0": ["a"]})
        builder.table().clean(commits_retained=1)
    assert len(data_files(builder.storage)) == 5
    assert builder.table().as_of(at(2)).base_files()
    assert Bound.LEASE is builder.table(keep_min_commits=2, keep_max_commits=3).archive().bound
    job.at(builder.table().changed_until())
    builder.commit(at(6), {"r0": ["a"]})
    builder.table().clean(commits_retained=1)
    assert len(data_files(builder.storage)) == 2
    with pytest.raises(RefusedError, match="changes after"):
        job.at(at(1))
    assert job.instant == (at(5) if layout == 1 else done(at(5)))
    assert job.delete()
    assert not job.delete()
    builder.commit(at(7), {"r0": ["a"]})
    builder.table().clean(commits_retained=1)
    assert job.at(builder.table().changed_until())  # from where this clean left everything, to the commit


@pytest.mark.parametrize("layout", [1, 2])
def test_a_lease_beside_a_pending_clean_that_takes_none_of_its_files_stays_readable(layout):
    """The clean was planned without it, and its window begins later: it records the snapshot as one that is whole."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "b"]})
    for number in (2, 3, 4):
        builder.commit(at(number), {"r0": ["a"]})
    service = builder.table().services
    service.clean(service.clean_config(commits_retained=1)).schedule()
    lease = builder.table().take_lease(ttl="1h", at=at(3), holder="a test")
    (done,) = builder.table().clean(commits_retained=1)
    assert len(done.deleted_files) == 2
    names = {base.name for _, base in builder.table().base_files(at(3))}
    assert names == {TableBuilder.base_name("a", at(3)), TableBuilder.base_name("b", at(1))}
    with pytest.raises(RefusedError):
        builder.table().as_of(at(2))
    assert builder.table().release_lease(lease.id)


@pytest.mark.parametrize("layout", [1, 2])
def test_the_commit_before_one_that_a_clean_counted_from_is_readable_once_that_is_undone(layout):
    """It is the latest, and stays readable as of its time after the next write; a lease on it names that time."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    builder.table().clean(commits_retained=1)
    with pytest.raises(RefusedError, match=f"needed before {at(3)}"):
        builder.table().as_of(at(2))
    builder.clock.move(timedelta(seconds=1))
    builder.table().rollback(at(3))
    lease = builder.table().take_lease(ttl="1h", holder="a test")
    builder.clock.move(timedelta(hours=1))
    builder.commit(at(30), {"r0": ["a"]})
    names = [base.name for _, base in builder.table().as_of(lease.instant).base_files()]
    assert names == [TableBuilder.base_name("a", at(2))]
    with pytest.raises(RefusedError, match=f"needed before {at(3)}"):
        builder.table().as_of(at(1))


def with_a_write_that_completes_behind_a_lease(layout):
    """A lease on the third commit, taken while the second was pending, which has completed since."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "b"]})
    builder.commit(at(2), {"r0": ["a"]}, state=State.INFLIGHT)
    builder.commit(at(3), {"r0": ["b"]})
    builder.table().take_lease(ttl="30d", holder="a test")
    builder.commit(at(2), {"r0": ["a"]}, completed_at=f"{at(3)[:10]}4500000")
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_a_plan_made_without_leases_spares_what_a_write_that_was_pending_superseded(layout):
    """Its window begins with the leased commit, but the reader began without the write before that."""
    builder = with_a_write_that_completes_behind_a_lease(layout)
    builder.commit(at(4), {"r0": ["a", "b"]})
    ignoring = Table(builder.storage, settings={"hoodie_py.leases.ignored": True}, clock=builder.clock).services
    requested = ignoring.clean(ignoring.clean_config(commits_retained=2)).schedule()
    needed = TableBuilder.base_name("a", at(1))
    planned = builder.table().contents.clean_plan(requested).files_to_delete["r0"]
    assert needed in {file.name for file in planned}
    builder.table().clean(commits_retained=2)
    assert f"r0/{needed}" in data_files(builder.storage)


@pytest.mark.parametrize("layout", [1, 2])
def test_archival_leaves_a_write_active_that_was_pending_when_a_lease_was_taken(layout):
    """It stops at that write, which is older than the leased commit."""
    builder = with_a_write_that_completes_behind_a_lease(layout)
    for number in range(4, 9):
        builder.commit(at(number), {"r0": ["a", "b"]})
    assert Bound.LEASE is builder.table(keep_min_commits=2, keep_max_commits=3).archive().bound
    assert next(each.requested_time for each in builder.table().timeline.commits.completed()) == at(2)


@pytest.mark.parametrize("policy", [{"commits_retained": 1}, {"file_versions_retained": 1}])
@pytest.mark.parametrize("is_newest", [False, True])
def test_a_pending_clean_takes_nothing_from_before_a_write_that_a_consumer_has_not_read(policy, is_newest):
    """It completed after the time that was read, and the clean knows it: what it superseded was read, and is needed."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"r0": ["a", "b"]}, completed_at=f"{at(2)[:10]}3000000")
    builder.commit(at(2), {"r0": ["a"]}, completed_at=f"{at(2)[:10]}4500000")
    if not is_newest:
        builder.commit(at(3), {"r0": ["b"]})
    service = builder.table().services
    service.clean(service.clean_config(**policy)).schedule()
    needed = {f"r0/{TableBuilder.base_name(group, at(1))}" for group in ("a", "b")}
    try:
        assert builder.table().consumer("job").at(f"{at(2)[:10]}3000000").pending == (at(2),)
    except RefusedError as error:
        assert re.search("clean .* deletes r0/", str(error))
    else:
        builder.table().clean(**policy)
        assert needed <= set(data_files(builder.storage))


@pytest.mark.parametrize("layout", [1, 2])
def test_a_time_that_has_not_come_is_no_progress_of_a_consumer(layout):
    """It would keep nothing, and all until then would count as read. Writers whose clocks are ahead have been read."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a"]})
    job = builder.table().consumer("job-7")
    for time in (NOW + timedelta(hours=2), "2030-01-01T00:00"):
        with pytest.raises(ConfigError, match="has not come yet"):
            job.at(time)
    assert job.instant is None
    builder.clock.moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert job.at(builder.table().changed_until()).instant == (at(1) if layout == 1 else done(at(1)))


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "..", "a/b", "é", "a\n"])
def test_a_consumer_whose_name_cannot_be_stored_is_refused_before_anything_is_written(name):
    """A file without a name does not decode as a lease, and stopped all deletion of the table."""
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["a"]})
    before = builder.storage.files()
    with pytest.raises(ConfigError, match="give 1 to 64 letters"):
        builder.table().consumer(name)
    assert builder.storage.files() == before


def test_a_consumer_that_goes_back_behind_a_write_that_it_missed_is_refused_like_any_other():
    """The earliest time that it depends on stays the same, but a clean has deleted what came in between."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"r0": ["a", "b"]})
    builder.commit(at(2), {"r0": ["b"]}, state=State.INFLIGHT)
    for number in (3, 4):
        builder.commit(at(number), {"r0": ["a"]})
    job = builder.table().consumer("job-7")
    assert job.at(done(at(4))).pending == (at(2),)
    builder.commit(at(2), {"r0": ["b"]}, completed_at=f"{at(4)[:10]}4500000")
    builder.commit(at(5), {"r0": ["a", "b"]})
    builder.table().clean(commits_retained=1)
    assert f"r0/{TableBuilder.base_name('a', at(3))}" not in data_files(builder.storage)
    with pytest.raises(RefusedError, match="changes after"):
        job.at(done(at(3)))
    assert job.instant == done(at(4))


times = st.integers(1, 6).map(at)
progress = st.builds(
    lambda instant, pending: Lease(
        id="consumer-job", holder="job", instant=instant, pending=tuple(time for time in pending if time <= instant),
        created=NOW, expires=NOW, is_consumer=True,
    ),
    times,
    st.sets(times),
)  # fmt: skip


@examples(300)
@given(progress, progress)
def test_of_two_consumers_one_needs_no_more_exactly_if_it_needs_no_slice_that_the_other_does_not(one, other):
    """A slice begins with one write and ends with a later one, or has not ended; writes begin between all times."""
    writes = [time for number in range(8) for time in (at(number), done(at(number)))]
    slices = [(begins, end) for begins in writes for end in (None, *writes) if end is None or end > begins]
    more = [each for each in slices if one.needs(*each) and not other.needs(*each)]
    assert one.needs_no_more_than(other) is not bool(more)
