"""Files that are gone when their rows are read: the error names what took them, and says what to do."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConflictError, NotFound
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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("read", ["rows", "changes"])
@pytest.mark.parametrize("service", ["rollback", "restore"])
def test_the_error_names_what_undid_the_write(version, kind, read, service):
    """Between the listing and the reading; the rows of before can then be read."""
    storage = writes.create_table(version, **{"hoodie.datasource.write.table.type": kind})
    upsert(storage, writes.OLD, **PLAIN)
    table = open_table(storage, **PLAIN)
    (first,) = table.timeline.writes.completed()
    if service == "restore":
        table.create_savepoint(first.requested_time)
    upsert(storage, [{**writes.OLD[0], "id": "another", "region": "new"}], **PLAIN)
    table = open_table(storage, **PLAIN)
    second = table.timeline.writes.completed()[-1]
    rows = (
        table.rows()
        if read == "rows"
        else table.changes(first.completion_time or first.requested_time, with_deletes=True)
    )
    other = open_table(storage, **PLAIN)
    getattr(other, service)(second.requested_time if service == "rollback" else first.requested_time)
    with pytest.raises(NotFound, match=rf"{service} \d+ .*undid the write.*open the table and read again"):
        rows.to_arrow()
    assert len(open_table(storage, **PLAIN).rows().to_arrow()) == len(writes.OLD)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("service", ["rollback", "restore"])
def test_the_error_names_what_undid_the_write_before_the_files_are_listed(version, kind, service):
    """Between the reading of the commit and the listing."""
    storage = writes.create_table(version, **{"hoodie.datasource.write.table.type": kind})
    upsert(storage, writes.OLD, **PLAIN)
    (first,) = open_table(storage, **PLAIN).timeline.writes.completed()
    if service == "restore":
        open_table(storage, **PLAIN).create_savepoint(first.requested_time)
    upsert(storage, [{**writes.OLD[0], "id": "another", "region": "new"}], **PLAIN)
    table = open_table(storage, **PLAIN)
    second = table.timeline.writes.completed()[-1]
    assert table.contents.commit(second).partition_to_write_stats["new"]
    other = open_table(storage, **PLAIN)
    getattr(other, service)(second.requested_time if service == "rollback" else first.requested_time)
    with pytest.raises(ConflictError, match=rf"{service} \d+ .*undid the write of new/.*open it and read again"):
        table.rows()
