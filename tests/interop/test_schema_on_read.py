"""Tables whose columns real Hudi renames, drops, adds, widens and reorders: both sides write to them in turn."""

from uuid import uuid4

import pyarrow as pa
import pytest
from real_hudi.canonical import canonical_rows

from support.schema_on_read import ALTER, COLUMNS, Evolving

pytestmark = pytest.mark.oracle

FIRST = [
    {"id": 1, "name": "n1", "old": "o1", "qty": 1, "price": 1.5, "ts": 1, "part": "p"},
    {"id": 2, "name": "n2", "old": "o2", "qty": 2, "price": 2.5, "ts": 1, "part": "p"},
    {"id": 3, "name": "n3", "old": "o3", "qty": 3, "price": 3.5, "ts": 1, "part": "q"},
]
NESTED = {"s": {"a": 1, "b": "x"}, "l": [{"x": 1, "y": 2}], "m": {"k": {"v": 1, "w": 2}}}


@pytest.fixture
def evolving(peer, tmp_path, request):
    kind = request.param
    table = Evolving(peer, tmp_path / "t", f"t{uuid4().hex}", kind)
    table.sql("set spark.sql.parquet.enableVectorizedReader=false")  # Hudi reads renamed fields of structs only so
    yield table
    table.sql("reset spark.sql.parquet.enableVectorizedReader")
    table.sql(f"drop table if exists {table.name}")


@pytest.mark.parametrize("evolving", ["cow", "mor"], indirect=True)
def test_both_write_to_a_table_whose_columns_change(evolving):
    """After each change of columns and each write of either side, both read the rows of a model that knows columns."""
    table = evolving
    table.create(COLUMNS)
    table.hudi_inserts([{**row, **NESTED} for row in FIRST])
    for statement in ALTER:
        table.alter(statement)
    table.both_read_the_model()
    # Row 1 is in a file with row 2, whose values are still under their first names there.
    table.we_write("upsert", [{"id": 1, "title": "N1", "old": "O1", "ts": 2, "part": "p"}])
    table.we_write("upsert", [{"id": 5, "title": "n5", "qty": 5, "extra": "e5", "ts": 2, "part": "p"}])
    table.we_write("insert", [{"id": 6, "price": "6.5", "s": {"a": 6, "c": "six", "d": 6}, "ts": 2, "part": "q"}])
    table.we_delete([{"id": 2, "part": "p"}])
    table.we_update({"title": "'N3'"}, "id = 3", {3: {"title": "N3"}})
    # Hudi goes on: its writer finds the ids in our commits, and the history in our files.
    table.alter("rename column title to label")
    table.hudi_updates({"label": "'L5'", "ts": "3"}, 5, {"label": "L5", "ts": 3})
    table.we_write("upsert", [{"id": 6, "label": "L6", "ts": 4, "part": "q", "new": 7}], adds={"new": pa.int64()})
    table.alter("rename column new to newer")
    table.we_write("upsert", [{"id": 7, "label": "L7", "newer": 8, "ts": 5, "part": "r"}])
    table.alter("drop column old")
    table.we_write("bulk_insert", [{"id": 8, "ts": 6, "part": "q"}])
    table.we_write("insert_overwrite", [{"id": 9, "label": "L9", "ts": 7, "part": "r"}], replaces="r")
    table.hudi_updates({"label": "'L9b'", "ts": "8"}, 9, {"label": "L9b", "ts": 8})
    if table.kind == "mor":
        table.we_run("compact")
        table.we_write("upsert", [{"id": 8, "label": "L8", "ts": 9, "part": "q"}])
        table.alter("rename column label to last")
        table.hudi_compacts()
    else:
        table.alter("rename column label to last")
    table.we_run("cluster")
    table.hudi_updates({"last": "'L8b'", "ts": "10"}, 8, {"last": "L8b", "ts": 10})


@pytest.mark.parametrize("evolving", ["cow"], indirect=True)
def test_the_folder_and_the_commits_are_those_of_hudi(evolving):
    """Our write leaves the ids and the history as they were, byte for byte, under names that follow Hudi's grammar."""
    table = evolving
    table.create(COLUMNS)
    table.hudi_inserts([{**row, **NESTED} for row in FIRST])
    table.alter("rename column name to title")
    table.hudi_updates({"title": "'a'", "ts": "2"}, 1, {"title": "a", "ts": 2})
    folder = table.path / ".hoodie" / ".schema"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".crc")}
    commit = table.newest_commit()
    table.we_write("upsert", [{"id": 1, "title": "b", "ts": 3, "part": "p"}])
    ours = table.newest_commit()
    assert {name: ours[name] for name in ("schema", "latest_schema")} == {
        name: commit[name] for name in ("schema", "latest_schema")
    }
    added = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in before}
    added = {name: content for name, content in added.items() if not name.endswith(".crc")}
    shapes = {table.shape(name) for name in before}
    assert {table.shape(name) for name in added} == shapes
    newest = max(name for name in before if name.endswith(".schemacommit"))
    assert {content for content in added.values() if content} == {before[newest]}


@pytest.mark.parametrize("evolving", ["mor"], indirect=True)
def test_both_read_the_same_doubles_where_log_files_have_floats(evolving):
    """0.1 in 0.15 and 1.1, which convert each value; 1.0 lets Avro read it."""
    table = evolving
    table.create("id int, x float, ts bigint, part string")
    table.sql(f"insert into {table.name} values (1, float(5), 1, 'p')")
    table.sql(f"update {table.name} set x = float(0.1), ts = 2 where id = 1")
    table.sql(f"alter table {table.name} alter column x type double")
    ours = canonical_rows(table.opened().rows().to_arrow().to_pylist())
    assert table.peer.read(table.path, options={"hoodie.schema.on.read.enable": True}) == ours
    assert ours == [{"id": 1, "part": "p", "ts": 2, "x": ours[0]["x"]}]
    assert table.opened().compact()
    assert canonical_rows(table.opened().rows().to_arrow().to_pylist()) == ours
