"""What the path of a partition tells of its rows: no partition is left out that holds a row of the answer."""

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.bound_where import bound_filters
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind
from hudi_py.rows.partition_values import PartitionValues, with_values
from hudi_py.rows.predicate import filtered
from hudi_py.rows.where import conditions_of

TYPES = {"text": pa.string(), "whole": pa.int64(), "day": pa.date32(), "yes": pa.bool_(), "real": pa.float64()}
TEXTS = [
    "",
    "eu",
    "us",
    "a=b",
    "text=eu",
    "100%",
    "%41",
    "2026-01-01",
    "007",
    "true",
    "ä",
    "z z",
    "__HIVE_DEFAULT_PARTITION__",
]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


def some_value(chance, name):
    if chance.random() < 0.1:
        return None
    return {
        "text": lambda: chance.choice(TEXTS),
        "whole": lambda: chance.randint(-3, 30),
        "day": lambda: date(2026, 1, 1) + timedelta(days=chance.randint(0, 40)),
        "yes": lambda: chance.random() < 0.5,
        "real": lambda: chance.choice([0.5, 1.0, 2.25]),
    }[name]()


def some_condition(chance, names):
    name = chance.choice([*names, "other"])
    value = chance.randint(0, 3) if name == "other" else some_value(chance, name)
    made = {
        "null": lambda: (name, chance.choice(["is null", "is not null"])),
        "list": lambda: (
            name,
            chance.choice(["in", "not in"]),
            [value, *([] if name == "other" else [some_value(chance, name)])],
        ),
        "compared": lambda: (name, chance.choice(OPERATORS), value),
    }
    return made["null" if value is None else chance.choice(list(made))]()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("told", [True, False], ids=["told", "properties missing"])
def test_no_partition_with_a_row_of_the_answer_is_left_out(seed, told):
    """Whatever the columns are, hive style or not, escaped or not, and whether or not the properties say so."""
    chance = random.Random(seed)
    names = chance.sample(list(TYPES), chance.choice([1, 1, 2]))
    styles = {"hive_style": chance.random() < 0.5, "url_encode": chance.random() < 0.5}
    kind = KeyGeneratorKind.SIMPLE if len(names) == 1 else KeyGeneratorKind.COMPLEX
    keys = KeyGenerator(
        kind=kind, record_key_fields=("id", "other")[: len(names)], partition_fields=tuple(names), **styles
    )
    schema = pa.schema([("id", pa.string()), ("other", pa.int64()), *((name, TYPES[name]) for name in names)])
    values = PartitionValues(
        fields=tuple(names),
        is_hive_style=told and styles["hive_style"],
        is_encoded=told and styles["url_encode"],
    )
    left_out = 0
    for _ in range(40):
        row = {"id": "k", "other": chance.randint(0, 3), **{name: some_value(chance, name) for name in names}}
        path = path_of(keys, row, names)
        filters = bound_filters(
            conditions_of([some_condition(chance, names) for _ in range(chance.choice([1, 2]))]), schema
        )
        may_hold = values.chooser(filters)
        batch = pa.RecordBatch.from_pylist([row], schema=schema)
        met = filtered(batch, filters).num_rows
        held = may_hold is None or may_hold(path)
        assert held or not met, (row, path, filters)
        left_out += not held
        shown = values.shown(path, schema)
        for name, value in shown.items():
            if row[name] not in ("", "__HIVE_DEFAULT_PARTITION__") and not (name == "text" and not told):
                assert value.as_py() == row[name], (row, path)
    assert left_out or "real" in names, "nothing was ever left out"


def path_of(keys, row, names):
    """By the rules of the key generator; a type that it does not write has the text of Python."""
    texts = {True: "true", False: "false", None: ""}
    return "/".join(
        keys.format_segment(name, texts.get(row[name], str(row[name])) if not isinstance(row[name], str) else row[name])
        for name in names
    )


@pytest.mark.parametrize(
    ("path", "where", "held"),
    [
        ("2026/01/02", "text = '2026/01/02'", True),
        ("2026/01/02", "text = '2026-01-02'", True),
        ("2026/01/02", "text > '2026-02'", True),
        ("2026/01/02", "text > '2027'", False),
        ("2026/01/02", "_hoodie_partition_path like '2026%'", True),
        ("2026/01/02", "_hoodie_partition_path = '2026/01/03'", False),
        ("2026/01/02", "_hoodie_partition_path is null", True),
        ("a/b", "other = 1", True),
        ("a/b", "text = 'a' or other = 1", True),
        ("a/b", "text = 'c' and other = 1", False),
        ("__HIVE_DEFAULT_PARTITION__", "text = 'c'", True),
    ],
)
def test_what_a_path_rules_out(path, where, held):
    """Dates may have been written with slashes; the default partition may hold anything."""
    schema = pa.schema([*((name, pa.string()) for name in META_COLUMNS), ("text", pa.string()), ("other", pa.int64())])
    may_hold = PartitionValues(fields=("text",)).chooser(bound_filters(conditions_of(where), schema))
    assert (may_hold is None or may_hold(path)) is held


def test_of_several_columns_a_path_with_more_folders_says_nothing():
    """One value has a slash, and it is not known which."""
    schema = pa.schema([("text", pa.string()), ("whole", pa.int64())])
    values = PartitionValues(fields=("text", "whole"))
    may_hold = values.chooser(bound_filters(conditions_of("whole = 9"), schema))
    assert not may_hold("a/8")
    assert may_hold("a/b/8")
    assert values.shown("a/b/8", schema) == {}
    assert {name: value.as_py() for name, value in values.shown("a/8", schema).items()} == {"text": "a", "whole": 8}


@pytest.mark.parametrize(("path", "told"), [("2026-01-02", {"text": "2026-01-02"}), ("2026/01/02", {})])
def test_a_day_with_dashes_is_a_single_value(path, told):
    """Hudi may write it with slashes, and never the other way round."""
    schema = pa.schema([("text", pa.string())])
    assert {name: each.as_py() for name, each in PartitionValues(fields=("text",)).shown(path, schema).items()} == told


def test_columns_of_the_path_are_filled_in_their_places():
    """The others stay as they are."""
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    batch = pa.RecordBatch.from_pydict({"n": [1, 2]})
    filled = with_values(batch, PartitionValues(fields=("text",)).shown("eu", schema), schema)
    assert filled.to_pylist() == [{"n": 1, "text": "eu"}, {"n": 2, "text": "eu"}]
