"""Log files are found in the bytes of commits as decoding finds them; what cannot be told is left to the decoder."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.commit_codec import decode_commit, encode_commit
from hudi_py.fsview.named import may_name
from hudi_py.fsview.named_logs import group_of_file, named_files, sizes_of_groups
from hudi_py.model.files import parse_data_file
from hudi_py.model.records import CommitMetadata, WriteStat
from support.fixtures import fixture_names, metadata_files
from support.tables import SYNC, TableBuilder, at, done


def paths_of(data: bytes, time: str) -> list[str] | None:
    files = named_files(data, time)
    if files is None:
        return None
    return sorted([f"{path.decode()}_{time}.parquet" for path in files.bases] + [path.decode() for path in files.logs])


def test_names_and_sizes_in_commits_of_hudi_are_those_that_decoding_gives():
    """Of the merge-on-read tables of all releases; the decoder is needed for none of them."""
    logs = 0
    for fixture in [each for each in fixture_names() if each.startswith(("mor_logs", "mor_compacted-"))]:
        for path, data in metadata_files(fixture).items():
            name = path.rpartition("/")[2]
            if not data or "metadata/" in path or not name.endswith((".commit", ".deltacommit")):
                continue
            stats = [each for some in decode_commit(data, path).partition_to_write_stats.values() for each in some]
            assert paths_of(data, name[:17]) == sorted(each.path for each in stats), path
            groups = {group_of_file(each.path.encode()) for each in stats}
            sizes = sizes_of_groups(data, name[:17], groups)
            assert sizes == {each.path.encode(): each.file_size_in_bytes for each in stats}, path
            logs += sum(".log." in each.path for each in stats)
    assert logs > 20


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "path",
    [
        f"eu/.a_{at(1)}.log.1_0-1-0.cdc",
        f"eu/.a_{at(1)}.archive.1_0-1-0",
        f"eu/a_0-1-0_{at(1)}.orc",
        f"e\\u/.a_{at(1)}.log.1_0-1-0",
        None,
    ],
)
def test_what_is_not_plain_is_decoded(path, as_json):
    """Among plain stats too: none of them is passed over in silence."""
    plain = WriteStat(path=f"eu/.b_{at(1)}.log.1_0-1-0", file_id="b", partition_path="eu", prev_commit=at(1))
    odd = WriteStat(path=path, file_id="a", partition_path="eu", prev_commit=at(1))
    for stats in ((odd,), (plain, odd), (odd, plain)):
        data = encode_commit(CommitMetadata(partition_to_write_stats={"eu": stats}), as_json=as_json, sync=SYNC)
        assert paths_of(data, at(1)) in (None, sorted(each.path for each in stats if each.path))


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("name", [f"a_0-1-0_{at(1)}.parquet", f".a_{at(1)}.log.1_0-1-0"])
def test_a_path_that_is_not_utf_8_is_left_to_the_decoder(name, as_json):
    """It raises an error of ours, which says that the commit is damaged."""
    path = f"eu/{name}"
    stat = WriteStat(file_id="a", path=path, prev_commit="null", partition_path="eu", file_size_in_bytes=5)
    data = encode_commit(CommitMetadata(partition_to_write_stats={"eu": (stat,)}), as_json=as_json, sync=SYNC)
    assert paths_of(data, at(1)) == [path]
    for torn in (data.replace(b"eu/", b"e\xe1/"), data.replace(b"-1-0", b"-\xe1-0")):
        assert named_files(torn, at(1)) is None
        assert sizes_of_groups(torn, at(1), {group_of_file(path.encode()), b"e\xe1/a"}) is None
        with pytest.raises(CorruptMetadata):
            decode_commit(torn, "x")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_log_file_without_folder_is_found_or_left_to_the_decoder(as_json):
    """As those of a table without partitions; beside others with a folder too."""
    root = WriteStat(path=f".a_{at(1)}.log.1_0-1-0", file_id="a", partition_path="", prev_commit=at(1))
    data = encode_commit(CommitMetadata(partition_to_write_stats={"": (root,)}), as_json=as_json, sync=SYNC)
    assert paths_of(data, at(1)) == ([root.path] if as_json else None)


def compacted_beside_a_delta(layout: int) -> tuple[TableBuilder, str]:
    """A delta commit that was requested before a compaction and completed after it; and the path of its log file."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "b"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(3) if layout == 1 else at(2))])
    (path,) = [each for each in builder.storage.files() if ".log." in each]
    if layout == 2:  # it completes after the compaction began
        (named,) = [each for each in builder.storage.files() if f"{at(2)}_" in each and each.endswith(".deltacommit")]
        data = builder.storage.read(named)
        builder.storage.delete(named)
        builder.put(named.replace(done(at(2)), done(at(4))), data)
    builder.commit(at(3), {"eu": ["a", "b"]})
    return builder, path


@pytest.mark.parametrize("layout", [1, 2])
def test_the_log_file_of_an_older_commit_on_a_newer_slice_is_missed(layout):
    """The slice began while the commit ran (rule Z-4), so that commits newer than the log file name its base file."""
    builder, path = compacted_beside_a_delta(layout)
    found = {each.file_id: each.log_files for each in builder.table().snapshot().sized_slices()}
    assert [each.size_bytes for each in found["a"]] == [len(builder.storage.read(path))]
    builder.storage.delete(path)
    with pytest.raises(CorruptMetadata, match=path.rpartition("/")[2]):
        builder.table().snapshot().sized_slices()


def test_a_plan_misses_the_log_file_of_an_older_commit_on_a_newer_slice():
    """Where completion times tell that there may be one."""
    builder, path = compacted_beside_a_delta(2)
    assert builder.table().plan_clean(commits_retained=1)
    builder.storage.delete(path)
    with pytest.raises(CorruptMetadata, match=path.rpartition("/")[2]):
        builder.table().plan_clean(commits_retained=1)


def test_log_files_with_and_without_folder_are_left_to_the_decoder():
    """In Avro nothing but their number tells that some have no folder; each stat names its file twice."""
    stats = {}
    for partition, folder, file_id in (("eu", "eu/", "a"), ("", "", "b")):
        name = f".{file_id}_{at(1)}.log.1_0-1-0"
        path = f"{folder}{name}"
        stat = WriteStat(path=path, file_id=file_id, partition_path=partition, prev_commit=at(1), log_files=(name,))
        stats[partition] = (stat,)
    data = encode_commit(CommitMetadata(partition_to_write_stats=stats), as_json=False, sync=SYNC)
    assert paths_of(data, at(1)) is None


MANY = [f"209901010000000{number:02}" for number in range(20)]


def test_a_commit_that_may_name_a_file_of_a_time_is_told_without_decoding():
    """Of all releases and kinds of files: each time in a name that decoding finds, and no time that nothing has."""
    seen = 0
    for fixture in [each for each in fixture_names() if each.startswith(("mor_logs", "mor_cdc-", "cow-"))]:
        for path, data in metadata_files(fixture).items():
            if not data or "metadata/" in path or not path.endswith((".commit", ".deltacommit", ".replacecommit")):
                continue
            for stats in decode_commit(data, path).partition_to_write_stats.values():
                for file in filter(None, (parse_data_file(each.path.rpartition("/")[2]) for each in stats)):
                    assert may_name(data, {"20990101000000000", file.instant_time}), path
                    assert may_name(data, {*MANY, file.instant_time}), path
                    seen += 1
            assert not may_name(data, {"20990101000000000"}), path
            assert may_name(data[:-1], {"20990101000000000"}), path  # cut off: only decoding it says what is wrong
    assert seen > 30
