"""Columns that changed their names by schema on read: a table that Hudi 0.15.0 evolved, and what counts as moved."""

import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.column_history import newest_history, renamed_columns
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.fixtures import unpack_more


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    """Two inserts, then: ``name`` renamed to ``title``, ``old`` dropped and added again, ``qty`` widened, an insert."""
    return unpack_more("schema_on_read-0.15.0", tmp_path)


def test_moved_columns_are_refused_and_what_was_before_is_read(evolved):
    """By name, a renamed column would be null in older files, and a new one would show what was dropped."""
    table = Table(LocalStorage(evolved))
    first, second, renamed, *_, last = (each.requested_time for each in table.timeline.commits.completed())
    for time in (None, last):
        with pytest.raises(UnsupportedTable, match=r"old is another column than before, title was name.*schema\.on"):
            table.base_files(time)
    with pytest.raises(UnsupportedTable, match=r"\(title was name\)"):
        table.base_files(renamed)
    assert len(table.base_files(first)) == 2
    assert table.base_files(second)


def test_a_table_with_schema_on_read_is_not_written(evolved):
    """A merge by name would put nulls in the place of renamed values for good, and the ids of the columns would go."""
    client = pytest.importorskip("hudi_py.spark.client").WriteClient(None, evolved)
    rows = mock.Mock(spec=pytest.importorskip("pyspark.sql").DataFrame)
    before = {path: path.read_bytes() for path in evolved.rglob("*") if path.is_file()}
    for write in (client.upsert, client.insert, client.bulk_insert, client.delete):
        with pytest.raises(UnsupportedTable, match="uses schema on read"):
            write(rows)
    assert before == {path: path.read_bytes() for path in evolved.rglob("*") if path.is_file()}


def test_a_table_with_schema_on_read_is_not_rewritten(evolved):
    """A clustering, or a compaction, would put nulls in the place of renamed values for good."""
    before = {path: path.read_bytes() for path in evolved.rglob("*") if path.is_file()}
    for rewrite in (Table.cluster, Table.compact, Table.schedule_compaction):
        with pytest.raises(UnsupportedTable, match=r"schema on read.* in a (clustering|compaction)"):
            rewrite(Table(LocalStorage(evolved)))
    assert before == {path: path.read_bytes() for path in evolved.rglob("*") if path.is_file()}


def schema(version, columns):
    """JSON of a version: id to name, or id to name and nested columns."""
    fields = [
        {"id": number, "name": name, "type": {"type": "record", "fields": json.loads(schema(0, inner))["fields"]}}
        for number, (name, inner) in columns.items()
    ]
    return json.dumps({"version_id": version, "type": "record", "fields": fields})


def history(*versions):
    return json.dumps({"schemas": [json.loads(each) for each in versions]}).encode()


names = st.text("abc", min_size=1, max_size=2)


@given(st.dictionaries(names, st.lists(names, unique=True, max_size=3), min_size=1), st.data())
def test_columns_that_keep_their_names_are_not_moved(columns, data):
    """Whatever was added, dropped or reordered; and one renamed column, nested or not, is found."""
    numbered = {n: (name, {100 + 10 * n + m: (x, {}) for m, x in enumerate(inner)}) for n, (name, inner) in
                enumerate(columns.items())}  # fmt: skip
    some = data.draw(st.permutations(sorted(numbered)))
    latest = schema(7, numbered)
    fewer = schema(3, {number: numbered[number] for number in some[: len(some) // 2]})
    assert renamed_columns(latest, history(latest, fewer), "") == ()
    number = some[0]
    name, inner = numbered[number]
    if data.draw(st.booleans()) and inner:
        first = min(inner)
        changed = {**numbered, number: (name, {**inner, first: ("was", {})})}
        assert f"{name}.{inner[first][0]} was {name}.was" in renamed_columns(latest, history(schema(3, changed)), "")
    else:
        changed = {**numbered, number: ("was", inner)}
        assert f"{name} was was" in renamed_columns(latest, history(schema(3, changed)), "")
        anew = {**{n: each for n, each in numbered.items() if n != number}, 999: (name, {})}
        found = renamed_columns(latest, history(schema(3, anew)), "")
        assert f"{name} is another column than before" in found
    assert renamed_columns(latest, history(schema(8, changed)), "") == (), "a later version does not count"


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"schemas": [{}]}', b"{"])
def test_damaged_histories_are_told(damaged):
    """Except that no bytes at all are no history yet."""
    latest = schema(7, {1: ("a", {})})
    if not damaged:
        assert renamed_columns(latest, damaged, "x") == ()
        return
    with pytest.raises(CorruptMetadata, match="x: not a history"):
        renamed_columns(latest, damaged, "x")


def test_the_newest_completed_history_counts():
    """Both layouts' names; pending and foreign files do not count."""
    names = ["20240101000000000.schemacommit", "20240102000000000_20240102000001000.schemacommit"]
    others = [
        "20240103000000000.schemacommit.inflight",
        ".x.schemacommit.crc",
        "20240104000000000.schemacommit.requested",
    ]
    assert newest_history([*names, *others]) == names[1]
    assert newest_history(others) is None
