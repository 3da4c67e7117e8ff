"""Where the services hold the table's lock, where they do not, and what they do when another writer has it."""

from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError, ConflictError
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action, State
from hudi_py.services.archive.plan import Bound
from hudi_py.storage.base import MUTATING_VERBS
from hudi_py.storage.wrappers import DelegatingStorage, RecordingStorage
from hudi_py.table import Table
from hudi_py.txn.lease_lock import TABLE_LOCK, parse_lease
from support.crash_states import data_files, open_real, real_table
from support.meanwhile import Meanwhile
from support.metadata_tables import write
from support.tables import TableBuilder, at, rows_of
from support.writes import CHANGES, NEW, OLD, create_table, open_table, upsert

FILE = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
LEASE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
LOCK = ".hoodie/lock"
OTHERS = b"another writer's"
LOCKED = {"hoodie.write.lock.provider": FILE, "hoodie.write.lock.client.num_retries": 0}
BEGUN = tuple(f".{action}.requested" for action in ("clean", "rollback", "restore"))
DONE = (".commit", ".clean", ".rollback", ".restore", ".savepoint")
RELEASES = ["0.15.0", "1.0.2", "1.1.1"]


class WatchedStorage(DelegatingStorage):
    """Tells of each change whether the lock's file was there."""

    def __init__(self, inner):
        super().__init__(inner)
        self.changes = []

    def _around(self, verb, paths, call):
        if verb in MUTATING_VERBS:
            is_held = self.inner.size(LOCK) is not None
            self.changes += [(verb, path, is_held) for path in paths if path != LOCK]
        return call()

    def open_write(self, path):
        self._around("open_write", (path,), lambda: None)
        return self.inner.open_write(path)


def must_be_held(verb, path):
    """F.1: plans as they are stored, actions as they complete, and whatever belongs to neither one action alone."""
    name = path.rpartition("/")[2]
    if path.startswith(".hoodie/metadata/") or name == "hoodie.properties":
        return True
    if path.startswith((".hoodie/archived/", ".hoodie/timeline/history/")):
        return True
    return verb == "create_new" and path.startswith(".hoodie/") and name.endswith((*BEGUN, *DONE))


def must_be_free(verb, path):
    """F.1: data files are deleted while others go on; those that a commit clears away belong to nobody else."""
    return verb.startswith("delete") and not path.startswith(".hoodie")


def last_commit(table):
    return table.timeline.commits.completed()[-1].requested_time


SERVICES = {
    "clean": lambda table: table.clean(commits_retained=1),
    "savepoint": lambda table: table.delete_savepoint(table.create_savepoint().requested_time),
    "rollback": lambda table: table.rollback(last_commit(table)),
    "restore": lambda table: table.restore(table.timeline.completed(Action.SAVEPOINT)[-1].requested_time),
    "archive": lambda table: table.archive(keep_min_commits=1, keep_max_commits=2),
}


def table_for(service, release):
    """One on which the service has something to do."""
    name = f"cow_cleaned-{release}" if service == "archive" else f"cow_partitioned-{release}"
    storage = real_table(name, with_metadata_table=True)
    if service == "restore":
        table = open_real(name, storage)
        table.create_savepoint(table.timeline.commits.completed()[-3].requested_time)
    return name, storage


def opened(name, storage, **settings):
    return open_real(name, storage, **(LOCKED | settings))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("service", SERVICES)
def test_plans_and_completions_are_under_the_lock_and_deletions_are_not(release, service):
    """F.1, D-18: on tables of each release, with their metadata tables; in the end the lock is free."""
    name, inner = table_for(service, release)
    storage = WatchedStorage(inner)
    SERVICES[service](opened(name, storage))
    assert [each for each in storage.changes if must_be_held(*each[:2]) and not each[2]] == []
    assert [each for each in storage.changes if must_be_free(*each[:2]) and each[2]] == []
    assert any(must_be_held(*each[:2]) for each in storage.changes)
    assert storage.inner.size(LOCK) is None


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("run", ["rollback_failed_writes", "recover", "clean"])
def test_failed_writes_are_taken_back_under_the_lock(release, run):
    """B-11, B-22: planned and finished under it, whoever asks; deleted without."""
    name = f"cow_failed_write-{release}"
    storage = WatchedStorage(real_table(name, with_metadata_table=True))
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    table = opened(name, storage, **several)
    assert table.timeline.writes.pending()
    getattr(table, run)()
    assert not table.timeline.writes.pending()
    assert [each for each in storage.changes if must_be_held(*each[:2]) and not each[2]] == []
    assert [each for each in storage.changes if must_be_free(*each[:2]) and each[2]] == []
    assert storage.inner.size(LOCK) is None


@pytest.mark.parametrize("version", [6, 9])
def test_a_commit_begins_and_completes_under_the_lock(version):
    """G-1, G-3: a single writer with a provider takes the lock too (F-2); its data files are written without."""
    storage = WatchedStorage(create_table(version))
    for rows in (OLD, CHANGES):
        upsert(storage, rows, **LOCKED)
    assert [each for each in storage.changes if must_be_held(*each[:2]) and not each[2]] == []
    written = [held for verb, path, held in storage.changes if verb == "open_write" and not path.startswith(".hoodie")]
    assert written
    assert not any(written)
    assert sorted(rows_of(open_table(storage)), key=lambda row: row["id"]) == NEW


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("service", SERVICES)
def test_another_holder_keeps_every_service_out(release, service):
    """Nothing is changed, by savepoints neither (C-9: Hudi takes no lock); archival of layout 2 is left out (D-18)."""
    name, storage = table_for(service, release)
    storage.create_new(LOCK, OTHERS)
    before = storage.files()
    table = opened(name, storage)
    if service == "archive" and table.config.layout_version == 2:
        assert SERVICES[service](table).bound is Bound.LOCK
    else:
        with pytest.raises(ConflictError, match="try again") as refused:
            SERVICES[service](table)
        assert refused.value.exit_code == 4
    assert storage.files() == before
    table.plan_clean(commits_retained=1)  # looking needs no lock
    assert not [each for each in table.check() if "lock" in each.where]


@pytest.mark.parametrize("service", SERVICES)
def test_without_a_provider_nothing_is_locked(service):
    """F-2: not even under settings for several writers. Whether others hold a lock is only looked at."""
    name, inner = table_for(service, "1.1.1")
    storage = RecordingStorage(inner)
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    SERVICES[service](open_real(name, storage, **several))
    asked = {verb for verb, path in storage.calls if path == LOCK or ".locks" in path}
    assert asked == {"read", "size"}


def test_rows_of_several_writers_need_a_lock():
    """Without one, nothing tells them apart; nothing is written."""
    storage = create_table(9)
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    before = storage.files()
    with pytest.raises(ConfigError, match="needs a lock"):
        upsert(storage, OLD, **several)
    assert storage.files() == before


def _takes_lock(purpose):
    return lambda path, data: path == LOCK and purpose in data.decode()


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("returns", ["completed", "beats"])
def test_a_writer_that_turns_out_to_live_is_not_rolled_back(layout, returns):
    """K-14, B-3: looked at again under the lock, its heartbeat first and then the timeline."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["b"]}, state=State.INFLIGHT)
    started = []

    def act():
        started.append(True)
        if returns == "beats":
            builder.clock.moment = now_of(builder)
            builder.put(f".hoodie/.heartbeat/{at(2)}", b"")
        else:
            builder.commit(at(2), {"eu": ["b"]})

    storage = Meanwhile(builder.storage, act, before=_takes_lock("rollback of"))
    lazy = {"hoodie.clean.failed.writes.policy": "LAZY"}
    table = Table(storage, settings={**LOCKED, **lazy}, clock=builder.clock)
    table.clean(commits_retained=5)
    assert started
    assert not table.timeline.of((Action.ROLLBACK,)).instants
    assert f"eu/{builder.base_name('b', at(2))}" in builder.storage.files()


def now_of(builder):
    """The moment at which the storage stamps what is written."""
    builder.put("probe", b"")
    stamp = next(each.modified_ms for each in builder.storage.list("", details=True) if each.name == "probe")
    builder.storage.delete("probe")
    return builder.clock.moment.fromtimestamp(stamp / 1000, builder.clock.moment.tzinfo)


@pytest.mark.parametrize("layout", [1, 2])
def test_what_others_do_between_plan_and_lock_is_planned_for(layout):
    """F.1: the timeline is read again under the lock; a savepoint made since keeps its files."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"eu": ["a"], "us": ["b"]})
    held = builder.base_name("a", at(2))
    without = builder.table().plan_clean(commits_retained=1)
    assert held in without.files.names("eu")
    asked = []

    def act():
        asked.append(True)
        if len(asked) == 1:  # the first holding looks for damaged cleans; the plan is made after it
            storage.fired = None
        else:
            builder.savepoint(at(2), {"eu": [held]})

    storage = Meanwhile(builder.storage, act, before=_takes_lock("hudi_py clean "))
    table = Table(storage, settings=LOCKED, clock=builder.clock)
    (result,) = table.clean(commits_retained=1)
    assert len(asked) == 2
    assert f"eu/{held}" in builder.storage.files()
    assert f"us/{builder.base_name('b', at(2))}" in result.deleted_files


def test_a_lock_that_is_lost_before_the_commit_point_completes_nothing():
    """F.1: Hudi removes the lock when it closes, whoever's it is; then the clean stays pending and is finished."""
    name = "cow_nomdt-1.1.1"
    storage = real_table(name)

    class Thief(DelegatingStorage):
        def list(self, folder, *, details=False):
            found = self.inner.list(folder, details=details)
            inflight = any(entry.name.endswith(".clean.inflight") for entry in found)
            if inflight and self.inner.size(LOCK) is not None:
                self.inner.delete(LOCK)
            return found

    with pytest.raises(ConflictError, match="taken over or removed"):
        opened(name, Thief(storage)).clean(commits_retained=1)
    (pending,) = open_real(name, storage).timeline.pending(Action.CLEAN)
    (result,) = opened(name, storage).clean(commits_retained=1)
    assert result.instant == pending.requested_time
    alone = real_table(name)
    open_real(name, alone).clean(commits_retained=1)
    assert data_files(storage) == data_files(alone)


class Robbed(DelegatingStorage):
    """Loses the lock in each call that makes an action complete."""

    def __init__(self, inner):
        super().__init__(inner)
        self.robbed = []

    def create_new(self, path, data, before=None, *, lasts=True):
        if path.startswith(".hoodie/") and path.endswith(DONE) and "metadata" not in path:
            self.robbed.append(path)
            self.inner.delete(LOCK)
        super().create_new(path, data, before, lasts=lasts)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("service", [name for name in SERVICES if name != "archive"])
def test_the_look_at_the_lock_is_the_last_thing_before_a_service_completes(release, service):
    """F.1: in layout 2 a time is taken and the timeline loaded first, and a lock lost meanwhile went unnoticed."""
    name, storage = table_for(service, release)
    robbed = Robbed(storage)
    with pytest.raises(ConflictError, match="taken over or removed"):
        SERVICES[service](opened(name, robbed))
    assert robbed.robbed
    assert not {*robbed.robbed} & {*storage.files()}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_look_at_the_lock_is_the_last_thing_before_a_write_completes(version):
    """A holder that slept where the disk was slow completes nothing either."""
    storage = Robbed(create_table(version))
    with pytest.raises(ConflictError, match="taken over or removed"):
        upsert(storage, OLD, **LOCKED)
    assert len(storage.robbed) == 1
    assert not {*storage.robbed} & {*storage.inner.files()}


def test_recover_waits_for_a_writer_and_tells_of_a_lock_that_nobody_releases():
    """With something to put right it is refused; with nothing else to do the lock itself is the finding."""
    name = "cow_failed_write-1.1.1"
    storage = real_table(name)
    storage.create_new(LOCK, OTHERS)
    before = storage.files()
    with pytest.raises(ConflictError, match="dry-run"):
        opened(name, storage).recover()
    assert storage.files() == before
    told = [each.finding for each in opened(name, storage).recover(dry_run=True)]
    (lock,) = [each for each in told if LOCK in each.paths]
    assert "delete it" in " ".join((*lock.evidence, lock.step.value))
    storage.delete(LOCK)
    healthy = opened(name, storage).recover()
    assert not opened(name, storage).timeline.writes.pending()
    storage.create_new(LOCK, OTHERS)
    again = {each.finding.paths: each.done for each in opened(name, storage).recover()}
    assert again == {each.finding.paths: False for each in healthy if not each.done} | {(LOCK,): False}


def test_recover_takes_over_an_expired_lock():
    """F.1: with an age set it is nobody's any more."""
    name = "cow_failed_write-1.1.1"
    storage = real_table(name)
    storage.create_new(LOCK, OTHERS)
    table = opened(name, storage, **{"hoodie.write.lock.filesystem.expire": 1})
    table.contents.store.clock.moment = table.contents.store.clock.moment.max.replace(
        year=2100, tzinfo=table.contents.store.clock.moment.tzinfo
    ) - timedelta(days=1)
    table.recover()
    assert storage.size(LOCK) is None
    assert not table.timeline.writes.pending()


@pytest.mark.parametrize("layout", [1, 2])
def test_the_metadata_table_is_looked_after_under_the_lock(layout):
    """F.1: its compaction too, which no action of the table is part of."""
    builder = TableBuilder(layout)
    storage = WatchedStorage(builder.storage)
    small = {"hoodie.metadata.enable": True, "hoodie.metadata.compact.max.delta.commits": 3}
    table = Table(storage, settings={**LOCKED, **small})
    for _ in range(7):
        write(table)
    before = MetadataTable(storage.inner).store.load().completed(Action.COMMIT)
    for _ in range(5):
        builder.commit(table.contents.store.new_time(), {"eu": ["failed"]}, state=State.INFLIGHT)
        assert table.rollback_failed_writes()
        table.clean(commits_retained=1)
    assert before != MetadataTable(storage.inner).store.load().completed(Action.COMMIT)
    assert [each for each in storage.changes if must_be_held(*each[:2]) and not each[2]] == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_lease_is_as_good_as_a_file(service):
    """F.1: services know one lock; a valid lease of another keeps them out, and theirs is released in the end."""
    name, storage = table_for(service, "1.1.1")
    lease = {"hoodie.write.lock.provider": LEASE, "hoodie.write.lock.wait_time_ms": 0}
    table = opened(name, storage, **lease)
    until = int(table.contents.store.clock.now().timestamp() * 1000) + 60_000
    theirs = b'{"expired":false,"validUntil":%d,"owner":"theirs"}' % until
    storage.create_new(TABLE_LOCK, theirs)
    before = storage.files()
    if service == "archive":
        assert SERVICES[service](table).bound is Bound.LOCK
    else:
        with pytest.raises(ConflictError, match="owner theirs"):
            SERVICES[service](table)
    assert storage.files() == before
    storage.replace(TABLE_LOCK, theirs.replace(b"false", b"true"))
    SERVICES[service](table)
    released = parse_lease(storage.read(TABLE_LOCK))
    assert released.is_released
    assert released.owner != "theirs"
