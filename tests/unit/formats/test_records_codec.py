import contextlib

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import records_codec as codec
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.instant_content import decode_content, encode_content
from hudi_py.model import records
from support.laws import examples

SYNC = bytes(range(16))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def maps(values):
    return st.dictionaries(texts, values, max_size=3)


def tuples(values):
    return st.lists(values, max_size=3).map(tuple)


plans = st.builds(
    records.CleanerPlan,
    policy=texts,
    earliest_instant_to_retain=st.none() | st.builds(records.ActionInstant, texts, texts, texts),
    last_completed_commit_timestamp=texts,
    files_to_delete=maps(tuples(st.builds(records.CleanFileInfo, texts, st.booleans()))),
    partitions_to_delete=tuples(texts),
    extra_metadata=maps(texts),
)
results = st.builds(
    records.CleanPartitionMetadata,
    partition_path=texts,
    policy=texts,
    delete_path_patterns=tuples(texts),
    success_delete_files=tuples(texts),
    failed_delete_files=tuples(texts),
    is_partition_deleted=st.none() | st.booleans(),
)
cleans = st.builds(
    records.CleanMetadata,
    start_clean_time=texts,
    time_taken_ms=st.integers(0, 2**40),
    total_files_deleted=st.integers(0, 2**31 - 1),
    earliest_commit_to_retain=texts,
    last_completed_commit_timestamp=texts,
    partitions=maps(results),
    bootstrap_partitions=maps(results),
    extra_metadata=maps(texts),
)


def file_of(record, value):
    return encode_avro_file(schema_text(record), value, SYNC)


@examples(30)
@given(plans)
def test_clean_plans_round_trip(plan):
    """Decoding is the inverse of encoding."""
    assert plan == codec.decode_cleaner_plan(codec.encode_cleaner_plan(plan, SYNC), "x")


@examples(30)
@given(cleans)
def test_clean_metadata_round_trips(metadata):
    """Decoding is the inverse of encoding."""
    assert metadata == codec.decode_clean_metadata(codec.encode_clean_metadata(metadata, SYNC), "x")


def test_new_plans_keep_the_value_conventions():
    """rules/timeline 4.4: version 2, the old map empty and not null, empty collections not null."""
    plan = records.CleanerPlan(
        policy="KEEP_LATEST_FILE_VERSIONS", files_to_delete={"p": (records.CleanFileInfo("/t/p/f"),)}
    )
    assert {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": "",
        "policy": "KEEP_LATEST_FILE_VERSIONS",
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {"p": [{"filePath": "/t/p/f", "isBootstrapBaseFile": False}]},
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    } == decode_content(codec.encode_cleaner_plan(plan, SYNC), "x").value


def test_new_clean_metadata_keeps_the_value_conventions():
    """rules/timeline 4.4: version 2, earliestCommitToRetain never null, bootstrapPartitionMetadata empty, not null."""
    metadata = records.CleanMetadata(start_clean_time="T", time_taken_ms=1, total_files_deleted=0)
    value = decode_content(codec.encode_clean_metadata(metadata, SYNC), "x").value
    assert ("", 2, {}, {}) == (
        value["earliestCommitToRetain"],
        value["version"],
        value["bootstrapPartitionMetadata"],
        value["extraMetadata"],
    )


def test_plans_of_version_1_keep_their_names():
    """rules/timeline 4.3: file names per partition; both null and 1 mean version 1."""
    for version in (1, None):
        value = {"policy": "P", "filesToBeDeletedPerPartition": {"p": ["f.parquet"]}, "version": version}
        plan = codec.decode_cleaner_plan(file_of("HoodieCleanerPlan", value), "x")
        assert (1, {"p": (records.CleanFileInfo("f.parquet"),)}) == (plan.version, plan.files_to_delete)
        assert plan == codec.decode_cleaner_plan(codec.encode_cleaner_plan(plan, SYNC), "x")


def test_the_name_of_a_planned_file_has_no_folder():
    """Full path or bare name, the name is the same."""
    assert "f" == records.CleanFileInfo("s3://b/t/p/f").name == records.CleanFileInfo("f").name


def test_clean_metadata_of_version_1_turns_paths_into_names():
    """rules/timeline 4.3."""
    result = {
        "partitionPath": "p",
        "policy": "P",
        "deletePathPatterns": ["/t/p/a"],
        "successDeleteFiles": ["file:/t/p/a"],
        "failedDeleteFiles": ["b"],
    }
    value = {
        "startCleanTime": "T",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "earliestCommitToRetain": "",
        "partitionMetadata": {"p": result},
        "version": 1,
    }
    metadata = codec.decode_clean_metadata(file_of("HoodieCleanMetadata", value), "x")
    upgraded = metadata.partitions["p"]
    assert 2 == metadata.version
    assert (("a",), ("a",), ("b",)) == (
        upgraded.delete_path_patterns,
        upgraded.success_delete_files,
        upgraded.failed_delete_files,
    )


def test_compaction_plans_of_version_1_turn_paths_into_names():
    """rules/timeline 4.3."""
    operation = {"baseInstantTime": "T", "fileId": "f", "dataFilePath": "/t/p/b", "deltaFilePaths": ["/t/p/l"]}
    plan = codec.decode_compaction_plan(file_of("HoodieCompactionPlan", {"operations": [operation], "version": 1}), "x")
    assert (2, "b", ("l",)) == (plan.version, plan.operations[0].data_file_path, plan.operations[0].delta_file_paths)


@pytest.mark.parametrize(
    ("record", "decode", "value"),
    [
        ("HoodieCleanerPlan", codec.decode_cleaner_plan, {"policy": "P", "version": 3}),
        ("HoodieCompactionPlan", codec.decode_compaction_plan, {"version": 0}),
    ],
)
def test_unknown_versions_are_refused(record, decode, value):
    """On doubt, delete nothing."""
    with pytest.raises(CorruptMetadata, match="version"):
        decode(file_of(record, value), "x")


def test_a_planned_file_without_a_path_is_refused():
    """The schema allows null, a clean cannot."""
    value = {"policy": "P", "version": 2, "filePathsToBeDeletedPerPartition": {"p": [{"filePath": None}]}}
    with pytest.raises(CorruptMetadata, match="without a path"):
        codec.decode_cleaner_plan(file_of("HoodieCleanerPlan", value), "x")


def test_restores_round_trip():
    """rules/timeline 4.4: no fixture has a restore; the schema text is checked by its fingerprint."""
    info = records.InstantInfo("20260101000000000", "commit")
    plan = records.RestorePlan(instants_to_rollback=(info,), savepoint_to_restore_timestamp="20260101000000000")
    assert plan == codec.decode_restore_plan(codec.encode_restore_plan(plan, SYNC), "x")
    rollback = records.RollbackMetadata(
        start_rollback_time="R",
        time_taken_ms=1,
        total_files_deleted=0,
        commits_rollback=("T",),
        partitions={"p": records.RollbackPartitionMetadata(partition_path="p")},
        instants_rollback=(info,),
    )
    metadata = records.RestoreMetadata(
        start_restore_time="R",
        time_taken_ms=1,
        instants_to_rollback=("T",),
        rollbacks={"T": (rollback,)},
        restore_instant_info=(info,),
    )
    assert metadata == codec.decode_restore_metadata(codec.encode_restore_metadata(metadata, SYNC), "x")


@pytest.mark.parametrize("name", ["", "before the import", "vor der Übernahme", "s"])
@pytest.mark.parametrize("expires_at_ms", [None, 0, 253_402_300_799_999])
def test_savepoints_round_trip_with_what_hudi_does_not_know(name, expires_at_ms):
    """C-5: the record is Hudi's; name and end of life ride in the header, and a re-encoded file keeps both."""
    savepoint = records.SavepointMetadata(
        savepointed_by="ann",
        savepointed_at_ms=1,
        comments="why",
        files={"p": ("a", "b")},
        name=name,
        expires_at_ms=expires_at_ms,
    )
    data = codec.encode_savepoint(savepoint, SYNC)
    assert savepoint == codec.decode_savepoint(data, "x")
    assert data == encode_content(decode_content(data, "x"))
    assert set(decode_content(data, "x").value) == {
        "savepointedBy",
        "savepointedAt",
        "comments",
        "partitionMetadata",
        "version",
    }


@pytest.mark.parametrize(
    ("name", "missing"), [("HoodieCompactionPlan", True), ("HoodieRequestedReplaceMetadata", True)]
)
def test_version_6_is_written_without_the_fields_of_later_releases(name, missing):
    """rules/timeline 4.2: two generations of the schema."""
    assert missing == ("missingSchedulePartitions" not in schema_text(name, 6))
    plan = records.CompactionPlan(missing_schedule_partitions=("p",))
    again = codec.decode_compaction_plan(codec.encode_compaction_plan(plan, SYNC, table_version=6), "x")
    assert attrs.evolve(plan, missing_schedule_partitions=None) == again


def test_insert_overwrite_is_requested_with_nulls():
    """rules/timeline 4.1: all four fields null."""
    data = codec.encode_requested_replace(records.RequestedReplaceMetadata(), SYNC)
    assert {None} == set(decode_content(data, "x").value.values())


def test_clustering_plans_name_the_file_groups_they_replace():
    """Each file group counts once."""
    file_slice = records.ClusteringSlice(file_id="f", partition_path="p")
    plan = records.ClusteringPlan(input_groups=(records.ClusteringGroup(slices=(file_slice, file_slice)),))
    assert {("p", "f")} == plan.file_groups


DECODERS = [getattr(codec, name) for name in codec.__all__ if name.startswith("decode_")]
PICKY = [each for each in DECODERS if each.__name__ not in {"decode_commit", "decode_touched"}]


@pytest.mark.parametrize("decode", PICKY)
@pytest.mark.parametrize("data", [b"", b"{}", b"Obj", b"\x00\x01"])
def test_empty_and_foreign_files_are_corrupt(decode, data):
    """rules/timeline 4.1: an empty file is an error for plans and results."""
    with pytest.raises(CorruptMetadata, match=r"^T\.x: "):
        decode(data, "T.x")


@pytest.mark.parametrize("decode", PICKY)
def test_another_record_is_corrupt(decode):
    """A file of another record does not pass for the wanted one."""
    with pytest.raises(CorruptMetadata):
        decode(file_of("HoodieIndexPlan", {}), "x")


@examples(30)
@given(st.sampled_from(DECODERS), st.data())
def test_damaged_plans_never_raise_anything_else(decode, data):
    """Whatever the file was meant to be."""
    damaged = bytearray(codec.encode_cleaner_plan(data.draw(plans), SYNC))
    damaged[data.draw(st.integers(1700, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptMetadata):
        decode(bytes(damaged), "x")
