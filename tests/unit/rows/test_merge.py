"""Merging against a dict, and what a merge owes the rows it only copies."""

import io

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, WriteError
from hudi_py.formats.bloom import BloomFilter, BloomSizing
from hudi_py.rows import merge as merge_module
from hudi_py.rows.lookup import read_footer
from hudi_py.rows.merge import combine_changes, key_deletes
from hudi_py.rows.precedence import MergeMode, MergeRules
from support.laws import examples

RULES = [MergeRules(mode, ("ts",)) for mode in MergeMode]
KEYS = st.integers(0, 11).map("k{:02}".format)
ROW = st.fixed_dictionaries({"id": KEYS, "ts": st.integers(0, 3), "v": st.lists(st.text("xy", max_size=2), max_size=2)})
COMMIT = st.lists(st.tuples(ROW, st.booleans()), max_size=10)


def filter_of(sizing, keys):
    """The filter of a file with these keys, in this order."""
    bloom = BloomFilter.sized(sizing)
    bloom.add(pa.array(list(keys), pa.string()))
    return bloom


def combined(rows, rules):
    """The row of each key that a batch comes down to, in the order in which the winners arrived."""
    best = {}
    for position, (row, is_delete) in enumerate(rows):
        present = best.get(row["id"])
        later_wins = rules.mode is MergeMode.COMMIT_TIME_ORDERING
        if present is None or later_wins or row["ts"] >= present[1]["ts"]:
            best[row["id"]] = (position, row, is_delete)
    return [(row, is_delete) for _, row, is_delete in sorted(best.values(), key=lambda item: item[0])]


def model_merge(stored, rows, rules, instant_time):
    """Key → (row, commit time) after the commit, in file order, and the counts."""
    inserts, updates, deletes = 0, 0, 0
    result = dict(stored)
    for row, is_delete in combined(rows, rules):
        key = row["id"]
        if key in stored:
            if rules.mode is MergeMode.EVENT_TIME_ORDERING and row["ts"] < stored[key][0]["ts"]:
                continue
            if is_delete:
                del result[key]
                deletes += 1
            else:
                result[key] = (row, instant_time)
                updates += 1
        elif not is_delete:
            result[key] = (row, instant_time)
            inserts += 1
    return result, (inserts, updates, deletes)


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.mode.value)
@examples(40)
@given(
    rows_per_batch=st.sampled_from([1, 3, 1000]),
    first=st.lists(ROW, max_size=12, unique_by=lambda row: row["id"]),
    commits=st.lists(COMMIT, max_size=3),
)
def test_merge_equals_a_dict(files, rules, rows_per_batch, first, commits):
    """Values, order, commit times and counts are those of a dict, for every mode and any cut into batches."""
    options = attrs.evolve(files.OPTIONS, row_group_bytes=300)
    data = files.write(first, "20260101000000001", options=options, per_batch=4)
    model = {row["id"]: (row, "20260101000000001") for row in first}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_module, "_BATCH_ROWS", rows_per_batch)
        for number, commit in enumerate(commits, start=2):
            instant_time = f"20260101{number:09}"
            data, result = files.merge(
                data,
                [row for row, _ in commit],
                instant_time,
                rules,
                deletes=[is_delete for _, is_delete in commit],
                options=options,
                previous=f"20260101{number - 1:09}",
            )
            model, counts = model_merge(model, commit, rules, instant_time)
            assert counts == (result.stat.num_inserts, result.stat.num_update_writes, result.stat.num_deletes)
            assert len(model) == result.stat.num_writes
            assert (f"20260101{number - 1:09}", f"f-0_3-1-2_20260101{number - 1:09}.parquet") == (
                result.stat.prev_commit,
                result.stat.prev_base_file,
            )
    rows = files.read(data)
    assert list(model.values()) == [
        ({name: row[name] for name in files.SCHEMA.names}, row["_hoodie_commit_time"]) for row in rows
    ]
    assert len(rows) == len({row["_hoodie_commit_seqno"] for row in rows})
    footer = read_footer(io.BytesIO(data))
    assert (min(model, default=None), max(model, default=None)) == (footer.min_key, footer.max_key)
    assert filter_of(options.bloom, model).to_text() == footer.bloom_text


@pytest.mark.parametrize(
    "old",
    [
        filter_of(BloomSizing(entries=7), "abc").to_text(),
        filter_of(BloomSizing(entries=50), "ab").to_text(),
        "of no form",
        b"\xff",
    ],
    ids=["another size", "a key lacks", "damaged", "no text"],
)
def test_the_filter_has_every_key_whatever_the_old_one_was(files, old):
    """Only a filter that counted as many keys as the old file has rows is gone on with."""
    table = pq.read_table(io.BytesIO(files.write([{"id": key, "ts": 1, "v": []} for key in "abc"])))
    sink = io.BytesIO()
    words = {"org.apache.hudi.bloomfilter": old, "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}
    pq.write_table(table.replace_schema_metadata(words), sink, store_schema=False)
    data, _ = files.merge(sink.getvalue(), [{"id": "d", "ts": 1, "v": []}], "20260101000000002", RULES[0])
    footer = read_footer(io.BytesIO(data))
    assert filter_of(files.OPTIONS.bloom, "abcd").to_text() == footer.bloom_text


def test_copied_rows_keep_their_history(files):
    """Only the file name changes; the updated row gets this commit's time and number."""
    rows = [{"id": key, "ts": 1, "v": []} for key in "abc"]
    data, _ = files.merge(
        files.write(rows, "20260101000000001"), [{"id": "b", "ts": 0, "v": ["new"]}], "20260101000000002", RULES[0]
    )
    before, after = files.read(files.write(rows, "20260101000000001")), files.read(data)
    name = "f-0_3-1-2_20260101000000002.parquet"
    for position in (0, 2):
        assert before[position] | {"_hoodie_file_name": name} == after[position]
    assert {
        **before[1],
        "ts": 0,
        "v": ["new"],
        "_hoodie_commit_time": "20260101000000002",
        "_hoodie_commit_seqno": "20260101000000002_3_1",
        "_hoodie_file_name": name,
    } == after[1]


def test_stored_duplicates_are_all_updated(files):
    """A key that was inserted twice gets the same new values twice, as in Hudi's merge handle."""
    data = files.write([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}, {"id": "a", "ts": 2}])
    merged, result = files.merge(data, [{"id": "a", "ts": 9}], "20260101000000002", RULES[0])
    assert [("a", 9), ("b", 1), ("a", 9)] == [(row["id"], row["ts"]) for row in files.read(merged)]
    assert (2, 0) == (result.stat.num_update_writes, result.stat.num_inserts)


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.mode.value)
def test_delete_by_key_ignores_ordering_values(files, rules):
    """It carries none, so it always wins; unknown keys are passed over."""
    data = files.write([{"id": "a", "ts": 2**60}, {"id": "b", "ts": 1}])
    changes = key_deletes(pa.array(["a", "zz"]), files.SCHEMA)
    merged, result = files.apply(data, changes, "20260101000000002", rules)
    assert ["b"] == [row["id"] for row in files.read(merged)]
    assert (1, 1, 0) == (result.stat.num_writes, result.stat.num_deletes, result.stat.num_inserts)


def test_deleting_everything_leaves_an_empty_file(files):
    """The file group lives on."""
    merged, result = files.apply(
        files.write([{"id": "a"}]), key_deletes(pa.array(["a"]), files.SCHEMA), "20260101000000002", RULES[0]
    )
    assert ([], 0, 1) == (files.read(merged), result.stat.num_writes, result.stat.num_deletes)
    again, _ = files.merge(merged, [{"id": "n", "ts": 1}], "20260101000000003", RULES[0], previous="20260101000000002")
    assert ["n"] == [row["id"] for row in files.read(again)]


def test_grown_schema_fills_old_rows(files):
    """New columns are null and promoted ones exact in rows written before."""
    old = pa.schema([files.SCHEMA.field("id"), pa.field("ts", pa.int32())])
    new = pa.schema([*files.SCHEMA, pa.field("x", pa.struct([("y", pa.int32())]))])
    data = files.write([{"id": "a", "ts": -5}, {"id": "b", "ts": 6}], schema=old)
    merged, _ = files.merge(data, [{"id": "b", "ts": 2**40, "x": {"y": 1}}], "20260101000000002", RULES[0], schema=new)
    assert [("a", -5, None, None), ("b", 2**40, None, {"y": 1})] == [
        (row["id"], row["ts"], row["v"], row["x"]) for row in files.read(merged)
    ]


def test_copied_lists_with_null_elements_are_carried_over(files):
    """Another writer put them there; refusing them would lock the file group."""
    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(files.write([{"id": "a", "v": ["x"]}, {"id": "b", "v": []}])))
    pq.write_table(table.set_column(7, "v", pa.array([["x", None], []], pa.list_(pa.string()))), sink)
    merged, _ = files.merge(sink.getvalue(), [{"id": "b", "ts": 1}], "20260101000000002", RULES[0])
    assert ["x", None] == files.read(merged)[0]["v"]


def test_changes_with_null_elements_are_refused_unless_deleted(files):
    """A delete's values are never stored."""
    rows = pa.Table.from_batches([files.batch([{"id": "a", "ts": 1, "v": [None]}])])
    with pytest.raises(WriteError, match="null element"):
        combine_changes(rows, pa.array(["a"]), RULES[0])
    assert 1 == len(combine_changes(rows, pa.array(["a"]), RULES[0], pa.array([True])).keys)


def test_rows_without_ordering_value_are_refused(files):
    """Where the table orders rows."""
    rows = pa.Table.from_batches([files.batch([{"id": "a", "ts": None}])])
    with pytest.raises(WriteError, match="'ts'"):
        combine_changes(rows, pa.array(["a"]), MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",)))
    assert combine_changes(rows, pa.array(["a"]), MergeRules(MergeMode.COMMIT_TIME_ORDERING, ("ts",))).deletes is None


def test_a_column_with_a_damaged_name_is_not_rewritten_as_nulls(files):
    """The footer names it twice, and the two names differ; without the check the column's values would be lost."""
    stored = files.write([{"id": "a", "ts": 1, "v": ["x"]}], "20260101000000001")
    at = stored.index(b"ts", len(stored) - 8 - int.from_bytes(stored[-8:-4], "little"))
    damaged = stored[:at] + b"tz" + stored[at + 2 :]
    with pytest.raises(CorruptMetadata, match="'tz' in the schema and 'ts'"):
        files.merge(damaged, [{"id": "b", "ts": 1, "v": []}], "20260101000000002", RULES[1])


@pytest.mark.parametrize("damaged", [b"", b"no parquet at all", None], ids=["empty", "text", "no meta columns"])
def test_what_is_no_base_file_is_reported(files, damaged):
    """And nothing usable is written in its place."""
    if damaged is None:
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": ["a"]}), sink)
        damaged = sink.getvalue()
    with pytest.raises(CorruptMetadata):
        files.merge(damaged, [{"id": "a", "ts": 1}], "20260101000000002", RULES[0])
