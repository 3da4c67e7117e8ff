"""Changes by condition of merge-on-read tables: they are seen as the statement says, or nothing is committed."""

import pyarrow as pa
import pytest

from hudi_py.errors import RefusedError, WriteError
from support import writes

SMALL = {"hoodie.index.bloom.num_entries": 100, "hoodie.parquet.small.file.limit": 0, **writes.ALONE}
DEFAULT_PAYLOAD = {"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"}
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def table_of(version, rows, **more):
    """A table with *rows* (id and ts) in one base file, ordered by event time."""
    more |= DEFAULT_PAYLOAD if version == 6 else {}
    table = writes.open_table(writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"}, **more), **SMALL)
    table.insert(arrow(rows))
    return table


def arrow(rows):
    return pa.table({"id": [i for i, _ in rows], "region": ["eu"] * len(rows), "ts": [ts for _, ts in rows]})


def rows_of(table):
    return sorted((row["id"], row["ts"]) for row in table.refresh().rows().to_arrow().to_pylist())


def logs_of(table):
    return [path for path in table.storage.files() if ".log." in path and not path.startswith(".hoodie/")]


@VERSIONS
def test_statements_write_one_log_file_for_a_group(version):
    """Rows that a merge updates, deletes and inserts again stand in one; new keys in a base file."""
    table = table_of(version, [("a", 1), ("b", 1), ("c", 1)])
    assert table.update({"ts": "ts + 1"}, where="id in ('a', 'b')").rows_updated == 2
    assert table.delete(where="ts = 1").rows_deleted == 1
    assert len(logs_of(table)) == 2
    done = table.merge(arrow([("c", 2), ("d", 1), ("b", 3)]), "id").when_matched_update().when_not_matched_insert()
    assert done.execute().files_written == 2
    assert len(logs_of(table)) == 3
    assert rows_of(table) == [("a", 2), ("b", 3), ("c", 2), ("d", 1)]


@VERSIONS
@pytest.mark.parametrize("value", [1, None])
def test_an_update_that_readers_would_pass_over_is_refused(version, value):
    """The stored row would win by its ordering value; nothing is committed."""
    table = table_of(version, [("a", 5)])
    for _ in ("in the base file", "in a log file"):
        with pytest.raises(WriteError, match="1 updated rows would not be seen"):
            table.update({"ts": value})
        table.update({"ts": "ts"})
    assert len(table.refresh().timeline.commits.completed()) == 3


def test_an_update_of_a_base_file_that_logs_always_win_over_may_lower_the_ordering_value():
    """So it is in version 6 with the payload that takes the latest row; over a log file it is refused."""
    latest = writes.open_table(writes.create_table(6, **{"hoodie.table.type": "MERGE_ON_READ"}), **SMALL)
    latest.insert(arrow([("a", 5)]))
    latest.update({"ts": 4})
    assert rows_of(latest) == [("a", 4)]
    with pytest.raises(WriteError, match="would not be seen"):
        latest.update({"ts": 3})


@VERSIONS
def test_an_inserted_row_that_an_older_one_would_hide_is_refused(version):
    """A log file forgets the deletion of a key where a row follows it: the base file's row would come back."""
    table = table_of(version, [("a", 5), ("b", 5)])
    table.delete(where="id = 'a'")
    merge = table.merge(arrow([("a", 4), ("b", 6)]), "id").when_matched_update().when_not_matched_insert()
    with pytest.raises(WriteError, match="1 inserted rows would not be seen"):
        merge.execute()
    assert rows_of(table) == [("b", 5)]
    table.merge(arrow([("a", 5), ("b", 6)]), "id").when_matched_update().when_not_matched_insert().execute()
    assert rows_of(table) == [("a", 5), ("b", 6)]


@VERSIONS
@pytest.mark.parametrize("statement", ["update", "delete"])
def test_a_key_that_a_base_file_holds_twice_is_not_changed(version, statement):
    """A log file changes the first row or all of them, whichever of them is meant."""
    table = table_of(version, [("a", 1), ("a", 2), ("b", 3)], **{"hoodie.combine.before.insert": False})
    with pytest.raises(RefusedError, match="several rows with the key 'a'"):
        table.delete(where="ts = 2") if statement == "delete" else table.update({"ts": 9}, where="ts = 2")
    assert rows_of(table) == [("a", 1), ("a", 2), ("b", 3)]
