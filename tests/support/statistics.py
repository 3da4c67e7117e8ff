"""What the statistics in a metadata table say, beside what the files say."""

from __future__ import annotations

import math

from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.log_block import HeaderKey, iterate_log_blocks
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.kept_statistics import KeptStatistics
from hudi_py.mdt.records import RECORD
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS, decode_statistics, statistics_of
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import is_data_file
from hudi_py.storage.memory import MemoryStorage
from support import fixtures, writes
from support.indexes import recorded_statistics

LOGS = {"6": "more/mor_indexes-0.15.0", "8": "more/mor_indexes-1.0.2", "9": "more/mor_indexes-1.1.1"}
"""Version to a merge-on-read table that has statistics, Bloom filters and a record index."""


def loaded(name, folder):
    """A fixture in memory, data files included."""
    kind, _, plain = name.rpartition("/")
    unpack = {"rows": fixtures.unpack_rows, "more": fixtures.unpack_more, "": fixtures.unpack}[kind]
    path = unpack(plain, folder)
    files = {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}
    return MemoryStorage.from_files({name: data for name, data in files.items() if not name.endswith(".crc")})


def recomputed(storage):
    """What the files themselves say, by partition of the metadata table."""
    table = writes.open_table(storage)
    names: dict[str, dict[str, int]] = {}
    for path in storage.files():
        folder, _, name = path.rpartition("/")
        if not path.startswith(".hoodie") and is_data_file(name):
            names.setdefault(folder, {})[name] = 1
    mdt = MetadataTable(storage)
    found = KeptStatistics(storage, table.config, mdt, table.timeline).records(ListingChanges(added=names), {})
    schema = schema_text(RECORD, mdt.table_version)
    return {
        partition: {key: decode_statistics(value, schema, partition, "") for key, value in records.items()}
        for partition, records in found.items()
    }


def is_same(ours, theirs):
    """But for two things that Hudi says wrongly: bounds of only nulls are 0, and those of a NaN are 0.0."""
    both = (dict(ours.fields), dict(theirs.fields))
    if ours.fields["nullCount"] == ours.fields["valueCount"] or _is_nan(ours.fields["maxValue"]):
        both = tuple({name: each[name] for name in each if name not in ("minValue", "maxValue")} for each in both)
    return both[0] == both[1]


def _is_nan(wrapped):
    value = None if wrapped is None else wrapped[1]["value"]
    return isinstance(value, float) and math.isnan(value)


def assert_statistics_true(storage, case=""):
    """Records of every file that is there are right, and bounds of a partition hold all its files."""
    truth = recomputed(storage)
    columns = recorded_statistics(storage, COLUMN_STATS)
    for key, wanted in truth[COLUMN_STATS].items():
        if key not in columns and is_taken_back(storage, wanted.fields["fileName"]):
            continue
        assert key in columns, (case, wanted)
        assert is_same(wanted, columns[key]), (case, wanted, columns[key])
    partitions = recorded_statistics(storage, PARTITION_STATS) if PARTITION_STATS in truth else {}
    table = writes.open_table(storage)
    slices = [each for path in table.partitions() for each in table.file_slices(path)]
    paths = {name: each.partition_path for each in slices for name in each.file_names}
    wider = {(each.fields["fileName"], each.fields["columnName"]): statistics_of(each) for each in partitions.values()}
    for record in truth[COLUMN_STATS].values():
        name = record.fields["fileName"]
        inner = statistics_of(record)
        if name in paths and partitions and inner.value_count:
            outer = wider[paths[name], inner.column]
            assert not inner.null_count or outer.null_count, (case, inner, outer)
            assert _is_within(inner, outer), (case, inner, outer)


def is_taken_back(storage, name):
    """Whether it is a log file of layout 1 that a rollback has left, with a block that takes its rows back."""
    completed = {each.requested_time for each in writes.open_table(storage).timeline.completed()}
    (path,) = [each for each in storage.files() if each.rpartition("/")[2] == name]
    times = {each.header.get(HeaderKey.INSTANT_TIME) for each in iterate_log_blocks(storage.read(path), path)}
    return name.startswith(".") and not times & completed


def _is_within(inner, outer):
    if inner.minimum is None:
        return True
    low, high, least, most = map(_ordered, (inner.minimum, inner.maximum, outer.minimum, outer.maximum))
    return least <= low <= high <= most


def _ordered(value):
    """NaN equals NaN, and is greater than all other numbers."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0.0 if is_nan else value)
