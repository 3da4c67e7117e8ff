"""A delta commit of table version 6 that failed, and that an upgrade left pending: nothing is damaged."""

import pytest

from hudi_py.errors import RefusedError
from hudi_py.testing import Crash, StopBefore
from support import upgrading, writes
from support.many_writers import contents, rows, service, table


def failed(version=6):
    """It has appended to the log file of an earlier write, and has a marker that names that."""
    storage = table(version, "MERGE_ON_READ")
    counting = StopBefore(storage.copy(), 1_000)
    service(counting).write(rows(("d", "eu", 9)), "UPSERT")
    for number in reversed(range(counting.count)):
        found = storage.copy()
        with pytest.raises(Crash):
            service(StopBefore(found, number)).write(rows(("d", "eu", 9)), "UPSERT")
        if writes.open_table(found).timeline.writes.pending():
            found.delete(".hoodie/lock")
            found.delete_folder(".hoodie/.heartbeat")
            return found
    raise AssertionError("it never was pending")


@pytest.mark.parametrize("begun", [False, True], ids=["not begun", "rollback begun"])
@pytest.mark.parametrize("version", [8, 9])
def test_it_is_refused_by_name_and_changes_nothing(version, begun, monkeypatch):
    """Who meets it is told why it cannot be undone here, and what to do; the rows are those of before."""
    storage = failed()
    expected = contents(storage)
    if begun:
        for number in range(100):
            copy = storage.copy()
            with pytest.raises(Crash):
                writes.open_table(StopBefore(copy, number)).rollback_failed_writes()
            if any(path.endswith(".rollback.inflight") for path in copy.files()):
                break
        storage = copy
    monkeypatch.setattr(upgrading, "_end_what_runs", lambda _: None)
    upgrading.upgrade(writes.open_table(storage), version)
    before = {path: data for path, data in storage.files().items() if "/hudi_py/" not in path}
    with pytest.raises(RefusedError, match="begun before the table was upgraded from version 6") as raised:
        writes.open_table(storage).rollback_failed_writes()
    assert "downgrade" in raised.value.fix
    assert before == {path: data for path, data in storage.files().items() if "/hudi_py/" not in path}
    assert contents(storage) == expected
