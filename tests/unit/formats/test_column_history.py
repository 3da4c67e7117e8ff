"""Columns by their ids: what a file of an older version shows today, at any depth, and what is left for the next."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.column_history import history_time, moved_columns, newest_history, parse_history
from hudi_py.formats.column_versions import next_version
from hudi_py.formats.conform import conform_batch
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.formats.renamed import name_today, renamed_batch, renamed_schema, stored_name
from hudi_py.formats.schema_evolution import resolve_schema
from hudi_py.rows.column_ids import ColumnIds
from support.column_model import Columns, arrow_of, changed, document, rows_of, shown

NAMES = st.text("abc", min_size=1, max_size=2)


@given(st.data())
def test_older_files_show_each_column_under_its_name_of_today(data):
    """Whatever was renamed, dropped, added anew or moved to another place, inside structs, lists and maps, too."""
    columns = Columns()
    versions = [columns.draw(data, NAMES)]
    for _ in range(data.draw(st.integers(1, 4))):
        versions.append(changed(data, columns, versions[-1], NAMES))
    texts = [json.dumps(document(each, number, columns)) for number, each in enumerate(versions)]
    history = json.dumps({"schemas": [json.loads(each) for each in reversed(texts)]}).encode()
    today = versions[-1]
    found = moved_columns(texts[-1], history, {}, "t")
    for number, version in enumerate(versions):
        rows = data.draw(rows_of(version))
        stored = pa.RecordBatch.from_pylist([shown(version, row) for row in rows], schema=arrow_of(version))
        stored = stored.slice(data.draw(st.integers(0, len(rows))))
        moved = None if found is None else found.of(str(number))
        renamed = stored if moved is None else renamed_batch(stored, moved)
        wanted = [shown(today, row) for row in rows[len(rows) - stored.num_rows :]]
        # Maps as pairs on both sides: PyArrow 20 makes no dictionaries of maps inside of maps.
        read = conform_batch(renamed, arrow_of(today)).to_pylist()
        assert read == pa.RecordBatch.from_pylist(wanted, schema=arrow_of(today)).to_pylist()
        if moved is not None:
            assert renamed_schema(stored.schema, moved).names == renamed.schema.names
            for name in stored.schema.names:
                now = name_today(name, moved)
                assert now is None or stored_name(now, moved) == name


@given(st.data())
def test_the_next_version_has_the_old_ids_and_fresh_ones(data):
    """New columns get ids that no column had; old columns keep theirs; and the text has the form of Hudi's."""
    columns = Columns()
    before = columns.draw(data, NAMES)
    latest = json.dumps(document(before, 1, columns))
    history = json.dumps({"schemas": [json.loads(latest)]}).encode()
    name = data.draw(NAMES.filter(lambda each: each not in {column.name for column in before}))
    added = columns.column(data, name, NAMES)
    schema = pa.schema([*arrow_of(before), *arrow_of([added])])
    text, content = next_version(latest, history, schema, added=[name], promoted=[], version=9, source="t")
    new, versions = json.loads(text), parse_history(content, "t")
    assert versions == [new, json.loads(latest)]
    expected = document([*before, added], 9, columns)
    assert new == expected  # the model numbers columns as Hudi did in its own tables
    assert ": " not in text


def test_a_widened_column_keeps_its_id():
    """As after ``alter column … type bigint``."""
    latest = version(3, [(0, "id", "int"), (1, "f", "float")])
    resolved = resolve_schema(
        '{"type":"record","name":"r","fields":[{"name":"id","type":["null","int"],"default":null},'
        '{"name":"f","type":["null","float"],"default":null}]}',
        pa.schema([("id", pa.int64()), ("f", pa.float64())]),
        "t",
    )
    text, _ = next_version(
        latest, b"", resolved.schema, added=resolved.added, promoted=resolved.promoted, version=4, source="t"
    )
    assert [(each["id"], each["type"]) for each in json.loads(text)["fields"]] == [(0, "long"), (1, "double")]


def test_new_columns_of_types_that_releases_record_differently_are_refused():
    """Before anything is written; Hudi can add them itself."""
    with pytest.raises(UnsupportedTable, match=r"column 'd' is new and of type decimal.*ALTER TABLE"):
        schema = pa.schema([("d", pa.decimal128(10, 2))])
        next_version(version(1, []), b"", schema, added=["d"], promoted=[], version=2, source="t")


def test_new_fields_inside_of_columns_are_refused():
    """Before anything is written; Hudi can add them itself."""
    ids = ColumnIds(latest=version(1, []), history=b"", moved=None, has_other_types=False, source="t")
    one, two = (pa.schema([("s", pa.struct([(name, pa.int32()) for name in names]))]) for names in ("a", "ab"))
    resolved = resolve_schema(format_record_schema(one, "t"), two, "t")
    with pytest.raises(UnsupportedTable, match=r"s\.b is new.*ALTER TABLE"):
        ids.left_by(resolved, "2")


def version(number, fields):
    found = [{"id": key, "name": name, "optional": True, "type": kind} for key, name, kind in fields]
    return json.dumps({"max_column_id": 99, "version_id": number, "type": "record", "fields": found})


def test_a_commit_goes_before_the_history_and_the_history_by_its_last_version_before():
    """A file has the columns that its commit names, else those of the last version that is not newer than it."""
    old, new = version(0, [(1, "a", "int")]), version(20, [(1, "b", "int")])
    history = json.dumps({"schemas": [json.loads(new), json.loads(old)]}).encode()
    found = moved_columns(new, history, {"25": old}, "t")
    assert found.of("19").names == {"a": "b"}
    assert found.of("20") is None
    assert found.of("25").names == {"a": "b"}
    late = moved_columns(new, json.dumps({"schemas": [json.loads(new)]}).encode(), {"25": old}, "t")
    with pytest.raises(UnsupportedTable, match="neither the commit 19 nor the history"):
        late.of("19")
    assert moved_columns(old, history, {"10": old}, "t").of("30").names == {"b": "a"}
    assert moved_columns(old, json.dumps({"schemas": [json.loads(old)]}).encode(), {"10": old}, "t") is None
    lost = moved_columns(old, b"", {"10": old}, "t")
    assert lost.of("10") is None
    with pytest.raises(UnsupportedTable, match="neither the commit 19 nor the history"):
        lost.of("19")


@pytest.mark.parametrize(
    "damaged",
    [
        b"[]",
        b'{"schemas": [{}]}',
        b"{",
        b'{"schemas": [{"version_id": 1, "max_column_id": 1, "type": "x"}]}',
        json.dumps({"schemas": [json.loads(version(1, [(1, "a", "int"), (1, "b", "int")]))]}).encode(),
        json.dumps({"schemas": [json.loads(version(1, [(1, "a", "int"), (2, "a", "int")]))]}).encode(),
        json.dumps({"schemas": [json.loads(version(1, [(1, "a", {"type": "array"})]))]}).encode(),
        b'{"schemas": [' + b'{"fields":[' * 50000 + b"]}",
    ],
)
def test_damaged_histories_are_told(damaged):
    """Of a history without the columns of today, nobody knows what else it lacks; what is none is an error."""
    latest = version(7, [(1, "a", "int")])
    for lost in (b"", json.dumps({"schemas": [json.loads(version(6, [(1, "b", "int")]))]}).encode()):
        with pytest.raises(UnsupportedTable, match="neither the commit 8 nor the history"):
            moved_columns(latest, lost, {}, "x").of("8")
    with pytest.raises(CorruptMetadata, match=r"x: .*no history of schemas"):
        moved_columns(latest, damaged, {}, "x")
    with pytest.raises(CorruptMetadata, match="x: latest_schema of a commit"):
        moved_columns(damaged.decode(), b"", {}, "x")


def test_the_newest_history_of_a_completed_commit_counts():
    """Both layouts' names; files of pending, failed or rolled back writes and foreign files do not count."""
    names = ["20240101000000000.schemacommit", "20240102000000000_20240102000001000.schemacommit"]
    others = [
        "20240103000000000.schemacommit.inflight",
        ".x.schemacommit.crc",
        "20240104000000000.schemacommit.requested",
    ]
    assert newest_history([*names, *others], lambda time: True) == names[1]
    assert newest_history([*names, *others], lambda time: time < "20240102") == names[0]
    assert newest_history(others, lambda time: True) is None
    assert newest_history(names, lambda time: False) is None
    assert [history_time(name) for name in (*names, *others)] == [
        "20240101000000000",
        "20240102000000000",
        "20240103000000000",
        None,
        "20240104000000000",
    ]
