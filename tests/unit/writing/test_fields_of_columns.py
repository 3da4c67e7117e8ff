"""Fields inside of columns that the table does not have, or has with narrower types."""

import json

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, WriteError
from support import writes

NARROW = pa.struct([("a", pa.float32())])
WIDE = pa.struct([("b", pa.int32()), ("a", pa.float64())])


def rows(values, arrow, ts=1):
    """One row for each value."""
    keys = [{"id": key, "region": "eu", "ts": ts, "v": value} for key, value in values.items()]
    names = [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("v", arrow)]
    return pa.Table.from_pylist(keys, schema=pa.schema(names))


def made(version=9, **settings):
    """A table of two rows."""
    table = writes.open_table(writes.create_table(version, **settings), **settings)
    table.upsert(rows({"1": {"a": 0.1}, "2": {"a": 0.2}}, NARROW))
    return table


def shown(table):
    return {row["id"]: row["v"] for row in table.refresh().rows().to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("version", "kind"), [(6, "COPY_ON_WRITE"), (9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")], ids=str
)
def test_a_float_that_becomes_a_double_keeps_its_text(version, kind):
    """Inside of a column as for a column, copied to a new file or read below log files: 0.1 stays 0.1, as to Hudi."""
    table = made(version, **{"hoodie.table.type": kind})
    table.upsert(rows({"2": {"a": 0.3, "b": 7}}, WIDE, ts=2))
    assert shown(table) == {"1": {"a": 0.1, "b": None}, "2": {"a": 0.3, "b": 7}}
    table.upsert(rows({"3": {"a": 0.5}}, NARROW, ts=3))  # a writer that does not know the new field
    assert shown(table)["3"] == {"a": 0.5, "b": None}


@pytest.mark.parametrize("clause", ["when_matched_update", "when_not_matched_insert"])
def test_a_merge_whose_source_has_other_fields_is_refused(clause):
    """Their values would be left out."""
    statement = made().merge(rows({"2": {"a": 1.5, "b": 1}, "3": {"a": 1.5, "b": 1}}, WIDE), on="id")
    with pytest.raises(ConfigError, match=r"'v\.b', which the table does not have"):
        getattr(statement, clause)().execute()


def test_an_expression_with_other_fields_is_refused():
    """As above, where the clause names its values."""
    statement = made().merge(rows({"2": {"a": 1.5, "b": 1}}, WIDE), on="id")
    with pytest.raises(ConfigError, match=r"source\.v\.b is a field"):
        statement.when_matched_update({"v": "source.v"}).execute()


def test_new_fields_in_json_are_refused(tmp_path):
    """Their types would be guesses; they were left out."""
    table = made()
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"id": "1", "region": "eu", "ts": 2, "v": {"a": 1.5, "c": "new"}}), encoding="utf-8")
    with pytest.raises(WriteError, match=r"v\.c is a field that the table does not have"):
        table.upsert(path)
    path.write_text(json.dumps({"id": "1", "region": "eu", "ts": 2, "v": {"a": 1.5}}), encoding="utf-8")
    table.upsert(path)
    assert shown(table)["1"] == {"a": 1.5}
