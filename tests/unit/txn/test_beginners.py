"""A write waits for another writer that has an earlier time and has not looked at the table yet."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConflictError
from hudi_py.timeline.heartbeat import FOLDER, Rhythm
from hudi_py.txn.beginners import Beginners
from support import writes
from support.many_writers import SEVERAL, contents, rows, service, table

THEIRS = "20260101000000500"  # after the table was made, and before each write of these tests
NEW = ("n", "eu", 20)


@pytest.fixture(params=[6, 8, 9])
def storage(request):
    """A table on which a write of Apache Hudi has begun: it has a time, and beats."""
    made = table(request.param)
    writes.open_table(made).contents.store.storage.create_new(path_of(made, "requested"), b"")
    made.replace(f"{FOLDER}/{THEIRS}", b"")
    return made


def path_of(storage, state):
    folder = ".hoodie/timeline" if storage.list(".hoodie/timeline") else ".hoodie"
    return f"{folder}/{THEIRS}.{'commit.requested' if state == 'requested' else 'inflight'}"


@pytest.fixture
def waiting(monkeypatch):
    """Let others do something each time that a write waits; the pauses are returned."""

    def install(act):
        pauses = []

        def pause(seconds):
            pauses.append(seconds)
            act()

        made = Beginners(rhythm=Rhythm(1 << 40, 1 << 40), patience_s=3, sleep=pause, seconds=lambda: float(sum(pauses)))
        monkeypatch.setattr(Beginners, "of", classmethod(lambda *_: made))
        return pauses

    return install


def test_it_completes_once_the_other_has_chosen_its_files(storage, waiting):
    """Inflight, Apache Hudi has loaded the table, and compares itself with us; until then nothing of ours is seen."""
    seen = []

    def act():
        seen.append(NEW[0] in {key for _, key, _ in contents(storage)})
        if len(seen) == 2:
            storage.create_new(path_of(storage, "inflight"), b"")

    pauses = waiting(act)
    service(storage).write(rows(NEW), "INSERT")
    assert seen == [False, False]
    assert len(pauses) == 2
    assert ("eu", "n", 20) in contents(storage)


def test_it_gives_up_when_patience_ends(storage, waiting):
    """With an error that names the other; nothing is committed."""
    waiting(lambda: None)
    before = contents(storage)
    with pytest.raises(ConflictError, match=f"{THEIRS}.*is only requested"):
        service(storage, **{"hoodie.write.num.retries.on.conflict.failures": 0}).write(rows(NEW), "INSERT")
    assert contents(storage) == before


def test_it_does_not_wait_for_the_dead(storage, waiting):
    """A writer that died before it looked at the table builds on nothing."""
    pauses = waiting(lambda: None)
    storage.delete(f"{FOLDER}/{THEIRS}")
    service(storage).write(rows(NEW), "INSERT")
    assert pauses == []


def test_a_clustering_waits_too(storage, waiting):
    """Its new file groups would be built on in the same way."""
    storage.delete(f"{FOLDER}/{THEIRS}")
    service = writes.open_table(storage, **SEVERAL).services.clustering()
    planned = service.schedule()
    storage.replace(f"{FOLDER}/{THEIRS}", b"")
    pauses = waiting(lambda: storage.create_new(path_of(storage, "inflight"), b""))
    service.execute(planned.requested_time)
    assert len(pauses) == 1
