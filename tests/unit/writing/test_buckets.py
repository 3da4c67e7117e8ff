"""A table of buckets is known by what its writers left, and never written."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import UnsupportedTable
from hudi_py.writing.buckets import BUCKET_FOLDER, are_numbered, refuse_buckets
from support.tables import TableBuilder, at

REST = "-ed33-42cb-87ca-6054ba54646a-0"


def refuse(builder):
    table = builder.table()
    refuse_buckets(builder.storage, table.timeline, table.contents)


@given(st.lists(st.integers(0, 9_999), min_size=1))
def test_numbers_of_buckets_are_seen(numbers):
    """However many files a commit wrote."""
    assert are_numbered([f"{number:08d}{REST}" for number in numbers])


@given(st.lists(st.uuids(version=4), max_size=50))
def test_random_ids_are_no_numbers(ids):
    """But for one in some hundred thousand, which this search does not find."""
    random = [f"{each}-0" for each in ids if not str(each).startswith("0000")]
    assert not are_numbered(random) or len(random) > 3


def test_one_random_id_among_them_is_enough_to_doubt():
    """Tables that only look like it in a part are written as before."""
    assert not are_numbered([f"00000001{REST}", f"{uuid.UUID(int=2**127)}-0"])
    assert not are_numbered([])


@pytest.mark.parametrize("layout", [1, 2])
def test_a_table_of_buckets_is_refused(layout):
    """Rows of ours would lie in no bucket: duplicates for Apache Hudi. Later commits of ours hide no bucket."""
    builder = TableBuilder(layout)
    builder.commit(at(0), {"p": [f"00000000{REST}", f"00000001{REST}"]})
    builder.commit(at(1), {"p": [f"{uuid.UUID(int=2**127)}-0"]})
    before = builder.storage.files()
    with pytest.raises(UnsupportedTable, match=r"00000000-ed33.*duplicates"):
        refuse(builder)
    assert before == builder.storage.files()


@pytest.mark.parametrize("path", ["consistent_hashing_metadata/p/00000000000000.hashing_meta", "partition/x"])
def test_a_table_of_consistent_hashing_is_refused(path):
    """Its file ids are no numbers, but the folder says which keys go where."""
    builder = TableBuilder()
    builder.commit(at(0), {"p": [f"{uuid.UUID(int=2**127)}-0"]})
    refuse(builder)
    builder.put(f"{BUCKET_FOLDER}/{path}", b"{}")
    with pytest.raises(UnsupportedTable, match="bucket index"):
        refuse(builder)
