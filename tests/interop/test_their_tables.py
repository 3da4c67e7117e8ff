"""Tables created by real Hudi, with and without a metadata table: we upsert and clean them, it goes on."""

import pyarrow as pa
import pytest
from real_hudi import canonical_rows

import hudi_py
from support.interop_model import PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle


@pytest.fixture
def their_table(peer, tmp_path):
    """``their_table(metadata)``: path, model, number of the next version."""

    def create(metadata):
        table, model = tmp_path / "t", Model(PARTITIONED)
        settings = {"hoodie.metadata.enable": metadata, "hoodie.clean.automatic": False}
        for version in (1, 2, 3):
            wanted = range(8) if version == 1 else numbers(version, len(model), 4)
            options = PARTITIONED.create(peer.table_version) | settings if version == 1 else settings
            peer.write(table, model.upsert(PARTITIONED.batch(wanted, version)), "upsert", options)
        return table, model, 4

    return create


@pytest.mark.parametrize("metadata", [False, True], ids=["no_metadata_table", "metadata_table_dropped"])
def test_we_go_on_with_their_table(metadata, peer, their_table, ours):
    """Our upsert and clean of a table of real Hudi are seen by it, and its next write keeps them."""
    table, model, version = their_table(metadata)
    we = ours(table, {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False})
    assert model.rows() == we.read()

    we.write(model.upsert(PARTITIONED.batch(numbers(version, len(model), 4), version)))
    assert not (table / ".hoodie" / "metadata").exists()
    assert model.rows() == peer.read(table)
    assert model.rows() == we.read()

    we.clean(commits_retained=1)
    assert model.rows() == peer.read(table)
    peer.write(
        table,
        model.upsert(PARTITIONED.batch(numbers(9, len(model), 4), version + 1)),
        "upsert",
        {"hoodie.metadata.enable": metadata},
    )
    for with_metadata in {False, metadata}:
        assert model.rows() == peer.read(table, metadata=with_metadata)
    assert peer.file_slices(table) == peer.file_slices(table, use_metadata=metadata)
    assert model.rows() == we.read()


def test_a_metadata_table_is_kept_right_or_the_write_refused(peer, their_table, ours):
    """Without leave to drop the metadata table, we either maintain it or change nothing at all."""
    table, model, version = their_table(True)
    we = ours(table, {"hoodie.clean.automatic": False})
    before = sorted(path.name for path in table.rglob("*"))
    batch = PARTITIONED.batch(numbers(version, len(model), 4), version)
    try:
        we.write(batch)
    except hudi_py.RefusedError:
        assert before == sorted(path.name for path in table.rglob("*"))
        return
    model.upsert(batch)
    for with_metadata in (False, True):
        assert model.rows() == peer.read(table, metadata=with_metadata)
    we.clean(commits_retained=1)
    assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(9, len(model), 4), version + 1)))
    for with_metadata in (False, True):
        assert model.rows() == peer.read(table, metadata=with_metadata)


@pytest.mark.parametrize("metadata", [False, True], ids=["no_metadata_table", "metadata_table"])
def test_names_of_other_scripts_go_both_ways(metadata, peer, ours, tmp_path):
    """Columns, fields and partitions named beyond ASCII: each side reads, updates and cleans what the other wrote."""
    nested = pa.struct([("名前", pa.string()), ("n", pa.int32())])
    fields = [("id", pa.int64()), ("größe", pa.int64()), ("адрес", nested), ("ts", pa.int64()), ("地区", pa.string())]

    def batch(numbers, version):
        rows = [
            {
                "id": n, "größe": n * version, "адрес": {"名前": f"ü{n}", "n": version}, "ts": version,
                "地区": ("Łódź", "東 京")[n % 2],
            }
            for n in numbers
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, pa.schema(fields))

    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "地区",
        "hoodie.datasource.write.hive_style_partitioning": True,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": peer.table_version,
        "hoodie.metadata.enable": metadata,
        "hoodie.clean.automatic": False,
    }
    table = tmp_path / "t"
    we = ours(table, settings)
    we.write(batch(range(6), 1))
    assert canonical_rows(batch(range(6), 1).to_pylist()) == peer.read(table) == we.read()
    peer.write(table, batch(range(3), 2), "upsert", {"hoodie.clean.automatic": False})
    both = canonical_rows([*batch(range(3), 2).to_pylist(), *batch(range(3, 6), 1).to_pylist()])
    assert both == peer.read(table) == we.read()
    assert {path.partition("=")[0] for path in hudi_py.open_table(str(table)).partitions()} == {"地区"}
    peer.write(table, batch(range(6), 3), "upsert", {"hoodie.clean.automatic": False})
    (cleaned,) = we.clean(commits_retained=1)
    assert cleaned.metadata.total_files_deleted == 2
    we.write(batch(range(6), 4))
    assert peer.clean(table, {"hoodie.cleaner.commits.retained": 1})["deleted_files"]
    for with_metadata in {False, metadata}:
        assert canonical_rows(batch(range(6), 4).to_pylist()) == peer.read(table, metadata=with_metadata) == we.read()
    assert peer.file_slices(table) == peer.file_slices(table, use_metadata=metadata)
