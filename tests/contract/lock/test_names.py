"""One lock for one table, whatever its writers call it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from hudi_py.config.lock import LockKind
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.factory import open_storage
from hudi_py.txn.table_lock import TableLock

AT_ONCE = {"hoodie.write.lock.client.num_retries": 0, "hoodie.write.lock.wait_time_ms": 0}
FILE, IN_PROCESS = LockKind.FILE.value, LockKind.IN_PROCESS.value


def test_one_table_has_one_lock_whatever_it_is_called(tmp_path):
    """Within a process, by links and schemes; and the lock file in the table is no lock of somebody else."""
    (tmp_path / "table/.hoodie").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "table")
    clock = FixedClock(datetime.now(timezone.utc))

    def lock(root, **settings):
        return TableLock(open_storage(root), Settings({**AT_ONCE, **settings}), clock, sleep=pytest.fail)

    in_process = {"hoodie.write.lock.provider": IN_PROCESS}
    first, second = (lock(tmp_path / name, **in_process) for name in ("table", "link"))
    with first.held("one"), pytest.raises(ConflictError), second.held("two"):
        pytest.fail("two holders")
    folder = f"{tmp_path}/table/.hoodie"
    other = lock(tmp_path / "table", **{"hoodie.write.lock.provider": FILE})
    for name in (folder, f"{folder}/", f"file://{folder}", f"file:{folder}", f"{tmp_path}/link/.hoodie"):
        named = lock(
            tmp_path / "table", **{"hoodie.write.lock.provider": FILE, "hoodie.write.lock.filesystem.path": name}
        )
        with named.held("one"), pytest.raises(ConflictError), other.held("two"):
            pytest.fail("two holders")
