"""Packing of inserts: laws over generated tables, and the rules one by one."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.writing.assign import (
    Bucket,
    ExistingFile,
    SizingLimits,
    assign_buckets,
    average_record_bytes,
    spread_inserts,
)

FILES = st.lists(st.integers(0, 1500), max_size=5).map(
    lambda sizes: tuple(ExistingFile(file_id=f"f{index}", size_bytes=size) for index, size in enumerate(sizes))
)
LIMITS = st.builds(
    SizingLimits,
    max_file_bytes=st.integers(1, 1500),
    small_file_bytes=st.integers(-1, 1500),
    insert_split_rows=st.integers(1, 50),
    auto_split=st.booleans(),
)


def assign(inserts, *, updated=None, existing=None, record_bytes=10, limits):
    ids = (f"new{number}" for number in itertools.count())
    return assign_buckets(
        inserts,
        updated=updated or {},
        existing=existing or {},
        record_bytes=record_bytes,
        limits=limits,
        new_file_id=lambda: next(ids),
    )


@given(
    inserts=st.dictionaries(st.sampled_from("abc"), st.integers(0, 500)),
    updated=st.dictionaries(st.sampled_from("abc"), st.frozensets(st.sampled_from(["f0", "f1", "f9"]))),
    existing=st.dictionaries(st.sampled_from("abc"), FILES),
    record_bytes=st.integers(1, 40),
    limits=LIMITS,
)
def test_laws_of_packing(inserts, updated, existing, record_bytes, limits):
    """No row is lost or doubled, files keep to their size, updates reach their group, and order does not matter."""
    buckets = assign(inserts, updated=updated, existing=existing, record_bytes=record_bytes, limits=limits)

    placed = Counter()
    for bucket in buckets:
        placed[bucket.partition_path] += bucket.num_inserts
    assert {path: count for path, count in inserts.items() if count} == {p: n for p, n in placed.items() if n}
    groups = [(bucket.partition_path, bucket.file_id) for bucket in buckets]
    assert len(groups) == len(set(groups))
    assert {(path, file_id) for path, ids in updated.items() for file_id in ids} <= set(groups)

    sizes = {(path, file.file_id): file.size_bytes for path, files in existing.items() for file in files}
    for bucket in buckets:
        group = (bucket.partition_path, bucket.file_id)
        if bucket.is_new:
            by_size = math.ceil(limits.max_file_bytes / record_bytes)
            assert 1 <= bucket.num_inserts <= (by_size if limits.auto_split else limits.insert_split_rows)
        elif bucket.num_inserts:
            assert sizes[group] < limits.small_file_bytes
            assert sizes[group] + bucket.num_inserts * record_bytes <= limits.max_file_bytes
        else:
            assert bucket.file_id in updated[bucket.partition_path]

    turned = {path: files[::-1] for path, files in reversed(existing.items())}
    again = assign(
        dict(reversed(inserts.items())), updated=updated, existing=turned, record_bytes=record_bytes, limits=limits
    )
    assert buckets == again


def test_small_files_are_filled_before_new_ones_are_made():
    """Smallest first, up to the maximum size; the rest is cut into full new files and a last one."""
    sizes = {"big": 90, "mid": 60, "s": 20}
    existing = {"p": [ExistingFile(file_id=name, size_bytes=size) for name, size in sizes.items()]}
    limits = SizingLimits(max_file_bytes=100, small_file_bytes=80)
    buckets = assign({"p": 35}, existing=existing, updated={"p": ["big", "mid"]}, limits=limits)
    assert [("s", 8), ("mid", 4), ("big", 0), ("new0", 10), ("new1", 10), ("new2", 3)] == [
        (bucket.file_id, bucket.num_inserts) for bucket in buckets
    ]
    assert [False, False, False, True, True, True] == [bucket.is_new for bucket in buckets]


def test_limit_of_zero_leaves_existing_files_alone():
    """``hoodie.parquet.small.file.limit=0`` switches packing off."""
    existing = {"p": [ExistingFile(file_id="empty", size_bytes=0)]}
    (bucket,) = assign({"p": 5}, existing=existing, limits=SizingLimits(small_file_bytes=0))
    assert bucket.is_new


def test_split_by_row_count():
    """With automatic splitting off, the configured number of rows goes into each new file."""
    limits = SizingLimits(auto_split=False, insert_split_rows=4)
    assert [4, 4, 2] == [bucket.num_inserts for bucket in assign({"": 10}, limits=limits)]


def test_impossible_record_size_is_refused():
    """A size below one byte is a caller's mistake."""
    with pytest.raises(ValueError, match="record_bytes"):
        assign({"": 1}, record_bytes=0, limits=SizingLimits())


def _bucket(num_inserts):
    return Bucket(partition_path="", file_id=str(num_inserts), is_new=True, num_inserts=num_inserts)


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any))
def test_spread_is_proportional(counts):
    """Hashes that cover every remainder once hit each bucket exactly as often as it has inserts."""
    hashes = np.arange(sum(counts), dtype=np.uint64) + np.uint64(sum(counts) * 10**15)
    hit = Counter(spread_inserts(hashes, [_bucket(count) for count in counts]).tolist())
    assert counts == [hit[position] for position in range(len(counts))]


def test_spread_without_inserts_is_refused():
    """There is nowhere to put a row."""
    with pytest.raises(ValueError, match="none of the buckets"):
        spread_inserts(np.zeros(1, dtype=np.uint64), [_bucket(0)])


@pytest.mark.parametrize(
    ("commits", "more", "expected"),
    [
        ([], {}, 1024),
        ([(1001, 10)], {}, 101),
        ([(1000, 10)], {}, 1024),
        ([(500, 10), (2000, 0), (3000, 10)], {}, 300),
        ([(500, 10), (2000, 0), (3000, 10)], {"commits_max": 2}, 1024),
        ([(500, 10)], {"threshold": 0.1}, 50),
        ([(1500, 10)], {"file_overhead_bytes": 400}, 110),
        ([(1500, 10)], {"file_overhead_bytes": 500, "estimate": 7}, 7),
        ([(1500, 9000)], {}, 1),
    ],
)
def test_record_size_comes_from_the_newest_large_commit(commits, more, expected):
    """Rounded up; small commits, where the filter outweighs the rows, are passed over."""
    assert expected == average_record_bytes(commits, limits=SizingLimits(small_file_bytes=1000), **more)
