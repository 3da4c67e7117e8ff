import json

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.archive_log import ArchivedEntry, archive_file_number, decode_archive_log, latest_entries
from hudi_py.formats.avro_file import encode_record
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.log_block import BlockType, LogBlock, encode_log_block, join_data_block

SCHEMA = schema_text("HoodieArchivedMetaEntry", 6)


def log_of(*values, schema=SCHEMA):
    content = join_data_block([encode_record(schema, value) for value in values])
    return encode_log_block(LogBlock(BlockType.AVRO_DATA, {2: schema}, content))


def test_entries_carry_at_most_one_payload():
    """rules/timeline 5.2: the table of payload fields."""
    plan = {"policy": "P", "version": 2}
    data = log_of(
        {"commitTime": "1", "actionType": "clean", "actionState": "REQUESTED", "hoodieCleanerPlan": plan},
        {"commitTime": "1", "actionType": "rollback", "actionState": "INFLIGHT", "stateTransitionTime": "9"},
    )
    first, second = decode_archive_log(data + log_of(), "x")
    assert ("HoodieCleanerPlan", "P") == (first.record_name, first.payload["policy"])
    assert ArchivedEntry("1", "rollback", "INFLIGHT", "9") == second


def test_an_entry_without_state_counts_as_completed():
    """rules/timeline 5.2: old entries lack ``actionState``, and the oldest schemas lack the field."""
    fields = [{"name": "commitTime", "type": "string"}, {"name": "actionType", "type": "string"}]
    old = json.dumps({"type": "record", "name": "HoodieArchivedMetaEntry", "fields": fields})
    for schema in (SCHEMA, old):
        (entry,) = decode_archive_log(log_of({"commitTime": "1", "actionType": "commit"}, schema=schema), "x")
        assert "COMPLETED" == entry.state


@pytest.mark.parametrize(
    "data",
    [
        log_of({"commitTime": "1", "actionType": "commit"})[:-1],
        log_of({"commitTime": None, "actionType": "commit"}),
        log_of({"commitTime": "1", "actionType": "commit", "actionState": "NIL"}),
        encode_log_block(LogBlock(BlockType.COMMAND, {}, b"")),
        encode_log_block(LogBlock(BlockType.AVRO_DATA, {2: "{}"}, join_data_block([b"x"]))),
        b"garbage",
    ],
)
def test_damaged_archives_are_corrupt(data):
    """A gap in the history must not look like a shorter history."""
    with pytest.raises(CorruptMetadata, match=r"^a/\.commits"):
        decode_archive_log(data, "a/.commits_.archive.1_1-0-1")


def test_the_newest_file_wins_and_the_result_is_sorted():
    """rules/timeline 5.2: a crash between write and delete archives an instant twice."""
    older = (ArchivedEntry("2", "commit", "COMPLETED", "old"), ArchivedEntry("1", "commit", "INFLIGHT"))
    newer = (ArchivedEntry("2", "commit", "COMPLETED", "new"), ArchivedEntry("1", "commit", "REQUESTED"))
    assert (newer[1], older[1], newer[0]) == latest_entries([newer, older])


def test_archive_files_are_numbered():
    """rules/timeline 5.2: ``.commits_.archive.<N>_1-0-1``; crc files and plans are something else."""
    assert 12 == archive_file_number(".commits_.archive.12_1-0-1")
    assert archive_file_number("..commits_.archive.12_1-0-1.crc") is None
    assert archive_file_number("mergeArchivePlan") is None
