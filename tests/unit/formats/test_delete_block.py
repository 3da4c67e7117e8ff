"""Delete blocks: what is written is read again, and is byte for byte what Apache Hudi writes."""

from decimal import Decimal

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.delete_block import DeletedKey, OrderingValue, decode_delete_block, encode_delete_block
from hudi_py.formats.log_block import BlockType, iterate_log_blocks
from support.fixtures import unpack_rows

ORDERINGS = [
    (),
    *[(OrderingValue(kind, 7),) for kind in ("int", "long", "date", "time", "timestamp")],
    (OrderingValue("boolean", True),),
    (OrderingValue("double", 1.5),),
    (OrderingValue("string", "é"),),
    (OrderingValue("bytes", b"\0"),),
    (OrderingValue("decimal", Decimal("-12345678901234567890.12")),),
    (OrderingValue("long", 5), OrderingValue("string", "b")),
]


def test_keys_with_every_kind_of_ordering_value_are_read_again():
    """None, one of each kind, and several, as tables with more than one ordering field have them."""
    deleted = tuple(DeletedKey(f"k{number}", "eu", ordering) for number, ordering in enumerate(ORDERINGS))
    assert decode_delete_block(encode_delete_block(deleted), "x") == deleted
    assert encode_delete_block(()) == encode_delete_block(iter(()))


def test_bytes_behind_the_last_key_are_damage():
    """A changed byte may end the list early: rows that were deleted would be back, and nothing would tell."""
    deleted = [DeletedKey(key, "eu", (OrderingValue("long", 5),)) for key in ("a", "b", "c")]
    content = encode_delete_block(deleted)
    for count in range(3):
        # As if the number of keys were smaller: a list, its end, and what is left of the list behind it.
        part = encode_delete_block(deleted[:count])[8:]
        damaged = content[:8] + part + content[8 + len(part) :]
        with pytest.raises(CorruptMetadata, match="do not fill the block"):
            decode_delete_block(damaged, "x")


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.1.1"])
def test_blocks_of_hudi_are_encoded_as_they_are(release, tmp_path):
    """Deletes by key carry the int 0, rows flagged as deleted their ordering value."""
    folder = unpack_rows(f"mor_event_time-{release}", tmp_path)
    contents = [
        block.content
        for path in folder.glob("r*/.*.log.*")
        if not path.name.endswith(".crc")
        for block in iterate_log_blocks(path.read_bytes(), path.name)
        if block.block_type is BlockType.DELETE
    ]
    assert len(contents) > 3
    for content in contents:
        assert encode_delete_block(decode_delete_block(content, "x")) == content
