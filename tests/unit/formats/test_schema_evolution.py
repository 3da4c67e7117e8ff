"""What a write may do to a table's schema."""

import json

import pyarrow as pa
import pytest

from hudi_py.config.keys import NUMBERS_TO_TEXT
from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.record_schema import format_record_schema, parse_record_schema, storage_schema
from hudi_py.formats.schema_evolution import resolve_schema

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64()),
        pa.field("n", pa.int32()),
        pa.field("x", pa.float32()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("s", pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])),
    ]
)
TEXT = format_record_schema(TABLE, "t").replace('"name":"ts"', '"name":"ts","doc":"kept"')


def rows(**types):
    """Schema of rows: TABLE's columns with some types replaced, or added."""
    fields = {field.name: field.type for field in TABLE} | types
    return pa.schema([(name, arrow) for name, arrow in fields.items() if arrow is not None])


def test_new_table_takes_the_rows_schema():
    """The first commit decides, nullability included."""
    resolved = resolve_schema(None, TABLE, "t")
    assert (TABLE, format_record_schema(TABLE, "t")) == (resolved.schema, resolved.text)


def test_unchanged_schema_is_taken_over_to_the_letter():
    """Order, nullability and text stay the table's, whatever Spark thinks of the rows."""
    resolved = resolve_schema(TEXT, pa.schema(list(rows())[::-1]), "other")
    assert (TEXT, TABLE, (), ()) == (resolved.text, resolved.schema, resolved.added, resolved.promoted)


@pytest.mark.parametrize(
    "narrower",
    [
        {"ts": pa.int32()},
        {"ts": pa.int8()},
        {"d": pa.decimal128(5, 2)},
        {"d": pa.decimal128(8, 1)},
        {"id": pa.int64()},
        {"id": pa.float64()},
        {"id": pa.binary()},
        {"x": pa.int64()},
        {"n": pa.null(), "s": pa.null()},
        {"s": pa.struct([("b", pa.null()), ("a", pa.int64())])},
        {"s": pa.struct([("b", pa.large_string()), ("a", pa.int32())])},
        {"x": None, "s": None},
        {"s": pa.struct([("a", pa.int64())])},
    ],
    ids=str,
)
def test_narrower_rows_leave_the_table_alone(narrower):
    """Values that fit, and missing nullable columns, need no change."""
    assert TEXT == resolve_schema(TEXT, rows(**narrower), "t").text


def test_new_columns_come_last_and_nullable():
    """Older files do not have them."""
    resolved = resolve_schema(TEXT, pa.schema([pa.field("new", pa.int8(), nullable=False), *rows()]), "t")
    assert pa.schema([*TABLE, pa.field("new", pa.int32())]) == resolved.schema
    assert ("new",) == resolved.added
    assert resolved.schema == parse_record_schema(resolved.text)
    old, new = json.loads(TEXT)["fields"], json.loads(resolved.text)["fields"]
    assert [*old, {"name": "new", "type": ["null", "int"], "default": None}] == new


def test_new_nested_columns_are_named_below_the_table():
    """A column added later reads as if it had always been there."""
    resolved = resolve_schema(TEXT, rows(new=pa.struct([("q", pa.decimal128(9, 2))])), "t")
    assert format_record_schema(resolved.schema, "t") == resolved.text.replace(',"doc":"kept"', "")


def test_wider_rows_promote_the_column():
    """Int to long and float to double, keeping the rest of the field."""
    resolved = resolve_schema(TEXT, rows(n=pa.int64(), x=pa.float64()), "t")
    assert ("n", "x") == resolved.promoted
    assert rows(n=pa.int64(), x=pa.float64()).types == resolved.schema.types
    assert resolved.schema == parse_record_schema(resolved.text)


@pytest.mark.parametrize(
    "unfit",
    [
        {"ts": pa.bool_()},
        {"ts": pa.timestamp("us")},
        {"n": pa.date32()},
        {"n": pa.binary()},
        {"d": pa.decimal128(9, 3)},
        {"d": pa.decimal128(12, 2)},
        {"d": pa.decimal128(9, 1)},
        {"d": pa.string()},
        {"d": pa.float64()},
        {"new": pa.null()},
        {"s": pa.list_(pa.int64())},
        {"S": pa.int64()},
    ],
    ids=str,
)
def test_other_changes_are_refused_with_the_way_out(unfit):
    """The error names the column."""
    (name,) = unfit
    with pytest.raises(ConfigError, match=f"'{name}'"):
        resolve_schema(TEXT, rows(**unfit), "t")


@pytest.mark.parametrize("wider", [pa.int64(), pa.float32(), pa.float64(), pa.string()], ids=str)
@pytest.mark.parametrize("narrow", [pa.int32(), pa.int64(), pa.float32(), pa.float64()], ids=str)
def test_numbers_become_wider_ones_or_texts_and_whoever_knows_the_older_type_still_fits(narrow, wider):
    """In either order of the writes the table ends with the same type, as in Apache Hudi; another kind is told."""
    first, second = pa.schema([("c", narrow)]), pa.schema([("c", wider)])
    resolved = [
        resolve_schema(resolve_schema(None, before, "t").text, after, "t", may_become_text=True)
        for before, after in ((first, second), (second, first))
    ]
    (kept,) = {each.schema.field("c").type for each in resolved}
    assert kept == max(narrow, wider, key=[pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()].index)
    assert [each.promoted for each in resolved] == [("c",) * (kept != narrow), ("c",) * (kept != wider)]
    becomes_another_kind = (
        pa.types.is_integer(kept) < any(map(pa.types.is_integer, (narrow, wider))) or kept == pa.string()
    )
    assert any(each.cautions for each in resolved) == (becomes_another_kind and narrow != wider)


@pytest.mark.parametrize("numbers", [pa.int32(), pa.int64(), pa.float32(), pa.float64()], ids=str)
def test_unasked_no_column_of_numbers_becomes_text(numbers):
    """There is no way back; the error says how to ask for it."""
    text = resolve_schema(None, pa.schema([("c", pa.list_(numbers))]), "t").text
    with pytest.raises(ConfigError, match=r"'c\.element' is string in the rows .*numbers\.to\.text=true") as told:
        resolve_schema(text, pa.schema([("c", pa.list_(pa.string()))]), "t")
    assert NUMBERS_TO_TEXT.name in str(told.value)


def nested(inner):
    """A column in which a struct lies below each kind of nested type."""
    return pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.struct([("in", inner), ("k", pa.string())])))]))


def test_fields_are_added_and_widened_below_lists_maps_and_structs():
    """At their place, with the names that a new table would give them; what other writers put there stays."""
    old = pa.struct([("x", pa.float32()), ("y", pa.int32())])
    new = pa.struct([pa.field("z", pa.struct([("q", pa.decimal128(9, 2))]), nullable=False), ("y", pa.int64())])
    text = resolve_schema(None, pa.schema([("deep", nested(old))]), "t").text
    resolved = resolve_schema(
        text.replace('"name":"y"', '"name":"y","doc":"kept"'), pa.schema([("deep", nested(new))]), "t"
    )
    path = "deep.element.m.value.in"
    assert ((f"{path}.z",), (f"{path}.y",)) == (resolved.added, resolved.promoted)
    assert [f"{path}.y"] == [caution.partition(":")[0] for caution in resolved.cautions]
    whole = pa.struct([("x", pa.float32()), ("y", pa.int64()), ("z", pa.struct([("q", pa.decimal128(9, 2))]))])
    fresh = resolve_schema(None, pa.schema([("deep", nested(whole))]), "t")
    assert fresh.schema == resolved.schema
    assert fresh.text == resolved.text.replace(',"doc":"kept"', "")
    assert '"doc":"kept"' in resolved.text


@pytest.mark.parametrize(
    ("inner", "path"),
    [
        (pa.struct([("y", pa.bool_())]), "deep.element.m.value.in.y"),
        (pa.struct([("Y", pa.int32())]), "deep.element.m.value.in"),
        (pa.int32(), "deep.element.m.value.in"),
    ],
)
def test_other_changes_of_fields_are_refused_with_their_path(inner, path):
    """A type that does not fit, a name that differs by case, a struct that becomes a number."""
    text = resolve_schema(None, pa.schema([("deep", nested(pa.struct([("y", pa.int32())])))]), "t").text
    with pytest.raises(ConfigError, match=path):
        resolve_schema(text, pa.schema([("deep", nested(inner))]), "t")


def test_missing_required_field_is_refused():
    """With its path."""
    table = pa.schema([("s", pa.list_(pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())])))])
    with pytest.raises(WriteError, match=r"s\.element\.a"):
        resolve_schema(format_record_schema(storage_schema(table), "t"), rows_of_b(), "t")


def rows_of_b():
    """Lists of structs with one of two fields."""
    return pa.schema([("s", pa.list_(pa.struct([("b", pa.int32())])))])


def test_a_type_that_two_columns_share_by_name_is_not_changed_for_one():
    """Both would change; and both may, together."""
    inner = pa.struct([("a", pa.int32())])
    record = json.loads(resolve_schema(None, pa.schema([("s", inner), ("u", inner)]), "t").text)
    shared = {**record["fields"][0]["type"][1], "name": "shared", "namespace": "n"}
    record["fields"][0]["type"][1], record["fields"][1]["type"][1] = shared, "n.shared"
    text, wider = json.dumps(record), pa.struct([("a", pa.int32()), ("b", pa.int32())])
    with pytest.raises(ConfigError, match="one named type"):
        resolve_schema(text, pa.schema([("s", wider), ("u", inner)]), "t")
    both = pa.schema([("s", wider), ("u", wider)])
    assert both == resolve_schema(text, both, "t").schema


def test_missing_required_column_is_refused():
    """A required column cannot be filled with null."""
    with pytest.raises(WriteError, match="id"):
        resolve_schema(TEXT, rows(id=None), "t")


def test_columns_that_some_readers_refuse_are_told_once():
    """Timestamps without zone and names beyond ASCII, nested too; what the table has already is told no more."""
    moment = pa.timestamp("us")
    first = pa.schema([("id", pa.int32()), ("at", moment), ("größe", pa.int32())])
    new = resolve_schema(None, first, "t")
    assert [text.partition(":")[0] for text in new.cautions] == ["at", "größe"]
    assert resolve_schema(new.text, first, "t").cautions == ()
    nested = first.append(pa.field("deep", pa.struct([("名前", pa.list_(moment))])))
    added = resolve_schema(new.text, nested, "t")
    assert [text.partition(":")[0] for text in added.cautions] == ["deep", "deep"]
    plain = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    assert resolve_schema(None, plain, "t").cautions == ()
