import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import commit_codec
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_codec import Touched, decode_commit, decode_touched, encode_commit
from hudi_py.formats.commit_json import decode_json
from hudi_py.formats.instant_content import decode_content
from hudi_py.model.records import CommitMetadata, RuntimeStats, WriteStat
from support.laws import examples

SYNC = bytes(range(16))
AVRO_ONLY = {"prev_base_file": None, "num_updates": 0, "total_log_read_time_ms": 0}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
longs = st.integers(0, 2**63 - 1)
ints = st.integers(0, 2**31 - 1)


def maps(values):
    return st.dictionaries(texts, values, max_size=3)


def tuples(values):
    return st.lists(values, max_size=3).map(tuple)


base_stats = st.builds(
    WriteStat,
    file_id=texts,
    path=st.none() | texts,
    partition_path=st.none() | texts,
    temp_path=st.none() | texts,
    prev_base_file=st.none() | texts,
    min_event_time=st.none() | longs,
    max_event_time=st.none() | longs,
    num_writes=longs,
    num_updates=longs,
    file_size_in_bytes=longs,
    cdc_stats=st.none() | maps(longs),
    runtime_stats=st.none() | st.builds(RuntimeStats, longs, longs, longs),
)
log_stats = st.builds(
    lambda stat, more: attrs.evolve(stat, **more),
    base_stats,
    st.fixed_dictionaries({"log_version": ints, "log_offset": longs, "base_file": texts, "log_files": tuples(texts)}),
)
commits = st.builds(
    CommitMetadata,
    partition_to_write_stats=maps(tuples(base_stats | log_stats)),
    compacted=st.booleans(),
    extra_metadata=maps(texts),
    operation_type=st.sampled_from(["UPSERT", "COMPACT"]),
    partition_to_replace_file_ids=st.none() | maps(tuples(texts)),
)


def without_avro_only(commit):
    stats = {
        path: tuple(attrs.evolve(stat, **AVRO_ONLY) for stat in of_partition)
        for path, of_partition in commit.partition_to_write_stats.items()
    }
    return attrs.evolve(commit, partition_to_write_stats=stats)


@examples(30)
@given(commits)
def test_avro_round_trips(commit):
    """Decoding is the inverse of encoding."""
    assert commit == decode_commit(encode_commit(commit, as_json=False, sync=SYNC), "x")


@examples(30)
@given(commits)
def test_json_round_trips_but_for_the_fields_it_does_not_have(commit):
    """rules/timeline 4.5: the JSON of version 6 knows less than the Avro of version 8."""
    assert without_avro_only(commit) == decode_commit(encode_commit(commit, as_json=True), "x")


@examples(30)
@given(commits)
def test_the_light_reader_agrees(commit):
    """Partitions and replaced file groups are the same either way."""
    data = encode_commit(commit, as_json=False, sync=SYNC)
    replaced = commit.partition_to_replace_file_ids or {}
    assert Touched(tuple(commit.partition_to_write_stats), replaced) == decode_touched(data, "x")


def test_attributes_stand_in_the_order_of_the_fields_on_disk():
    """The stat is built by position; a shifted attribute would put bytes where rows belong."""
    spelled = [
        name[0].lower() + "".join(f"_{c.lower()}" if c.isupper() else c for c in name[1:])
        for name in commit_codec._SCALARS
    ]
    assert spelled == list(commit_codec._ATTRIBUTES)
    assert ["log_files", "cdc_stats", "runtime_stats"] == [f.name for f in attrs.fields(WriteStat)][len(spelled) :]


def test_an_empty_file_is_a_default_object():
    """rules/timeline 4.1: operation UNKNOWN, no stats."""
    assert CommitMetadata() == decode_commit(b"", "x")
    assert "UNKNOWN" == decode_commit(b"{}", "x").operation_type
    assert Touched((), {}) == decode_touched(b"", "x")


def test_json_fields_stand_in_hudis_order():
    """rules/timeline 4.5: log files carry five more fields; replaced file ids come last."""
    log = WriteStat(file_id="f", log_version=1, log_offset=0, base_file="", log_files=("l",))
    commit = CommitMetadata(
        partition_to_write_stats={"": (WriteStat(file_id="f"), log)},
        operation_type="INSERT_OVERWRITE",
        partition_to_replace_file_ids={"p": ("g",)},
    )
    value = decode_json(encode_commit(commit, as_json=True), "x")
    base, with_log = value["partitionToWriteStats"][""]
    assert ["fileId", "path", "cdcStats", "prevCommit", "numWrites"] == list(base)[:5]
    assert ["logVersion", "logOffset", "baseFile", "logFiles", "recordsStats"] == list(with_log)[len(base) :]
    assert {"val": None} == with_log["recordsStats"]
    assert ["operationType", "partitionToReplaceFileIds"] == list(value)[-2:]


def test_avro_version_and_total_log_files_are_null():
    """rules/timeline 4.4, value conventions: there is no counterpart in Hudi's object."""
    data = encode_commit(CommitMetadata(partition_to_write_stats={"": (WriteStat(),)}), as_json=False, sync=SYNC)
    content = decode_content(data, "x")
    assert content.value["version"] is None
    assert content.value["partitionToWriteStats"][""][0]["totalLogFiles"] is None
    assert "HoodieCommitMetadata" == content.record_name


def test_unknown_json_fields_are_ignored():
    """rules/timeline 4.5."""
    assert CommitMetadata() == decode_commit(b'{"fromTheFuture" : 1}', "x")


@pytest.mark.parametrize(
    "data",
    [
        b'{"partitionToWriteStats" : []}',
        b'{"partitionToWriteStats" : {"p" : 1}}',
        b'{"partitionToWriteStats" : {"p" : [ null ]}}',
        b'{"partitionToWriteStats" : {"p" : [ {"path" : 1} ]}}',
        b'{"partitionToWriteStats" : {"p" : [ {"numWrites" : "1"} ]}}',
        b'{"partitionToWriteStats" : {"p" : [ {"logFiles" : [ 1 ]} ]}}',
        b'{"partitionToWriteStats" : {"p" : [ {"cdcStats" : [ ]} ]}}',
        b'{"partitionToWriteStats" : {"p" : [ {"runtimeStats" : 3} ]}}',
        b'{"extraMetadata" : {"schema" : {}}}',
        b'{"partitionToReplaceFileIds" : {"p" : [ 1 ]}}',
        b'{"operationType" : 3}',
    ],
)
def test_fields_of_a_wrong_type_are_corrupt(data):
    """JSON has no schema, so the types are checked by hand."""
    with pytest.raises(CorruptMetadata, match=r"^T\.commit: not commit metadata"):
        decode_commit(data, "T.commit")


def test_another_record_is_corrupt():
    """A file of another record does not pass for the wanted one."""
    plan = {"policy": "P"}
    data = encode_avro_file(schema_text("HoodieCleanerPlan"), plan, SYNC)
    for decode in (decode_commit, decode_touched):
        with pytest.raises(CorruptMetadata, match="HoodieCleanerPlan"):
            decode(data, "x")
