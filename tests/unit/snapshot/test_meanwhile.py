"""Reads beside writers and cleans that change the table meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import NotFound
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
