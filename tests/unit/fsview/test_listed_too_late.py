"""A table that was opened long before its files are listed: the error names the clean that deleted them."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConflictError
from support import writes
from support.writes import open_table, upsert

PLAIN = {"hoodie.metadata.enable": False}


@pytest.mark.parametrize("version", [6, 9])
def test_the_error_names_the_clean_and_the_way_out(version):
    """Not that of a moment ago, which goes away when one tries again."""
    storage = writes.create_table(version)
    upsert(storage, writes.OLD, **PLAIN)
    snapshot = open_table(storage, **PLAIN).snapshot()
    for number in range(2, 4):
        upsert(storage, [{**row, "ts": number} for row in writes.OLD], **PLAIN)
    (clean,) = open_table(storage, **PLAIN).clean(commits_retained=1)
    with pytest.raises(ConflictError, match=rf"clean {clean.instant}.*table\.lease"):
        snapshot.rows().to_arrow()
