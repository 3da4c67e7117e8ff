import contextlib
import io
import struct

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import log_block
from hudi_py.formats.log_block import (
    MAGIC,
    BlockType,
    LogBlock,
    encode_log_block,
    encode_rollback_block,
    is_rollback_block,
    iterate_log_blocks,
    join_data_block,
    scan_log_blocks,
    split_data_block,
)
from support.laws import examples

blocks = st.builds(
    LogBlock,
    st.sampled_from([kind for kind in BlockType if kind is not BlockType.CORRUPT]),
    st.dictionaries(st.integers(0, 8), st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=3),
    st.binary(max_size=30),
)
ONE = LogBlock(BlockType.AVRO_DATA, {2: "schema"}, b"content")
numbers = st.sampled_from([-(1 << 31), -1, 0, 1, 3, 8, 20, 60, 1 << 20, (1 << 31) - 1])
pieces = st.one_of(
    blocks.map(encode_log_block),
    st.just(MAGIC),
    numbers.map(struct.Struct(">i").pack),
    st.builds(struct.Struct(">q").pack, st.one_of(numbers, st.sampled_from([-(1 << 63), 1 << 62]))),
    st.binary(max_size=9),
)


def parts(found):
    return [(block.block_type, block.header, block.content) for block in found]


@examples(30)
@given(st.lists(blocks, max_size=4))
def test_blocks_round_trip(written):
    """rules/data-files 9.2: blocks are simply concatenated."""
    data = b"".join(map(encode_log_block, written))
    found = list(iterate_log_blocks(data, "x"))
    assert parts(written) == parts(found)
    assert all(data[block.offset :].startswith(MAGIC) for block in found)


def test_frame_is_that_of_the_document():
    """rules/data-files 9.2: big endian; the total size is the block size plus the magic's six bytes."""
    header = b"\x00\x00\x00\x01" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x06schema"
    body = b"\x00\x00\x00\x01" + b"\x00\x00\x00\x03" + header + bytes(7) + b"\x07content" + bytes(4)
    size = len(body) + 8
    assert MAGIC + bytes(7) + bytes([size]) + body + bytes(7) + bytes([size + 6]) == encode_log_block(ONE)


def test_a_torn_block_is_skipped_up_to_the_next_magic():
    """rules/data-files 9.2: the gap counts as one corrupt block."""
    whole = encode_log_block(ONE)
    for size in range(6, len(whole)):
        found = list(iterate_log_blocks(whole + whole[:size] + whole, "x"))
        assert [BlockType.AVRO_DATA, BlockType.CORRUPT, BlockType.AVRO_DATA] == [block.block_type for block in found]
        assert whole[:size] == found[1].content
        assert len(whole) == found[1].offset


def test_a_torn_end_is_a_corrupt_block():
    """rules/data-files 9.2: what a crashed writer leaves is skipped, up to the end; a part of a magic too."""
    whole = encode_log_block(ONE)
    for size in range(1, len(whole)):
        found = list(iterate_log_blocks(whole + whole[:size], "x"))
        assert [BlockType.AVRO_DATA, BlockType.CORRUPT] == [block.block_type for block in found]
        assert [BlockType.CORRUPT] == [block.block_type for block in iterate_log_blocks(whole[:size], "x")]


@pytest.mark.parametrize(
    "data",
    [
        b"PAR1 and more",
        encode_log_block(ONE).replace(b"\x00\x00\x00\x01\x00\x00\x00\x03", b"\x00\x00\x00\x09\x00\x00\x00\x03", 1),
        encode_log_block(ONE).replace(b"\x00\x00\x00\x01\x00\x00\x00\x03", b"\x00\x00\x00\x01\x00\x00\x00\x63", 1),
        encode_log_block(ONE).replace(b"\x00\x00\x00\x06schema", b"\x00\x00\x00\x05schema", 1),
        encode_log_block(ONE).replace(b"schema", b"\xff\xff\xff\xff\xff\xff", 1),
    ],
)
def test_a_whole_block_that_makes_no_sense_is_corrupt_metadata(data):
    """A right frame around a wrong block is no crash but damage."""
    with pytest.raises(CorruptMetadata, match=r"^x: .*byte \d+ of"):
        list(iterate_log_blocks(data, "x"))


@given(st.data())
def test_damage_gives_blocks_or_corrupt_metadata(data):
    """No damage leads to another exception."""
    damaged = bytearray(encode_log_block(ONE) * 2)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptMetadata):
        list(iterate_log_blocks(bytes(damaged), "x"))


@given(st.lists(st.binary(max_size=10), max_size=5))
def test_data_blocks_round_trip_and_notice_any_cut(bodies):
    """rules/timeline 5.2: version 3, count, then size and bytes of each record."""
    content = join_data_block(bodies)
    assert bodies == split_data_block(content, "x")
    for size in range(len(content)):
        with pytest.raises(CorruptMetadata):
            split_data_block(content[:size], "x")
    with pytest.raises(CorruptMetadata):
        split_data_block(content + b"\x00", "x")


@examples(60)
@given(st.lists(blocks, max_size=4), st.integers(0, 200), st.booleans())
def test_scanning_finds_what_reading_finds_but_contents(written, cut, torn):
    """rules/data-files 9.2: the same blocks at the same places, whole files and torn ones."""
    data = b"".join(map(encode_log_block, written))
    data = data[: max(0, len(data) - cut)] if torn else data
    wanted = [attrs.evolve(block, content=b"") for block in iterate_log_blocks(data, "x")]
    found = list(scan_log_blocks(io.BytesIO(data), len(data), "x"))
    assert wanted == found
    assert [block.size_bytes for block in wanted] == [block.size_bytes for block in found]
    assert len(data) == sum(block.size_bytes for block in found)


def test_what_is_no_log_file_is_not_scanned():
    """rules/data-files 9.2: it starts with the magic."""
    with pytest.raises(CorruptMetadata):
        list(scan_log_blocks(io.BytesIO(b"PAR1 and more bytes"), 19, "x"))


@examples(200)
@given(st.lists(pieces, max_size=8), st.integers(0, 30))
def test_hostile_logs_are_scanned_as_they_are_read(parts, cut):
    """Negative, endless and wrong lengths, magics anywhere, cuts: what can be read whole is scanned to the same blocks,
    and nothing but CorruptMetadata is raised by either.
    """
    data = b"".join(parts)
    data = data[: len(data) - cut]
    with contextlib.suppress(CorruptMetadata):
        list(scan_log_blocks(io.BytesIO(data), len(data) + cut, "x"))  # as of a listing before the file was cut
    with contextlib.suppress(CorruptMetadata):
        wanted = [(block.block_type, block.header, block.offset) for block in iterate_log_blocks(data, "x")]
        found = scan_log_blocks(io.BytesIO(data), len(data), "x")
        assert wanted == [(block.block_type, block.header, block.offset) for block in found]


class Claimed(io.RawIOBase):
    """A file that claims a size and holds *content* over and over, however long that goes on; counts what is read."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.most, self.total = content, 0, 0, 0

    def seek(self, offset, whence=0):
        self.at = offset
        return offset

    def read(self, size=-1):
        assert size >= 0, "nothing is read to the end"
        self.most, self.total = max(self.most, size), self.total + size
        start = self.at % len(self.content)
        self.at += size
        return (self.content * (2 + size // len(self.content)))[start : start + size]


def frame(size: int) -> bytes:
    return MAGIC + struct.pack(">q", size)


CLAIMS = {
    "torn blocks without end": MAGIC,
    "blocks of endless length": frame(1 << 62),
    "blocks of negative length": frame(-1),
    "tiny blocks without end": encode_log_block(LogBlock(BlockType.COMMAND, {}, b"")),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_scanning_is_bounded_whatever_a_log_file_claims(kind, monkeypatch):
    """Never more than a header's bound at once, never more blocks than Hudi writes; then it is CorruptMetadata."""
    monkeypatch.setattr(log_block, "_BLOCKS_MAX", 100)
    monkeypatch.setattr(log_block, "_TORN_BYTES_MAX", 1 << 22)
    stream = Claimed(CLAIMS[kind])
    with contextlib.suppress(CorruptMetadata):
        list(scan_log_blocks(stream, 1 << 40, "x"))
    assert stream.most <= 1 << 24
    assert stream.total <= 1 << 28


@pytest.mark.parametrize(("length", "is_refused"), [(1 << 10, False), ((1 << 10) + 1, True), (-1, True)])
def test_a_header_longer_than_a_schema_is_not_read(length, is_refused, monkeypatch):
    """Its block is whole by its sizes, and the text would fit into it."""
    monkeypatch.setattr(log_block, "_HEADER_BYTES_MAX", 1 << 10)
    size = 1 << 20
    start = frame(size) + struct.pack(">iiiii", 1, 3, 1, 0, length)
    data = start + bytes(14 + size - len(start) - 8) + struct.pack(">q", size + len(MAGIC))
    stream = Claimed(data)
    with pytest.raises(CorruptMetadata, match="does not fit") if is_refused else contextlib.nullcontext():
        assert [block.header for block in scan_log_blocks(stream, len(data), "x")] == [{0: "\0" * length}]
    assert stream.most <= 1 << 10


@pytest.mark.parametrize("content", [MAGIC, encode_log_block(LogBlock(BlockType.COMMAND, {}, b""))])
def test_a_log_file_of_nothing_but_blocks_is_refused(content, monkeypatch):
    """So many blocks as no writer of Hudi appends to one file: reading and scanning end, and say so."""
    monkeypatch.setattr(log_block, "_BLOCKS_MAX", 10)
    for read in (
        lambda data: iterate_log_blocks(data, "x"),
        lambda data: scan_log_blocks(io.BytesIO(data), len(data), "x"),
    ):
        assert len(list(read(content * 10))) == 10
        with pytest.raises(CorruptMetadata, match="more than 10"):
            list(read(content * 11))


def test_a_torn_block_before_another_one_costs_a_small_read(monkeypatch):
    """A hostile file holds a hundred thousand of them, so the next magic is looked for nearby first."""
    monkeypatch.setattr(log_block, "_BLOCKS_MAX", 100)
    stream = Claimed(MAGIC)
    with pytest.raises(CorruptMetadata):
        list(scan_log_blocks(stream, 1 << 40, "x"))
    assert stream.total <= 100 << 13


# The windows begin with 4 KiB and double: their borders are at 4, 12, 28 KiB and so on.
@pytest.mark.parametrize("before", [*map(bytes, (0, 100, 4093, 4096, 12285, 12288, 28669, 1 << 20, (1 << 20) - 3))])
def test_a_block_behind_a_torn_one_is_found_wherever_it_begins(before):
    """Across the windows in which a magic is looked for too."""
    data = MAGIC + before + encode_log_block(ONE)
    found = [(block.block_type, block.offset) for block in scan_log_blocks(io.BytesIO(data), len(data), "x")]
    assert found == [(BlockType.CORRUPT, 0), (BlockType.AVRO_DATA, len(MAGIC) + len(before))]


def test_rollback_block_takes_back_one_write():
    """B-20: a command block without content; 105 bytes with times of 17 digits, as real Hudi writes it."""
    data = encode_rollback_block("20240715131014266", "20240715114650490")
    (block,) = iterate_log_blocks(data, "x")
    assert len(data) == 105
    assert is_rollback_block(block, "20240715114650490")
    assert not is_rollback_block(block, "20240715131014266")
    assert not is_rollback_block(ONE, "20240715114650490")
