"""Listing many folders at once: the same answer whoever lists, in bounded jobs, with the first error raised."""

import itertools
import pickle

import attrs
import pytest

from hudi_py.engine.choice import SPARK_FOLDERS_MIN, AutoEngine, is_listing_for_spark
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import StorageError
from hudi_py.fsview import lister
from hudi_py.fsview.lister import FolderLister, packed, unpacked
from hudi_py.fsview.listing import FolderListing
from hudi_py.storage.base import Entry
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support import writes

FILES = {f"p{number % 7}/r{number % 3}/f{number}.parquet": b"x" * number for number in range(60)}
METAFILES = {f"p{a}/r{b}/.hoodie_partition_metadata": b"" for a, b in itertools.product(range(7), range(3))}


@attrs.define
class Executors:
    """An engine whose tasks and answers go through bytes, as to other machines; counts its jobs and tasks."""

    slots: int = 2
    name: str = "spark"
    files_min: int = 1
    files_max: int = 100
    jobs: list = attrs.field(factory=list)

    def prepared(self, storage, files):
        return self

    def for_listing(self, storage, folders):
        return self if folders > 1 else None

    def map(self, function, items, *, parallelism, description):
        self.jobs.append([item.folders for item in items if isinstance(item, lister.ListTask)])
        return [pickle.loads(pickle.dumps(function(item))) for item in items]


def stored(files=FILES | METAFILES):
    return MemoryStorage.from_files(files)


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_executors_list_the_same(details, threads):
    """Every folder, in the order asked for, one that does not exist included."""
    storage, folders = stored(), ["", "p1", "p1/r1", "p6/r2", "missing", "p0/r0"]
    expected = [storage.list(folder, details=details) for folder in folders]
    engine = Executors()
    assert expected == list(FolderLister(storage, threads=threads).each(folders, details=details))
    assert expected == list(FolderLister(storage, engine, threads).each(folders, details=details))
    assert engine.jobs


def test_walk_on_executors_is_the_walk_of_this_process():
    """Level by level; a level of one folder is no job."""
    storage, engine = stored(), Executors()
    expected = list(FolderListing(storage).walk(details=True))
    assert expected == list(FolderListing(storage, engine).walk(details=True))
    assert [7, 21] == [sum(map(len, tasks)) for tasks in engine.jobs]


def test_a_job_sends_a_bounded_number_of_entries(monkeypatch):
    """Once a job has shown what a folder holds, the next ones take as many as fit."""
    monkeypatch.setattr(lister, "_FOLDERS_FIRST", 2)
    monkeypatch.setattr(lister, "_ENTRIES_MAX", 10)
    engine, folders = Executors(), sorted({path.rpartition("/")[0] for path in FILES})
    storage = stored()
    assert [storage.list(each) for each in folders] == list(FolderLister(storage, engine).each(folders))
    assert all(sum(map(len, tasks)) <= 4 for tasks in engine.jobs)
    assert folders == [folder for tasks in engine.jobs for task in tasks for folder in task]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [Entry("a", is_folder=False)],
        [Entry("a", is_folder=True), Entry("b", is_folder=False, size_bytes=0)],
        [Entry("ü b", is_folder=False, size_bytes=3, modified_ms=9), Entry("f", is_folder=True)],
        [Entry("a", is_folder=True), Entry("b", is_folder=True)],
    ],
    ids=["nothing", "a name", "sizes", "times", "folders"],
)
def test_what_is_sent_is_what_was_listed(entries):
    """Names, kinds, sizes and times, each known or not."""
    assert entries == unpacked(pickle.loads(pickle.dumps(packed(entries))))


class Failing(DelegatingStorage):
    """Cannot list one folder."""

    def list(self, folder, *, details=False):
        if folder == "p3":
            raise StorageError("p3 cannot be listed")
        return super().list(folder, details=details)


@pytest.mark.parametrize("engine", [None, Executors()])
def test_a_folder_that_cannot_be_listed_ends_the_walk(engine):
    """Nothing is planned on a part of the table."""
    with pytest.raises(StorageError, match="p3"):
        list(FolderListing(Failing(stored()), engine).walk())


def test_a_clean_lists_by_its_engine():
    """The walk of a full plan, the partitions of an incremental one, and what is judged again before it is executed."""
    storage = writes.create_table(9, **{"hoodie.metadata.enable": False})
    off = {"hoodie.metadata.enable": False}
    for ts in range(1, 5):
        rows = [{"id": region, "region": region, "ts": ts} for region in ("eu", "us", "ap", "jp")]
        writes.upsert(storage, rows, **off)
    expected = writes.open_table(storage, **off).plan_clean(commits_retained=1)
    engine = Executors()
    writes.open_table(storage, **off).clean(commits_retained=1, engine=engine)
    assert [4] == [sum(map(len, tasks)) for tasks in engine.jobs if tasks]
    rows = [{"id": region, "region": region, "ts": 9} for region in ("eu", "us", "ap", "jp")]
    writes.upsert(storage, rows, **off)
    opened = writes.open_table(storage, **off)
    planned = opened.services.clean(opened.services.clean_config(commits_retained=1), engine=engine).plan()
    assert not planned.scope.everything
    assert [4, 4] == [sum(map(len, tasks)) for tasks in engine.jobs if tasks]
    assert len(expected.files) == 4
    assert isinstance(opened, Table)


def test_executors_list_where_a_request_takes_long():
    """Many folders of an object store; never those of a disk, and no session is started for it."""
    assert is_listing_for_spark(SPARK_FOLDERS_MIN, is_remote=True)
    assert not is_listing_for_spark(SPARK_FOLDERS_MIN - 1, is_remote=True)
    assert not is_listing_for_spark(10**6, is_remote=False)
    engine = Executors()
    assert AutoEngine().for_listing(stored(), 10**6) is None
    assert AutoEngine(lambda: engine).for_listing(stored(), 2) is engine
    assert LocalEngine().for_listing(stored(), 10**6) is None
