"""Rows that are refused after the write began leave nothing pending behind, as long as no file was announced."""

import attrs
import pyarrow as pa
import pytest

from hudi_py.config.door import admitted
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, ConflictError, RefusedError, WriteError
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind
from hudi_py.runtime.clock import SystemClock
from hudi_py.table_statements import Merge, rows_to_delete
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from hudi_py.write_service import WriteService
from support import writes

BAD = {"partition": {"id": "c", "region": "..", "ts": 3}, "key": {"id": None, "region": "eu", "ts": 3}}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
@pytest.mark.parametrize("operation", ["UPSERT", "INSERT", "BULK_INSERT"])
def test_a_refused_write_is_abandoned_at_once(version, bad, policy, operation):
    """No instant, no heartbeat, no marker: the next look at the table finds nothing to recover."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    settings = {"hoodie.clean.failed.writes.policy": policy}
    with pytest.raises(WriteError):
        writes.upsert(storage, [*writes.CHANGES, BAD[bad]], operation=operation, **settings)
    writes.assert_tidy(storage, bad)
    assert not [path for path in storage.files() if ".heartbeat/" in path]
    assert writes.rows_of(storage) == writes.OLD
    writes.upsert(storage, writes.CHANGES, **settings)
    assert writes.rows_of(storage) == writes.NEW


def test_a_write_that_has_announced_files_is_left_to_a_rollback(monkeypatch):
    """Somebody may be writing them."""
    storage = writes.create_table(9)

    def announce(rows, job):
        create_marker(storage, job.instant_time, Marker("eu", "x.parquet", MarkerType.CREATE))
        raise WriteError("a later batch is refused")

    monkeypatch.setattr("hudi_py.local.rows.ArrowRows.write", announce)
    with pytest.raises(WriteError):
        writes.upsert(storage, writes.OLD)
    (pending,) = writes.open_table(storage).timeline.pending()
    assert storage.list(f".hoodie/.temp/{pending.requested_time}")


def test_merge_on_a_column_that_is_not_compared_is_refused():
    """Structs, lists and maps: Arrow joins on none of them."""
    schema = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string()))])
    merge = Merge(source=pa.table({"id": ["a"], "tags": [["x"]]}), on=("tags",), deletes=True)
    generator = KeyGenerator(kind=KeyGeneratorKind.NON_PARTITION, record_key_fields=("id",))
    with pytest.raises(ConfigError, match="merge on 'tags'"):
        merge.find(None, generator, schema)
    twice = pa.table([["a"], [1], [2]], names=["id", "n", "n"])
    with pytest.raises(ConfigError, match="several columns called 'n'"):
        attrs.evolve(merge, source=twice, on=("id",)).find(None, generator, schema)


@pytest.mark.parametrize("where", [[], (), iter([])])
def test_delete_without_a_condition_is_refused(where):
    """A program that collects conditions and finds none does not mean all rows."""
    with pytest.raises(ConfigError, match="no condition"):
        rows_to_delete(where)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("error", [RefusedError, ConflictError])
@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_a_refused_statement_is_abandoned_at_once(version, error, policy):
    """A condition that cannot be answered, or a group that waits for a clustering, leaves no pending commit."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)

    def find(*_):
        raise error("no answer")

    settings = admitted({"hoodie.clean.failed.writes.policy": policy})
    with pytest.raises(error, match="no answer"):
        WriteService(storage, settings, SystemClock(), LocalEngine).change(find, "DELETE")
    writes.assert_tidy(storage, error)
    assert not [path for path in storage.files() if ".heartbeat/" in path]


def test_a_text_is_no_list_of_partitions():
    """Its letters could be partitions."""
    storage = writes.create_table(9)
    writes.upsert(storage, writes.OLD)
    service = WriteService(storage, admitted({}), SystemClock(), LocalEngine)
    with pytest.raises(ConfigError, match=r"\['eu'\]"):
        service.drop_partitions("eu")
    assert writes.rows_of(storage) == writes.OLD
