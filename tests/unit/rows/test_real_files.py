"""
Against base files, footers, schemas and partition files written by real Hudi, all three versions.

``HUDI_PY_FIXTURES`` points to another folder with the fixtures than ``tests/fixtures``.
"""

import io
import json
import os
import re
import tarfile
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.formats.bloom import BloomFilter, BloomSizing
from hudi_py.formats.partition_metafile import format_partition_metadata
from hudi_py.formats.record_schema import format_record_schema, parse_record_schema, storage_schema, with_meta_fields
from hudi_py.formats.schema_evolution import resolve_schema
from hudi_py.model.files import parse_base_file
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.keys import is_prefixed, key_generator_of
from hudi_py.rows.lookup import lookup_keys, read_footer
from hudi_py.rows.merge import RowChanges, key_deletes, merge_base_file
from hudi_py.rows.precedence import MergeMode, MergeRules, merge_rules_of
from hudi_py.rows.written import FileTarget

FOLDER = Path(os.environ.get("HUDI_PY_FIXTURES", Path(__file__).parents[2] / "fixtures"))
TABLES = ("cow_partitioned", "cow_multilevel_hive", "cow_nonpartitioned", "cow_clustered", "mor_compacted")
RELEASES = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
NAMES = [
    f"{table}-{release}" for table in TABLES for release in RELEASES if (FOLDER / f"{table}-{release}.tar.gz").exists()
]
LATEST_WINS = MergeRules(MergeMode.OVERWRITE_WITH_LATEST)

pytestmark = pytest.mark.skipif(not any(FOLDER.glob("*.tar.gz")), reason=f"no fixtures in {FOLDER.name}")


class RealTable:
    """One fixture, in memory: what stands where."""

    def __init__(self, name):
        self.name = name.rpartition("-")[0]
        with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
            self.contents = {
                member.name.removeprefix(f"{self.name}/"): archive.extractfile(member).read()
                for member in archive
                if member.isfile() and not member.name.endswith(".crc")
            }
        self.base_files = {
            path: data
            for path, data in self.contents.items()
            if path.endswith(".parquet") and not path.startswith(".hoodie")
        }
        lines = self.contents[".hoodie/hoodie.properties"].decode().splitlines()
        self.properties = dict(line.split("=", 1) for line in lines if not line.startswith("#"))

    def rows(self, path):
        return pq.read_table(io.BytesIO(self.base_files[path]))

    def schema_text(self, path):
        """Record schema of a file without the meta columns, from its footer or from its columns."""
        text = read_footer(io.BytesIO(self.base_files[path])).avro_schema
        if text is None:  # the row writer leaves it out
            return format_record_schema(storage_schema(self.rows(path).schema), self.name)
        record = json.loads(text)
        data = [field for field in record["fields"] if not field["name"].startswith("_hoodie_")]
        return json.dumps(record | {"fields": data}, separators=(",", ":"))


@pytest.fixture(scope="module", params=NAMES)
def table(request):
    """Each of the fixtures in turn."""
    found = RealTable(request.param)
    assert found.base_files
    return found


def merged(table, path, changes, rules=LATEST_WINS):
    """Merge into a real file; returns (new file's bytes, result)."""
    previous = parse_base_file(path.rpartition("/")[2])
    sink = io.BytesIO()
    result = merge_base_file(
        io.BytesIO(table.base_files[path]),
        previous,
        changes,
        sink=sink,
        target=FileTarget(
            partition_path=path.rpartition("/")[0],
            file_id=previous.file_id,
            write_token="7-8-9",
            instant_time="20300101000000000",
        ),
        avro_schema=table.schema_text(path),
        rules=rules,
        options=BaseFileOptions(),
    )
    return sink.getvalue(), result


def no_changes(table, path):
    return key_deletes(pa.array([], pa.string()), parse_record_schema(table.schema_text(path)))


def test_rebuilt_filters_equal_hudis_byte_for_byte(table):
    """From the keys alone."""
    for data in table.base_files.values():
        file = pq.ParquetFile(io.BytesIO(data))
        rebuilt = BloomFilter.sized(BloomSizing())
        rebuilt.add(file.read(columns=["_hoodie_record_key"]).column(0))
        assert file.metadata.metadata[b"org.apache.hudi.bloomfilter"].decode() == rebuilt.to_text()


def test_key_range_and_lookup_agree_with_the_rows(table):
    """Each file finds its own keys and no other."""
    every_key = pa.array(sorted({key for path in table.base_files for key in keys_of(table, path)}))
    for path, data in table.base_files.items():
        stored = set(keys_of(table, path))
        footer = read_footer(io.BytesIO(data))
        assert (min(stored), max(stored)) == (footer.min_key, footer.max_key)
        found = lookup_keys(io.BytesIO(data), every_key)
        assert stored == set(every_key.filter(pa.array(found)).to_pylist())


def keys_of(table, path):
    return table.rows(path).column("_hoodie_record_key").to_pylist()


def test_schema_text_equals_hudis(table):
    """Derived from the columns of each file, it is that of the footer and that of every commit."""
    texts = set()
    for path, data in table.base_files.items():
        schema = storage_schema(table.rows(path).schema)
        text = format_record_schema(schema, table.name)
        assert schema == parse_record_schema(text)
        assert text == resolve_schema(text, table.rows(path).schema, "ignored").text
        footer = read_footer(io.BytesIO(data)).avro_schema
        if footer is not None:  # the row writer leaves it out, and makes all columns nullable
            assert footer == with_meta_fields(text)
            texts.add(text)
    (text,) = texts
    completed = [
        content
        for path, content in table.contents.items()
        if re.fullmatch(r"\.hoodie/(timeline/)?\d+(_\d+)?\.(commit|deltacommit)", path)
    ]
    assert completed
    for content in completed:  # JSON in layout 1; in layout 2 Avro, where a string stands as it is
        assert text.encode() in content or json.loads(content)["extraMetadata"]["schema"] == text


def test_keys_and_partition_paths_equal_hudis(table):
    """Computed from the rows with the table's own key generator."""
    for path in table.base_files:
        rows = table.rows(path).combine_chunks().to_batches()[0]
        stored = rows.column("_hoodie_record_key")
        prefixed = is_prefixed(stored[0].as_py(), table.properties["hoodie.table.recordkey.fields"])
        generator = key_generator_of(table.properties, single_field_prefixed=prefixed)
        assert stored.to_pylist() == generator.record_keys(rows).to_pylist()
        assert rows.column("_hoodie_partition_path").to_pylist() == generator.partition_paths(rows).to_pylist()
        assert {path.rpartition("/")[0]} == set(generator.partition_paths(rows).to_pylist())


def test_rewriting_without_changes_keeps_every_value(table):
    """Only the file name column differs; nullability and footer are Hudi's."""
    for path, data in table.base_files.items():
        new, result = merged(table, path, no_changes(table, path))
        before, after = table.rows(path), pq.read_table(io.BytesIO(new))
        names = [name for name in before.column_names if name != "_hoodie_file_name"]
        assert before.select(names).cast(after.select(names).schema).equals(after.select(names))
        assert {result.stat.path.rpartition("/")[2]} == set(after.column("_hoodie_file_name").to_pylist())
        assert [field.nullable for field in before.schema] == [field.nullable for field in after.schema]
        old_footer, new_footer = read_footer(io.BytesIO(data)), read_footer(io.BytesIO(new))
        assert (old_footer.min_key, old_footer.max_key) == (new_footer.min_key, new_footer.max_key)
        assert old_footer.bloom_text == new_footer.bloom_text
        assert (old_footer.avro_schema or new_footer.avro_schema) == new_footer.avro_schema
        assert (0, 0, 0, before.num_rows) == (
            result.stat.num_inserts,
            result.stat.num_update_writes,
            result.stat.num_deletes,
            result.stat.num_writes,
        )


def test_merge_mode_of_the_table_decides(table):
    """An older ordering value wins in version 6 and loses in versions 8 and 9, as in Hudi's own runs."""
    path = next(iter(table.base_files))
    schema = parse_record_schema(table.schema_text(path))
    rows = pa.Table.from_batches(table.rows(path).slice(0, 1).select(schema.names).to_batches()).cast(schema)
    older = rows.set_column(rows.column_names.index("ts"), schema.field("ts"), pa.array([-1], pa.int64()))
    changes = RowChanges(older.to_batches()[0], pa.array(keys_of(table, path)[:1]))
    _, result = merged(table, path, changes, merge_rules_of(table.properties))
    assert (1 if table.properties["hoodie.table.version"] == "6" else 0) == result.stat.num_update_writes


def test_partition_files_equal_hudis(table):
    """Same bytes for the same partition, instant and moment."""
    found = {path: data for path, data in table.contents.items() if path.endswith(".hoodie_partition_metadata")}
    assert found
    for path, data in found.items():
        if path.startswith(".hoodie"):
            continue  # the metadata table's own
        moment = re.search(r"#\w+ (\w+ \d+ [\d:]+) UTC (\d+)", data.decode())
        written_at = datetime.strptime(f"{moment[1]} {moment[2]} +0000", "%b %d %H:%M:%S %Y %z")
        instant_time = re.search(rb"commitTime=(\d+)", data)[1].decode()
        made = format_partition_metadata(path.rpartition("/")[0], instant_time=instant_time, written_at=written_at)
        assert data == made
