"""Blocks of log files that are cut off or damaged: each counts whole or not at all, or is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.delete_block import DeletedKey, encode_delete_block
from hudi_py.formats.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
    encode_rollback_block,
)
from hudi_py.rows.log_scan import read_log_blocks
from hudi_py.storage.memory import MemoryStorage
from support.laws import examples
from support.log_slices import EVENT, base_file, data_block, log_file, merged, read, row


def test_a_block_cut_anywhere_counts_for_nothing():
    """What a writer that died left behind: the blocks before it and those of later files count."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1), row("b", 1)])
    whole, cut, later = data_block([row("a", 2)]), data_block([row("b", 3)]), data_block([row("c", 4)])
    last = log_file(storage, 2, later)
    for size in {*range(0, len(cut), 31), 1, 5, 6, 7, 13, 14, 15, len(cut) - 1}:
        logs = [log_file(storage, 1, whole + cut[:size]), last]
        assert read(storage, base, logs) == [row("a", 2), row("b", 1), row("c", 4)]


def test_a_damaged_block_between_good_ones_is_passed_over():
    """Wherever its frame is broken; the next block is found by its magic."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1), row("b", 1)])
    good, bad, next_one = data_block([row("a", 2)]), data_block([row("b", 3)]), data_block([row("c", 4)])
    for at in [*range(6, 14), *range(len(bad) - 8, len(bad))]:
        broken = bad[:at] + bytes([bad[at] ^ 0x55]) + bad[at + 1 :]
        logs = [log_file(storage, 1, good + broken + next_one)]
        assert read(storage, base, logs) == [row("a", 2), row("b", 1), row("c", 4)]


def delete_block(*keys):
    content = encode_delete_block([DeletedKey(key, "p", ()) for key in keys])
    return encode_log_block(LogBlock(BlockType.DELETE, {int(HeaderKey.INSTANT_TIME): "1"}, content))


OF_EACH_TYPE = {
    "avro": data_block([row("a", 5), row("n", 5)]),
    "parquet": data_block([row("a", 5), row("n", 5)], kind=BlockType.PARQUET_DATA),
    "hfile": data_block([row("a", 5), row("n", 5)], kind=BlockType.HFILE_DATA),
    "delete": delete_block("a"),
    "rollback": encode_rollback_block("2", "1"),
}
"""A block of each type, all of which change what the blocks around them say."""


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("kind", OF_EACH_TYPE)
@examples(12)
@given(st.data())
def test_a_block_of_any_type_counts_whole_or_not_at_all(kind, layout, data):
    """
    Cut behind its magic, or with a broken frame, at the end of a file or between good blocks: only the others count.

    Whole, it counts, so the test would notice if the block were without effect.
    """
    whole = OF_EACH_TYPE[kind]
    at = data.draw(st.integers(6, len(whole) - 1), "byte")  # without its magic, Hudi takes the block before it for torn
    if data.draw(st.booleans(), "cut"):
        left = whole[:at]
    else:  # the sizes in front and behind
        at = data.draw(st.sampled_from([*range(6, 14), *range(len(whole) - 8, len(whole))]), "byte of the frame")
        left = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255), "bits")]) + whole[at + 1 :]
    before, behind = data_block([row("b", 5)]), data.draw(st.sampled_from([b"", data_block([row("c", 5)])]), "behind")
    base = [row("a", 1), row("b", 1), row("c", 1)]

    def shown(block):
        storage = MemoryStorage("/t")
        if layout == 1:
            logs = [log_file(storage, 1, before + block + behind)]
        else:  # a file for each delta commit; a writer that tried again may have appended to its own
            logs = [log_file(storage, 1, before), log_file(storage, 2, block + behind)]
        return read(storage, base_file(storage, base), logs)

    without = merged(base, [[row("b", 5)], [row("c", 5)] if behind else []], EVENT)
    assert shown(left) == without
    assert shown(whole) != without


def test_a_block_damaged_inside_a_whole_frame_is_an_error():
    """Apache Hudi fails there too; rows that are lost are never passed over in silence."""
    storage = MemoryStorage("/t")
    block = data_block([row("b", 3)])
    at = block.index(b"b3")
    logs = [log_file(storage, 1, block[: at - 1] + b"\x7f" + block[at:])]
    with pytest.raises(CorruptMetadata, match=r"log\.1.*byte 0"):
        read(storage, None, logs)


@pytest.mark.parametrize("whole_max", [0, 1 << 20])
def test_no_block_is_of_the_type_that_stands_for_damage(whole_max):
    """It is never written: one bit makes it of another type, and its rows would be passed over."""
    storage = MemoryStorage("/t")
    block = data_block([row("b", 3)])
    at = len("#HUDI#") + 8 + 4 + 3  # the last byte of the type
    storage.create_new("log", block[:at] + bytes([BlockType.CORRUPT]) + block[at + 1 :])
    with pytest.raises(CorruptMetadata, match="type 2"):
        list(read_log_blocks(storage, "log", "log", whole_bytes_max=whole_max))
