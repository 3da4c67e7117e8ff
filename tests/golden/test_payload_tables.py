"""What we do to tables whose rows a payload class of Apache Hudi merges: services yes, writes no."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import UnsupportedTable
from hudi_py.rows.read import plain_rows
from support.fixtures import HASHED_META, combined_names, row_hash, unpack_combined

NAMES = [name for name in combined_names() if name.startswith("payload_") and "default" not in name]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1}


def rows_of(table, **how):
    return [row for batch in table.rows(with_meta=True, **how) for row in plain_rows(batch)]


def files_of(path):
    return {str(each): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_a_compaction_leaves_the_rows_that_hudi_reads(name, tmp_path):
    """In memory or through temporary files; afterwards base files alone show them."""
    for memory in ("1", "1073741824"):
        path, reads = unpack_combined(name, tmp_path / memory)
        settings = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.memory.compaction.max.size": memory}
        hudi_py.open_table(path, settings=settings).compact()
        for how in ({}, {"read_optimized": True}):
            found = rows_of(hudi_py.open_table(path), **how)
            assert (len(found), row_hash(found, HASHED_META)) == tuple(reads["snapshot"].values())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_written_and_services_are_served(name, tmp_path):
    """Rows and log compactions are refused by the name of the class before a file is touched."""
    path, reads = unpack_combined(name, tmp_path)
    before = files_of(path)
    table = hudi_py.open_table(path, settings=BUCKETS)
    rows = pa.Table.from_batches(table.rows()).slice(0, 3)
    payload = table.config.properties["hoodie.compaction.payload.class"].rpartition(".")[2]
    for refused in (
        lambda: table.upsert(rows),
        lambda: table.insert(rows),
        lambda: table.delete(where="id = 'k01'"),
        lambda: table.update({"a": "'z'"}, where="id = 'k01'"),
        lambda: table.merge(rows, on="id").when_matched_update().execute(),
    ):
        with pytest.raises(UnsupportedTable, match=payload):
            refused()
    assert "payload class" in str(table.services.log_compaction().plan().reason)
    assert files_of(path) == before
    table.rollback(list(reads["as_of"])[-1])
    found = rows_of(hudi_py.open_table(path))
    earlier = reads["as_of"][list(reads["as_of"])[-2]]
    assert (len(found), row_hash(found, HASHED_META)) == tuple(earlier.values())
    hudi_py.open_table(path).compact()
    hudi_py.open_table(path).clean(file_versions_retained=1)
    found = rows_of(hudi_py.open_table(path))
    assert (len(found), row_hash(found, HASHED_META)) == tuple(earlier.values())
