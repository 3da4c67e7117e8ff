"""Listing through the metadata table equals what real Hudi listed, for every fixture that has one."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import write_delta_commit
from hudi_py.model.files import parse_log_file
from hudi_py.model.instant import Action
from hudi_py.storage.wrappers import RecordingStorage
from support.fixtures import expected
from support.metadata_tables import (
    LATER,
    VERSIONS,
    begin,
    end,
    listing,
    on_disk,
    partitions,
    table_of,
    timeline_of,
    with_metadata_table,
)

FILES = ".hoodie/metadata/files"
ADDED = {"r0": {"f-0_1-1-1_20991231235959000.parquet": 77}}


@pytest.mark.parametrize("name", with_metadata_table())
def test_listing_equals_that_of_real_hudi(name):
    """Partitions, names and sizes; where Hudi's metadata table has ghosts, exactly those."""
    answers = expected(name)["expected"]
    storage = table_of(name)
    found, disk = listing(storage), on_disk(name)

    assert sorted(answers["partitions"]) == list(partitions(storage))
    if answers["metadata_listing_agrees"]:
        assert disk == found
        return
    ghosts = {f"{p}/{file}" for p, files in found.items() for file in files if file not in disk.get(p, {})}
    (plan,) = answers["pending_clean_plans"].values()
    planned = {path for paths in plan["files_to_delete"].values() for path in paths}
    assert ghosts
    assert ghosts == planned - set(answers["data_files"])
    assert disk == {
        p: {file: size for file, size in files.items() if f"{p}/{file}" not in ghosts} for p, files in found.items()
    }


def test_fixtures_cover_ghosts_rollbacks_and_compactions():
    """The parameters above hold what they are there for."""
    names = set(with_metadata_table())
    for version in VERSIONS:
        assert {f"{table}-{version}" for table in ("cow_clean_inflight", "cow_rolled_back", "cow_archived")} <= names


@pytest.mark.parametrize("version", VERSIONS)
def test_no_folder_of_the_data_table_is_listed(version):
    """A listing costs the two timelines, one folder, the base file and its logs."""
    storage = RecordingStorage(table_of(f"cow_cleaned-{version}"))
    data_timeline = timeline_of(storage)
    storage.calls.clear()
    with MetadataReader(MetadataTable(storage), data_timeline) as reader:
        list(reader.scan())
    assert all(path.startswith(".hoodie/metadata") for _, path in storage.calls)
    assert len(storage.calls) < 12


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_a_pending_instant_do_not_count(version):
    """The metadata table is completed first; its block shows once the data table's instant is completed."""
    storage = table_of(f"cow_partitioned-{version}")
    before = listing(storage)
    begin(storage, Action.COMMIT, LATER)
    write_delta_commit(MetadataTable(storage), timeline_of(storage), LATER, ListingChanges(added=ADDED))
    assert before == listing(storage)
    end(storage, Action.COMMIT, LATER)
    assert {**before, "r0": before["r0"] | ADDED["r0"]} == listing(storage)


def written(version: str):
    """A table with a completed commit of ours, and the path of its log file in the metadata table."""
    storage = table_of(f"cow_partitioned-{version}")
    known = set(storage.files())
    begin(storage, Action.COMMIT, LATER)
    write_delta_commit(MetadataTable(storage), timeline_of(storage), LATER, ListingChanges(added=ADDED))
    end(storage, Action.COMMIT, LATER)
    (path,) = (path for path in set(storage.files()) - known if path.startswith(FILES))
    return storage, path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_torn_block_of_a_completed_delta_commit_is_corrupt(version):
    """What the listing would lack is not passed over."""
    storage, path = written(version)
    storage.replace(path, storage.read(path)[:-20])
    with pytest.raises(CorruptMetadata, match="damaged"):
        listing(storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_torn_block_of_a_pending_delta_commit_is_passed_over(version):
    """Writers that die leave such blocks; nobody lacks anything."""
    storage = table_of(f"cow_partitioned-{version}")
    expected_listing = listing(storage)
    scratch, path = written(version)
    storage.create_new(path, scratch.read(path)[:-20])
    assert expected_listing == listing(storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_block_hides_the_blocks_before_it(version):
    """As Hudi 0.15.0 takes back a delta commit."""
    storage, path = written(version)
    block = LogBlock(
        BlockType.COMMAND,
        {HeaderKey.INSTANT_TIME: LATER, HeaderKey.TARGET_INSTANT_TIME: LATER, HeaderKey.COMMAND_BLOCK_TYPE: "0"},
        b"",
    )
    storage.replace(path, storage.read(path) + encode_log_block(block))
    assert listing(table_of(f"cow_partitioned-{version}")) == listing(storage)


def test_what_this_release_does_not_read_is_named():
    """Log-compacted blocks and unknown kinds end in a clear error with the way out."""
    storage, path = written("1.1.1")
    whole, folder = storage.read(path), path.rpartition("/")[0]
    logs = [log for entry in storage.list(folder) if (log := parse_log_file(entry.name)) and log.name not in path]
    compacted = {HeaderKey.INSTANT_TIME: LATER, HeaderKey.COMPACTED_BLOCK_TIMES: max(log.instant_time for log in logs)}
    avro = {HeaderKey.INSTANT_TIME: LATER}
    for kind, header in ((BlockType.HFILE_DATA, compacted), (BlockType.AVRO_DATA, avro)):
        storage.replace(path, whole + encode_log_block(LogBlock(kind, header, b"")))
        with pytest.raises(UnsupportedTable, match=r"hoodie\.metadata\.enable=false"):
            listing(storage)


def test_a_table_without_metadata_table_has_none_to_open():
    """The error is that of storage."""
    with pytest.raises(NotFound):
        MetadataTable(table_of("cow_nomdt-1.1.1"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_table_without_files_is_corrupt(version):
    """An empty listing would pass for an empty table."""
    storage = table_of(f"cow_partitioned-{version}")
    storage.delete_folder(FILES)
    with pytest.raises(CorruptMetadata, match="is missing"):
        listing(storage)
