"""HFiles of three releases of Hudi, HFiles of HBase with several levels of index, and our own."""

from __future__ import annotations

import io
import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.hfile import HFile
from hudi_py.formats.hfile_writer import encode_hfile
from support.fixtures import fixture_names, metadata_files
from support.laws import examples

BLOCKS = {"data": b"DATABLK*", "leaf": b"IDXLEAF2", "intermediate": b"IDXINTE2"}
MADE_BY_HBASE = sorted((Path(__file__).parents[2] / "fixtures" / "hfile").glob("*.hfile"))


class Counting(io.BytesIO):
    """Remembers what was read: (offset, length)."""

    def __init__(self, data):
        super().__init__(data)
        self.reads = []

    def read(self, size=-1):
        self.reads.append((self.tell(), size))
        return super().read(size)


def opened(data: bytes) -> HFile:
    return HFile(io.BytesIO(data), len(data), "f")


def of_hudi() -> dict[str, bytes]:
    """Every base file of every metadata table among the fixtures."""
    return {
        f"{name}:{path}": data
        for name in fixture_names()
        for path, data in metadata_files(name).items()
        if path.endswith(".hfile")
    }


def numbered(count: int) -> list[tuple[bytes, bytes]]:
    """What `tools/make_hfiles.py` had HBase write."""
    return [(b"key%06d" % n, b"value %d " % n * (n % 7 + 1)) for n in range(count)]


def test_base_files_of_all_fixtures_are_read_to_the_last_entry():
    """Checksums, counts and Hudi's own first and last key agree with what comes out."""
    files = of_hudi()
    assert len(files) > 40
    for name, data in files.items():
        hfile = opened(data)
        entries = list(hfile)
        keys = [key for key, _ in entries]
        assert hfile.entry_count == len(entries) > 0, name
        assert hfile.info[b"minRecordKey"] == keys[0], name
        assert hfile.info[b"maxRecordKey"] == keys[-1], name
        assert sorted(set(keys)) == keys, name
        assert [value for _, value in entries] == [hfile.get(key) for key in keys], name


def test_base_files_written_again_hold_the_same():
    """Entries, meta blocks and file info survive our writer."""
    for name, data in of_hudi().items():
        hfile = opened(data)
        meta = {each: hfile.meta(each) for each in hfile.meta_names}
        again = opened(encode_hfile(hfile, meta=meta, info={"schema": hfile.info[b"schema"]}))
        assert list(hfile) == list(again), name
        assert meta == {each: again.meta(each) for each in again.meta_names}, name
        assert hfile.info[b"schema"] == again.info[b"schema"], name


@pytest.mark.parametrize("path", MADE_BY_HBASE, ids=lambda path: path.stem)
def test_files_of_hbase_with_several_levels_of_index_are_read(path):
    """Leaf and intermediate index blocks lead to every entry, by scan and by look-up."""
    data = path.read_bytes()
    hfile = opened(data)
    expected = numbered(hfile.entry_count)

    assert hfile.trailer.index_levels == int(path.stem[0])
    assert BLOCKS["intermediate"] in data or hfile.trailer.index_levels < 3
    assert expected == list(hfile)
    assert [value for _, value in expected] == [hfile.get(key) for key, _ in expected]
    assert expected[17:250] == list(hfile.scan(expected[17][0], expected[250][0]))
    assert [None] * 3 == [hfile.get(key) for key in (b"", b"key000017x", b"zzz")]


def test_hbase_files_are_there():
    """The parameters above are not empty."""
    assert {"2levels-gzip", "3levels-none", "1level-gzip-crc32c"} <= {path.stem for path in MADE_BY_HBASE}


entry_lists = st.dictionaries(st.binary(max_size=20), st.binary(max_size=60), max_size=40).map(
    lambda d: sorted(d.items())
)


@examples(80)
@given(entry_lists, st.booleans(), st.integers(1, 300))
def test_what_is_written_is_read(entries, compress, block_bytes):
    """Any keys and values, any size of blocks."""
    hfile = opened(encode_hfile(entries, compress=compress, block_bytes=block_bytes))

    assert entries == list(hfile)
    assert dict(entries) == {key: hfile.get(key) for key, _ in entries}


@examples(80)
@given(entry_lists, st.binary(max_size=3), st.none() | st.binary(max_size=3))
def test_a_range_is_what_a_filter_gives(entries, start, end):
    """A scan of a range equals the filtered whole."""
    hfile = opened(encode_hfile(entries, block_bytes=60))

    assert [e for e in entries if start <= e[0] and (end is None or e[0] < end)] == list(hfile.scan(start, end))


@examples(80)
@given(entry_lists, st.sets(st.binary(max_size=3)), st.integers(1, 300))
def test_keys_are_found_together_as_one_by_one(entries, others, block_bytes):
    """Those that are there, in order, whatever blocks they lie in."""
    hfile = opened(encode_hfile(entries, block_bytes=block_bytes))
    asked = sorted({key for key, _ in entries[::2]} | others)

    assert [(key, value) for key, value in entries if key in asked] == list(hfile.find(asked))


@pytest.mark.parametrize("path", MADE_BY_HBASE, ids=lambda path: path.stem)
def test_keys_are_found_together_through_several_levels_of_index(path):
    """Each block on the way is read once, however many keys lie in it."""
    data = path.read_bytes()
    entries = numbered(opened(data).entry_count)
    stream = Counting(data)
    hfile = HFile(stream, len(data), "f")
    stream.reads.clear()

    assert entries == list(hfile.find(key for key, _ in entries))
    assert len({at for at, _ in stream.reads}) == len(stream.reads)
    assert [] == list(hfile.find([b"", b"key000017x", b"zzz"]))


def test_a_look_up_reads_one_data_block():
    """Opening and looking up never read the file as a whole."""
    entries = [(b"%06d" % n, b"x" * 100) for n in range(5000)]
    data = encode_hfile(entries, compress=False, block_bytes=4096)
    stream = Counting(data)
    hfile = HFile(stream, len(data), "f")
    assert sum(size for _, size in stream.reads) < 20_000

    stream.reads.clear()
    assert hfile.get(b"002500") == b"x" * 100
    assert sum(size for _, size in stream.reads) < 2 * 4300
    stream.reads.clear()
    assert len(list(hfile.scan(b"001000", b"001010"))) == 10
    assert sum(size for _, size in stream.reads) < 3 * 4300


def test_threads_that_share_a_file_find_their_own_keys(tmp_path):
    """A table object is shared by threads: a look-up in the block of another one would not find a partition's files."""
    entries, wrong = numbered(400), []
    data = encode_hfile(entries, block_bytes=64, compress=False)
    (tmp_path / "file.hfile").write_bytes(data)

    def look_up(number: int) -> None:
        chance = random.Random(number)
        for key, value in chance.choices(entries, k=120):
            if file.get(key) != value:
                wrong.append(key)

    with (tmp_path / "file.hfile").open("rb") as stream, ThreadPoolExecutor(4) as pool:
        file = HFile(stream, len(data), "file.hfile")
        list(pool.map(look_up, range(4)))
    assert wrong == []


def test_keys_have_to_come_in_order():
    """The writer refuses what no reader could find."""
    for keys in ([b"b", b"a"], [b"a", b"a"]):
        with pytest.raises(ValueError):
            encode_hfile([(key, b"") for key in keys])
    with pytest.raises(ValueError):
        encode_hfile([(b"k" * 32768, b"")])


def test_a_file_without_entries_is_a_file():
    """No key, no block, no exception."""
    hfile = opened(encode_hfile([]))
    assert ([], None) == (list(hfile), hfile.get(b"a"))


def everything(data: bytes) -> object:
    hfile = opened(data)
    return [
        list(hfile),
        [hfile.meta(name) for name in hfile.meta_names],
        hfile.get(b"r1"),
        list(hfile.scan(b"a", b"s")),
    ]


def samples() -> list[bytes]:
    files = list(of_hudi().values())
    own = encode_hfile([(b"a", b"1"), (b"r1", b"2" * 90)], compress=False, block_bytes=1, meta={"m": b"3"})
    return [files[0], files[-1], own, *(path.read_bytes() for path in MADE_BY_HBASE if path.stat().st_size < 30_000)]


def test_a_file_cut_anywhere_is_corrupt():
    """A shorter file never passes for a whole one."""
    for data in samples():
        for length in itertools.chain(range(0, len(data), 97), range(len(data) - 20, len(data))):
            with pytest.raises(CorruptMetadata):
                opened(data[:length])


@examples(400)
@given(st.data())
def test_damage_is_a_clear_error_or_changes_nothing(data):
    """Flipped bits end in CorruptMetadata with an offset, or in the same content; never in anything else."""
    original = data.draw(st.sampled_from(EXAMPLES))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = everything(bytes(damaged))
    except CorruptMetadata as error:
        found = str(error)
    assert "byte " in found if isinstance(found, str) else everything(original) == found


EXAMPLES = samples()


@examples(200)
@given(st.binary(max_size=5000))
def test_arbitrary_bytes_are_corrupt(data):
    """Nothing but an HFile is one, with or without a trailer's frame around it."""
    framed = data + b'TRABLK"$' + data[:4084].ljust(4084, b"\0") + b"\x03\0\0\x03"
    for each in (data, framed):
        with pytest.raises(CorruptMetadata):
            everything(each)


def test_a_flipped_bit_in_checked_data_is_found():
    """CRC-32C covers head and payload of every block that we write."""
    data = encode_hfile([(b"a", b"1" * 50), (b"b", b"2" * 50)], compress=False)
    for position in range(len(data) - 4096):
        damaged = bytearray(data)
        damaged[position] ^= 4
        with pytest.raises(CorruptMetadata):
            everything(bytes(damaged))


def test_a_block_that_lies_about_its_size_allocates_nothing():
    """The promised size is held against the limit and the content before memory is taken."""
    data = bytearray(opened_block_claiming(1 << 30))
    with pytest.raises(CorruptMetadata, match="more than a block of Hudi has"):
        everything(bytes(data))


def opened_block_claiming(size: int) -> bytes:
    data = bytearray(encode_hfile([(b"a", b"1")]))
    data[12:16] = size.to_bytes(4, "big")
    return bytes(data)
