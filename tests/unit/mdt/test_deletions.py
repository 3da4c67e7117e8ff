"""Records that a delete block takes out of the metadata table."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.delete_block import DeletedKey, decode_delete_block
from hudi_py.formats.hfile_writer import encode_hfile
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock
from hudi_py.mdt.blocks import merge_blocks
from hudi_py.mdt.read import Part
from hudi_py.mdt.records import RECORD, FileInfo, encode_files, sorted_entries
from hudi_py.mdt.table import MetadataTable
from hudi_py.storage.local import LocalStorage
from support import fixtures

NOTHING = b"\0\0\0\3\0\0\0\1\0"
ASIA = b"\0\0\0\3\0\0\0\x11\2\2\x08asia\2\nfiles\4\0\0"
"""As Hudi 1.1.1 wrote it when a clean removed the partition `asia`."""


@pytest.mark.parametrize(("content", "keys"), [(NOTHING, ()), (ASIA, (DeletedKey("asia", "files"),))])
def test_keys_are_told(content, keys):
    """What Hudi writes at the beginning of a log, and what it writes for a dropped partition."""
    assert decode_delete_block(content, "x") == keys


@pytest.mark.parametrize("end", range(len(ASIA)))
def test_a_torn_block_is_an_error_that_names_the_file(end):
    """Whatever is missing of it."""
    with pytest.raises(CorruptMetadata, match="x: a delete block"):
        decode_delete_block(ASIA[:end], "x")


class Stored:
    """A base file that knows three partitions."""

    def __init__(self):
        self.files = {key: {"old": FileInfo(1, False)} for key in ("africa", "asia", "eu")}

    def values(self):
        return sorted((key, key.encode()) for key in self.files)

    def get(self, key):
        return self.files.get(key)

    def decode(self, value):
        return self.files[value.decode()]

    def decode_present(self, value):
        return {name: info.size_bytes for name, info in self.decode(value).items()}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return MetadataTable(LocalStorage(str(fixtures.unpack("cow_partitioned-1.1.1", tmp_path_factory.mktemp("t")))))


def put(table, **files):
    """A block that adds a file to each of these partitions."""
    version = table.table_version
    values = {key: encode_files(key, {name: FileInfo(2, False)}, version) for key, name in files.items()}
    schema = schema_text(RECORD, version)
    content = encode_hfile(sorted_entries(values), info={"schema": schema.encode()})
    return LogBlock(BlockType.HFILE_DATA, {int(HeaderKey.SCHEMA): schema}, content)


def merged(table, *blocks):
    (file_slice,) = table.slices(table.store.load())
    log = next(iter(file_slice.logs))
    return Part(Stored(), merge_blocks(table, file_slice, [(log, block) for block in blocks]))


def test_what_was_said_before_a_deletion_does_not_count(table):
    """Neither in the logs nor in the base file, by key, by scan, and as listed; other records stay."""
    part = merged(table, put(table, asia="new", eu="new"), LogBlock(BlockType.DELETE, {}, ASIA))
    assert part.get("asia") == {}
    assert [key for key, _ in part.scan()] == [key for key, _ in part.listed()] == ["africa", "eu"]
    assert set(part.get("eu")) == {"old", "new"}


def test_what_is_said_after_a_deletion_stands_alone(table):
    """The partition has come back: its old files have not."""
    part = merged(table, LogBlock(BlockType.DELETE, {}, ASIA), put(table, asia="new"), put(table, asia="newer"))
    assert dict(part.listed())["asia"] == {"new": 2, "newer": 2}
    assert set(dict(part.scan())["asia"]) == {"new", "newer"}


def test_a_deletion_of_another_partition_is_damage(table):
    """Of the metadata table, that is: a block of the file group of statistics has no business here."""
    with pytest.raises(CorruptMetadata, match="asia"):
        merged(table, LogBlock(BlockType.DELETE, {}, ASIA.replace(b"files", b"stats")))
