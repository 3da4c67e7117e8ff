"""A table that lost its metadata table is read from its folders, and nobody writes to it before that is mended."""

from __future__ import annotations

import logging
from functools import cache

import pytest

from hudi_py.mdt.table import MetadataTableMissing
from support import writes

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
INDEXES = {
    "hoodie.metadata.enable": True,
    "hoodie.metadata.record.index.enable": True,
}
WAYS = {
    "whole": lambda path: True,
    "timeline and properties": lambda path: path.startswith(".hoodie/metadata/.hoodie/"),
    "properties": lambda path: path.startswith(".hoodie/metadata/.hoodie/hoodie.properties"),
}
READS = {
    "rows": lambda t: t.rows().to_arrow().select(writes.SCHEMA.names).sort_by("id").to_pylist(),
    "key": lambda t: t.rows(where="id = 'a'", columns=["id", "ts"]).to_arrow().to_pylist(),
    "range": lambda t: t.rows(where="ts > 1", columns=["id"]).to_arrow().sort_by("id").to_pylist(),
    "changes": lambda t: t.changes().to_arrow().num_rows,
    "as of": lambda t: t.rows(as_of=t.timeline.commits.completed()[0].requested_time).to_arrow().num_rows,
    "partitions": lambda t: t.partitions(),
    "clean": lambda t: t.plan_clean(commits_retained=1, details=True).files,
    "explain": lambda t: t.explain("eu", commits_retained=1),
    "usage": lambda t: t.usage(commits_retained=1).by_partition["eu"],
    "erased": lambda t: [each for each in t.erased(partition="eu").held if each.path.startswith("eu/")],
}
CHANGES = {
    "upsert": lambda t: writes.upsert(t.storage, writes.CHANGES),
    "clean": lambda t: t.clean(file_versions_retained=1),
    "cluster": lambda t: t.cluster(),
    "archive": lambda t: t.archive(keep_min_commits=1, keep_max_commits=2),
    "savepoint": lambda t: t.create_savepoint(t.timeline.commits.completed()[-1].requested_time),
    "rollback": lambda t: t.rollback(t.timeline.commits.completed()[-1].requested_time),
}


@cache
def filled(version):
    storage = writes.create_table(version)
    for rows in (writes.OLD, writes.CHANGES):
        writes.upsert(storage, rows, **INDEXES)
    assert {"files", "record_index"} <= set(writes.open_table(storage).config.metadata_partitions)
    return storage


def hurt(version, way):
    storage = filled(version).copy()
    for path in [each for each in storage.files() if each.startswith(".hoodie/metadata/") and WAYS[way](each)]:
        storage.delete(path)
    return storage


@VERSIONS
@pytest.mark.parametrize("way", WAYS)
def test_readers_list_the_folders_and_say_so(version, way, caplog):
    """As those of Apache Hudi 0.15.0, 1.0.2 and 1.1.1 do; conditions on keys and columns find the same rows."""
    storage = hurt(version, way)
    for name, read in READS.items():
        expected = read(writes.open_table(filled(version)))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "hudi_py"):
            assert read(writes.open_table(storage)) == expected, name
        assert "metadata.missing" in caplog.text, name
        assert "recover" in caplog.text, name


@VERSIONS
@pytest.mark.parametrize("way", WAYS)
def test_whoever_changes_the_table_refuses_before_anything_is_touched(version, way):
    """What is not recorded would be hidden from whoever finds the metadata table again; recover mends it."""
    storage = hurt(version, way)
    before = storage.files()
    (told,) = (each for each in writes.open_table(storage).plan_clean().warnings if "refused" in each)
    assert "hudi-py recover" in told
    for name, change in CHANGES.items():
        with pytest.raises(MetadataTableMissing, match="hudi-py recover clears that property"):
            change(writes.open_table(storage, **writes.ALONE))
        assert storage.files() == before, name
    found = {each.code: each.fix for each in writes.open_table(storage).check()}
    code = "mdt-folder-missing" if way == "whole" else "mdt-unreadable"
    assert "hudi-py recover" in found[code]
    writes.open_table(storage).recover()
    assert not writes.open_table(storage).check()
    for change in (CHANGES["upsert"], CHANGES["clean"], CHANGES["archive"]):
        change(writes.open_table(storage, **writes.ALONE))
    assert writes.rows_of(storage) == writes.NEW


@VERSIONS
def test_a_clean_that_waits_is_not_carried_out_without_a_record(version):
    """It would delete files first and find out then; after a recovery it goes on."""
    storage = filled(version).copy()
    services = writes.open_table(storage, **writes.ALONE).services
    services.clean(services.clean_config(file_versions_retained=1)).schedule()
    assert writes.open_table(storage).timeline.pending("clean")
    for path in [each for each in storage.files() if each.startswith(".hoodie/metadata/")]:
        storage.delete(path)
    before = storage.files()
    with pytest.raises(MetadataTableMissing):
        writes.open_table(storage, **writes.ALONE).clean(file_versions_retained=1)
    assert storage.files() == before
    writes.open_table(storage).recover()
    writes.open_table(storage, **writes.ALONE).clean(file_versions_retained=1)
    assert writes.open_table(storage).timeline.completed("clean")
    assert writes.rows_of(storage) == writes.NEW
