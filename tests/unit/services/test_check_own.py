"""What hudi_py keeps beside a table and cannot read stops all deletion: `check` names it, and `recover` tells it."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.timeline.leases import FOLDER
from hudi_py.timeline.policy_file import path_of
from support.tables import TableBuilder, at


def history():
    builder = TableBuilder()
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"]})
    return builder


@pytest.mark.parametrize("name", ["0123456789ab.json", "notes.txt"])
def test_a_damaged_lease_is_found_where_it_lies(name):
    """A whole one is not; while a damaged one is there, cleans refuse, and released, they go on."""
    builder = history()
    builder.table().take_lease(ttl="3h")
    assert not builder.table().check()
    builder.put(f"{FOLDER}/{name}", b"{")
    (found,) = builder.table().check()
    assert (found.code, found.where) == ("lease-damaged", f"{FOLDER}/{name}")
    with pytest.raises(CorruptMetadata):
        builder.table().clean(commits_retained=1)
    told = [outcome.finding for outcome in builder.table().recover(dry_run=True)]
    assert any("lease-damaged" in str(each) for each in told)
    builder.storage.delete(f"{FOLDER}/{name}")
    assert not builder.table().check()


def test_a_policy_without_its_document_is_found():
    """One that is there is not; removed, nothing is wrong any more."""
    builder = history()
    mark = builder.table().apply_policy("keep.commits = 2").mark
    assert not builder.table().check()
    builder.storage.delete(path_of(mark))
    (found,) = builder.table().check()
    assert (found.code, mark in found.where) == ("policy-unreadable", True)
    builder.table().remove_policy()
    assert not builder.table().check()
