"""What a merge reads: files that can hold a match, and all where a clause is about rows without one."""

import pyarrow as pa
import pytest

from hudi_py.storage.wrappers import DelegatingStorage
from support import writes

REGIONS = ("ap", "eu", "us")
ROWS = [
    {"id": f"{region}{number}", "region": region, "ts": number} for region in REGIONS for number in range(3)
]  # fmt: skip


class Opened(DelegatingStorage):
    """Notes in which partitions base files were opened."""

    def __init__(self, inner):
        super().__init__(inner)
        self.partitions = set()

    def _around(self, verb, paths, call):
        for path in [paths] if isinstance(paths, str) else paths:
            if verb == "open_read" and path.endswith(".parquet") and not path.startswith(".hoodie"):
                self.partitions.add(path.partition("/")[0])
        return call()


def merged(version, kind, rows, on, clauses):
    storage = Opened(writes.create_table(version, **{"hoodie.table.type": kind}))
    writes.upsert(storage, ROWS)
    table = writes.open_table(storage, **writes.ALONE)
    storage.partitions.clear()
    clauses(table.merge(pa.Table.from_pylist(rows, schema=writes.SCHEMA), on=on)).execute()
    opened = frozenset(storage.partitions)
    found = {row["id"]: row["ts"] for row in writes.merged_rows_of(storage)}
    return opened, found


def updated_or_new(merge):
    return merge.when_matched_update().when_not_matched_insert()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("given", "on", "opened"),
    [
        ([("eu1", "eu", 50), ("eu9", "eu", 51)], ["id", "region"], {"eu"}),
        ([("zz", "zz", 50)], ["id", "region"], set()),
        ([("eu1", "eu", 50)], ["id"], None),
    ],
)
def test_files_without_a_possible_match_stay_closed(version, kind, given, on, opened):
    """By their partitions; of keys alone, footers tell. The rows are those of the source and the others."""
    rows = [dict(zip(writes.SCHEMA.names, each, strict=True)) for each in given]
    seen, found = merged(version, kind, rows, on, updated_or_new)
    assert found == {row["id"]: row["ts"] for row in [*ROWS, *rows]}
    # Where log files of version 6 are merged, rows show stored values, and may lie in the partition of another one.
    shows_stored = (version, kind) == (6, "MERGE_ON_READ")
    assert opened is None or seen == (set(REGIONS) if shows_stored else opened)


def test_more_values_than_are_asked_for_one_by_one(monkeypatch):
    """Only the least and the greatest rule files out."""
    monkeypatch.setattr("hudi_py.rows.possible_matches._VALUES_MAX", 1)
    rows = [{"id": name, "region": "eu", "ts": 50} for name in ("eu0", "eu2", "eu7")]
    _, found = merged(9, "COPY_ON_WRITE", rows, ["id"], updated_or_new)
    assert found == {row["id"]: row["ts"] for row in [*ROWS, *rows]}


def test_clauses_about_rows_without_a_match_read_all():
    """They delete what the source does not have."""
    rows = [{"id": "eu1", "region": "eu", "ts": 50}]
    opened, found = merged(
        9, "COPY_ON_WRITE", rows, ["id", "region"], lambda merge: merge.when_not_matched_by_source_delete()
    )
    assert opened == set(REGIONS)
    assert found == {"eu1": 1}


def test_a_row_that_shows_a_value_which_its_path_does_not_say_is_matched():
    """A global index kept it where it was; a merge that looked in the other partition only would insert it again."""
    storage = writes.create_table(6, **{"hoodie.table.type": "MERGE_ON_READ"})
    writes.upsert(storage, ROWS)
    staying = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": False}
    writes.upsert(storage, [{"id": "eu1", "region": "us", "ts": 20}], **staying)
    table = writes.open_table(storage, **writes.ALONE)
    source = pa.Table.from_pylist([{"id": "eu1", "region": "us", "ts": 50}], schema=writes.SCHEMA)
    updated_or_new(table.merge(source, on=["id", "region"])).execute()
    assert [row["ts"] for row in writes.merged_rows_of(storage) if row["id"] == "eu1"] == [50]
