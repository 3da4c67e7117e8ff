"""
A disk that is full and a storage that refuses permission, from some call on, in the middle of every service.

First by doubles at every call, then on a real small file system, filled up to a few pages.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from hudi_py.errors import ConfigError, RefusedError, ServiceFailed, StorageError
from hudi_py.model.instant import State
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import FailNth, InterruptionMode
from support.crash_points import EVERY, interruptions
from support.history_tables import open_in, state_of
from support.recoveries import troubled
from support.tables import TableBuilder, at
from support.writes import CHANGES, NEW, OLD, create_table, rows_of, upsert

GROWING = {"create_new", "replace", "open_write"}
SHRINKING = {"delete", "delete_many", "delete_folder"}
MODES = [
    InterruptionMode("full", lambda storage, n: FailNth(storage, n, None, verbs=GROWING)),
    InterruptionMode("may not delete", lambda storage, n: FailNth(storage, n, None, verbs=SHRINKING)),
]


def commits(layout: int) -> MemoryStorage:
    builder = TableBuilder(layout)
    for number in range(1, 7):
        builder.commit(at(number), {"eu": ["a"], "us": ["b"]})
    builder.savepoint(at(4), {"eu": [builder.base_name("a", at(4))], "us": [builder.base_name("b", at(4))]})
    return builder.storage


def failed(layout: int) -> MemoryStorage:
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"], "us": ["b"]}, state=State.INFLIGHT)
    return builder.storage


def again_unless_done(operation):
    """An operation that the earlier try has ended says so."""

    def call(storage):
        with contextlib.suppress(ConfigError, RefusedError):
            operation(storage)

    return call


def without_savepoint(layout: int) -> MemoryStorage:
    storage = commits(layout)
    open_in(storage).delete_savepoint(at(4))
    return storage


SERVICES = {
    "clean": (commits, lambda storage: open_in(storage).clean(commits_retained=1)),
    "rollback of failed writes": (failed, lambda storage: open_in(storage).rollback_failed_writes()),
    "rollback": (commits, again_unless_done(lambda storage: open_in(storage).rollback(at(6)))),
    "restore": (commits, lambda storage: open_in(storage).restore(at(4))),
    "savepoint": (without_savepoint, again_unless_done(lambda storage: open_in(storage).create_savepoint(at(5)))),
    "archive": (
        without_savepoint,
        lambda storage: open_in(storage).archive(keep_min_commits=2, keep_max_commits=3),
    ),
    "recover": (troubled, lambda storage: open_in(storage).recover()),
}


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("name", list(SERVICES))
def test_service_that_meets_its_limits_ends_clearly_and_works_again(name, layout, record_property):
    """`StorageError` that names the path, a table that opens, and the same result once there is space or access."""
    build, operation = SERVICES[name]
    calm = build(layout)
    operation(calm)
    wanted = state_of(calm)
    if name == "archive":  # how far a run gets depends on what the one before has left
        wanted = {key: wanted[key] for key in ("files", "listing", "pending")}
    count = 0
    for case in interruptions(lambda: build(layout), MODES):
        try:
            operation(case.faulty)
        except StorageError as error:
            assert ".hoodie" in str(error) or "eu/" in str(error) or "us/" in str(error), case
        case.was_run = True
        count += case.faulty.fired is not None
        open_in(case.storage).file_slices("eu")
        operation(case.storage)
        found = state_of(case.storage)
        assert {key: found[key] for key in wanted} == wanted, case
    record_property("interruptions", count)
    assert count * EVERY > 1


def new_table(storage, version: int) -> None:
    create_table(version, storage)
    upsert(storage, OLD)


@pytest.mark.parametrize("version", [6, 9])
def test_write_that_meets_its_limits_is_invisible_or_whole(version, record_property):
    """
    The rows of before stay readable; with space or access again the write goes through.

    An error that says that the write is completed promises its rows.
    """
    original = MemoryStorage()
    new_table(original, version)
    count = 0
    for case in interruptions(original.copy, MODES):
        promised = False
        try:
            upsert(case.faulty, CHANGES)
        except StorageError:
            pass
        except ServiceFailed:
            promised = True
        case.was_run = True
        count += case.faulty.fired is not None
        assert rows_of(case.storage) in ((NEW,) if promised else (OLD, NEW)), case
        upsert(case.storage, CHANGES)
        assert rows_of(case.storage) == NEW, case
    record_property("interruptions", count)
    assert count * EVERY > 5


@pytest.fixture
def disk(small_disk):
    """A file system of 8 MiB."""
    return small_disk(8192)


def put(storage: MemoryStorage, folder: Path) -> Path:
    for path, data in storage.files().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def taken(folder: Path) -> MemoryStorage:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return MemoryStorage.from_files(files, str(folder))


def fill(disk: Path, *, but_pages: int) -> Path:
    filler = disk / "filler"
    size = os.statvfs(disk).f_bavail * 4096 - but_pages * 4096
    with contextlib.suppress(OSError):
        filler.write_bytes(b"x" * max(0, size))
    return filler


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("name", ["clean", "rollback", "restore", "archive", "recover"])
def test_service_on_a_full_disk_says_so_and_works_again(disk, name, layout):
    """A real file system, full after so many pages: the message tells what to do, and afterwards all is well."""
    build, operation = SERVICES[name]
    failures = 0
    for pages in range(0, 12, 2):
        table = put(build(layout), disk / f"t{pages}")
        before = open_in(LocalStorage(table)).file_slices("eu")
        filler = fill(disk, but_pages=pages)
        try:
            result = operation(LocalStorage(table))
            if name == "recover":
                failures += any("the disk is full" in (each.error or "") for each in result)
        except StorageError as error:
            assert "the disk is full" in str(error)
            failures += 1
        assert open_in(LocalStorage(table)).file_slices("eu")[0].base_instant_time <= before[0].base_instant_time
        filler.unlink()
        operation(LocalStorage(table))
        after = state_of(taken(table))
        assert not after["pending"]
        assert not after["markers"]
        shutil.rmtree(table)
    assert failures


@pytest.mark.parametrize("version", [6, 9])
def test_write_on_a_full_disk_says_so_and_works_again(disk, version):
    """The rows of before stay readable, at every page on which the disk is full."""
    failures = 0
    for pages in range(0, 24, 4):
        storage = LocalStorage(disk / f"t{pages}")
        new_table(storage, version)
        filler = fill(disk, but_pages=pages)
        try:
            upsert(storage, CHANGES)
        except StorageError as error:
            assert "the disk is full" in str(error)
            failures += 1
            assert rows_of(storage) == OLD
        filler.unlink()
        upsert(storage, CHANGES)
        assert rows_of(storage) == NEW
        shutil.rmtree(storage.root)
    assert failures
