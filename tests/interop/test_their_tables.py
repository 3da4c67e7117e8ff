"""Tables created by real Hudi, with and without a metadata table: we upsert and clean them, it goes on."""

import pytest
from interop_model import PARTITIONED, Model, numbers

import hudi_py

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
