"""A damaged commit that readers go on without is logged once, however many of them meet it."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.table import open_table
from support import fixtures


@pytest.mark.parametrize("name", ["mor_compacted-0.15.0", "mor_logs-1.0.2", "cow_mixed-1.1.1"])
def test_a_damaged_commit_is_logged_once(name, tmp_path, caplog):
    """By all questions to one open table together: listing, sizes and rows each meet it."""
    root = fixtures.unpack(name, tmp_path)
    table = open_table(str(root))
    newest = table.timeline.commits.completed()[-1]
    (root / table.contents.store.path(newest)).write_bytes(b"broken")
    table = open_table(str(root))
    with caplog.at_level(logging.WARNING, "hudi_py"):
        table.overview()
        for partition in table.partitions():
            table.file_slices(partition)
        with pytest.raises(CorruptMetadata):
            table.rows().to_arrow()
    told = Counter(each.fields["instant"] for each in caplog.records if each.event == "view.commit.unreadable")
    assert set(told.values()) <= {1}, told
    assert name != "mor_compacted-0.15.0" or told == {newest.requested_time: 1}
