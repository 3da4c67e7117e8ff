"""Statistics of columns: read from real Hudi's tables as Parquet has them, merged as Hudi does, compacted unchanged."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal

import attrs
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from xxhash import xxh64_intdigest

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_codec import decode_commit, encode_commit
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.records import RECORD
from hudi_py.mdt.statistics import (
    COLUMN_STATS,
    PARTITION_STATS,
    StatisticsRecord,
    column_prefix,
    decode_statistics,
    encode_statistics,
    key_suffix,
    merge_statistics,
    statistics_of,
    widest_schema,
)
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import write_delta_commit
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action
from hudi_py.rows.bounds import PathBounds
from hudi_py.rows.condition import Comparison
from hudi_py.rows.predicate import filters_of
from hudi_py.rows.pruning import may_match
from hudi_py.storage.local import LocalStorage
from support.crash_points import interruptions
from support.fixtures import unpack
from support.metadata_tables import LATER, SYNC, begin, compact_metadata_table, end, listing, table_of, timeline_of

VERSIONS = ("1.0.2", "1.1.1", "1.2.0")
WRAPPER = "org.apache.hudi.avro.model.{}Wrapper"


def statistics(storage, partition=COLUMN_STATS):
    with StatisticsReader(MetadataTable(storage), timeline_of(storage), partition=partition) as reader:
        return dict(reader.scan())


def everything(storage):
    return [statistics(storage, partition) for partition in (COLUMN_STATS, PARTITION_STATS)]


def compacted(storage, least=1):
    return compact_metadata_table(storage, timeline_of(storage), least)


# --- reading ----------------------------------------------------------------------------------------------------------
def in_parquet(metadata, column):
    """Minimum, maximum, nulls and values of one column by the footer; None where it has no such column."""
    found = []
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            if chunk.path_in_schema == column:
                found.append(chunk.statistics)
    if not found:
        return None
    nulls = sum(each.null_count for each in found)
    return (min(s.min for s in found), max(s.max for s in found), nulls, metadata.num_rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_statistics_of_real_hudi_are_those_of_the_files(version, tmp_path):
    """Every file of the table has a record for each indexed column, under the key that we make of the three names."""
    path = unpack(f"cow_partitioned-{version}", tmp_path)
    storage = LocalStorage(str(path))
    found = statistics(storage)
    columns = {each.column for each in found.values()}
    assert columns > {"name", "qty", "ts", "amount", "region", "_hoodie_record_key"}
    compared = 0
    for partition, files in listing(storage).items():
        for file in files:
            metadata = pq.read_metadata(path / partition / file)
            for column in columns:
                each = found[column_prefix(column) + key_suffix(partition, file)]
                assert (each.column, each.where) == (column, file)
                assert (each.minimum, each.maximum, each.null_count, each.value_count) == in_parquet(metadata, column)
                compared += 1
    assert compared == len(found)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_compacted", [False, True])
def test_the_records_of_a_column_are_found_by_its_name(version, is_compacted):
    """From log files and from a base file."""
    storage = table_of(f"cow_partitioned-{version}")
    if is_compacted:
        assert compacted(storage).is_completed
    found = statistics(storage)
    with StatisticsReader(MetadataTable(storage), timeline_of(storage)) as reader:
        for column in ("qty", "_hoodie_commit_time"):
            wanted = {key: each for key, each in found.items() if each.column == column}
            assert wanted
            assert wanted == reader.of_column(column)
        assert {} == reader.of_column("nowhere")


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_of_a_commit_that_is_pending_do_not_count(version):
    """As in `files`: the metadata table is written first."""
    storage = table_of(f"cow_partitioned-{version}")
    before = statistics(storage)
    last = timeline_of(storage).completed("commit")[-1]
    (completed,) = [path for path in storage.files() if f"/{last.requested_time}" in path and path.endswith(".commit")
                    and "/metadata/" not in path]  # fmt: skip
    storage.delete(completed)
    after = statistics(storage)
    assert {k: v for k, v in before.items() if f"_{last.requested_time}." not in v.where} == after
    assert after != before


def test_damage_is_told():
    """A torn block of a completed delta commit."""
    storage = table_of("cow_partitioned-1.1.1")
    (path, *_) = sorted(p for p in storage.files() if "/column_stats/.col-stats-0000-0_2" in p)
    storage.replace(path, storage.read(path)[:-40])
    with pytest.raises(CorruptMetadata):
        statistics(storage)


# --- hashes -----------------------------------------------------------------------------------------------------------
def test_xxhash64_gives_the_published_values():
    """The vectors of the specification's reference implementation."""
    assert xxh64_intdigest(b"") == 0xEF46DB3751D8E999
    assert xxh64_intdigest(b"abc") == 0x44BC2CF5AD770999
    assert xxh64_intdigest(b"Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1


# --- merging ----------------------------------------------------------------------------------------------------------
def record(low, high, *, deleted=False, tight=False, nulls=0, kind="Int", value_type=None):
    wrapped = [None if v is None else (WRAPPER.format(kind), {"value": v}) for v in (low, high)]
    return StatisticsRecord(3, {
        "fileName": "f", "columnName": "c", "minValue": wrapped[0], "maxValue": wrapped[1], "valueCount": 10,
        "nullCount": nulls, "totalSize": 5, "totalUncompressedSize": 7, "isDeleted": deleted, "isTightBound": tight,
        "valueType": value_type,
    })  # fmt: skip


def test_bounds_widen_and_counts_add_up():
    """Whatever the order; a missing bound does not count."""
    rng = random.Random(5)
    for _ in range(200):
        older, newer = (record(low, low + rng.randrange(9), nulls=rng.randrange(3)) for low in rng.sample(range(40), 2))
        merged = statistics_of(merge_statistics(older, newer, ""))
        first, second = statistics_of(older), statistics_of(newer)
        assert merged.minimum == min(first.minimum, second.minimum)
        assert merged.maximum == max(first.maximum, second.maximum)
        assert (merged.value_count, merged.null_count) == (20, first.null_count + second.null_count)
    merged = statistics_of(merge_statistics(record(None, None), record(3, 4), ""))
    assert (merged.minimum, merged.maximum) == (3, 4)


def test_tombstones_and_tight_bounds_replace():
    """What comes after a deletion, and bounds that were computed anew, say all that is to be said."""
    old, new = record(1, 9), record(4, 5)
    gone, tight = record(None, None, deleted=True), record(4, 5, tight=True)
    assert merge_statistics(old, gone, "") == gone
    assert merge_statistics(gone, new, "") == new
    assert merge_statistics(old, tight, "") == tight


def test_bounds_are_compared_as_java_does_but_bytes_without_sign():
    """Strings by UTF-16 units, decimals in bytes as numbers, NaN behind all numbers; bytes as Parquet orders them."""
    cases = [
        ("Double", 5.0, math.nan, None),
        ("Double", -math.inf, math.nan, None),
        ("Float", -0.0, 0.0, None),
        ("String", "\U00010000", "\uff00", None),  # a surrogate is less than what follows the surrogates
        ("Bytes", b"\x01", b"\xff", None),
        ("Bytes", b"\xff", b"\x01", ("x", {"typeOrdinal": 10, "additionalInfo": "10,2"})),
        ("Bytes", b"\x02", b"\x01\x00", ("x", {"typeOrdinal": 10, "additionalInfo": "10,2"})),
    ]
    for kind, low, high, value_type in cases:
        older = record(high, high, kind=kind, value_type=value_type)
        merged = merge_statistics(older, record(low, low, kind=kind, value_type=value_type), "")
        assert (low, high) == (merged.fields["minValue"][1]["value"], merged.fields["maxValue"][1]["value"])


def test_no_order_of_merging_rules_out_a_string_that_is_there():
    """
    Files tell their bounds in either order of characters, Hudi merges in Java's: each value has to stay within them.

    Asked of all operators that pruning knows, with characters on both sides of the surrogates.
    """
    letters = ["", "a", "\x7f", "\ud7ff", "\ue000", "\uff00", "\uffff", "\U00010000", "\U0010ffff"]
    words = [first + second for first in letters for second in letters]
    orders = [str, lambda word: word.encode("utf-16-be")]  # Python's is that of UTF-8, as in Parquet
    bounds_of, schema, used = PathBounds(("s",), pa.string()), pa.schema([("s", pa.string())]), 0
    for seed in range(400):
        draw = random.Random(seed)
        # Of few letters every other time: else some word nearly always has one that makes the bounds unusable.
        known = words if seed % 2 else [word for word in words if max(word, default="") < "\ud800"]
        files = [draw.sample(known, 2) for _ in range(3)]
        merged = None
        for values in files:
            order = draw.choice(orders)
            told = record(min(values, key=order), max(values, key=order), kind="String")
            merged = told if merged is None else merge_statistics(merged, told, "")
        bounds = bounds_of.of(statistics_of(merged))
        used += bounds.minimum is not None
        for word in {word for values in files for word in values}:
            for operator in ("=", "<=", ">="):
                (condition,) = filters_of([Comparison(("s",), operator, word)], schema)
                assert may_match([condition], lambda path, arrow, found=bounds: [found]), (seed, operator, word)
    assert used >= 200, "bounds without such characters are to be used"


def test_bounds_of_different_kinds_are_not_merged():
    """Hudi before 1.1 fails there; we leave it to 1.1."""
    with pytest.raises(UnsupportedTable, match="IntWrapper and StringWrapper"):
        merge_statistics(record(1, 2), record("a", "b", kind="String"), "")


def test_decimals_in_bytes_have_the_scale_of_their_type():
    """Hudi 1.1 names precision and scale; without a scale there is no bound."""
    found = statistics_of(record(b"\xff\x38", b"\x09\x79", kind="Bytes",
                                 value_type=("x", {"typeOrdinal": 10, "additionalInfo": "10,2"})))  # fmt: skip
    assert (found.kind, found.minimum, found.maximum) == ("decimal", Decimal("-2.00"), Decimal("24.25"))
    found = statistics_of(record(b"\1", b"\2", kind="Bytes",
                                 value_type=("x", {"typeOrdinal": 10, "additionalInfo": None})))  # fmt: skip
    assert (found.minimum, found.maximum) == (None, None)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_every_kind_of_bound_survives_encoding(version):
    """Wrappers keep their branch of the union, for every table version."""
    schema = schema_text(RECORD, version)
    values = {"Boolean": True, "Int": -1, "Long": 2**40, "Float": 0.5, "Double": -0.25, "Bytes": b"\xff",
              "String": "ü\U00010000", "Date": 19000, "Decimal": Decimal("-1.500000000000000"),
              "TimestampMicros": 10**15}  # fmt: skip
    for kind, value in values.items():
        given = record(value, value, kind=kind)
        known = {field["name"] for field in _inner(schema)["fields"]}
        given = StatisticsRecord(3, {name: v for name, v in given.fields.items() if name in known})
        encoded = encode_statistics(given, schema, file_name="b.hfile")
        assert given == decode_statistics(encoded, schema, COLUMN_STATS, "")
        with pytest.raises(CorruptMetadata):
            decode_statistics(encoded, schema, PARTITION_STATS, "")
    assert widest_schema([schema_text(RECORD, each) for each in (8, 6, 9, 8)]) == schema_text(RECORD, 9)


def _inner(schema):
    parsed = fastavro.schema.parse_schema(json.loads(schema))
    (field,) = [each for each in parsed["fields"] if each["name"] == "ColumnStatsMetadata"]
    return field["type"][1]


# --- compaction -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_compaction_of_all_partitions_survives_every_interruption(version):
    """Same statistics and same listing at each moment; afterwards every group is a base file without logs."""
    fresh = table_of(f"cow_partitioned-{version}")
    wanted, files = everything(fresh), listing(fresh)
    for case in interruptions(fresh.copy):
        case.run(compacted)
        assert wanted == everything(case.storage), case
        assert files == listing(case.storage), case
        compacted(case.storage)
        assert wanted == everything(case.storage), case
        table = MetadataTable(case.storage)
        for partition in table.partitions():
            for group in table.slices(table.store.load(), partition):
                assert group.base is not None, case
                assert () == group.logs, case
    assert compacted(case.storage) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_compaction_takes_in_what_came_since(version):
    """The second plan names `files` alone where no statistics came."""
    storage = table_of(f"cow_partitioned-{version}")
    assert compacted(storage).is_completed
    wanted = everything(storage)
    begin(storage, Action.CLEAN, LATER)
    gone = {path: sorted(names)[:1] for path, names in listing(storage).items()}
    write_delta_commit(MetadataTable(storage), timeline_of(storage), LATER, ListingChanges(deleted=gone))
    end(storage, Action.CLEAN, LATER)
    assert compacted(storage).is_completed
    assert wanted == everything(storage)
    left = listing(storage)
    assert not any(set(names) & left.get(path, {}).keys() for path, names in gone.items())


def forget_group(storage, file_id):
    """As if no delta commit had written records to the group: neither its log files nor the stats that name them."""
    storage.delete_many([path for path in storage.files() if f"/column_stats/.{file_id}_2" in path])
    for path in [each for each in storage.files() if each.startswith(METADATA_TABLE_FOLDER) and "deltacommit" in each]:
        data = storage.read(path)
        if not path.endswith(".deltacommit") or not data:
            continue
        commit = decode_commit(data, path)
        stats = {
            partition: tuple(stat for stat in written if stat.file_id != file_id)
            for partition, written in commit.partition_to_write_stats.items()
        }
        storage.replace(
            path, encode_commit(attrs.evolve(commit, partition_to_write_stats=stats), as_json=False, sync=SYNC)
        )


def test_a_group_without_records_is_left_as_it_is():
    """There is nothing to put into a base file: a group that no column has fallen into yet."""
    storage = table_of("cow_partitioned-1.1.1")
    forget_group(storage, "col-stats-0001-0")
    wanted, kept = everything(storage), {p: c for p, c in storage.files().items() if "/.col-stats-0001-0_" in p}
    assert compacted(storage).is_completed
    assert wanted == everything(storage)
    assert kept == {p: c for p, c in storage.files().items() if "/.col-stats-0001-0_" in p}
    assert not [path for path in storage.files() if "/col-stats-0001-0_" in path]
    assert [path for path in storage.files() if "/col-stats-0000-0_" in path]


def test_partitions_of_other_kinds_keep_all_from_being_compacted():
    """A block of theirs may be passed over once a compaction let its instant be archived."""
    storage = table_of("cow_partitioned-1.1.1")
    storage.replace(f"{METADATA_TABLE_FOLDER}/secondary_index_x/.hoodie_partition_metadata", b"partitionDepth=1\n")
    files = storage.files()
    assert compacted(storage) is None
    assert files == storage.files()


def test_a_partition_that_is_being_made_is_waited_for():
    """Its instant begins with zeros and has no peer in the data table; another writer may be at work."""
    storage = table_of("cow_partitioned-1.1.1")
    store = MetadataTable(storage).store
    store.request(Action.DELTA_COMMIT, "00000000000000003", b"")
    files = storage.files()
    assert compacted(storage) is None
    assert files == storage.files()


def test_statistics_that_do_not_go_together_stop_the_compaction_before_it_begins(monkeypatch):
    """A plan that nobody can carry out would stand in Apache Hudi's way."""
    storage = table_of("cow_partitioned-1.1.1")

    def refuse(*_):
        raise UnsupportedTable("of different kinds")

    monkeypatch.setattr("hudi_py.mdt.read_statistics.merge_statistics", refuse)
    files = storage.files()
    assert compacted(storage) is None
    assert files == storage.files()
