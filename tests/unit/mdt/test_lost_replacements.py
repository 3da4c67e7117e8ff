"""A lost write that replaced file groups brings back the rows that it replaced; that is noticed where it can be."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.model.instant import Action
from support import writes

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
ALONE = {"hoodie.metadata.enable": False}


def replaced(version):
    """Rows, an overwrite of all of them, and an update of what that wrote; with the path of the overwrite."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD, **ALONE)
    writes.upsert(storage, writes.OLD, operation="INSERT_OVERWRITE_TABLE", **ALONE)
    writes.upsert(storage, writes.CHANGES, **ALONE)
    assert writes.rows_of(storage) == writes.NEW
    table = writes.open_table(storage)
    (instant,) = table.timeline.completed(Action.REPLACE_COMMIT)
    return storage, table.contents.store.path(instant)


@VERSIONS
def test_a_commit_that_was_built_on_a_lost_one_proves_it(version):
    """Without a metadata table and markers; all readers refuse, as the check says."""
    storage, path = replaced(version)
    storage.delete(path)
    for read in (lambda t: t.rows(), lambda t: t.changes(), lambda t: t.plan_clean(file_versions_retained=1)):
        with pytest.raises(CorruptMetadata, match=r"was completed once .* built on its file group"):
            read(writes.open_table(storage))
    assert "instant-completion-lost" in [each.code for each in writes.open_table(storage).check()]


@VERSIONS
def test_a_replacement_without_content_is_no_commit_that_did_nothing(version):
    """It is unknown which groups it replaced."""
    storage, path = replaced(version)
    storage.replace(path, b"")
    for read in (lambda t: t.rows(), lambda t: t.plan_clean(file_versions_retained=1)):
        with pytest.raises(CorruptMetadata, match=r"replacecommit is empty: which file groups .* replaced is unknown"):
            read(writes.open_table(storage))
    assert "instant-empty" in [each.code for each in writes.open_table(storage).check()]
