"""Blocks of change logs: what Hudi wrote in three modes, and bytes that are none."""

import tarfile

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.change_block import decode_change_log
from hudi_py.formats.log_block import encode_rollback_block
from support.fixtures import FOLDER


def logs_of(name):
    with tarfile.open(FOLDER / "rows" / f"{name}.tar.gz") as archive:
        return [archive.extractfile(each).read() for each in archive if each.name.endswith(".cdc")]


@pytest.mark.parametrize(
    ("name", "holds"),
    [("cow_cdc_op_key_only", (False, False)), ("cow_cdc_data_before", (True, False)), ("cow_cdc", (True, True))],
)
@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.1.1"])
def test_the_schema_tells_what_a_log_holds(name, holds, release):
    """Keys alone, the row before, or both rows."""
    blocks = [block for data in logs_of(f"{name}-{release}") for block in decode_change_log(data, "log")]
    assert {(block.before is not None, block.after is not None) for block in blocks} == {holds}
    for block in blocks:
        operations = block.operations.to_pylist()
        assert set(operations) <= set("iud")
        assert (block.keys is None) == (holds == (True, True))
        for rows, without in ((block.before, "i"), (block.after, "d")):
            assert rows is None or [each is None for each in rows.to_pylist()] == [
                each == without for each in operations
            ]


def test_a_log_cut_anywhere_is_damage():
    """A completed commit names it, so nothing of it may be passed over."""
    data = logs_of("cow_cdc-1.1.1")[0]
    whole = list(decode_change_log(data, "log"))
    for end in range(1, len(data)):
        with pytest.raises(CorruptMetadata, match="log"):
            list(decode_change_log(data[:end], "log"))
    assert len(list(decode_change_log(data + data, "log"))) == 2 * len(whole)


def test_a_block_of_another_kind_is_damage():
    """It would hide changes."""
    with pytest.raises(CorruptMetadata, match="type COMMAND in a change log"):
        list(decode_change_log(encode_rollback_block("20260101000000000", "20260101000000001"), "log"))
