"""Tables without key columns: rows get keys of their own, and what needs keys of rows is refused by name."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError
from support import writes

KEY = "hoodie.datasource.write.recordkey.field"
SPILLED = {"hoodie.memory.merge.max.size": 2000}


def created(version=9, **more):
    return writes.create_table(version, **{KEY: "", **more})


def given(count, ts=1):
    """Rows that repeat themselves, mostly in one partition."""
    return [{"id": f"k{number % 7}", "region": "eu" if number % 4 else "us", "ts": ts} for number in range(count)]


def stored(storage):
    """Rows with their keys, as readers see them."""
    found = writes.open_table(storage).rows(with_meta=True).to_arrow().to_pylist()
    keys = [row["_hoodie_record_key"] for row in found]
    assert len(keys) == len(set(keys))
    return {row["_hoodie_record_key"]: tuple(row[name] for name in writes.SCHEMA.names) for row in found}


def values(rows):
    return sorted(tuple(row[name] for name in writes.SCHEMA.names) for row in rows)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
def test_every_inserted_row_gets_a_key_of_its_instant_and_keeps_it(version, kind, streamed):
    """Inserts, bulk inserts and overwrites add all their rows; conditions change and delete some of them."""
    storage = created(version, **{"hoodie.table.type": kind, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    assert "recordkey" not in storage.read(".hoodie/hoodie.properties").decode()
    expected = []
    for ts, operation in enumerate(["insert", "bulk_insert", "insert"]):
        table = writes.open_table(storage, **writes.ALONE, **(SPILLED if streamed else {}))
        rows = given(60, ts)
        table_of = pa.Table.from_pylist(rows, schema=writes.SCHEMA)
        before = stored(storage)
        done = getattr(table, operation)(iter(table_of.to_batches(9)) if streamed else table_of)
        after = stored(storage)
        assert before.items() <= after.items()
        assert {key.rsplit("_", 1)[0] for key in after.keys() - before.keys()} == {f"{done.instant}_0"}
        expected += rows
        assert values(expected) == sorted(after.values())
    table = writes.open_table(storage, **writes.ALONE)
    assert table.delete(where="id = 'k3' and ts = 1").rows_deleted == 9
    expected = [row for row in expected if (row["id"], row["ts"]) != ("k3", 1)]
    writes.open_table(storage, **writes.ALONE).update({"ts": "ts + 100"}, where="id = 'k4'")
    expected = [row | {"ts": row["ts"] + 100 * (row["id"] == "k4")} for row in expected]
    assert values(expected) == sorted(stored(storage).values())
    writes.assert_tidy(storage, (version, kind))
    over = [row | {"ts": 7} for row in given(20) if row["region"] == "us"]
    writes.open_table(storage, **writes.ALONE).insert_overwrite(pa.Table.from_pylist(over, schema=writes.SCHEMA))
    expected = [row for row in expected if row["region"] != "us"] + over
    assert values(expected) == sorted(stored(storage).values())
    files = [content for name, content in storage.files().items() if name.endswith(".parquet")]
    assert not [name for content in files for name in pq.read_schema(io.BytesIO(content)).names if "generated" in name]


@pytest.mark.parametrize(
    ("operation", "settings"),
    [
        ("upsert", {}),
        ("delete", {}),
        ("insert", {"hoodie.combine.before.insert": True}),
        ("insert", {"hoodie.datasource.write.insert.drop.duplicates": True}),
        ("insert", {"hoodie.datasource.insert.dup.policy": "fail"}),
        ("insert", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}),
        ("insert", {KEY: "id"}),
    ],
)
def test_what_needs_keys_of_rows_is_refused(operation, settings):
    """By name, before anything is written."""
    storage = created()
    with pytest.raises(ConfigError, match="key"):
        table = writes.open_table(storage, **settings, **writes.ALONE)
        getattr(table, operation)(pa.Table.from_pylist(given(3), schema=writes.SCHEMA))
    assert not len(writes.open_table(storage).timeline)


def test_a_merge_updates_rows_and_inserts_none():
    """Rows are matched by their values; a new row would need a key of its own."""
    storage = created(**{"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    writes.open_table(storage, **writes.ALONE).insert(pa.Table.from_pylist(given(4), schema=writes.SCHEMA))
    source = pa.table({"id": ["k1"], "ts": [50]})
    writes.open_table(storage, **writes.ALONE).merge(source, on=["id"]).when_matched_update(
        {"ts": "source.ts"}
    ).execute()
    assert values(stored_rows(storage)) == values(
        [row | {"ts": 50 if row["id"] == "k1" else row["ts"]} for row in given(4)]
    )
    with pytest.raises(ConfigError, match="generated"):
        merge = writes.open_table(storage, **writes.ALONE).merge(source, on=["id"])
        merge.when_matched_update({"ts": "source.ts"}).when_not_matched_insert().execute()


def stored_rows(storage):
    return [dict(zip(writes.SCHEMA.names, row, strict=True)) for row in stored(storage).values()]
