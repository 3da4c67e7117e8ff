"""What the indexes of keys in a metadata table say, beside what the rows and files say."""

from __future__ import annotations

import contextlib

from hudi_py.mdt.blocks import Validity, visible_blocks
from hudi_py.mdt.bloom_filters import decode_filter
from hudi_py.mdt.keyed_merge import merged_records
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.read_statistics import open_part
from hudi_py.mdt.record_index import decode_location
from hudi_py.mdt.statistics import key_suffix
from hudi_py.mdt.table import MetadataTable
from hudi_py.rows.lookup import read_footer
from hudi_py.storage.memory import MemoryStorage
from support import fixtures, writes


def loaded(name, folder):
    """A fixture of rows in memory, data files included."""
    path = fixtures.unpack_rows(name, folder)
    files = {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}
    return MemoryStorage.from_files({name: data for name, data in files.items() if not name.endswith(".crc")})


def recorded(storage, partition):
    """Key to record of a whole partition."""
    table, found = MetadataTable(storage), {}
    timeline = table.store.load()
    validity = Validity(timeline, writes.open_table(storage).timeline)
    with contextlib.ExitStack() as stack:
        for each in table.slices(timeline, partition):
            blocks = visible_blocks(table, each, timeline, validity)
            for key, stored in merged_records(table, each, blocks, stack):
                assert key not in found
                found[key] = stored
    return found


def recorded_statistics(storage, partition):
    """Key to the record of each column in `column_stats` or `partition_stats`."""
    table, found = MetadataTable(storage), {}
    timeline = table.store.load()
    validity = Validity(timeline, writes.open_table(storage).timeline)
    for each in table.slices(timeline, partition):
        with contextlib.ExitStack() as stack:
            part = open_part(table, each, visible_blocks(table, each, timeline, validity), stack)
            found.update((key, record) for key, record in part.scan())
    return found


def places(storage):
    """Key to partition and file group, as the index says."""
    return {key: decode_location(stored)[:2] for key, stored in recorded(storage, RECORD_INDEX).items()}


def rows_by_key(storage):
    """Key to partition and file group, as the rows say."""
    rows = writes.open_table(storage).rows(with_meta=True).to_arrow()
    found = {}
    for key, path, name in zip(
        *(rows.column(f"_hoodie_{each}").to_pylist() for each in ("record_key", "partition_path", "file_name")),
        strict=True,
    ):
        assert key not in found, f"{key} twice"
        found[key] = (path, name.split("_")[0])
    return found


def assert_true(storage, case=""):
    """The record index knows each row and nothing else, and each latest base file has its filter."""
    table = writes.open_table(storage)
    partitions = table.config.metadata_partitions
    if RECORD_INDEX in partitions:
        assert rows_by_key(storage) == places(storage), case
    if BLOOM_FILTERS in partitions:
        filters = recorded(storage, BLOOM_FILTERS)
        slices = [each for path in table.partitions() for each in table.file_slices(path)]
        for path, base in [(each.partition_path, each.base_file) for each in slices if each.base_file]:
            with storage.open_read(f"{path}/{base.name}" if path else base.name) as stream:
                text = read_footer(stream).bloom_text
            kept = decode_filter(filters[key_suffix(path, base.name)])
            assert kept is not None, (case, base)
            assert text == kept.to_text(), (case, base)
