"""Which files a savepoint names, found without decoding it: equal to what decoding says, and damaged where it is."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.records_codec import decode_savepoint, decode_savepoint_files, encode_savepoint
from hudi_py.formats.savepoint_files import SavepointFiles
from hudi_py.model.records import SavepointMetadata
from support.laws import examples
from support.tables import SYNC

PATHS = st.one_of(st.sampled_from(["p", "r/s", "é", "x" * 31, "x" * 32, "y" * 64, "z" * 200]), st.just(""))
NAMES = st.lists(
    st.one_of(st.from_regex(r"[a-z0-9é-]{1,12}_[0-9-]{1,8}_20260101[0-9]{4}\\.parquet", fullmatch=True),
              st.sampled_from(["n" * 63, "n" * 64, "n" * 255, f"{'f' * 38}_0-1-2_20260101000000000.parquet"])),
    max_size=5,
)  # fmt: skip
FILES = st.dictionaries(PATHS, NAMES.map(tuple), max_size=5)


def encoded(files, **words):
    metadata = SavepointMetadata(savepointed_by="ann", savepointed_at_ms=1, comments="", files=files, **words)
    return encode_savepoint(metadata, SYNC)


def found_in(data):
    return decode_savepoint_files(data, "a savepoint")


def plain(groups=40, partitions=5):
    """As tables have them: names of some lengths."""
    return {
        f"day={number:02d}": tuple(
            f"{'f' * 36}-{group}_{group % 12}-7-{number}_202601010000000{number % 10:02d}.parquet"
            for group in range(groups)
        )
        for number in range(partitions)
    }


@examples(30)
@given(FILES, st.sampled_from([1, None]), st.sampled_from(["", "daily"]))
def test_the_files_are_those_that_decoding_finds(files, version, name):
    """Of any paths and names, partition by partition, with and without a name in the header."""
    data = encoded(files, version=version, name=name)
    found = found_in(data)
    assert dict(found) == dict(decode_savepoint(data, "a savepoint").files) == files
    assert [path in found for path in (*files, "none")] == [True] * len(files) + [False]
    with pytest.raises(KeyError):
        found["none"]


def test_a_usual_savepoint_is_not_decoded_as_a_whole():
    """Only then it costs little; names end as asked, or they do not."""
    found = found_in(encoded(plain()))
    assert isinstance(found, SavepointFiles)
    assert dict(found) == plain()
    assert len(found) == 5
    ends = [f"202601010000000{number:02d}.parquet".encode() for number in range(40)]
    assert [found.may_name([end]) for end in ends] == [True] * 5 + [False] * 35
    assert [found.may_name(each) for each in (ends, ends[4:], ends[5:], ends[4:6], [])] == [
        True,
        True,
        False,
        True,
        False,
    ]


@examples(100)
@given(st.integers(0, 2**32))
def test_damage_is_seen_where_decoding_sees_it(seed):
    """Cut off, with zeros or with a piece of another file in it: an error, exactly where decoding is one."""
    rng = random.Random(seed)
    files = plain(groups=rng.choice((1, 3, 9)), partitions=rng.choice((1, 4, 12)))
    data = bytearray(encoded(files))
    start, length = rng.randrange(4, len(data)), rng.choice((1, 7, 300))
    kind = rng.choice(("cut", "zeros", "noise"))
    if kind == "cut":
        del data[start : start + length]
    else:
        part = range(start, min(start + length, len(data)))
        for at in part:
            data[at] = 0 if kind == "zeros" else rng.choice((0, 1, 2, 130, 255))
    data = bytes(data)
    try:
        whole = dict(decode_savepoint(data, "a savepoint").files)
    except CorruptMetadata:
        with pytest.raises(CorruptMetadata):
            dict(found_in(data))
    else:
        assert dict(found_in(data)) == whole


@examples(60)
@given(st.integers(0, 2**32))
def test_no_name_that_ends_as_asked_is_overlooked(seed):
    """Of partitions of one size and layout, of several, and of names shorter than what is asked for."""
    rng = random.Random(seed)
    times = [f"202601010000000{number:02d}" for number in range(rng.choice((1, 2, 12)))]
    tokens = ("0-1-2",) if rng.random() < 0.5 else ("0-1-2", "10-11-12")
    files = {
        f"day={number:02d}": tuple(
            rng.choice(("x.parquet", f"{'f' * 36}-0_{rng.choice(tokens)}_{rng.choice(times)}.parquet"))
            if rng.random() < 0.1
            else f"{'f' * 36}-0_{rng.choice(tokens)}_{rng.choice(times)}.parquet"
            for _ in range(rng.choice((1, 2)) if rng.random() < 0.2 else 2)
        )
        for number in range(rng.choice((3, 9, 30)))
    }
    found = found_in(encoded(files))
    assert isinstance(found, SavepointFiles)
    names = [name for each in files.values() for name in each]
    for time in (*times, "20250101000000000", "20260101000000099"):
        end = f"{time}.parquet".encode()
        assert found.may_name([end]) == any(name.encode().endswith(end) for name in names)
    assert dict(found) == files
