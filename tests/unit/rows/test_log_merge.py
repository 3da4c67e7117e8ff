"""Merging of log records: against a plain model of each release, one record after the other."""

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.rows.filling import Filling
from hudi_py.rows.log_merge import merge_records
from hudi_py.rows.log_records import Kind, LogRecords, RecordShape
from hudi_py.rows.log_rules import LogRules
from support.laws import examples

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("w", pa.int64())])
SHAPE = RecordShape(schema=SCHEMA, ordering=(SCHEMA.field("ts"),))
EVENT = LogRules(ordering_fields=("ts",), orders_logs=True, orders_base=True)
COMMIT = LogRules()
OLD = LogRules(ordering_fields=("ts",), orders_logs=True, orders_base=True, deletes_reset=True)

KINDS = st.sampled_from(list(Kind))
STORIES = st.lists(st.tuples(st.sampled_from("ab"), KINDS, st.integers(0, 3)), max_size=10)


def record(number, key, kind, ts, columns=None):
    """One block of one record; its number stands in the row."""
    is_row = kind <= Kind.FLAGGED
    row = {"_hoodie_record_key": key, "ts": ts, "v": number, "w": number}
    rows = pa.RecordBatch.from_pylist([row], schema=SCHEMA) if is_row else None
    return LogRecords(
        keys=pa.array([key]),
        kinds=np.array([kind], np.uint8),
        ordering=(pa.array([None if kind is Kind.ALWAYS else ts], pa.int64()),),
        rows=rows,
        columns=columns,
    )


def event_wins(known, new):
    """1.1.1 ``BufferedRecordMergerFactory``: `deltaMergeDeleteRecord` and `shouldKeepNewerRecord`."""
    if known[0] is Kind.ALWAYS:
        return new[0] in (Kind.ROW, Kind.FLAGGED, Kind.ALWAYS)
    return new[0] is Kind.ALWAYS or new[1] >= known[1]


def old_wins(known, new):
    """0.15.0 ``HoodieMergedLogRecordScanner``: `processNextRecord` and `processNextDeletedRecord`."""
    if new[0] is Kind.ALWAYS:
        return True
    if new[0] is Kind.DELETE:
        return known[0] is Kind.ALWAYS or new[1] >= known[1]
    return known[0] in (Kind.DELETE, Kind.ALWAYS) or new[1] >= known[1]


@pytest.mark.parametrize(
    ("rules", "wins"),
    [(EVENT, event_wins), (OLD, old_wins), (COMMIT, lambda _, __: True)],
    ids=["1.x", "0.15", "commit"],
)
@examples(120)
@given(STORIES)
def test_what_is_left_of_each_key_is_what_the_model_leaves(rules, wins, story):
    """Rows, flagged rows, deletes with and without ordering values, in any order."""
    left = {}
    for number, (key, kind, ts) in enumerate(story):
        known = left.get(key)
        if known is None or wins(known[1:], (kind, ts)):
            left[key] = (number, kind, ts)
    merged = merge_records([record(number, *each) for number, each in enumerate(story)], SHAPE, rules)
    found = {
        key: (Kind(kind), row["v"])
        for key, kind, row in zip(merged.keys.to_pylist(), merged.kinds, merged.rows.to_pylist(), strict=True)
    }
    assert found == {key: (kind, number if kind <= Kind.FLAGGED else None) for key, (number, kind, _) in left.items()}


def fill(known, new):
    """1.1.1 ``PartialUpdateHandler``: what the newer row lacks is taken from the older one."""
    return {name: known[name] if value in LACKING else value for name, value in new.items()}


LACKING = (None, "?")
FILLED = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())])
FILL_STORIES = st.lists(st.tuples(KINDS, st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=7)


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize(
    ("rules", "wins"), [(EVENT, event_wins), (COMMIT, lambda _, __: True)], ids=["event", "commit"]
)
@examples(150)
@given(FILL_STORIES)
def test_values_that_rows_do_not_give_are_those_of_the_model(rules, wins, lacking, story):
    """Late rows fill in, too, and nothing from before a deletion comes back."""
    rules = attrs.evolve(rules, filling=Filling(lacking))
    left, records = None, []
    for number, (kind, ts, has_v, has_w) in enumerate(story):
        values = {"v": f"v{number}" if has_v else lacking, "w": f"w{number}" if has_w else lacking}
        each = record(number, "k", kind, ts)
        if each.rows is not None:
            row = {"_hoodie_record_key": "k", "ts": ts, **values}
            each = attrs.evolve(each, rows=pa.RecordBatch.from_pylist([row], schema=FILLED))
        records.append(each)
        are_rows = left is not None and left[0] is Kind.ROW and kind is Kind.ROW
        if left is None or wins(left[:2], (kind, ts)):
            left = (kind, ts, fill(left[2], values) if are_rows else values)
        elif are_rows:
            left = (*left[:2], fill(values, left[2]))
    merged = merge_records(records, RecordShape(schema=FILLED, ordering=(FILLED.field("ts"),)), rules)
    assert merged.kinds.tolist() == [left[0]]
    if left[0] is Kind.ROW:
        (row,) = merged.rows.to_pylist()
        assert (row["v"], row["w"]) == (left[2]["v"], left[2]["w"])
        assert [merged.held[name][0] for name in "vw"] == [left[2][name] != lacking for name in "vw"]


ORDERINGS = [
    (pa.string(), ["", "a", "\uff00", "\U00010000"]),  # in Java's order, by UTF-16 units, the last two change places
    (pa.float64(), [float("-inf"), -0.0, 0.0, float("nan")]),
    (pa.float32(), [-0.5, -0.0, 0.0, 2.0]),
    (pa.timestamp("us", "UTC"), [1, 2, 3, 4]),
    (pa.decimal128(9, 2), [-5, 0, 1, 7]),
    (pa.date32(), [-1, 0, 1, 2]),
    (pa.int32(), [-5, -1, 2, 3]),
]


@pytest.mark.parametrize(("arrow", "values"), ORDERINGS, ids=[str(arrow) for arrow, _ in ORDERINGS])
def test_ordering_values_compare_as_in_java(arrow, values):
    """The higher value wins wherever it stands, null never does against a value."""
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("ts", arrow)])
    shape = RecordShape(schema=schema, ordering=(schema.field("ts"),))
    ordered = [*values[:2], values[3], values[2]] if arrow == pa.string() else values
    for first, higher in zip([None, *ordered], ordered, strict=False):
        for at, pair in enumerate(((higher, first), (first, higher))):
            column = pa.array(pair, arrow)
            block = LogRecords(
                keys=pa.array(["k", "k"]),
                kinds=np.zeros(2, np.uint8),
                ordering=(column,),
                rows=pa.RecordBatch.from_arrays([pa.array(["k", "k"]), column], schema=schema),
            )
            merged = merge_records([block], shape, EVENT)
            (left,) = merged.rows.column("ts").combine_chunks().take([0])
            assert str(left) == str(column[at])


@given(st.lists(st.integers(-999, 999), min_size=1, max_size=6))
def test_old_releases_compare_decimals_by_their_bytes(values):
    """0.15.0 between log records: Avro's fixed bytes without a sign, see the fixture ``order_dec``."""
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.decimal128(3))])
    keys, column = pa.array(["k"] * len(values)), pa.array(values, pa.decimal128(3))
    block = LogRecords(
        keys=keys,
        kinds=np.zeros(len(values), np.uint8),
        ordering=(column,),
        rows=pa.RecordBatch.from_arrays([keys, column], schema=schema),
    )
    merged = merge_records([block], RecordShape(schema=schema, ordering=(schema.field("ts"),)), OLD)
    assert max(values, key=lambda each: each.to_bytes(2, "big", signed=True)) == merged.rows.column("ts")[0].as_py()


def test_several_ordering_fields_decide_one_after_the_other():
    """The second one where the first is equal."""
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("a", pa.int64()), ("b", pa.string())])
    shape = RecordShape(schema=schema, ordering=(schema.field("a"), schema.field("b")))
    rows = [{"_hoodie_record_key": "k", "a": a, "b": b} for a, b in [(1, "z"), (2, "a"), (2, "b"), (2, "a"), (1, "y")]]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    block = LogRecords(
        keys=batch.column(0), kinds=np.zeros(5, np.uint8), ordering=(batch.column(1), batch.column(2)), rows=batch
    )
    assert merge_records([block], shape, EVENT).rows.to_pylist() == [rows[2]]


def test_nothing_is_left_of_nothing():
    """A slice whose blocks do not count."""
    assert len(merge_records([], SHAPE, EVENT)) == 0


@examples(80)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["v", "w", "vw", None])), min_size=1, max_size=6))
def test_updates_of_some_columns_add_up(story):
    """Each column has the value of the record of highest precedence that holds it; deletes end what came before."""
    records = []
    for number, (ts, columns) in enumerate(story):
        kind = Kind.ROW if columns else Kind.ALWAYS
        held = frozenset({"_hoodie_record_key", "ts", *columns}) if columns else None
        records.append(record(number, "k", kind, ts, held))
    merged = merge_records(records, SHAPE, EVENT)
    last_delete = max((number for number, (_, columns) in enumerate(story) if columns is None), default=-1)
    behind = sorted((ts, number) for number, (ts, columns) in enumerate(story) if number > last_delete)
    if not behind:
        assert merged.kinds.tolist() == [Kind.ALWAYS]
        return
    (row,) = merged.rows.to_pylist()
    for column in "vw":
        holders = [number for _, number in behind if column in story[number][1]]
        is_held = merged.held is None or bool(merged.held[column][0])
        assert (row[column] if is_held else None) == (holders[-1] if holders else None)
