"""
Columns that changed their names by schema on read: a table that Hudi 0.15.0 evolved, read and written further.

Its history: two inserts; ``name`` renamed to ``title``, ``old`` dropped and added again, ``qty`` widened; an insert.
"""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConflictError, CorruptMetadata, UnsupportedTable
from support.fixtures import unpack_more

COLUMNS = ("id", "region", "ts")
FIRST = [("a0", "eu", 0), ("b0", "us", 0)]
SECOND = [*FIRST, ("a1", "eu", 1), ("b1", "us", 1)]
LAST = ("c1", "eu", 9)


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    return unpack_more("schema_on_read-0.15.0", tmp_path)


def opened(path, **settings):
    return hudi_py.open_table(
        path, settings={"hoodie.clean.automatic": False, "hoodie.archive.automatic": False} | settings
    )


def shown(keys, **columns):
    """The rows with these keys: each has its number in all columns."""
    found = []
    for key, region, ts in keys:
        row = {"id": key, "region": region, "ts": ts} | {name: value(ts) for name, value in columns.items()}
        found.append(row)
    return sorted(found, key=lambda row: row["id"])


def rows(table, **given):
    return sorted(table.rows(**given).to_arrow().to_pylist(), key=lambda row: row["id"])


def n(ts):
    return f"n{ts}"


def o(ts):
    return f"o{ts}"


def nothing(_):
    return None


def same(ts):
    return ts


LATEST = sorted(
    [
        *shown(SECOND, title=n, qty=same, old=nothing),
        {"id": "c1", "region": "eu", "ts": 9, "title": "t9", "qty": 9, "old": "new"},
    ],
    key=lambda row: row["id"],
)


def test_a_torn_commit_that_may_tell_the_columns_is_an_error_that_names_it(evolved):
    """Nobody may take older files to have the columns of today because the commit that says so is damaged."""
    newest = opened(evolved).timeline.commits.completed()[-1]
    (path,) = evolved.glob(f".hoodie/{newest.requested_time}*commit")
    path.write_bytes(path.read_bytes()[:100])
    for question in (lambda table: table.base_files(), rows):
        with pytest.raises(CorruptMetadata, match=path.name):
            question(opened(evolved))


def test_each_time_shows_the_columns_that_it_had(evolved):
    """By name a renamed column would be null in older files, and a new one would show what was dropped."""
    table = opened(evolved)
    times = [each.requested_time for each in table.timeline.commits.completed()]
    expected = [
        shown(FIRST, name=n, qty=same, old=o),
        shown(SECOND, name=n, qty=same, old=o),
        shown(SECOND, title=n, qty=same, old=o),
        shown(SECOND, title=n, qty=same),
        shown(SECOND, title=n, qty=same, old=nothing),
        shown(SECOND, title=n, qty=same, old=nothing),
        LATEST,
    ]
    assert [rows(table, as_of=time) for time in times] == expected
    assert [str(table.rows(as_of=times[at]).schema.field("qty").type) for at in (4, 5)] == ["int32", "int64"]


def test_conditions_are_put_to_the_values_of_today(evolved):
    """Bounds of footers belong to the names of their time: by those the first row groups would be left out."""
    table = opened(evolved)
    assert [row["id"] for row in rows(table, where="title = 'n1'")] == ["a1", "b1"]
    assert [row["id"] for row in rows(table, where="old is null")] == ["a0", "a1", "b0", "b1"]
    assert rows(table, where="old = 'o1'") == []
    found = table.rows(columns=["title"], where="title = 't9' and qty = 9").to_arrow().to_pylist()
    assert found == [{"title": "t9"}]
    since = table.timeline.commits.completed()[0].requested_time
    assert {row["id"]: row["title"] for row in table.changes(since).to_arrow().to_pylist()} == {
        "a1": "n1", "b1": "n1", "c1": "t9",
    }  # fmt: skip


def test_paths_of_files_are_not_handed_out_for_readers_by_name(evolved):
    """Such a reader would show null for a renamed column; files from before the change are fine for their time."""
    table = opened(evolved)
    first, second, renamed, *_, last = (each.requested_time for each in table.timeline.commits.completed())
    for time in (None, last, renamed):
        with pytest.raises(UnsupportedTable, match=r"title was name.*Table\.rows"):
            table.base_files(time)
    assert len(table.base_files(first)) == 2
    assert table.base_files(second)


def change(table, **columns):
    return pa.Table.from_pylist([columns], schema=table.schema)


def test_writes_keep_the_values_of_older_files(evolved):
    """Rows that are copied into new files take their values along, and the past is not changed by it."""
    table = opened(evolved)
    last = table.timeline.commits.completed()[-1].requested_time
    table.upsert(change(table, id="a1", region="eu", ts=10, title="T", qty=1 << 40, old="O"))
    expected = {row["id"]: dict(row) for row in LATEST}
    expected["a1"] = {"id": "a1", "region": "eu", "ts": 10, "title": "T", "qty": 1 << 40, "old": "O"}
    assert rows(opened(evolved)) == sorted(expected.values(), key=lambda row: row["id"])
    opened(evolved).delete(where="title = 'n0' and region = 'us'")
    opened(evolved).update({"old": "title"}, where="id = 'b1'")
    del expected["b0"]
    expected["b1"]["old"] = "n1"
    assert rows(opened(evolved)) == sorted(expected.values(), key=lambda row: row["id"])
    opened(evolved).cluster()
    assert rows(opened(evolved)) == sorted(expected.values(), key=lambda row: row["id"])
    assert rows(opened(evolved), as_of=last) == LATEST
    assert opened(evolved).base_files()  # all files have the names of today now


def test_a_write_leaves_ids_and_history_as_it_found_them(evolved):
    """Byte for byte; a column that the rows bring is added with a fresh id; the leftover of a failed write goes."""
    folder, table = evolved / ".hoodie" / ".schema", opened(evolved)
    before = max(folder.glob("*.schemacommit")).read_bytes()
    ids = table.contents.commit(table.timeline.commits.completed()[-1]).extra_metadata["latest_schema"]
    failed = folder / "20250101000000000.schemacommit"
    failed.write_bytes(b"of a write that was rolled back")
    instant = table.upsert(change(table, id="a1", region="eu", ts=10)).instant
    assert (folder / f"{instant}.schemacommit").read_bytes() == before
    assert not failed.exists()
    assert {(folder / f"{instant}.schemacommit.{state}").read_bytes() for state in ("requested", "inflight")} == {b""}
    table = opened(evolved)
    commit = table.contents.commit(table.timeline.commits.completed()[-1])
    assert commit.extra_metadata["latest_schema"] == ids
    wider = change(table, id="z", region="eu", ts=11).append_column("more", pa.array([5], pa.int64()))
    instant = table.upsert(wider).instant
    versions = json.loads((folder / f"{instant}.schemacommit").read_bytes())["schemas"]
    assert versions[1:] == json.loads(before)["schemas"]
    assert versions[0]["fields"][:-1] == versions[1]["fields"]
    assert versions[0]["fields"][-1] == {
        "id": versions[1]["max_column_id"] + 1, "name": "more", "optional": True, "type": "long",
    }  # fmt: skip
    assert (versions[0]["version_id"], versions[0]["max_column_id"]) == (int(instant), versions[0]["fields"][-1]["id"])


def test_a_write_that_is_taken_back_takes_its_columns_back(evolved):
    """The history that counts is then that of the commit before."""
    table = opened(evolved)
    wider = change(table, id="z", region="eu", ts=11).append_column("more", pa.array([5], pa.int64()))
    instant = table.upsert(wider).instant
    opened(evolved).rollback(instant)
    assert rows(opened(evolved)) == LATEST
    opened(evolved).upsert(change(table, id="b1", region="us", ts=12, title="T"))
    assert {row["id"]: row["title"] for row in rows(opened(evolved))}["b1"] == "T"
    assert not list((evolved / ".hoodie" / ".schema").glob(f"{instant}*"))


def contents_of(path):
    return {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}


def refused(path, match):
    """Every way of writing is refused, and nothing is touched."""
    table, before = opened(path), contents_of(path)
    row = change(table, id="a1", region="eu", ts=10)
    for write in (
        lambda: opened(path).upsert(row),
        lambda: opened(path).insert(row),
        lambda: opened(path).bulk_insert(row),
        lambda: opened(path).insert_overwrite(row),
        lambda: opened(path).delete(where="ts = 1"),
        lambda: opened(path).update({"ts": "1"}, where="ts = 1"),
        lambda: opened(path).drop_partitions(opened(path).partitions()[:1]),
        lambda: opened(path).cluster(),
    ):
        with pytest.raises(UnsupportedTable, match=match):
            write()
    assert contents_of(path) == before


def test_without_the_history_nothing_is_written(evolved):
    """Nothing would say any more what the columns of older files are; then reading is refused, too."""
    shutil.rmtree(evolved / ".hoodie" / ".schema")
    with pytest.raises(UnsupportedTable, match="neither the commit"):
        rows(opened(evolved))
    table, before = opened(evolved), contents_of(evolved)
    with pytest.raises(UnsupportedTable, match=r"left the history of its columns in \.hoodie/\.schema"):
        table.upsert(change(table, id="a1", region="eu", ts=10))
    assert contents_of(evolved) == before


def with_history(path, change):
    """Edit all versions of the columns, in the newest file of the folder and in the commits."""
    for file in [*(path / ".hoodie" / ".schema").glob("*.schemacommit"), *(path / ".hoodie").glob("*.commit")]:
        document = json.loads(file.read_bytes())
        if file.suffix == ".commit":
            text = document["extraMetadata"].get("latest_schema")
            if text:
                document["extraMetadata"]["latest_schema"] = json.dumps(change(json.loads(text)))
        else:
            document["schemas"] = [change(each) for each in document["schemas"]]
        file.write_text(json.dumps(document))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def test_a_key_column_that_was_renamed_is_refused(evolved):
    """Keys, partitions and ordering values are found by the names in the table's properties."""

    def renamed(version):
        for field in version["fields"]:
            if version["version_id"] == 0 and field["name"] == "ts":
                field["name"] = "was"
        return version

    with_history(evolved, renamed)
    refused(evolved, "ts, by which rows are found or ordered, was renamed or dropped")


def test_a_change_of_types_that_is_not_known_is_refused(evolved):
    """The values of older files would have to be converted in a way that has not been compared with Hudi's."""

    def other(version):
        for field in version["fields"]:
            if version["version_id"] == 0 and field["name"] == "qty":
                field["type"] = "date"
        return version

    with_history(evolved, other)
    refused(evolved, "a column of type date is long today")


def test_change_data_capture_is_refused(evolved):
    """Change logs have the columns of their time."""
    properties = evolved / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.cdc.enabled=true\n")
    refused(evolved, "change data capture")
    with pytest.raises(UnsupportedTable, match="change logs have the columns of their time"):
        opened(evolved).change_log("0")


def test_columns_that_change_while_a_write_runs_are_a_conflict(evolved, monkeypatch):
    """Its files would be taken to have the columns of the version before them, or its commit would undo the change."""
    from hudi_py.writing.rivals import Rivals

    settle = Rivals.settle
    ids = []

    def changed(rivals, now, instant, metadata):
        monkeypatch.setattr("hudi_py.writing.rivals.column_ids", lambda *_: "others")
        ids.append(instant)
        return settle(rivals, now, instant, metadata)

    monkeypatch.setattr(Rivals, "settle", changed)
    table = opened(evolved)
    with pytest.raises(ConflictError, match="the columns of the table were changed"):
        table.upsert(change(table, id="a1", region="eu", ts=10))
    assert ids
    monkeypatch.undo()
    assert rows(opened(evolved)) == LATEST
