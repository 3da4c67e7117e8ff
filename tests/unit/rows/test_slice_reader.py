"""Rows of a file slice: a base file under log files, whatever became of those."""

import io
import math

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.formats.delete_block import DeletedKey, encode_delete_block
from hudi_py.formats.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
)
from hudi_py.model.files import FileSlice
from hudi_py.rows.committed import Commits
from hudi_py.rows.keys import virtual_keys_of
from hudi_py.rows.log_reading import log_reading
from hudi_py.rows.log_rules import LogRules, log_rules_of
from hudi_py.rows.read import read_batches
from hudi_py.rows.slice_reader import read_slices
from hudi_py.storage.memory import MemoryStorage
from support.laws import examples
from support.log_slices import BASE_TIME, COMMIT, EVENT, SCHEMA, base_file, data_block, log_file, merged, read, row

KEYS = st.sampled_from("abcdefgh")
ROWS = st.lists(st.builds(row, KEYS, st.integers(0, 4), st.text("xyz", max_size=2)), max_size=6)
BASES = st.dictionaries(KEYS, st.integers(0, 4), max_size=8).map(lambda each: [row(*item) for item in each.items()])
KINDS = st.sampled_from([BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
MEMORY = st.sampled_from([None, 1, 60])  # bytes of log records that may be held: all, a part by itself, some parts
BLOCKS = st.lists(st.tuples(ROWS.filter(bool), KINDS), max_size=4)


@pytest.mark.parametrize("rules", [EVENT, COMMIT], ids=["event", "commit"])
@examples(15)
@given(BASES, BLOCKS, st.integers(0, 4), MEMORY)
@example([row("a", 3)], [([row("a", 1)], BlockType.AVRO_DATA)], 0, None)  # a stored row that the logs lose against
@example([row("a", 3)], [([row("a", 1), row("b", 1)], BlockType.AVRO_DATA)], 0, 1)
def test_rows_are_those_of_the_model(rules, base, blocks, bound, memory):
    """
    Base file or none, any blocks in any files, records that fit into memory or do not.

    Conditions choose among merged rows, whatever statistics say.
    """
    storage = MemoryStorage("/t")
    file = base_file(storage, base) if base else None
    logs = [log_file(storage, at + 1, data_block(rows, kind=kind)) for at, (rows, kind) in enumerate(blocks)]
    expected = merged(base, [rows for rows, _ in blocks], rules)
    assert read(storage, file, logs, rules, memory=memory) == expected
    chosen = [each for each in expected if each["ts"] > bound and each["v"] != "x"]
    assert read(storage, file, logs, rules, where=[f"ts > {bound}", "v != x"], memory=memory) == chosen


def damaged_chunks(storage, file, columns):
    """The base file with other bytes in some columns of its second row group."""
    data = bytearray(storage.read(f"p/{file.name}"))
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1)
    for chunk in map(group.column, range(group.num_columns)):
        if chunk.path_in_schema in columns:
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            data[first : first + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    storage.replace(f"p/{file.name}", bytes(data))


def test_row_groups_under_log_files_are_left_out_where_nothing_of_them_is_shown():
    """By conditions alone where no log record has a key in their range; else their keys are read, to tell who wins."""
    rows = [row(key, ts) for key, ts in zip("abcdef", (1, 1, 1, 5, 6, 7), strict=True)]
    for updates, whole, lost in (
        ([row("b", 2)], [row("a", 1), row("b", 2), row("c", 1)], {"_hoodie_record_key", "ts", "v", "id"}),
        ([row("e", 2)], [row("a", 1), row("b", 1), row("c", 1)], {"v", "id"}),  # it lost against the base file
        ([row("e", 9)], [row("a", 1), row("b", 1), row("c", 1)], {"v", "id"}),
    ):
        storage = MemoryStorage("/t")
        base = base_file(storage, rows)
        logs = [log_file(storage, 1, data_block(updates))]
        damaged_chunks(storage, base, lost)
        assert read(storage, base, logs, where=["ts < 5"]) == whole
        with pytest.raises(CorruptMetadata):
            read(storage, base, logs)


def test_a_range_reads_the_row_groups_of_its_commits_alone():
    """By the footer; of those the rows that its commits changed, and none that does not tell."""
    storage, schema = MemoryStorage("/t"), pa.schema([("_hoodie_commit_time", pa.string()), *SCHEMA])
    times = ("1", "1", None, "2", "3", "2")
    rows = [{"_hoodie_commit_time": time, **row(key, 1)} for time, key in zip(times, "abcdef", strict=True)]
    base = base_file(storage, rows, schema)

    def keys(**commits):
        found = read_batches(storage, [("p", base)], schema, [Commits(**commits)])
        return [key for batch in found for key in batch.column("id").to_pylist()]

    assert keys() == ["a", "b", "d", "e", "f"]
    assert keys(after="1", until="2") == ["d", "f"]
    assert keys(times=frozenset({"3"})) == ["e"]
    damaged_chunks(storage, base, set(schema.names))
    assert keys(until="1") == ["a", "b"]
    with pytest.raises(CorruptMetadata):
        keys(after="1")


def test_what_is_appended_while_a_log_file_is_read_counts_for_nothing():
    """Whole blocks of a later commit, and the first bytes of one: the read is of the commits that it began with."""
    storage = MemoryStorage("/t")
    first, second = data_block([row("a", 2)]), data_block([row("a", 3), row("b", 3)], INSTANT_TIME="2")
    for size in (0, 5, 20, len(second) - 1, len(second)):
        log = attrs.evolve(log_file(storage, 1, first + second[:size]), size_bytes=len(first))
        reading = log_reading(EVENT, lambda time: time == "1", None, SCHEMA, "t")
        found = read_slices(storage, [FileSlice("p", "g-0", BASE_TIME, None, (log,))], SCHEMA, reading)
        assert [each for batch in found for each in batch.to_pylist()] == [row("a", 2)]


def test_a_log_file_shorter_than_its_commit_recorded_is_an_error():
    """A cut like that of a writer that died, but rows of a completed commit are lost; it may have grown since."""
    storage = MemoryStorage("/t")
    data = data_block([row("a", 2)])
    log = log_file(storage, 1, data)
    assert read(storage, None, [attrs.evolve(log, size_bytes=len(data) - 1)]) == [row("a", 2)]
    with pytest.raises(CorruptMetadata, match=r"log\.1_0-0-0 .*cut off"):
        read(storage, None, [attrs.evolve(log, size_bytes=len(data) + 1)])


def test_hfile_blocks_hold_rows_too():
    """Their keys stand beside the records."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1), row("b", 5)])
    logs = [log_file(storage, 1, data_block([row("a", 2), row("b", 2), row("c", 1)], kind=BlockType.HFILE_DATA))]
    assert read(storage, base, logs) == [row("a", 2), row("b", 5), row("c", 1)]


def merged_copies(base, blocks, rules, *, meets_copies):
    """The model for keys that the base file holds several times: each row of one for itself, or the first alone."""
    found, met = [], set()
    for each in base:
        if each["id"] in met and not meets_copies:
            found.append(each)
        else:
            found += [row for row in merged([each], blocks, rules) if row["id"] == each["id"]]
        met.add(each["id"])
    new = [row for row in merged([], blocks, rules) if row["id"] not in met]
    return sorted(found + new, key=lambda each: (each["id"], each["ts"], each["v"]))


COPIES = st.lists(st.builds(row, st.sampled_from("abc"), st.integers(0, 4), st.text("xyz", max_size=2)), max_size=7)
HERE, ELSEWHERE = (
    {"RECORD_POSITIONS": "…", "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": time} for time in (BASE_TIME, "1")
)
PLACES = st.sampled_from([HERE, HERE, HERE, ELSEWHERE, {}, {**HERE, "RECORD_POSITIONS": ""}])


@pytest.mark.parametrize("rules", [EVENT, COMMIT], ids=["event", "commit"])
@examples(30)
@given(COPIES, st.lists(st.tuples(ROWS.filter(bool), KINDS, PLACES), max_size=3), st.integers(1, 4), MEMORY)
@example([row("a", 1), row("a", 3)], [([row("a", 2)], BlockType.AVRO_DATA, HERE)], 1, None)
@example([row("a", 1), row("a", 1)], [([row("a", 2)], BlockType.AVRO_DATA, {})], 1, None)
@example([row("a", 1), row("a", 1)], [([row(k, 2)], BlockType.AVRO_DATA, h) for k, h in (("a", HERE), ("c", {}))], 2, 1)
def test_copies_of_a_key_are_met_where_hudi_meets_them(rules, base, blocks, group, memory):
    """
    With the positions of all records in this base file every row of a key, else the first one: as 1.0.2 to 1.2.0 do.

    One block without positions (or with those in another base file) is enough that all are merged by key.
    """
    storage = MemoryStorage("/t")
    file = base_file(storage, base, row_group_size=group) if base else None
    logs = [
        log_file(storage, at + 1, data_block(rows, kind=kind, **header))
        for at, (rows, kind, header) in enumerate(blocks)
    ]
    expected = merged_copies(
        base, [each[0] for each in blocks], rules, meets_copies=all(each[2] == HERE for each in blocks)
    )
    found = read(storage, file, logs, rules, memory=memory)
    assert sorted(found, key=lambda each: (each["id"], each["ts"], each["v"])) == expected


@pytest.mark.parametrize("memory", [None, 1])
def test_deletes_meet_the_copies_of_a_key_by_their_positions(memory):
    """A delete block has positions, too; so have updates of some columns, which keep the others of each row."""
    base = [row("a", 1, "first"), row("b", 1), row("a", 3, "second"), row("c", 1)]
    delete = encode_delete_block([DeletedKey("a", "p", ())])
    some = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    for header, deleted, updated in (
        (HERE, [], [row("a", 5, "first"), row("a", 5, "second")]),
        ({}, [row("a", 3, "second")], [row("a", 3, "second"), row("a", 5, "first")]),
    ):
        storage = MemoryStorage("/t")
        others = [row("b", 1), row("c", 1)]
        keys = {int(HeaderKey[name]): value for name, value in {**header, "INSTANT_TIME": "1"}.items()}
        log = log_file(storage, 1, encode_log_block(LogBlock(BlockType.DELETE, keys, delete)))
        assert read(storage, base_file(storage, base), [log], memory=memory) == [*deleted, *others]
        log = log_file(storage, 1, data_block([{"id": "a", "ts": 5}], some, IS_PARTIAL="true", **header))
        assert sorted(read(storage, base_file(storage, base), [log], memory=memory), key=str) == sorted(
            [*updated, *others], key=str
        )


@pytest.mark.parametrize("memory", [None, 1])
def test_updates_of_some_columns_keep_the_others(memory):
    """Of the base row where it is older, and of whole rows in the logs; a later base row keeps all of its own."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1, "x"), row("b", 9, "y"), row("c", 1, "z")])
    some = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    updates = [{"id": "a", "ts": 2}, {"id": "b", "ts": 2}, {"id": "n", "ts": 2}]
    logs = [
        log_file(storage, 1, data_block([row("n", 1, "new")])),
        log_file(storage, 2, data_block(updates, some, IS_PARTIAL="true")),
    ]
    assert read(storage, base, logs, memory=memory) == [
        row("a", 2, "x"),
        row("b", 9, "y"),
        row("c", 1, "z"),
        row("n", 2, "new"),
    ]


@pytest.mark.parametrize("memory", [None, 1])
def test_files_of_other_ages_are_read_in_the_types_of_today(memory):
    """Columns that came later, and those that were widened, in the base file as in the logs."""
    storage = MemoryStorage("/t")
    old = pa.schema([("id", pa.string()), ("ts", pa.int32())])
    new = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.float64())])
    base = base_file(storage, [{"id": "a", "ts": 1}, {"id": "b", "ts": 7}], old)
    logs = [
        log_file(storage, 1, data_block([{"id": "a", "ts": 2}, {"id": "b", "ts": 3}], old)),
        log_file(storage, 2, data_block([{"id": "c", "ts": 2**40, "x": math.pi}], new)),
    ]
    assert read(storage, base, logs, schema=new, memory=memory) == [
        {"id": "a", "ts": 2, "x": None}, {"id": "b", "ts": 7, "x": None}, {"id": "c", "ts": 2**40, "x": math.pi},
    ]  # fmt: skip


@pytest.mark.parametrize("memory", [None, 1])
def test_an_ordering_field_that_came_later_is_null_in_older_files(memory):
    """A row without an ordering value gives way to every record of the logs."""
    storage = MemoryStorage("/t")
    old = pa.schema([("id", pa.string()), ("v", pa.string())])
    base = base_file(storage, [{"id": "a", "v": "x"}, {"id": "b", "v": "y"}], old)
    logs = [log_file(storage, 1, data_block([row("a", -1)]))]
    assert sorted(read(storage, base, logs, memory=memory), key=str) == [
        row("a", -1),
        {"id": "b", "ts": None, "v": "y"},
    ]


@pytest.mark.parametrize(
    ("extra", "kind", "marker"),
    [
        ({"_hoodie_is_deleted": True}, pa.bool_(), None),
        ({"_hoodie_operation": "D"}, pa.string(), None),
        ({"state": "gone"}, pa.string(), ("state", "gone")),
    ],
)
def test_rows_that_stand_for_deletions_are_not_shown(extra, kind, marker):
    """By Hudi's own flag, by Flink's operation, by a column of the user's; older ones than the row change nothing."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1), row("b", 5), row("c", 1)])
    (name,) = extra
    schema = pa.schema([*SCHEMA, (name, kind)])
    rows = [{**row("a", 2), **extra}, {**row("b", 2), **extra}, {**row("n", 2), **extra}, {**row("c", 2), name: None}]
    logs = [log_file(storage, 1, data_block(rows, schema))]
    rules = LogRules(ordering_fields=("ts",), orders_logs=True, orders_base=True, delete_marker=marker)
    assert read(storage, base, logs, rules) == [row("b", 5), row("c", 2)]


def test_ordering_fields_that_the_table_lacks_order_nothing():
    """Writers of Hudi 0.15 name one by default; the later row wins then."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 5)])
    logs = [log_file(storage, 1, data_block([row("a", 2)]))]
    assert read(storage, base, logs, LogRules(ordering_fields=("n",), orders_logs=True, orders_base=True)) == [
        row("a", 2)
    ]


def test_an_ordering_field_of_a_nested_kind_is_named():
    """A struct has no order of its own."""
    table = pa.schema([("s", pa.struct([("t", pa.list_(pa.int64()))]))])
    for field in ("s", "s.t"):
        with pytest.raises(UnsupportedTable, match=f"ordered by {field}"):
            log_reading(LogRules(ordering_fields=(field,)), lambda _: True, None, table, "t")


@examples(10)
@given(BASES, BLOCKS)
def test_a_field_of_a_struct_orders_as_a_column_does(base, blocks):
    """In base files and in log files; a struct that is null has no ordering value, and loses."""
    storage, inner = (
        MemoryStorage("/t"),
        pa.schema([*SCHEMA, ("s", pa.struct([("in", pa.struct([("t", pa.int64())]))]))]),
    )

    def nested(rows):
        return [{**each, "s": {"in": {"t": each["ts"]}}} for each in rows]

    file = base_file(storage, nested(base), inner) if base else None
    logs = [log_file(storage, at + 1, data_block(nested(rows), inner)) for at, (rows, _) in enumerate(blocks)]
    rules = LogRules(ordering_fields=("s.in.t",), orders_logs=True, orders_base=True)
    assert read(storage, file, logs, rules, table=inner) == merged(base, [rows for rows, _ in blocks], EVENT)


@examples(10)
@given(BASES, BLOCKS)
def test_keys_are_computed_where_rows_do_not_hold_them(base, blocks):
    """Base files then have no key, or an empty one."""
    storage = MemoryStorage("/t")
    keys = virtual_keys_of(V9 | {"hoodie.table.recordkey.fields": "id", "hoodie.populate.meta.fields": "false"}, "t")
    file = base_file(storage, base, key="") if base else None
    logs = [log_file(storage, at + 1, data_block(rows)) for at, (rows, _) in enumerate(blocks)]
    assert read(storage, file, logs, keys=keys) == merged(base, [rows for rows, _ in blocks], EVENT)


def test_updates_of_some_columns_without_their_rows_are_refused():
    """They would be shown as rows that are null in the other columns; the slice with their rows is read where known."""
    storage = MemoryStorage("/t")
    base = base_file(storage, [row("a", 1, "v"), row("b", 1, "v")])
    part = pa.schema([SCHEMA.field("id"), SCHEMA.field("ts")])
    logs = (log_file(storage, 1, data_block([{"id": "a", "ts": 2}], part, IS_PARTIAL="true")),)
    reading = log_reading(EVENT, lambda _: True, None, SCHEMA, "t")
    alone = FileSlice("p", "g-0", BASE_TIME, None, logs)
    with pytest.raises(RefusedError, match="updates of some columns of the row with key 'a'"):
        list(read_slices(storage, [alone], SCHEMA, reading))
    known = attrs.evolve(reading, whole={("p", "g-0"): attrs.evolve(alone, base_file=base)})
    found = [each for batch in read_slices(storage, [alone], SCHEMA, known) for each in batch.to_pylist()]
    assert sorted(found, key=lambda each: each["id"]) == [row("a", 2, "v"), row("b", 1, "v")]


V6 = {"hoodie.table.version": "6", "hoodie.table.precombine.field": "ts"}
V9 = {"hoodie.table.version": "9", "hoodie.table.ordering.fields": "ts, n"}
PACKAGE = "org.apache.hudi.common.model."


@pytest.mark.parametrize(
    ("properties", "rules"),
    [
        (V9, LogRules(ordering_fields=("ts", "n"), orders_logs=True, orders_base=True)),
        (V9 | {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, LogRules(ordering_fields=("ts", "n"))),
        ({"hoodie.table.version": "9", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, LogRules()),
        (
            V6 | {"hoodie.compaction.payload.class": f"{PACKAGE}OverwriteWithLatestAvroPayload"},
            LogRules(
                ordering_fields=("ts",),
                orders_logs=True,
                deletes_reset=True,
                text_deletes_win=True,
                avro_widens_floats=True,
                ids_keep_float_texts=True,
            ),
        ),
        (
            V6 | {"hoodie.compaction.payload.class": f"{PACKAGE}DefaultHoodieRecordPayload"},
            LogRules(
                ordering_fields=("ts",),
                orders_logs=True,
                orders_base=True,
                deletes_reset=True,
                text_deletes_win=True,
                avro_widens_floats=True,
                ids_keep_float_texts=True,
            ),
        ),
        (
            V9 | {f"hoodie.record.merge.property.hoodie.payload.delete.{name}": name for name in ("field", "marker")},
            LogRules(
                ordering_fields=("ts", "n"), orders_logs=True, orders_base=True, delete_marker=("field", "marker")
            ),
        ),
    ],
)
def test_rules_are_those_of_the_properties(properties, rules):
    """Of each release's own tables."""
    assert log_rules_of(properties, "t") == rules


@pytest.mark.parametrize(
    "properties",
    [
        V6 | {"hoodie.compaction.payload.class": "com.example.Mine"},
        V9 | {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "com.example.Mine"},
        V9 | {"hoodie.table.partial.update.mode": "Mine"},
    ],
)
def test_what_merges_rows_in_java_is_named(properties):
    """Nobody else can know what it makes of two rows."""
    with pytest.raises(UnsupportedTable, match=r"Mine.*read-optimized"):
        log_rules_of(properties, "t")
