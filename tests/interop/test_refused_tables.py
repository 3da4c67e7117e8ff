"""Tables of real Hudi that hudi_py must not write: it looks at them, cleans them, and says why it goes no further."""

import pytest

import hudi_py
from support.interop_model import PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4}
CDC = {"hoodie.table.cdc.enabled": "true"}


def files_of(path):
    return {each: each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize(("options", "why"), [(CDC, r"cdc\.enabled=true")], ids=str)
def test_their_table_is_refused_for_writing_and_still_served(options, why, peer, ours, tmp_path):
    """Rows of ours would be duplicates, or missing from change queries; nothing is written, and they go on."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    settings = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False, **options}
    for version in (1, 2, 3):
        wanted = range(8) if version == 1 else numbers(version, len(model), 4)
        more = PARTITIONED.create(peer.table_version) if version == 1 else {}
        peer.write(table, model.upsert(PARTITIONED.batch(wanted, version)), "upsert", more | settings)
    we = ours(table, {"hoodie.clean.automatic": False})
    before = files_of(table)
    with pytest.raises(hudi_py.UnsupportedTable, match=why):
        we.write(PARTITIONED.batch(range(8), 4))
    assert before == files_of(table)
    assert model.rows() == we.read()
    assert we.clean(commits_retained=1)
    peer.write(table, model.upsert(PARTITIONED.batch(range(8), 5)), "upsert", settings)
    assert model.rows() == peer.read(table)
    assert model.rows() == we.read()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_of_buckets_is_written_in_turns(kind, peer, ours, tmp_path):
    """With the settings of its other writers: no key is stored twice, whoever wrote it first, updates or deletes it."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    settings = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False, **BUCKETS}
    settings["hoodie.datasource.write.table.type"] = kind
    peer.write(
        table, model.upsert(PARTITIONED.batch(range(8), 1)), "upsert", PARTITIONED.create(peer.table_version) | settings
    )
    with pytest.raises(hudi_py.UnsupportedTable, match="bucket index"):
        ours(table, {"hoodie.clean.automatic": False}).write(PARTITIONED.batch(range(8), 2))
    we = ours(table, settings)
    we.write(model.upsert(PARTITIONED.batch(range(4, 20), 2)))
    assert model.rows() == peer.read(table)
    peer.write(table, model.upsert(PARTITIONED.batch(range(24), 3)), "upsert", settings)
    we.write(model.upsert(PARTITIONED.batch(range(0, 30, 3), 4)))
    assert model.rows() == peer.read(table) == we.read()
    model = Model(PARTITIONED)
    we.write(model.upsert(PARTITIONED.batch(range(0, 30, 2), 5)), "insert_overwrite_table")
    assert model.rows() == peer.read(table) == we.read()
    peer.write(table, model.upsert(PARTITIONED.batch(range(30), 6)), "upsert", settings)
    assert model.rows() == peer.read(table) == we.read()
    opened = hudi_py.open_table(str(table))
    buckets = [(path, each.file_id[:8]) for path in opened.partitions() for each in opened.file_slices(path)]
    assert len(set(buckets)) == len(buckets)
