"""Write keys of several writers: none is forgotten because another commit is the newest one by its name."""

from __future__ import annotations

from contextvars import Context

import pytest

from hudi_py.storage.memory import MemoryStorage
from hudi_py.writing.commit_words import commit_words
from support import writes
from support.many_writers import SEVERAL, contents, rows, service, table

ONE, TWO, THREE = (commit_words((name, 1)) for name in ("one", "two", "three"))


class Overtaken:
    """Rows during whose write others write."""

    def __init__(self, storage, given, *others):
        self.storage, self.rows, self.others = storage, rows(*given), list(others)
        self.schema = self.rows.schema

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        while self.others:
            Context().run(self.others.pop(0))
        return self.rows.write(job)


def insert(storage, key, words):
    return service(storage).write(rows((key, "ap", 1)), "INSERT", words)


def overlapping(version) -> MemoryStorage:
    """The write that was requested first completed last, so it alone says all keys, and it is not the newest."""
    storage = table(version)
    overtaken = Overtaken(storage, [("n", "eu", 1)], lambda: insert(storage, "m", TWO))
    assert service(storage).write(overtaken, "INSERT", ONE).retries == 0
    return storage


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_key_is_known_whichever_commit_is_the_newest(version):
    """Given again it does nothing, and later commits still know it."""
    storage = overlapping(version)
    before = contents(storage)
    for _ in range(2):
        for words in (ONE, TWO):
            assert insert(storage, "again", words).is_repeated
        assert contents(storage) == before
        insert(storage, "more", THREE)
        before = contents(storage)


@pytest.mark.parametrize("version", [6, 9])
def test_keys_are_known_when_archival_has_passed_the_commit_that_completed_last(version):
    """The newest commit with keys may be active, and the one that knows all of them archived."""
    storage = overlapping(version)
    for number in range(4):
        writes.upsert(storage, [{"id": f"x{number}", "region": "us", "ts": 1}])
    timeline = writes.open_table(storage).timeline
    first, second = (each.requested_time for each in timeline.commits.completed()[2:4])
    writes.open_table(storage, **SEVERAL).archive(keep_min_commits=5, keep_max_commits=6)
    times = {each.requested_time for each in writes.open_table(storage).timeline.commits.completed()}
    assert (first in times, second in times) == (False, True)
    for words in (ONE, TWO):
        assert insert(storage, "again", words).is_repeated


@pytest.mark.parametrize("version", [6, 9])
def test_a_key_whose_commit_was_rolled_back_counts_as_unused(version):
    """Also where a commit that completed after it repeats it."""
    storage = overlapping(version)
    newest = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    writes.open_table(storage, **SEVERAL).rollback(newest)
    assert ("ap", "m", 1) not in contents(storage)
    assert insert(storage, "again", ONE).is_repeated
    assert not insert(storage, "m", TWO).is_repeated
    assert ("ap", "m", 1) in contents(storage)
    assert insert(storage, "m", TWO).is_repeated


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_key_whose_commit_was_rolled_back_is_not_brought_back_by_archival(version):
    """It stands in an archived commit that was requested earlier: counted as written, its rows would be lost."""
    storage = overlapping(version)
    newest = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    writes.open_table(storage, **SEVERAL).rollback(newest)
    for number in range(6):
        writes.upsert(storage, [{"id": f"x{number}", "region": "us", "ts": 1}])
    writes.open_table(storage, **SEVERAL).archive(keep_min_commits=2, keep_max_commits=3)
    assert newest < writes.open_table(storage).timeline.commits.completed()[0].requested_time
    assert insert(storage, "again", ONE).is_repeated
    assert not insert(storage, "m", TWO).is_repeated
    assert ("ap", "m", 1) in contents(storage)
    assert insert(storage, "m", TWO).is_repeated


def test_a_key_of_before_a_rolled_back_one_counts_again():
    """The older version of the same application stays known."""
    storage = table(9)
    insert(storage, "k", commit_words(("two", 1)))
    overtaken = Overtaken(storage, [("n", "eu", 1)], lambda: insert(storage, "m", commit_words(("two", 2))))
    service(storage).write(overtaken, "INSERT", ONE)
    newest = writes.open_table(storage).timeline.commits.completed()[-1].requested_time
    writes.open_table(storage, **SEVERAL).rollback(newest)
    assert insert(storage, "again", commit_words(("two", 1))).is_repeated
    assert not insert(storage, "m", commit_words(("two", 2))).is_repeated


def test_an_older_version_is_told(caplog):
    """A stream with a new checkpoint begins at 0 again: its batches were passed over without a word."""
    storage = table(9)
    insert(storage, "k", commit_words(("stream", 3)))
    for version in (3, 0):
        with caplog.at_level("WARNING", logger="hudi_py"):
            assert insert(storage, "again", commit_words(("stream", version))).is_repeated
    (told,) = (each for each in caplog.messages if "write.key.older" in each)
    assert all(part in told for part in ("stream:0", "stream:3", "new checkpoint"))
