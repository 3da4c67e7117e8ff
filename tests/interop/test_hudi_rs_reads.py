"""A second, independent reader: hudi-rs (package ``hudi``) reads the tables that we write. Needs no real Hudi."""

import pytest
from real_hudi import canonical_rows

from hudi_py.storage.local import LocalStorage
from support.interop_model import DEEP, FLAT, PARTITIONED, Model, numbers
from support.writes import CHANGES, NEW, OLD, create_table, upsert

pytestmark = pytest.mark.spark

RETAINED = 2
UPSERTS = 5


def _hudi_rs_rows(table, as_of=None):
    hudi = pytest.importorskip("hudi", reason="the package hudi (hudi-rs) is not installed")
    options = hudi.HudiReadOptions().with_as_of_timestamp(as_of) if as_of else None
    batches = hudi.HudiTableBuilder.from_base_uri(str(table)).build().read(options)
    return canonical_rows(row for batch in batches for row in _table(batch).to_pylist(maps_as_pydicts="strict"))


def _table(batch):
    import pyarrow as pa

    return pa.table(pa.record_batch(batch)) if not isinstance(batch, pa.RecordBatch) else batch


@pytest.mark.parametrize(
    ("variant", "table_version"),
    [(PARTITIONED, 6), (PARTITIONED, 8), (PARTITIONED, 9), (FLAT, 6), (DEEP, 8), (DEEP, 9)],
    ids=lambda value: getattr(value, "name", value),
)
def test_hudi_rs_reads_what_we_write(variant, table_version, ours, tmp_path):
    """Snapshot and time travel by hudi-rs give the model's rows, before and after a clean of ours."""
    table, model = tmp_path / "t", Model(variant)
    we = ours(table, variant.create(table_version) | {"hoodie.clean.automatic": False})
    history = []
    for version in range(1, UPSERTS + 1):
        wanted = range(8) if version == 1 else numbers(version, len(model), 4)
        we.write(model.upsert(variant.batch(wanted, version)))
        history.append((we.commit_times()[-1], model.rows()))
    we.write(model.delete(variant.batch([1, 2], UPSERTS + 1)), "delete")

    assert model.rows() == _hudi_rs_rows(table)
    for time, then in history[1::2]:
        assert then == _hudi_rs_rows(table, as_of=time)
    files_before = set(table.rglob("*.parquet"))
    we.clean(commits_retained=RETAINED)
    assert set(table.rglob("*.parquet")) < files_before, "the clean had something to delete"
    assert model.rows() == _hudi_rs_rows(table)
    time, then = history[-1]
    assert then == _hudi_rs_rows(table, as_of=time)


@pytest.mark.parametrize("table_version", [8, 9])
def test_hudi_rs_lists_through_our_metadata_table(table_version, tmp_path):
    """It reads the HFiles of our base files and log blocks; for table version 6 it lists the folders."""
    hudi = pytest.importorskip("hudi", reason="the package hudi (hudi-rs) is not installed")
    path = tmp_path / "t"
    for name, data in create_table(table_version).files().items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    storage = LocalStorage(str(path))
    upsert(storage, OLD, **{"hoodie.metadata.enable": "true"})
    upsert(storage, OLD)
    upsert(storage, CHANGES, **{"hoodie.metadata.compact.max.delta.commits": 1})
    upsert(storage, CHANGES)

    def read():
        builder = hudi.HudiTableBuilder.from_base_uri(str(path)).with_option("hoodie.metadata.enable", "true")
        rows = [row for batch in builder.build().read() for row in _table(batch).to_pylist()]
        return sorted(({name: row[name] for name in OLD[0]} for row in rows), key=lambda row: row["id"])

    files = path / ".hoodie" / "metadata" / "files"
    assert {file.suffix for file in files.iterdir()} > {".hfile"}
    assert read() == NEW
    files.rename(files.with_name("hidden"))
    assert read() == [], "it has not looked into the metadata table"
