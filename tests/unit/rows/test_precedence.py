"""Which row of a key wins."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.rows.precedence import (
    MergeMode,
    MergeRules,
    combine_before_write,
    delete_mask,
    incoming_wins,
    merge_rules_of,
    refuse_null_ordering,
)

EVENT, COMMIT, OVERWRITE = (
    MergeMode.EVENT_TIME_ORDERING,
    MergeMode.COMMIT_TIME_ORDERING,
    MergeMode.OVERWRITE_WITH_LATEST,
)
TEXTS = st.sampled_from(["", "a", "b", "\ue000", "\U00010000"])
NUMBERS = st.sampled_from([-1.5, -0.0, 0.0, 2.0, math.nan, math.inf])
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), TEXTS, NUMBERS), max_size=15)


def rank(value):
    """Java's ``compareTo`` as a sort key."""
    if isinstance(value, str):
        return value.encode("utf-16-be")
    return (True,) if math.isnan(value) else (False, value, math.copysign(1, value))


def table(rows):
    keys, *columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    types = {"n": pa.int64(), "s": pa.string(), "x": pa.float64()}
    arrays = [pa.array(values, arrow) for values, arrow in zip(columns, types.values(), strict=True)]
    return pa.chunked_array([keys[:4], keys[4:]], pa.string()), pa.table(dict(zip(types, arrays, strict=True)))


@given(rows=ROWS, fields=st.lists(st.sampled_from("nsx"), unique=True))
def test_one_row_per_key_remains(rows, fields):
    """The highest ordering values win, the latest among equals, and the survivors keep their order."""
    best = {}
    for number, (key, *values) in enumerate(rows):
        order = [rank(values["nsx".index(field)]) for field in fields]
        if key not in best or order >= best[key][0]:
            best[key] = (order, number)
    keys, columns = table(rows)
    winners = combine_before_write(columns, keys, fields)
    if len(best) == len(rows):
        assert winners is None
    else:
        assert sorted(number for _, number in best.values()) == winners.to_pylist()


@given(rows=ROWS, paths=st.data())
def test_equal_keys_in_two_partitions_are_two_records(rows, paths):
    """Where the index is not global, the partition is part of the identity."""
    where = [paths.draw(st.sampled_from(["", "eu", "us"])) for _ in rows]
    keys, columns = table(rows)
    winners = combine_before_write(columns, keys, (), pa.array(where, pa.string()))
    last = {(row[0], path): number for number, (row, path) in enumerate(zip(rows, where, strict=True))}
    expected = sorted(last.values())
    assert expected == (list(range(len(rows))) if winners is None else winners.to_pylist())


@given(pairs=st.lists(st.tuples(st.tuples(TEXTS, NUMBERS), st.tuples(TEXTS, NUMBERS)), max_size=15))
def test_greater_or_equal_wins_field_by_field(pairs):
    """The first field decides, then the next; strings and NaN compare as in Java."""
    sides = [
        [pa.array([pair[side][0] for pair in pairs], pa.string()), pa.array([p[side][1] for p in pairs], pa.float64())]
        for side in (0, 1)
    ]
    expected = [[rank(v) for v in new] >= [rank(v) for v in old] for new, old in pairs]
    assert expected == incoming_wins(*sides).tolist()


def test_a_missing_ordering_value_lets_the_incoming_row_win():
    """A stored null always loses; an incoming one belongs to a delete by key."""
    new, old = pa.array([1, None, None]), pa.array([None, 5, None], pa.int64())
    assert [True, True, True] == incoming_wins([new], [old]).tolist()


def test_data_without_ordering_value_is_refused_and_deletes_are_not():
    """Hudi fails on such rows; a delete without a value is unconditional."""
    rows = pa.table({"ts": [1, None, 3]})
    refuse_null_ordering(rows, ["ts"], pa.array([False, True, False]))
    with pytest.raises(WriteError, match="1 row;"):
        refuse_null_ordering(rows, ["ts"], None)
    with pytest.raises(ConfigError, match="'no'"):
        refuse_null_ordering(rows, ["no"], None)


def test_delete_without_ordering_value_wins_inside_a_batch():
    """Wherever it stands."""
    rows = pa.table({"ts": [7, None, 9]})
    assert [1] == combine_before_write(rows, pa.array(["k", "k", "k"]), ["ts"]).to_pylist()


def test_lists_and_binaries_do_not_order():
    """There is no order to compare them by."""
    with pytest.raises(ConfigError):
        incoming_wins([pa.array([[1]])], [pa.array([[1]])])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"version": "6", "precombine.field": "ts"}, MergeRules(OVERWRITE, ("ts",))),
        ({"version": "6"}, MergeRules(OVERWRITE)),
        ({"version": "8", "precombine.field": "ts"}, MergeRules(EVENT, ("ts",))),
        ({"version": "9", "ordering.fields": "a, b"}, MergeRules(EVENT, ("a", "b"))),
        ({"version": "9"}, MergeRules(COMMIT)),
    ],
    ids=str,
)
def test_rules_of_tables_without_a_stated_mode(properties, expected):
    """The defaults of each version."""
    assert expected == merge_rules_of({f"hoodie.table.{key}": value for key, value in properties.items()})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, COMMIT),
        ({"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, EVENT),
        ({"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}, EVENT),
        (
            {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"},
            OVERWRITE,
        ),
    ],
    ids=str,
)
def test_stated_mode_is_followed(properties, expected):
    """As merge mode or, in version 6, as payload class."""
    rules = merge_rules_of({"hoodie.table.version": "6", "hoodie.table.precombine.field": "ts", **properties})
    assert MergeRules(expected, ("ts",)) == rules


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.record.merge.mode": "CUSTOM"},
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
    ],
    ids=str,
)
def test_custom_merging_is_refused(properties):
    """Another program decides there."""
    with pytest.raises(UnsupportedTable):
        merge_rules_of({"hoodie.table.version": "6", **properties})


def test_event_time_needs_a_field():
    """Otherwise it would silently be commit time."""
    with pytest.raises(ConfigError):
        MergeRules(EVENT)


def test_delete_marks_are_read_from_their_column():
    """``_hoodie_is_deleted``, null meaning no."""
    column = [True, None, False]
    assert [True, False, False] == delete_mask(pa.table({"_hoodie_is_deleted": column})).to_pylist()
    assert [True, False, False] == delete_mask(pa.RecordBatch.from_pydict({"_hoodie_is_deleted": column})).to_pylist()
    assert delete_mask(pa.table({"_hoodie_is_deleted": ["yes"]})) is None
    assert delete_mask(pa.table({"other": column})) is None
