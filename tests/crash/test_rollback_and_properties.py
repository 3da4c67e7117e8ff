"""Rollbacks of failed writes and rewrites of hoodie.properties, interrupted at every call that changes something."""

import pytest

from hudi_py.errors import ConflictError, HudiError
from hudi_py.runtime.clock import SystemClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.properties_copies import FOLDER
from hudi_py.timeline.properties_file import (
    BACKUP_FILE,
    PROPERTIES_FILE,
    create_properties,
    read_properties,
    update_properties,
)
from support.crash_points import EVERY, interruptions
from support.crash_states import canonical, data_files, open_real, real_table, visible_files
from support.history_tables import open_in
from support.tables import TableBuilder, at

FAILED = [
    f"{table}-{version}"
    for table in ("cow_failed_write", "cow_mixed")
    for version in ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILED)
@pytest.mark.parametrize("markers", [True, False], ids=["markers", "no-markers"])
def test_rollback_interrupted_anywhere_ends_in_the_same_table(record_property, name, markers):
    """Plan, requested, inflight, deletions, the failed instant's files, completion, markers (B.3, B.4, B-23, K-25)."""

    def roll_back(storage):
        return open_real(name, storage).rollback_failed_writes()

    before = real_table(name)
    (failed,) = open_real(name, before).timeline.commits.pending()
    if not markers:
        before.delete_folder(f".hoodie/.temp/{failed.requested_time}")
    uninterrupted = before.copy()
    for _ in range(3):
        roll_back(uninterrupted)
    expected, shown = canonical(uninterrupted, before), visible_files(open_real(name, before))
    orphans = {path for path in data_files(before) if failed.requested_time in path}
    assert data_files(before) - data_files(uninterrupted) == orphans != set()
    assert not [path for path in uninterrupted.files() if path.startswith(".hoodie/.temp/")]
    count = 0
    for case in interruptions(before.copy):
        count += case.run(roll_back)
        for _ in range(3):
            assert data_files(before) - data_files(case.storage) <= orphans, case
            assert visible_files(open_real(name, case.storage)) == shown, case
            roll_back(case.storage)
        assert canonical(case.storage, before) == expected, case
    record_property("interruptions", count)
    assert count * EVERY > 30


OLD = {"hoodie.table.name": "t", "hoodie.database.name": "", "hoodie.table.version": "9", "a": "old"}


def fresh():
    storage = MemoryStorage()
    create_properties(storage, OLD, SystemClock())
    return storage


def without_checksum(storage):
    found = read_properties(storage)
    found.pop("hoodie.table.checksum")
    return found


def test_rewriting_the_properties_interrupted_anywhere(record_property):
    """At every moment the old or the new properties are read, whole; afterwards no backup is left (1.4)."""
    new = {**OLD, "b": "new"}
    del new["a"]

    def rewrite(storage):
        update_properties(storage, {"a": None, "b": "new"}, SystemClock())

    count = 0
    for case in interruptions(fresh):
        count += case.run(rewrite)
        assert without_checksum(case.storage) in (OLD, new), case
        for _ in range(2):
            rewrite(case.storage)
            assert without_checksum(case.storage) == new, case
            assert without_copies(case.storage) == [PROPERTIES_FILE], case
    record_property("interruptions", count)
    assert count * EVERY > 15


class Overtaken(DelegatingStorage):
    """Before its *n*-th call another process, which holds the lock by now, rewrites the properties."""

    def __init__(self, inner, n):
        super().__init__(inner)
        self.n, self.is_last = n, False

    def _around(self, verb, paths, call):
        self.n -= 1
        if self.n == 0:
            # What comes after the last look cannot be kept apart, here and in Apache Hudi.
            self.is_last = (verb, paths) == ("replace", (PROPERTIES_FILE,)) or self.inner.size(BACKUP_FILE) is not None
            update_properties(self.inner, {"c": "theirs"}, SystemClock())
        return call()


def test_properties_that_changed_in_a_process_s_sleep_are_not_put_back():
    """Neither change is lost, or the later one is told to try again."""
    number, kept = 1, 0
    while True:
        overtaken = Overtaken(fresh(), number)
        try:
            update_properties(overtaken, {"b": "new"}, SystemClock())
        except ConflictError as error:
            assert "try again" in str(error), number
            update_properties(overtaken, {"b": "new"}, SystemClock())
        if overtaken.n > 0:
            break
        if not overtaken.is_last:
            kept += 1
            assert without_checksum(overtaken.inner) == {**OLD, "b": "new", "c": "theirs"}, number
        number += 1
    assert kept > 5


def without_copies(storage):
    return [path for path in storage.files() if not path.startswith(FOLDER)]


@pytest.mark.parametrize("damage", [b"", b"\0\0\0", b"hoodie.table.name=t\nhoodie.table.checksum=1\n", None])
def test_damaged_properties_are_read_from_the_backup(damage):
    """Missing, empty, torn or of a wrong checksum: the backup serves, and the next rewrite repairs."""
    storage = fresh()
    storage.replace(BACKUP_FILE, storage.read(PROPERTIES_FILE))
    if damage is None:
        storage.delete(PROPERTIES_FILE)
    else:
        storage.replace(PROPERTIES_FILE, damage)
    assert without_checksum(storage) == OLD
    update_properties(storage, {"b": "new"}, SystemClock())
    assert without_checksum(storage) == {**OLD, "b": "new"}
    assert without_copies(storage) == [PROPERTIES_FILE]


@pytest.mark.parametrize("backup", [b"", b"garbage", None])
def test_damaged_properties_without_a_good_backup_are_an_error_that_changes_nothing(backup):
    """The message names the file and what to do."""
    storage = fresh()
    storage.replace(PROPERTIES_FILE, b"")
    if backup is not None:
        storage.replace(BACKUP_FILE, backup)
    before = storage.files()
    for operation in (read_properties, lambda each: update_properties(each, {"b": "new"}, SystemClock())):
        with pytest.raises(HudiError, match=r"hoodie\.properties.*(restore|copy)"):
            operation(storage)
    assert storage.files() == before


@pytest.mark.parametrize("damage", [b"", None], ids=["empty", "missing"])
@pytest.mark.parametrize("change", ["rollback_failed_writes", "rollback", "restore"])
def test_a_rewrite_that_was_interrupted_is_finished_by_what_needs_the_table_for_itself(change, damage):
    """Hudi 1.0.2 takes a table with empty properties for none, whatever the backup holds (1.4)."""
    storage = savepointed()
    whole = storage.read(PROPERTIES_FILE)
    storage.replace(BACKUP_FILE, whole)
    storage.replace(PROPERTIES_FILE, b"") if damage is not None else storage.delete(PROPERTIES_FILE)
    arguments = {"rollback_failed_writes": (), "rollback": (at(2),), "restore": (at(1),)}[change]
    getattr(open_in(storage), change)(*arguments)
    assert storage.read(PROPERTIES_FILE) == whole
    assert BACKUP_FILE not in storage.files()


def savepointed():
    builder = TableBuilder(2)
    for number in (1, 2):
        builder.commit(at(number), {"eu": ["a"]})
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    return builder.storage
