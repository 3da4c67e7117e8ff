"""Bloom filters against a scalar model written from the format description; real filters: test_real_files.py."""

import base64
import itertools
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, UnsupportedTable, WriteError
from hudi_py.formats.bloom import BloomFilter, BloomKind, BloomSizing, HashedKeys

KEYS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40), max_size=60)
SIZINGS = st.builds(
    BloomSizing,
    kind=st.sampled_from(BloomKind),
    entries=st.integers(1, 25),
    false_positive_rate=st.sampled_from([0.5, 0.01, 1e-9]),
    entries_max=st.integers(1, 70),
)
WORD = 0xFFFFFFFF


def murmur(key: bytes, seed: int) -> int:
    """One hash, byte by byte."""
    h = (seed ^ len(key)) & WORD
    full = len(key) // 4 * 4
    for at in range(0, full, 4):
        k = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & WORD
        k = (k ^ (k >> 24)) * 0x5BD1E995 & WORD
        h = (h * 0x5BD1E995 & WORD) ^ k
    signed = [byte - 256 if byte > 127 else byte for byte in key]
    left = len(key) - full
    if left:
        for back in range(1, left + 1):
            h ^= (signed[-back] << (8 * (back - 1))) & WORD
        h = h * 0x5BD1E995 & WORD
    h = (h ^ (h >> 13)) * 0x5BD1E995 & WORD
    return h ^ (h >> 15)


def bits_of(key: str, hashes: int, bits: int) -> set[int]:
    seed, found = 0, set()
    for _ in range(hashes):
        seed = murmur(key.encode(), seed)
        found.add(abs(seed - 2**32 if seed >= 2**31 else seed) % bits)
    return found


def model_rows(keys: list[str], sizing: BloomSizing) -> list[set[int]]:
    """Keys to rows one at a time, as ``InternalDynamicBloomFilter.add`` does."""
    rows, in_row, turn, is_full = [set()], 0, 0, False
    for key in keys:
        row = rows[-1]
        if sizing.kind is BloomKind.DYNAMIC_V0:
            if is_full:
                row = rows[turn % len(rows)]
                turn += 1
            elif in_row >= sizing.entries:
                if len(rows) * sizing.entries < sizing.entries_max:
                    row = set()
                    rows.append(row)
                    in_row = 0
                else:
                    is_full, row = True, rows[0]
        row |= bits_of(key, sizing.hashes, sizing.bits)
        in_row += 1
    return rows


def stored_rows(text: str, sizing: BloomSizing) -> list[set[int]]:
    """Rows as the format description lays them out."""
    data, at = base64.b64decode(text), 0
    if sizing.kind is BloomKind.DYNAMIC_V0:
        assert (-1, sizing.hashes, 1, sizing.bits, sizing.entries) == struct.unpack_from(">iibii", data)
        at = 25
    found = []
    while at < len(data):
        assert (-1, sizing.hashes, 1, sizing.bits) == struct.unpack_from(">iibi", data, at)
        row = data[at + 13 : at + 13 + math.ceil(sizing.bits / 8)]
        found.append({i for i in range(len(row) * 8) if row[i >> 3] & (1 << (i & 7))})
        at += 13 + len(row)
    return found


@given(keys=KEYS, sizing=SIZINGS, cuts=st.lists(st.integers(0, 60)))
def test_filter_equals_the_scalar_model(keys, sizing, cuts):
    """Every bit of every row is where the description puts it, however the keys are cut into calls."""
    bloom = BloomFilter.sized(sizing)
    edges = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    for start, end in itertools.pairwise(edges):
        bloom.add(pa.array(keys[start:end], pa.string()))
    assert model_rows(keys, sizing) == stored_rows(bloom.to_text(), sizing)


@given(keys=KEYS, strangers=KEYS, sizing=SIZINGS)
def test_no_added_key_is_missed_and_strangers_are_judged_like_the_model(keys, strangers, sizing):
    """There are no false negatives, and false positives only where the bits say so."""
    bloom = BloomFilter.sized(sizing)
    bloom.add(pa.array(keys, pa.string()))
    assert bloom.might_contain(pa.array(keys, pa.string())).all()
    rows = model_rows(keys, sizing)
    judged = [any(bits_of(key, sizing.hashes, sizing.bits) <= row for row in rows) for key in strangers]
    assert judged == bloom.might_contain(pa.array(strangers, pa.string())).tolist()


@given(keys=KEYS, asked=st.lists(KEYS, min_size=1, max_size=3), sizings=st.lists(SIZINGS, min_size=1, max_size=3))
def test_keys_hashed_once_are_found_in_every_filter(keys, asked, sizings):
    """Whatever the sizes of the filters, one of the keys may be in it or none."""
    for part in asked:
        wanted = HashedKeys(pa.array([*part, *keys[:1]], pa.string()))
        for sizing in [*sizings, *sizings]:
            bloom = BloomFilter.sized(sizing)
            bloom.add(pa.array(keys[1:], pa.string()))
            assert bloom.might_contain(wanted.keys).any() == bloom.might_contain_any(wanted)


@given(keys=KEYS, sizing=SIZINGS)
def test_parsing_and_formatting_are_inverse(keys, sizing):
    """A filter survives the footer, and may be added to afterwards."""
    bloom = BloomFilter.sized(sizing)
    bloom.add(pa.array(keys, pa.string()))
    code = None if sizing.kind is BloomKind.SIMPLE else sizing.kind.value
    parsed = BloomFilter.parse(bloom.to_text(), code)
    assert bloom.to_text() == parsed.to_text()
    parsed.add(pa.array(["one more"]))
    assert parsed.might_contain(pa.array([*keys, "one more"])).all()


@given(keys=KEYS, more=KEYS, made=SIZINGS, wanted=SIZINGS, is_same=st.booleans(), lacking=st.sampled_from([0, 0, 1]))
def test_a_filter_that_is_carried_on_is_the_one_built_anew(keys, more, made, wanted, is_same, lacking):
    """Bit for bit, with the keys of both files; where it would be another one, or lacks keys, it is not carried on."""
    wanted = made if is_same else wanted
    old = BloomFilter.sized(made)
    old.add(pa.array(keys[lacking:], pa.string()))
    stored = BloomFilter.parse(old.to_text(), None if made.kind is BloomKind.SIMPLE else made.kind.value)
    carried = stored.carried_on(wanted, len(keys))
    is_whole = made.kind is BloomKind.DYNAMIC_V0 and len(keys) <= made.entries and not (lacking and keys)
    if carried is None:
        assert not (is_same and is_whole)
        return
    carried.add(pa.array(more, pa.string()))
    anew = BloomFilter.sized(wanted)
    anew.add(pa.array([*keys, *more], pa.string()))
    assert anew.to_text() == carried.to_text()


def test_default_size_is_hudis():
    """60000 keys at one in a billion: the figures of the format description."""
    assert (2587966, 30) == (BloomSizing().bits, BloomSizing().hashes)


def test_slices_and_other_string_types_hash_alike():
    """What decides is the text of the key, not how Arrow holds it."""
    keys = ["left out", *(f"k{i}" * (i % 5 + 1) for i in range(40))]
    texts = set()
    for column in (
        pa.array(keys[1:]),
        pa.array(keys).slice(1),
        pa.array(keys, pa.large_string()).slice(1),
        pa.array([key.encode() for key in keys], pa.binary()).slice(1),
        pa.chunked_array([keys[1:7], keys[7:]]),
    ):
        bloom = BloomFilter.sized(BloomSizing(entries=7, entries_max=20))
        bloom.add(column)
        texts.add(bloom.to_text())
    assert 1 == len(texts)


def test_more_keys_than_one_round_works_on():
    """Rounds are an affair of memory: results do not show them."""
    keys = pa.array(np.arange(70_000)).cast(pa.string())
    whole, halves = (BloomFilter.sized(BloomSizing()) for _ in range(2))
    whole.add(keys)
    halves.add(keys.slice(0, 50_000))
    halves.add(keys.slice(50_000))
    assert 2 == whole.row_count
    assert whole.to_text() == halves.to_text()
    assert whole.might_contain(keys).all()


@pytest.mark.parametrize("keys", [["a", ""], ["a", None]])
def test_empty_and_null_keys_are_refused(keys):
    """Hudi can neither add nor find them."""
    bloom = BloomFilter.sized(BloomSizing(entries=10))
    with pytest.raises(WriteError):
        bloom.add(pa.array(keys, pa.string()))
    with pytest.raises(WriteError):
        bloom.might_contain(pa.array(keys, pa.string()))


@pytest.mark.parametrize("code", [None, "DYNAMIC_V0"])
@given(cut=st.integers(0, 200), junk=st.binary(max_size=60))
def test_damaged_text_is_reported(code, cut, junk):
    """Truncated or random bytes end in our error, never in a wrong filter."""
    bloom = BloomFilter.sized(BloomSizing(kind=BloomKind.SIMPLE if code is None else BloomKind(code), entries=20))
    data = base64.b64decode(bloom.to_text())
    for damaged in (data[: min(cut, len(data) - 1)], junk):
        with pytest.raises((CorruptMetadata, UnsupportedTable)):
            BloomFilter.parse(base64.b64encode(damaged).decode(), code)
    for text in ("no base 64", "AAAA\u04d9AAA"):
        with pytest.raises(CorruptMetadata):
            BloomFilter.parse(text, code)


def test_unknown_types_are_not_guessed():
    """Neither another filter type nor the Jenkins hash is read as if it were ours."""
    text = BloomFilter.sized(BloomSizing(entries=10, kind=BloomKind.SIMPLE)).to_text()
    with pytest.raises(UnsupportedTable, match="CUCKOO"):
        BloomFilter.parse(text, "CUCKOO")
    jenkins = bytearray(base64.b64decode(text))
    jenkins[8] = 0
    with pytest.raises(UnsupportedTable, match="hash type 0"):
        BloomFilter.parse(base64.b64encode(jenkins).decode())
