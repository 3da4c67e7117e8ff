"""Log files that a write creates after another process planned its rollback, because it took the write for dead."""

from contextlib import suppress
from contextvars import Context

import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError
from hudi_py.local.rows import ArrowRows
from hudi_py.testing import Crash
from support.meanwhile import Meanwhile, ending
from support.writes import OLD, SCHEMA, create_table, merged_rows_of, open_table, upsert, write

LATE = [{**OLD[0], "ts": 9}, {"id": "n", "region": "ap", "ts": 9}]


class LateRows:
    """Rows whose write another process begins to undo before any of their files is there; it dies behind its plan."""

    schema = SCHEMA

    def __init__(self, storage):
        self.storage, self.rows = storage, ArrowRows(pa.Table.from_pylist(LATE, schema=SCHEMA))

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        Context().run(self._begin_to_undo, job.instant_time)
        return self.rows.write(job)

    def _begin_to_undo(self, time):
        def die():
            raise Crash("behind the plan")

        stopped = Meanwhile(self.storage, die, before=ending("rollback.inflight"))
        with suppress(Crash):
            open_table(stopped).rollback(time)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_of_a_write_that_was_undone_stay_away_when_the_timeline_begins_later(version):
    """Of a file that no instant knows any more, readers take the rows for those of an archived commit."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    upsert(storage, OLD)
    with pytest.raises(ConflictError, match="rolled back"):
        write(storage, LateRows(storage), open_table(storage), "UPSERT")
    open_table(storage).rollback_failed_writes()
    assert merged_rows_of(storage) == OLD
    for ts in range(2, 8):
        upsert(storage, [{**OLD[1], "ts": ts}])
    open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert merged_rows_of(storage) == [OLD[0], {**OLD[1], "ts": 7}]
    assert not [each for each in open_table(storage).check() if each.severity.name == "ERROR"]
