"""Every timeline file that three releases of Hudi wrote: decoded as Hudi decodes it, written again byte for byte."""

import attrs
import pytest

from hudi_py.formats import records_codec as codec
from hudi_py.formats.archive_log import archive_file_number, decode_archive_log, latest_entries
from hudi_py.formats.instant_content import decode_content, encode_content
from hudi_py.formats.instant_encoder import encode_record
from hudi_py.formats.lsm_history import (
    decode_manifest,
    decode_version,
    encode_manifest,
    encode_version,
    manifest_number,
    read_history,
)
from hudi_py.formats.properties import checksum, format_properties, parse_properties
from hudi_py.versions.served import FORMATS
from support.fixtures import expected, fixture_names, metadata_files

TABLE_VERSION = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
ARCHIVES = tuple(name for name in fixture_names() if name.startswith("cow_archived"))
DECODERS = {
    "HoodieCleanerPlan": codec.decode_cleaner_plan,
    "HoodieCleanMetadata": codec.decode_clean_metadata,
    "HoodieCompactionPlan": codec.decode_compaction_plan,
    "HoodieRequestedReplaceMetadata": codec.decode_requested_replace,
    "HoodieRollbackPlan": codec.decode_rollback_plan,
    "HoodieRollbackMetadata": codec.decode_rollback_metadata,
    "HoodieSavepointMetadata": codec.decode_savepoint,
}

every_fixture = pytest.mark.parametrize("name", fixture_names())


def timeline_folders(name):
    """Timeline folders of the data table and of its metadata table."""
    timeline = "" if name.endswith("0.15.0") else "timeline/"
    return f".hoodie/{timeline}", f".hoodie/metadata/.hoodie/{timeline}"


def instant_files(name):
    """Path → bytes of all instant files of both timelines; their names alone begin with a digit."""
    return {
        path: data
        for folder in timeline_folders(name)
        for path, data in metadata_files(name).items()
        if path.startswith(folder) and path[len(folder)].isdigit()
    }


def with_placeholder(value, base):
    """*value* with the table's former base path written as in the expected answers: ``{table}``."""
    if isinstance(value, dict):
        return {key: with_placeholder(item, base) for key, item in value.items()}
    if isinstance(value, list):
        return [with_placeholder(item, base) for item in value]
    return value.replace(f"file:{base}", "{table}").replace(base, "{table}") if isinstance(value, str) else value


def test_all_99_fixtures_are_here():
    """29 tables, three releases."""
    assert 99 == len(fixture_names())


@every_fixture
def test_contents_equal_what_hudi_decodes(name):
    """rules/timeline 4.1, 4.3: kind, record and every field, for each file on the data table's timeline."""
    answers = expected(name)
    folder = timeline_folders(name)[0]
    files = {path[len(folder) :]: data for path, data in instant_files(name).items() if "/metadata/" not in path}

    found = {}
    for file_name, data in files.items():
        content = decode_content(data, file_name)
        found[file_name] = {"kind": content.kind}
        if content.kind != "empty":
            found[file_name]["content"] = with_placeholder(content.value, answers["inputs"]["base"])
        if content.kind == "avro":
            found[file_name]["schema"] = f"org.apache.hudi.avro.model.{content.record_name}"

    assert answers["expected"]["timeline"]["files"] == found


@every_fixture
def test_contents_come_out_byte_for_byte(name):
    """rules/timeline 4.2, 4.5: data table and metadata table."""
    for path, data in instant_files(name).items():
        assert data == encode_content(decode_content(data, path)), path


@every_fixture
def test_typed_records_come_out_byte_for_byte(name):
    """rules/timeline 4.4: nothing that Hudi wrote is lost in the frozen values, and the null conventions are Hudi's."""
    version = TABLE_VERSION[name.rpartition("-")[2]]
    for path, data in instant_files(name).items():
        content = decode_content(data, path)
        if content.kind == "empty":
            continue
        decode = DECODERS.get(content.record_name, codec.decode_commit)
        form = attrs.evolve(FORMATS[version], commits_are_json=content.kind == "json" or version == 6)
        again = encode_record(decode(data, path), table_format=form, sync=content.sync or b"")
        assert data == again, path


@every_fixture
def test_light_commit_reading_agrees_with_the_full_one(name):
    """What the cleaner reads of a commit is what the commit says."""
    for path, data in instant_files(name).items():
        if decode_content(data, path).record_name in {None, "HoodieCommitMetadata", "HoodieReplaceCommitMetadata"}:
            commit, touched = codec.decode_commit(data, path), codec.decode_touched(data, path)
            assert tuple(commit.partition_to_write_stats) == touched.partition_paths
            assert (commit.partition_to_replace_file_ids or {}) == touched.replaced_file_ids


@every_fixture
def test_properties_come_out_byte_for_byte_and_their_checksum_is_right(name):
    """rules/timeline 1.1, 1.2: ``hoodie.properties`` of the data table and of the metadata table."""
    for path, data in metadata_files(name).items():
        if path.endswith("/hoodie.properties"):
            entries = parse_properties(data, path)
            comments = [line[1:].decode() for line in data.splitlines() if line.startswith(b"#")]
            assert 2 == len(comments)
            assert data == format_properties(entries, comments)
            assert entries["hoodie.table.checksum"] == checksum(
                entries.get("hoodie.database.name"), entries["hoodie.table.name"]
            )


@every_fixture
def test_properties_equal_what_hudi_reads(name):
    """rules/timeline 1.1: the table configuration as Hudi loads it."""
    entries = parse_properties(metadata_files(name)[".hoodie/hoodie.properties"], "hoodie.properties")
    assert expected(name)["expected"]["table_config"] == entries


@pytest.mark.parametrize("name", [name for name in ARCHIVES if name.endswith("0.15.0")])
def test_archive_logs_hold_the_history_that_hudi_lists(name):
    """rules/timeline 5.2: newest file first, duplicates dropped, sorted by requested time, action, state."""
    folder = ".hoodie/archived/"
    files = {path[len(folder) :]: data for path, data in metadata_files(name).items() if path.startswith(folder)}
    newest_first = sorted(files, key=archive_file_number, reverse=True)

    history = latest_entries(decode_archive_log(files[file_name], file_name) for file_name in newest_first)

    assert expected(name)["expected"]["timeline"]["archived"] == [
        {
            "action": entry.action,
            "completion_time": None,
            "requested_time": entry.requested_time,
            "state": entry.state,
        }
        for entry in history
    ]
    assert {"HoodieCommitMetadata", "HoodieCleanerPlan", "HoodieCleanMetadata"} == {e.record_name for e in history}
    assert all(entry.payload for entry in history)


@pytest.mark.parametrize("name", [name for name in ARCHIVES if not name.endswith("0.15.0")])
def test_lsm_files_hold_the_history_that_hudi_lists(name):
    """rules/timeline 5.3: version file, manifest, rows of its files; each row carries the bytes of its instant."""
    folder = ".hoodie/timeline/history/"
    files = {path[len(folder) :]: data for path, data in metadata_files(name).items() if path.startswith(folder)}
    newest = decode_version(files["_version_"], "_version_")
    assert newest == max(filter(None, map(manifest_number, files)))
    assert files["_version_"] == encode_version(newest)
    manifest = decode_manifest(files[f"manifest_{newest}"], "manifest")
    assert files[f"manifest_{newest}"] == encode_manifest(manifest)

    rows = []
    for file in manifest:
        assert len(files[file.name]) == file.size_bytes
        found = read_history(files[file.name], file.name, with_contents=True)
        assert file.time_range == (found[0].requested_time, found[-1].requested_time)
        assert 0 == file.level
        rows += found

    assert expected(name)["expected"]["timeline"]["archived"] == [
        {
            "action": row.action,
            "completion_time": row.completion_time,
            "requested_time": row.requested_time,
            "state": "COMPLETED",
        }
        for row in rows
    ]
    for row in rows:
        decode = codec.decode_clean_metadata if row.action == "clean" else codec.decode_commit
        assert decode(row.metadata, row.requested_time)
        assert (row.plan is not None) == (row.action == "clean")
