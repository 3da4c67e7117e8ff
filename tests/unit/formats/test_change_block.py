"""Blocks of change logs: what Hudi wrote in three modes, and bytes that are none."""

import json
import tarfile

import pytest

import hudi_py
from hudi_py.errors import CorruptMetadata
from hudi_py.formats.change_block import change_schema_text, decode_change_log, encode_change_block
from hudi_py.formats.data_block import decode_data_block
from hudi_py.formats.log_block import HeaderKey, encode_rollback_block, iterate_log_blocks
from hudi_py.model.change_logging import logging_mode
from support.fixtures import FOLDER, row_fixture_names, unpack_rows


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


@pytest.mark.parametrize("name", [*row_fixture_names("cow_cdc"), *row_fixture_names("mor_cdc-")])
def test_blocks_are_encoded_as_hudi_encodes_them(name, tmp_path):
    """The schema that follows from the mode and the table's columns, and each record byte for byte."""
    table = hudi_py.open_table(unpack_rows(name, tmp_path))
    commits = {each.requested_time: table.contents.commit(each) for each in table.timeline.writes.completed()}
    mode = logging_mode(table.config.properties, name)
    # Not those of a write that was rolled back, which may have had other columns.
    logs = [
        path
        for each in commits.values()
        for stats in each.partition_to_write_stats.values()
        for stat in stats
        for path in stat.cdc_stats or ()
    ]
    assert logs
    for path in logs:
        for block in iterate_log_blocks(table.storage.read(path), path):
            schema, time = block.header[HeaderKey.SCHEMA], block.header[HeaderKey.INSTANT_TIME]
            schema_text = change_schema_text(mode, commits[time].extra_metadata["schema"])
            assert json.loads(schema_text) == named_in_full(json.loads(schema))
            changes = decode_data_block(block.content, schema, name)
            (ours,) = iterate_log_blocks(encode_change_block(changes, schema_text, time), name)
            assert (ours.block_type, ours.content) == (block.block_type, block.content)
            assert (ours.header[HeaderKey.INSTANT_TIME], ours.header[HeaderKey.SCHEMA]) == (time, schema_text)


def named_in_full(schema):
    """The schema, with the namespaces that Avro inherits written out as the table's own schema has them."""
    for field in schema["fields"]:
        if field["name"] == "before":
            field["type"][1] = {**field["type"][1], "namespace": schema["namespace"]}
        if field["name"] == "after":
            field["type"][1] = f"{schema['namespace']}.{field['type'][1]}"
    return schema
