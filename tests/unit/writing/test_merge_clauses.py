"""Merges with several clauses and conditions: each row is decided by the first clause that it meets, as in SQL."""

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_py
from hudi_py.errors import ConfigError, RefusedError, WriteError
from support import writes
from support.laws import examples

SETTINGS = {"hoodie.index.bloom.num_entries": 100, **writes.ALONE}
SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("op", pa.string())])
KINDS = [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9)]
ROWS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 3), st.sampled_from([None, "d", "u"])))
CONDITIONS = {
    "": lambda _row, _source: True,
    "ts > 1": lambda row, _: row > 1,
    "source.ts >= ts": lambda row, source: source[0] >= row,
    "source.op = 'd'": lambda _, source: source[1] == "d",
    "not source.op = 'd' and target.ts != source.ts": lambda row, source: source[1] == "u" and row != source[0],
}
OF_ONE_SIDE = {"": lambda _: True, "ts > 1": lambda row: row > 1, "ts in (0, 2)": lambda row: row in (0, 2)}


def clauses_of(conditions, actions):
    """Up to three clauses; those before the last have a condition."""
    clause = st.tuples(st.sampled_from(sorted(conditions)), st.sampled_from(actions))
    return st.lists(clause, max_size=3).filter(lambda found: all(condition for condition, _ in found[:-1]))


def with_clauses(merge, matched, new, left):
    for condition, action in matched:
        where = condition or ()
        values = {"ts": "source.ts + 10"}
        update, delete = merge.when_matched_update, merge.when_matched_delete
        merge = update(values, where=where) if action == "update" else delete(where=where)
    for condition, _ in new:
        merge = merge.when_not_matched_insert({"id": "id", "region": "'eu'", "ts": "ts"}, where=condition or ())
    for condition, action in left:
        where = condition or ()
        update, delete = merge.when_not_matched_by_source_update, merge.when_not_matched_by_source_delete
        merge = update({"ts": "ts + 20"}, where=where) if action == "update" else delete(where=where)
    return merge


def expected_of(stored, source, matched, new, left):
    rows = {}
    for name, (ts, _) in stored.items():
        if name in source:
            actions = [act for condition, act in matched if CONDITIONS[condition](ts, source[name])]
            value = source[name][0] + 10
        else:
            actions = [act for condition, act in left if OF_ONE_SIDE[condition](ts)]
            value = ts + 20
        if actions[:1] != ["delete"]:
            rows[name] = value if actions else ts
    for name, (ts, _) in source.items():
        if name not in stored and any(OF_ONE_SIDE[condition](ts) for condition, _ in new):
            rows[name] = ts
    return rows


@examples(24)
@given(
    ROWS,
    ROWS,
    clauses_of(CONDITIONS, ["update", "delete"]),
    clauses_of(OF_ONE_SIDE, ["insert"]),
    clauses_of(OF_ONE_SIDE, ["update", "delete"]),
    st.sampled_from(KINDS),
)
def test_each_row_is_decided_by_the_first_clause_that_it_meets(stored, source, matched, new, left, kind):
    """Compared with a dictionary, for all three kinds of clauses at once."""
    if not stored or not (matched or new or left):
        return
    more = {"hoodie.table.type": kind[0], "hoodie.table.ordering.fields": ""}
    table = writes.open_table(writes.create_table(kind[1], **more), **SETTINGS)
    times = [ts for ts, _ in stored.values()]
    table.insert(pa.table({"id": list(stored), "region": ["eu"] * len(stored), "ts": times}))
    given_rows = [{"id": name, "region": "eu", "ts": ts, "op": op} for name, (ts, op) in source.items()]
    merge = table.merge(pa.Table.from_pylist(given_rows, schema=SCHEMA), "id")
    with_clauses(merge, matched, new, left).execute()
    shown = table.refresh().rows().to_arrow().to_pylist()
    assert {row["id"]: row["ts"] for row in shown} == expected_of(stored, source, matched, new, left)
    assert len(shown) == len({row["id"] for row in shown})


def table_of(rows, tmp_path):
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(tmp_path / "t", pa.table(rows), settings=settings)
    return hudi_py.open_table(tmp_path / "t")


def test_several_source_rows_for_one_row_are_refused_unless_conditions_choose(tmp_path):
    """Or all of them delete it."""
    table = table_of({"id": ["a", "b"], "v": [1, 2]}, tmp_path)
    merge = table.merge(pa.table({"id": ["a", "a"], "v": [5, 6]}), "id")
    with pytest.raises(WriteError, match="several source rows match the row with the key 'a'"):
        merge.when_matched_update().execute()
    assert merge.when_matched_update(where="source.v = 6").execute().rows_updated == 1
    assert sorted(row["v"] for row in table.rows().to_arrow().to_pylist()) == [2, 6]
    assert merge.when_matched_delete().execute().rows_deleted == 1


def test_a_clause_that_cannot_be_reached_is_refused(tmp_path):
    """And so is a condition on a column that neither side has, or on two that are not compared."""
    table = table_of({"id": ["a"], "v": [1]}, tmp_path)
    merge = table.merge(pa.table({"id": ["a"], "v": [5]}), "id")
    with pytest.raises(ConfigError, match="would never be reached"):
        merge.when_matched_update().when_matched_delete(where="v = 1").execute()
    with pytest.raises(ConfigError, match=r"no column source\.x"):
        merge.when_matched_update(where="source.x = 1").execute()
    with pytest.raises(ConfigError, match="not compared"):
        merge.when_matched_update(where="source.v = id").execute()


def test_a_column_that_only_decides_need_not_be_one_of_the_table(tmp_path):
    """The usual shape of change feeds: an operation beside the row. Each file group gets one new file."""
    table = table_of({"id": ["a", "b"], "v": [1, 2]}, tmp_path)
    feed = pa.table({"id": ["a", "b", "c"], "v": [5, None, 7], "op": ["u", "d", "c"]})
    merge = table.merge(feed, "id").when_matched_delete(where="source.op = 'd'").when_matched_update()
    done = merge.when_not_matched_insert(where="source.op != 'd'").execute()
    assert (done.rows_deleted, done.rows_updated, done.rows_inserted, done.files_written) == (1, 1, 1, 1)
    assert sorted(table.rows().to_arrow().to_pylist(), key=str) == [{"id": "a", "v": 5}, {"id": "c", "v": 7}]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_to_match_on_may_be_named_twice(kind):
    """As one that comes from two lists is; it is the same match."""
    table = writes.open_table(writes.create_table(kind[1], **{"hoodie.table.type": kind[0]}), **SETTINGS)
    table.insert(pa.table({"id": ["a"], "region": ["eu"], "ts": [1]}))
    source = pa.table({"id": ["a", "b"], "region": ["eu", "eu"], "ts": [2, 2]})
    done = table.merge(source, ["id", "region", "id"]).when_matched_update().when_not_matched_insert().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 1)


NOT_MATCHED = {
    "another key": ({"id": ["n"], "region": ["eu"]}, {"id": "'a'", "region": "region"}),
    "another partition": ({"id": ["a"], "region": ["us"]}, {"id": "id", "region": "'eu'"}),
    "the default partition": ({"id": ["d"], "region": [""]}, {"id": "id", "region": "region"}),
    "no partition": ({"id": ["d"], "region": ["us"]}, {"id": "id"}),
}


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("case", NOT_MATCHED)
@pytest.mark.parametrize("kind", KINDS)
def test_an_inserted_row_replaces_no_other_one(kind, case, index):
    """The row says another key, or the key another way, than the columns that found no match; nothing is committed."""
    settings = {**SETTINGS, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": 1}
    more = {"hoodie.table.type": kind[0], "hoodie.table.ordering.fields": ""}
    table = writes.open_table(writes.create_table(kind[1], **more), **settings)
    rows = [{"id": "a", "region": "eu", "ts": 1}, {"id": "d", "region": None, "ts": 1}]
    table.upsert(pa.Table.from_pylist(rows, writes.SCHEMA))
    shown, commits = table.refresh().rows().to_arrow(), table.timeline.completed()
    source, values = NOT_MATCHED[case]
    merge = table.merge(pa.table({**source, "ts": [5]}), ["id", "region"])
    with pytest.raises(RefusedError, match=r"(key of one that would be inserted|already\.).* not committed"):
        merge.when_not_matched_insert({**values, "ts": "ts"}).execute()
    assert table.refresh().rows().to_arrow() == shown
    assert table.timeline.completed("commit", "deltacommit") == commits


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_global_index_has_an_inserted_key_once(kind, index):
    """A key in another partition is not inserted beside its row; a merge that deletes that row moves it."""
    kept = {"hoodie.metadata.enable": True, "hoodie.metadata.record.index.enable": True}
    settings = {**SETTINGS, "hoodie.index.type": index, **(kept if index == "RECORD_INDEX" else {})}
    table = writes.open_table(writes.create_table(kind[1], **{"hoodie.table.type": kind[0]}), **settings)
    table.upsert(pa.table({"id": ["a", "b"], "region": ["eu", "eu"], "ts": [1, 1]}))
    merge = table.merge(pa.table({"id": ["a", "b"], "region": ["us", "eu"], "ts": [2, 2]}), ["id", "region"])
    merge = merge.when_matched_update().when_not_matched_insert()
    with pytest.raises(RefusedError, match=r"key 'a' in partition 'us' is in partition 'eu'.* not committed"):
        merge.execute()
    done = merge.when_not_matched_by_source_delete().execute()
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 1)
    shown = sorted(table.rows().to_arrow().to_pylist(), key=str)
    assert shown == [{"id": "a", "region": "us", "ts": 2}, {"id": "b", "region": "eu", "ts": 2}]
    for key in "ab":
        assert table.rows(where=("id", "=", key)).to_arrow().num_rows == 1
    assert not table.check(contents=True)


def test_numbers_for_a_text_are_those_of_an_upsert(tmp_path):
    """Whichever statement stores them, and whichever clause: Java's texts, as in Apache Hudi."""
    rows = pa.table({"id": ["a", "b", "c"], "v": [1e7, float("nan"), -0.0], "n": [1, 2, 3]})
    found = []
    for name in ("merge", "upsert", "update"):
        table = table_of({"id": ["a", "b"], "v": ["", ""], "n": [0.5, 0.5]}, tmp_path / name)
        if name == "merge":
            table.merge(rows, "id").when_matched_update().when_not_matched_insert().execute()
        else:
            table.upsert(rows)
        if name == "update":
            table.upsert(rows.append_column("x", rows["v"]))
            table.update({"v": "x"})
        found.append(sorted(table.rows(columns=["id", "v", "n"]).to_arrow().to_pylist(), key=str))
    assert [row["v"] for row in found[0]] == ["1.0E7", "NaN", "-0.0"]
    assert found[0] == found[1] == found[2]


MATCHES = {
    "zeros": (pa.float64(), [0.0, -0.0, 1.5, None], pa.float64(), [-0.0], [0, 1]),
    "NaN": (pa.float32(), [float("nan"), 0.0], pa.float64(), [float("nan")], [0]),
    "nothing": (pa.int64(), [None, 0], pa.int64(), [None], []),
    "texts": (pa.int64(), [1, 2], pa.string(), ["2"], [1]),
    "decimals": (pa.decimal128(9, 2), [Decimal("2.00"), Decimal("0.02")], pa.int64(), [2], [0]),
    "days": (
        pa.date32(),
        [date(2026, 1, 2), None],
        pa.timestamp("us"),
        [datetime(2026, 1, 2, tzinfo=timezone.utc)],
        [0],
    ),
}


@pytest.mark.parametrize("case", MATCHES)
def test_rows_match_that_are_equal_in_sql(case, tmp_path):
    """In the type of the table's column; null equals nothing."""
    kind, stored, source_kind, source, matched = MATCHES[case]
    numbers = list(range(len(stored)))
    table = table_of({"id": [str(each) for each in numbers], "v": pa.array(stored, kind), "n": numbers}, tmp_path)
    merge = table.merge(pa.table({"v": pa.array(source, source_kind)}), "v").when_matched_delete()
    assert merge.execute().rows_deleted == len(matched)
    left = table.rows(columns=["n"]).to_arrow().column("n").to_pylist()
    assert sorted(left) == [each for each in numbers if each not in matched]


def test_a_time_matches_no_day_that_it_is_not(tmp_path):
    """Without its hours it would be another value, and other rows were deleted."""
    table = table_of({"id": ["a"], "v": pa.array([date(2026, 1, 2)])}, tmp_path)
    merge = table.merge(
        pa.table({"v": pa.array([datetime(2026, 1, 2, 5, tzinfo=timezone.utc)], pa.timestamp("us"))}), "v"
    )
    with pytest.raises(WriteError, match="2026-01-02 05:00:00 is not the beginning of a day"):
        merge.when_matched_delete().execute()


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("st.b = source.st.b", "a"),
        ("target.st.b != source.st.b", "b"),
        ("source.st.b = s", "bc"),
        ("s > source.st.b", ""),
        ("st.n is null or st.n >= source.st.n", "abc"),
        ("not st.b = source.s", "ab"),
    ],
)
def test_fields_of_both_sides_are_compared(condition, chosen, tmp_path):
    """As columns are; null equals nothing."""
    kind = pa.struct([("b", pa.string()), ("n", pa.int64())])
    stored = pa.array([{"b": "x", "n": 2}, {"b": "y", "n": 2}, None], kind)
    table = table_of({"id": ["a", "b", "c"], "st": stored, "s": ["w", "x", "x"]}, tmp_path)
    given = pa.array([{"b": "x", "n": 1}] * 3, kind)
    merge = table.merge(pa.table({"id": ["a", "b", "c"], "st": given, "s": ["q"] * 3}), "id")
    merge.when_matched_delete(where=condition).execute()
    assert set("abc") - {row["id"] for row in table.rows().to_arrow().to_pylist()} == set(chosen)


@pytest.mark.parametrize(
    "word", ["source.nothing", "source.st.nothing", "target.nothing", "source.s.b", "Source.s", "S"]
)
@pytest.mark.parametrize("condition", ["s != {}", "s in ('a', {})", "source.s = {}"])
def test_a_word_that_names_no_column_of_its_side_is_refused(condition, word, tmp_path):
    """As text it would differ from every value, and all rows would be deleted."""
    rows = {"id": ["a"], "st": [{"b": "x"}], "s": ["w"]}
    table = table_of(rows, tmp_path)
    merge = table.merge(pa.table(rows), "id").when_matched_delete(where=condition.format(word))
    with pytest.raises(ConfigError, match=f"there is no column {word}"):
        merge.execute()
