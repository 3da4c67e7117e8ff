"""Reads beside writers and cleans that change the table meanwhile."""

import threading
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConflictError, NotFound
from hudi_py.storage.memory import MemoryStorage
from support.laws import examples
from support.writes import create_table, open_table, rows_of, upsert

PARTITIONS = ("ap", "br", "de", "eu", "jp", "uk", "us")  # more than are read ahead
VERSIONS = pytest.mark.parametrize("version", [6, 9])


def rows(time):
    return [{"id": partition, "region": partition, "ts": time} for partition in PARTITIONS]


def written(version):
    storage = create_table(version)
    upsert(storage, rows(1))
    return storage


@VERSIONS
@examples(2)
@given(st.lists(st.sampled_from(["UPSERT", "INSERT", "DELETE"]), min_size=1, max_size=2))
def test_a_read_is_one_snapshot_from_begin_to_end(version, operations):
    """Whatever is written between its batches; a read that begins later shows that."""
    storage = written(version)
    before, todo = rows_of(storage), list(operations)
    seen = []
    for batch in open_table(storage).rows():
        seen += batch.to_pylist()
        if todo:
            upsert(storage, rows(2 + len(todo)), operation=todo.pop())
    assert sorted(seen, key=lambda row: row["id"]) == before
    assert rows_of(storage) != before


@VERSIONS
def test_a_clean_that_takes_the_files_of_a_read_is_named(version):
    """The rows that are left out are never passed over; opened again the table is read whole."""
    storage = written(version)
    found = iter(open_table(storage).rows())
    next(found)
    for time in (2, 3):
        upsert(storage, rows(time))
    table = open_table(storage)
    table.clean(file_versions_retained=1)
    (clean,) = open_table(storage).timeline.completed("clean")
    with pytest.raises(NotFound, match=f"(?s)no such .*{clean.requested_time}.*while rows were read"):
        list(found)
    assert rows_of(storage) == sorted(rows(3), key=lambda row: row["id"])


def by_duckdb(found):
    return pytest.importorskip("duckdb").from_arrow(found).fetchall()


DOORS = {
    "where": lambda t: partial(list, t.rows(where="ts > 0 and id > 'a'")),
    "a key": lambda t: t.rows(where="_hoodie_record_key = 'eu'").to_arrow,
    "Arrow": lambda t: partial(pa.table, t.rows()),
    "pieces": lambda t: partial(all_pieces, t.rows().in_pieces()),
    "dataset": lambda t: t.rows().to_dataset().to_table,
    "number of rows": lambda t: t.rows().to_dataset().count_rows,
    "scanner": lambda t: t.rows().to_dataset().scanner(columns=["id"], filter=ds.field("ts") > 0).to_reader().read_all,
    "dataset in DuckDB": lambda t: partial(by_duckdb, t.rows().to_dataset()),
    "stream in DuckDB": lambda t: partial(by_duckdb, pa.RecordBatchReader.from_stream(t.rows())),
    "earlier": lambda t: t.rows(as_of=t.timeline.commits.completed()[0].requested_time).to_arrow,
    "changes": lambda t: t.changes().to_arrow,
    "deleted rows": lambda t: t.changes("0", with_deletes=True).to_arrow,
    "read-optimized": lambda t: t.rows(read_optimized=True).to_arrow,
}


def all_pieces(found):
    return [list(found.read(each)) for each in found.pieces]


@VERSIONS
@pytest.mark.parametrize("door", DOORS)
def test_each_door_names_the_clean(version, door):
    """Whatever reads the rows, and whichever file is found to be missing first."""
    storage = written(version)
    read = DOORS[door](open_table(storage))
    for time in (2, 3):
        upsert(storage, rows(time))
    open_table(storage).clean(file_versions_retained=1)
    (clean,) = open_table(storage).timeline.completed("clean")
    with pytest.raises(Exception, match=f"(?s)no such .*{clean.requested_time}.*deleted it while rows were read"):
        read()


@VERSIONS
@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("loads", ["refresh", "refresh_timeline"])
def test_a_snapshot_of_a_table_that_went_on_shows_its_own_moment_or_nothing(version, metadata, loads):
    """
    Its files are listed when they are asked for; with the files of a later moment, rows that were written again would
    be in none of them.
    """
    settings = {"hoodie.metadata.enable": metadata}
    storage = create_table(version)
    upsert(storage, rows(1), **settings)
    table = open_table(storage, **settings)
    snapshot = getattr(table, loads)().snapshot()
    upsert(storage, rows(2), **settings)
    table.refresh()
    if loads == "refresh_timeline":
        with pytest.raises(ConflictError, match="changed since this snapshot was opened"):
            snapshot.rows()
        return
    assert shown(snapshot) == [1] * len(PARTITIONS)
    table.clean(file_versions_retained=1)
    with pytest.raises((NotFound, ConflictError)):
        shown(snapshot)
    assert shown(table.snapshot()) == [2] * len(PARTITIONS)


def shown(snapshot):
    return snapshot.rows().to_arrow().column("ts").to_pylist()


class Busy(MemoryStorage):
    """Something happens as soon as a folder was listed."""

    def __init__(self):
        super().__init__()
        self.then = {}

    def list(self, folder, *, details=False):
        found = super().list(folder, details=details)
        self.then.pop(folder, lambda: None)()
        return found


@VERSIONS
def test_file_slices_are_of_one_moment_while_another_thread_uses_the_table(version):
    """Files of before beside a timeline of after: the old groups are replaced there, and the new ones not listed."""
    storage = Busy()
    create_table(version, storage)
    upsert(storage, rows(1))
    table = open_table(storage)
    before = table.file_slices("eu")
    assert len(before) == 1

    def other():
        upsert(storage, rows(2), operation="INSERT_OVERWRITE")
        table.refresh()
        assert table.file_slices("eu") != before

    thread = threading.Thread(target=other)
    storage.then["eu"] = lambda: (thread.start(), thread.join())
    assert table.file_slices("eu") == before
    assert not storage.then
