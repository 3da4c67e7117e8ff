"""Which blocks of log files count: `scan_blocks` against a plain model, and files read in either way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block, encode_rollback_block
from hudi_py.model.files import parse_log_file
from hudi_py.rows import log_scan
from hudi_py.rows.log_scan import read_log_blocks, scan_blocks, with_content
from hudi_py.storage.memory import MemoryStorage
from support.laws import examples

LOG = parse_log_file(".g-0_20260101000000000.log.1_0-1-2")


def data(time, content=b"rows", **header):
    keys = {int(HeaderKey[name]): value for name, value in header.items()}
    return LogBlock(BlockType.AVRO_DATA, {int(HeaderKey.INSTANT_TIME): time, **keys}, content)


def rollback(time, target):
    header = {HeaderKey.INSTANT_TIME: time, HeaderKey.TARGET_INSTANT_TIME: target, HeaderKey.COMMAND_BLOCK_TYPE: "0"}
    return LogBlock(BlockType.COMMAND, {int(key): value for key, value in header.items()}, b"")


def compacted(time, *originals):
    return data(time, COMPACTED_BLOCK_TIMES=",".join(reversed(originals)))


TORN = LogBlock(BlockType.CORRUPT, {}, b"??")


def scan(*blocks, completed="123456789", until=None):
    """Instants of the blocks that count."""
    found = scan_blocks(((LOG, block, "x") for block in blocks), completed.__contains__, until)
    return [block.header[HeaderKey.INSTANT_TIME] for _, block in found.blocks]


def test_blocks_of_instants_that_do_not_count_are_passed_over():
    """A write that has not completed shows nothing, nor does what is no block."""
    assert scan(data("1"), data("2"), TORN, data("3"), completed="13") == ["1", "3"]


def test_what_is_no_block_is_told():
    """Who has to know whether it was damage gets its place."""
    assert scan_blocks([(LOG, TORN, "x")], "1".__contains__).torn == [(LOG, TORN)]


@examples(60)
@given(st.lists(st.tuples(st.sampled_from("123"), st.booleans()), max_size=8))
def test_a_rollback_block_takes_back_what_stands_before_it(story):
    """Of the instant that it names, however often; what comes behind it counts."""
    blocks, model = [], []
    for time, is_rollback in story:
        blocks.append(rollback("9", time) if is_rollback else data(time))
        model = [each for each in model if each != time] if is_rollback else [*model, time]
    assert scan(*blocks) == model


def test_an_earlier_time_ends_at_the_first_later_block():
    """As in Apache Hudi 0.15.0: at a rollback block too, so that what was written behind it is not seen."""
    assert scan(data("1"), data("3"), data("2"), until="2") == ["1"]
    assert scan(data("1"), rollback("3", "0"), data("2"), TORN, data("1"), until="2") == ["1"]
    assert scan(data("1"), rollback("3", "1"), data("2")) == ["2"]


def test_a_range_goes_on_after_later_blocks():
    """A write that was requested later may have failed before, and Hudi 0.15 gives its rollback a later time, too."""
    blocks = [data("1"), data("2"), rollback("5", "2"), data("4"), data("6"), data("3"), rollback("7", "6"), data("4")]
    found = scan_blocks([(LOG, each, "x") for each in blocks], "12346".__contains__, "4", ends_at_later=False)
    assert [block.header[HeaderKey.INSTANT_TIME] for _, block in found.blocks] == ["1", "4", "3", "4"]


def test_an_earlier_time_does_not_show_what_was_rolled_back_later():
    """Once archival has passed a failed write, only its rollback block tells it from a completed one."""
    assert scan(data("0"), data("1"), rollback("3", "1"), data("2"), completed="012", until="2") == ["0"]
    assert scan(data("1"), data("3"), rollback("4", "3"), rollback("5", "1"), until="2") == []


def test_a_compacted_block_stands_for_what_it_took_up():
    """In the place of its newest original, before what was written meanwhile; compacted again, too."""
    assert scan(data("1"), data("2"), compacted("3", "1", "2"), data("4")) == ["3", "4"]
    assert scan(data("1"), data("2"), data("3"), compacted("4", "1", "2")) == ["4", "3"]
    assert scan(data("1"), data("2"), compacted("3", "1", "2"), data("4"), compacted("5", "3", "4")) == ["5"]


def test_a_compacted_block_that_does_not_count_leaves_its_originals():
    """Pending, or later than the time asked for; and without its originals it is left out, as in Hudi (E-28)."""
    assert scan(data("1"), data("2"), compacted("3", "1", "2"), completed="12") == ["1", "2"]
    assert scan(data("1"), data("2"), compacted("3", "1", "2"), until="2") == ["1", "2"]
    assert scan(compacted("3", "1", "2"), data("4")) == ["4"]


@pytest.mark.parametrize(
    "block", [LogBlock(BlockType.DELETE, {}, b""), LogBlock(BlockType.COMMAND, {int(HeaderKey.INSTANT_TIME): "1"}, b"")]
)
def test_a_block_that_makes_no_sense_is_damage(block):
    """Without an instant nobody can tell whether it counts; a command that is no rollback is unknown."""
    with pytest.raises(CorruptMetadata, match="byte 0"):
        scan(block)


@pytest.mark.parametrize("whole_max", [0, 1 << 20])
def test_large_files_give_the_same_blocks(monkeypatch, whole_max):
    """Their contents are read when they are wanted, one block at a time."""
    monkeypatch.setattr(log_scan, "WHOLE_BYTES_MAX", whole_max)
    written = [data("1", b"first"), data("2", b""), data("3", b"third")]
    torn = encode_log_block(data("4"))[:-9]
    storage = MemoryStorage()
    parts = [*map(encode_log_block, written[:2]), torn, encode_log_block(written[2]), encode_rollback_block("5", "2")]
    storage.create_new("log", b"".join(parts))
    found = list(read_log_blocks(storage, "log", "log"))
    kinds = [block.block_type for block in found]
    assert kinds == [*[BlockType.AVRO_DATA] * 2, BlockType.CORRUPT, BlockType.AVRO_DATA, BlockType.COMMAND]
    filled = [with_content(storage, "log", block, "log") for block in found if block.block_type is BlockType.AVRO_DATA]
    assert [(each.header, each.content) for each in filled] == [(each.header, each.content) for each in written]
    assert [each.offset for each in filled] == [each.offset for each in found if each.block_type is BlockType.AVRO_DATA]


def test_a_file_overwritten_meanwhile_is_told():
    """Another block at that place is not passed for the one that was scanned."""
    storage = MemoryStorage()
    storage.create_new("log", encode_log_block(data("1")))
    (block,) = read_log_blocks(storage, "log", "log")
    storage.replace("log", encode_log_block(data("2")))
    with pytest.raises(CorruptMetadata, match="overwritten"):
        with_content(storage, "log", LogBlock(block.block_type, block.header, b"", 0, block.size_bytes), "log")
