"""Records: encoding, merging in two steps, and what actions turn into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.mdt.changes import ListingChanges, changes_of_clean, changes_of_commit, changes_of_rollback, records_of
from hudi_py.mdt.records import (
    ALL_PARTITIONS,
    RECORD,
    FileInfo,
    decode_files,
    encode_files,
    merge_files,
    payload_schema,
    present,
)
from hudi_py.model.records import (
    CleanMetadata,
    CleanPartitionMetadata,
    CommitMetadata,
    RollbackMetadata,
    RollbackPartitionMetadata,
    WriteStat,
)
from support.fixtures import metadata_files
from support.laws import examples

GONE = FileInfo(0, True)
names = st.sampled_from(["a", "b", "c", "d"])
infos = st.one_of(st.just(GONE), st.integers(1, 2**40).map(lambda size: FileInfo(size, False)))
files = st.dictionaries(names, infos)


@examples(60)
@given(st.text(max_size=5), files, st.sampled_from([6, 8, 9]))
def test_a_record_is_read_as_written(key, value, version):
    """In the schema of each table version."""
    assert value == decode_files(encode_files(key, value, version), schema_text(RECORD, version), "s")


@examples(100)
@given(st.lists(st.tuples(names, st.booleans()), max_size=12), st.integers(0, 12))
def test_a_history_without_double_deletions_merges_to_its_outcome(steps, split):
    """Where a name is added once and deleted at most once, two-step merging gives what is there in the end."""
    state: dict[str, str] = {}
    history = []
    for name, is_deletion in steps:
        wanted = ("added", "deleted") if is_deletion else (None, "added")
        if state.get(name) == wanted[0]:
            state[name] = wanted[1]
            history.append({name: GONE if is_deletion else FileInfo(5, False)})

    def merged(records):
        result = {}
        for record in records:
            result = merge_files(result, record)
        return result

    base, logs = present(merged(history[:split])), merged(history[split:])
    on_base = {name: FileInfo(size, False) for name, size in base.items()}
    assert {name for name, last in state.items() if last == "added"} == set(present(merge_files(on_base, logs)))


def test_a_second_deletion_changes_nothing_and_one_behind_an_addition_cancels_both():
    """Hudi's merge (`tests/interop/test_undo.py`): so a file that was deleted and is back needs both, one by one."""
    twice = merge_files({"a": GONE}, {"a": GONE})
    assert {"a": GONE} == twice
    assert {} == present(merge_files({"a": FileInfo(7, False)}, twice))
    back = merge_files(merge_files({"a": GONE}, {"a": FileInfo(7, False)}), {"a": GONE})
    assert {"a": 7} == present(merge_files({"a": FileInfo(7, False)}, back))
    assert {} == present(merge_files({"a": FileInfo(7, False)}, merge_files(back, {"a": GONE})))


def test_the_larger_size_counts():
    """Files only grow."""
    for sizes in ((3, 9), (9, 3)):
        old, new = ({"a": FileInfo(size, False)} for size in sizes)
        assert {"a": 9} == present(merge_files(old, new))


def test_bytes_that_are_no_record_are_corrupt():
    """Truncated, of another schema, or of a type of another partition."""
    schema = schema_text(RECORD, 9)
    value = encode_files("r0", {"a": GONE}, 9)
    for damaged in (value[:-2], b"", b"\xff" * 40):
        with pytest.raises(CorruptMetadata):
            decode_files(damaged, schema, "s")
    column_stats = value.replace(b"\x00\x04", b"\x00\x06", 1)
    assert column_stats != value
    with pytest.raises(CorruptMetadata, match="type 3"):
        decode_files(column_stats, schema, "s")
    with pytest.raises(CorruptMetadata):
        decode_files(value, '"int"', "s")


@pytest.mark.parametrize(
    ("version", "name"), [(6, "cow_cleaned-0.15.0"), (8, "cow_cleaned-1.0.2"), (9, "cow_cleaned-1.1.1")]
)
def test_the_schema_in_commit_metadata_is_hudis(version, name):
    """Letter by letter."""
    texts = {
        decode_commit(data, path).extra_metadata["schema"]
        for path, data in metadata_files(name).items()
        if path.endswith(".deltacommit") and "/metadata/" in path
    }
    assert {payload_schema(version)} == texts


def test_a_commit_lists_files_and_partitions():
    """Names without folder, change logs included, the larger of two sizes; ``.`` for a table without partitions."""
    stats = (
        WriteStat(path="p/a.parquet", file_size_in_bytes=5, cdc_stats={"p/.a.log.1_0-1-0.cdc": 3}),
        WriteStat(path="p/a.parquet", file_size_in_bytes=4),
    )
    metadata = CommitMetadata(
        partition_to_write_stats={"p": stats, "": (WriteStat(path="b", file_size_in_bytes=1),), "e": ()}
    )
    records = records_of(changes_of_commit(metadata))
    assert {
        ".": {"b": FileInfo(1, False)},
        ALL_PARTITIONS: {".": FileInfo(0, False), "e": FileInfo(0, False), "p": FileInfo(0, False)},
        "p": {".a.log.1_0-1-0.cdc": FileInfo(3, False), "a.parquet": FileInfo(5, False)},
    } == records
    assert sorted(records, key=str.encode) == list(records)


def test_a_written_file_without_size_is_refused():
    """Hudi would fail on reading it."""
    metadata = CommitMetadata(partition_to_write_stats={"p": (WriteStat(path="p/a.parquet"),)})
    with pytest.raises(CorruptMetadata, match="no size"):
        changes_of_commit(metadata)


def test_a_clean_lists_what_it_tried():
    """Failed deletions too, and the partitions it removed."""
    done = CleanPartitionMetadata(
        partition_path="p", policy="x", delete_path_patterns=("a", "b"), success_delete_files=("a",),
        failed_delete_files=("b",), is_partition_deleted=True,
    )  # fmt: skip
    metadata = CleanMetadata(start_clean_time="1", time_taken_ms=1, total_files_deleted=1, partitions={"p": done})
    assert {ALL_PARTITIONS: {"p": GONE}, "p": {"a": GONE, "b": GONE}} == records_of(changes_of_clean(metadata))


def test_a_rollback_lists_deletions_and_new_log_files():
    """Layout 1 neutralises log files by new ones; the larger size counts."""
    done = RollbackPartitionMetadata(
        partition_path="p", success_delete_files=("/t/p/a",), failed_delete_files=("/t/p/b",),
        rollback_log_files={"/t/p/l": 3}, log_files_from_failed_commit={"/t/p/l": 9, "/t/p/m": 2},
    )  # fmt: skip
    metadata = RollbackMetadata(
        start_rollback_time="1", time_taken_ms=1, total_files_deleted=1, commits_rollback=("1",),
        partitions={"p": done}, instants_rollback=(),
    )  # fmt: skip
    wanted = {"a": GONE, "b": GONE, "l": FileInfo(9, False), "m": FileInfo(2, False)}
    assert {"p": wanted} == records_of(changes_of_rollback(metadata))


def test_changes_that_contradict_themselves_are_refused():
    """A file cannot come and go at once."""
    with pytest.raises(CorruptMetadata):
        records_of(ListingChanges(added={"p": {"a": 1}}, deleted={"p": ["a"]}))


def test_no_change_is_no_record():
    """Empty partitions leave no trace."""
    assert {} == records_of(ListingChanges(added={"p": {}}, deleted={"q": []}))
