"""Rows that are refused after the write began leave nothing pending behind."""

from decimal import Decimal

import attrs
import pyarrow as pa
import pytest

import hudi_py
from hudi_py.config.door import admitted
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, ConflictError, RefusedError, WriteError
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind
from hudi_py.runtime.clock import SystemClock
from hudi_py.table_merge import Clause, Merge, Rows
from hudi_py.table_statements import rows_to_delete
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from hudi_py.write_service import WriteService
from support import writes

SETTINGS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
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


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_has_announced_files_is_rolled_back_at_once(monkeypatch, version):
    """The files and the instant are gone before the error is raised; a task that is late finds the fence."""
    storage = writes.create_table(version)

    def announce(rows, job):
        name = f"a-0_0-0-0_{job.instant_time}.parquet"
        create_marker(storage, job.instant_time, Marker("eu", name, MarkerType.CREATE))
        storage.create_new(f"eu/{name}", b"half")
        raise WriteError("a later batch is refused")

    monkeypatch.setattr("hudi_py.local.rows.ArrowRows.write", announce)
    with pytest.raises(WriteError):
        writes.upsert(storage, writes.OLD)
    table = writes.open_table(storage)
    assert not table.timeline.pending()
    assert [each.action.value for each in table.timeline.completed()] == ["rollback"]
    assert not storage.list("eu")


def test_merge_on_a_column_that_is_not_compared_is_refused():
    """Structs, lists and maps: Arrow joins on none of them."""
    schema = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string()))])
    merge = Merge(
        source=pa.table({"id": ["a"], "tags": [["x"]]}),
        on=("tags",),
        clauses=(Clause(rows=Rows.MATCHED, deletes=True),),
    )
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

    class Statement:
        conditions = ()
        adds = False

        def check(self, *_):
            pass

        def find(self, *_):
            raise error("no answer")

    settings = admitted({"hoodie.clean.failed.writes.policy": policy})
    with pytest.raises(error, match="no answer"):
        WriteService(storage, settings, SystemClock(), LocalEngine).change(Statement(), "DELETE")
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


def test_keys_to_delete_have_the_types_of_the_table(tmp_path):
    """The key 1.1 is no key of a table whose keys read 1.10: nothing would be deleted, and nobody would know."""
    rows = pa.table({"id": pa.array([Decimal("1.10")], pa.decimal128(5, 2)), "v": [1]})
    hudi_py.write(tmp_path / "t", rows, settings=SETTINGS)
    table = hudi_py.open_table(tmp_path / "t")
    with pytest.raises(ConfigError, match="'id' is decimal128"):
        table.delete(pa.table({"id": pa.array([Decimal("1.1")], pa.decimal128(5, 1))}))
    assert table.delete(rows.select(["id"])).rows_deleted == 1


def test_a_flag_of_deletions_that_is_a_text_is_refused(tmp_path):
    """Apache Hudi would store it as a column and delete nothing."""
    rows = pa.table({"id": ["a"], "_hoodie_is_deleted": ["true"]})
    with pytest.raises(ConfigError, match="only a boolean says"):
        hudi_py.write(tmp_path / "t", rows, settings=SETTINGS)
    assert not (tmp_path / "t").exists() or not list((tmp_path / "t").iterdir())


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "upsert"])
def test_flagged_rows_are_never_inserted(operation, tmp_path):
    """They stand for deletions, and there is nothing to delete."""
    rows = pa.table({"id": ["a", "b"], "_hoodie_is_deleted": [True, False]})
    assert hudi_py.write(tmp_path / "t", rows, operation, settings=SETTINGS).rows_inserted == 1
    table = hudi_py.open_table(tmp_path / "t")
    assert table.rows(columns=["id"]).to_arrow().to_pylist() == [{"id": "b"}]
    table.bulk_insert(rows.slice(0, 1))
    assert table.rows().to_arrow().num_rows == 1


def test_the_operation_in_the_settings_is_done_or_contradicted(tmp_path):
    """It is that of a job of Apache Hudi whose settings are shared."""
    asked = SETTINGS | {"hoodie.datasource.write.operation": "bulk_insert"}
    rows = pa.table({"id": ["a"]})
    assert hudi_py.write(tmp_path / "t", rows, settings=asked).metadata.operation_type == "BULK_INSERT"
    with pytest.raises(ConfigError, match="leave one of them out"):
        hudi_py.write(tmp_path / "t", rows, "upsert", settings=asked)


def test_a_lock_that_cannot_be_held_is_refused_before_a_table_is_created(tmp_path):
    """Else an empty table would stay behind."""
    lock = {"hoodie.write.lock.provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"}
    with pytest.raises(ConfigError, match="not supported"):
        hudi_py.write(tmp_path / "t", pa.table({"id": ["a"]}), settings=SETTINGS | lock)
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_merge_that_inserts_names_nulls_that_match_nothing(tmp_path):
    """A row without a partition value would be inserted beside the one that the table has."""
    settings = SETTINGS | {"hoodie.datasource.write.partitionpath.field": "p"}
    rows = pa.table({"id": ["a"], "p": pa.array([None], pa.string())})
    hudi_py.write(tmp_path / "t", rows, settings=settings)
    with pytest.raises(WriteError, match="'p', which is null in 1 row of"):
        hudi_py.open_table(tmp_path / "t").merge(rows, ["id", "p"]).when_not_matched_insert().execute()


MARKED = {
    "update": lambda table, _: table.update({"_hoodie_is_deleted": True}, where="id = 'a'"),
    "matched": lambda table, rows: table.merge(rows.slice(0, 1), "id").when_matched_update().execute(),
    "new": lambda table, rows: table.merge(rows.slice(1), "id").when_not_matched_insert().execute(),
    "left": lambda table, rows: (
        table.merge(rows.slice(1), "id").when_not_matched_by_source_update({"_hoodie_is_deleted": "true"}).execute()
    ),
}


@pytest.mark.parametrize("statement", MARKED)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_statement_marks_no_rows_as_deleted(kind, statement, tmp_path):
    """It would delete what it says to update or insert; rows of a source that are not marked are taken."""
    rows = pa.table({"id": ["a", "b"], "_hoodie_is_deleted": [True, True]})
    settings = {**SETTINGS, "hoodie.datasource.write.table.type": kind}
    hudi_py.write(tmp_path, pa.table({"id": ["a"], "_hoodie_is_deleted": [False]}), settings=settings)
    table = hudi_py.open_table(tmp_path)
    with pytest.raises(WriteError, match="1 row would be marked as deleted"):
        MARKED[statement](table, rows)
    assert table.refresh().rows().to_arrow().num_rows == 1
    merge = table.merge(rows.set_column(1, "_hoodie_is_deleted", pa.array([None, False])), "id")
    assert merge.when_matched_update().when_not_matched_insert().execute().rows_inserted == 1


RESERVED = {
    "_hudi_py_deletion": "used while rows are written",  # true would delete the row
    "_Hudi_Py_key": "used while rows are written",
    "_HOODIE_RECORD_KEY": "the same name as '_hoodie_record_key' of Hudi",
    "_hoodie_Operation": "the same name as '_hoodie_operation' of Hudi",
}


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_columns_whose_names_are_taken_are_refused(operation, name, tmp_path):
    """By hudi_py for what it marks rows with, and by Hudi's own for Spark, which tells no cases apart."""
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1], name: [True, False]})
    with pytest.raises(ConfigError, match=f"column '{name}'.*{RESERVED[name]}.*rename it"):
        hudi_py.write(str(tmp_path / "t"), rows, settings=SETTINGS, operation=operation)
    assert not (tmp_path / "t").exists()
    hudi_py.write(str(tmp_path / "t"), rows.drop_columns([name]), settings=SETTINGS)
    table = hudi_py.open_table(tmp_path / "t", settings=SETTINGS)
    merge = table.merge(rows, on=["id"]).when_matched_update({"ts": "ts + 1"})
    with pytest.raises(ConfigError, match=f"column '{name}'"):
        merge.execute()
    assert len(table.refresh().timeline.completed()) == 1
