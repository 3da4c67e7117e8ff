"""A write that another process rolls back before it can commit."""

import pyarrow as pa
import pytest

from hudi_py.errors import TimelineStateError
from hudi_py.local.rows import ArrowRows
from support.writes import CHANGES, OLD, SCHEMA, create_table, open_table, rows_of, upsert, write

WITH_METADATA = {"hoodie.metadata.enable": True}


class OvertakenRows:
    """Rows whose write is rolled back by another process once its files are written."""

    schema = SCHEMA

    def __init__(self, storage):
        self.storage, self.rows = storage, ArrowRows(pa.Table.from_pylist(CHANGES, schema=SCHEMA))

    def shaped(self, *_, **__):
        return self

    def write(self, job):
        results = self.rows.write(job)
        open_table(self.storage, **WITH_METADATA).rollback(job.instant_time)
        return results


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_that_was_rolled_back_is_not_recorded(version):
    """Its record would count in the metadata table, for its instant is gone: deleted files would be listed."""
    storage = create_table(version)
    upsert(storage, OLD, **WITH_METADATA)
    with pytest.raises(TimelineStateError, match="rolled"):
        write(storage, OvertakenRows(storage), open_table(storage, **WITH_METADATA), "UPSERT")
    assert open_table(storage).check() == ()
    assert rows_of(storage) == OLD
