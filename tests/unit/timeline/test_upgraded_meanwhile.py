"""
A table object that was opened before another process upgraded or downgraded the table acts as one opened now.

Its instants lie in another folder then, under other names: whoever goes by the old ones sees a table without commits,
and what it commits is seen by nobody.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.model.instant import Action
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.txn.commit import Prepared
from hudi_py.versions.layout import LAYOUT_V1
from support import writes
from support.many_writers import SEVERAL, contents, rows, service
from support.many_writers import table as new_table
from support.upgrading import upgrade

VERSIONS = [(6, 9), (6, 8), (9, 6)]
ACTIONS = {
    "rows": lambda opened: opened.refresh().rows().to_arrow(),
    "schema": lambda opened: opened.schema,
    "upsert": lambda opened: writes.upsert(opened.storage, [{"id": "d", "region": "eu", "ts": 9}]),
    "clean": lambda opened: opened.clean(file_versions_retained=1),
    "savepoint": lambda opened: opened.create_savepoint(opened.timeline.commits.completed()[-1].requested_time),
    "cluster": lambda opened: opened.cluster(),
    "archive": lambda opened: opened.archive(keep_min_commits=1, keep_max_commits=2),
    "orphans": lambda opened: opened.orphans(older_than="0m", delete=True),
    "rollback": lambda opened: opened.rollback(opened.timeline.commits.completed()[-1].requested_time),
    "recover": lambda opened: opened.recover(),
}


_made = cache(new_table)


def table(version):
    """A copy, because making one takes longer than a test."""
    return _made(version).copy()


def changed_to(storage, version) -> None:
    """Put the same table of another version in its place, as an upgrade or downgrade does."""
    for path in list(storage.files()):
        storage.delete(path)
    for path, data in table(version).files().items():
        storage.create_new(path, data)


def seen(storage):
    """Its rows, how many instants of each kind there are, and data files."""
    timeline = writes.open_table(storage).timeline
    kinds = Counter((each.action, each.state) for each in timeline)
    return contents(storage), kinds, sum(map(writes.is_data, storage.files()))


@pytest.mark.parametrize(("old", "new"), VERSIONS[::2])
@pytest.mark.parametrize("action", ACTIONS)
def test_it_acts_as_one_opened_now(old, new, action):
    """Whether it had loaded anything or not."""
    expected = table(new)
    ACTIONS[action](writes.open_table(expected, **SEVERAL))
    for is_loaded in (False, True):
        storage = table(old)
        opened = writes.open_table(storage, **SEVERAL)
        if is_loaded and action not in ("schema", "savepoint", "rollback"):  # they ask for what was loaded
            assert len(opened.timeline) == 2
        changed_to(storage, new)
        ACTIONS[action](opened)
        assert seen(storage) == seen(expected), is_loaded


@pytest.mark.parametrize(("old", "new"), VERSIONS)
@pytest.mark.parametrize("settings", [{}, dict.fromkeys(SEVERAL)], ids=["several", "one"])
def test_a_writer_goes_on_after_an_upgrade(old, new, settings):
    """What it acknowledges is there: a stream keeps one writer for months."""
    storage = table(old)
    writer = service(storage, **settings)
    writer.write(rows(("e", "eu", 1)), "UPSERT")
    changed_to(storage, new)
    writer.write(rows(("f", "eu", 1)), "UPSERT")
    assert ("eu", "f", 1) in contents(storage)
    assert not [each for each in writes.open_table(storage).check() if each.severity.name == "ERROR"]


class UpgradedBeforeTheLock(DelegatingStorage):
    """Another process upgrades the table while this one waits for the lock."""

    def __init__(self, inner, version) -> None:
        super().__init__(inner)
        self.version = version

    def create_new(self, path, *given, **named):
        if path == ".hoodie/lock" and self.version is not None:
            version, self.version = self.version, None
            changed_to(self.inner, version)
        return super().create_new(path, *given, **named)


@pytest.mark.parametrize(("old", "new"), VERSIONS)
def test_nothing_begins_in_the_timeline_of_before(old, new):
    """Seen under the lock: a write is begun again, a service says that it can be tried again."""
    storage = UpgradedBeforeTheLock(table(old), new)
    assert service(storage).write(rows(("f", "eu", 1)), "UPSERT").retries == 1
    assert ("eu", "f", 1) in contents(storage.inner)
    store = writes.open_table(table(old)).contents.store
    changed_to(store.storage, new)
    before = store.storage.files()
    with pytest.raises(ConflictError, match="try again"):
        Prepared(store, Action.CLEAN, store.new_time()).request(b"")
    assert {path for path in store.storage.files().keys() - before.keys() if "/times/" not in path} == set()


@pytest.mark.parametrize("number", [0, 1])
def test_orphans_are_not_looked_for_in_half_a_timeline(number):
    """A downgrade that was interrupted has left instants in the old place; files of these are no orphans."""
    storage = table(9)
    opened = writes.open_table(storage)
    moving = sorted({each.requested_time for each in opened.timeline})[number]
    for each in opened.timeline.all_states:
        if each.requested_time == moving:
            storage.create_new(f".hoodie/{LAYOUT_V1.file_name(each)}", storage.read(opened.contents.store.path(each)))
            storage.delete(opened.contents.store.path(each))
    before = {path for path in storage.files() if writes.is_data(path)}
    try:
        writes.open_table(storage).orphans(older_than="0m", delete=True)
    except RefusedError as error:
        assert "downgrade" in str(error)
    assert {path for path in storage.files() if writes.is_data(path)} == before


class UpgradedAtOnce(DelegatingStorage):
    """Another process upgrades the table when the first data file or deletion of this one comes."""

    is_due = True

    def _around(self, verb, paths, call):
        if self.is_due and verb in ("delete_many", "open_write") and ".hoodie" not in "".join(paths):
            self.is_due = False
            upgrade(writes.open_table(self.inner))
        return call()


@pytest.mark.parametrize("action", ["clean", "cluster"])
def test_a_service_is_told_that_the_table_was_upgraded(action):
    """By name, and not that somebody has rolled it back."""
    storage = UpgradedAtOnce(new_table(6))
    with pytest.raises(ConflictError, match="from table version 6 to 9"):
        ACTIONS[action](writes.open_table(storage))
    assert not storage.is_due
    assert contents(storage.inner) == contents(new_table(6))
