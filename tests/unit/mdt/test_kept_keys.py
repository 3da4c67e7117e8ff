"""Indexes of keys in the metadata table: every action of ours keeps them true of the rows that are there."""

import json

import pyarrow as pa
import pytest

from hudi_py.local.rows import ArrowRows
from hudi_py.mdt.bloom_filters import decode_filter
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.removal import disable_unmaintained_partitions, partition_folders
from hudi_py.mdt.statistics import key_suffix
from hudi_py.mdt.table import MetadataTable
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import INTERRUPTION_MODES
from support import fixtures, writes
from support.crash_points import interruptions
from support.indexes import assert_true, loaded, places, recorded
from support.metadata_tables import compact_metadata_table, update_properties

INDEXED = [name for name in fixtures.row_fixture_names() if "record_index" in name or "all_indexes" in name]
INDEXED.remove("cow_all_indexes-1.1.1")  # it has a secondary and an expression index, too
FEW = [*INDEXED[1:2], INDEXED[-1]]
QUIET = {"hoodie.index.bloom.num_entries": 10, "hoodie.parquet.small.file.limit": 0}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """``fresh(name)``: a table with indexes, in memory."""
    kept = {}

    def of(name):
        if name not in kept:
            kept[name] = loaded(name, tmp_path_factory.mktemp("t")).files()
        return MemoryStorage.from_files(kept[name])

    return of


def rows_of(storage):
    rows = writes.open_table(storage).rows().to_arrow()
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])


def changed(storage, count, **columns):
    """The first rows of a table, with other values; a callable gets the number of the row."""
    rows = rows_of(storage).slice(0, count)
    for name, value in columns.items():
        at = rows.column_names.index(name)
        values = [value(number) if callable(value) else value for number in range(rows.num_rows)]
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))
    return rows


def write(storage, rows, operation="UPSERT", **settings):
    return writes.write(storage, ArrowRows(rows), writes.open_table(storage, **QUIET, **settings), operation)


def partitions_of(storage):
    return writes.open_table(storage).config.metadata_partitions


@pytest.mark.parametrize("name", INDEXED)
def test_theirs_is_true_to_begin_with(name, fresh):
    """What Apache Hudi wrote passes the comparison that ours has to pass."""
    assert_true(fresh(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEXED)
def test_every_kind_of_write_keeps_the_indexes(name, fresh):
    """Upserts, inserts, deletes, overwrites, compactions of the metadata table, a clean: all are kept, all are true."""
    storage = fresh(name)
    had = partitions_of(storage)
    write(storage, changed(storage, 4, ts=99_999))
    assert_true(storage, "upsert")
    write(storage, changed(storage, 3, id=lambda n: f"new{n}", ts=99_999))
    assert_true(storage, "new keys")
    write(storage, changed(storage, 3, id=lambda n: f"ins{n}"), "INSERT")
    write(storage, changed(storage, 3, id=lambda n: f"bulk{n}"), "BULK_INSERT")
    assert_true(storage, "inserts")
    write(storage, changed(storage, 2), "DELETE")
    assert_true(storage, "delete")
    write(storage, changed(storage, 1, ts=99_999), **{"hoodie.metadata.compact.max.delta.commits": 1})
    assert_true(storage, "compacted")
    table = writes.open_table(storage)
    assert all(each.base for each in MetadataTable(storage).slices(MetadataTable(storage).store.load()))
    write(storage, changed(storage, 1), "DELETE")
    write(storage, changed(storage, 2, id=lambda n: f"over{n}", ts=1), "INSERT_OVERWRITE")
    assert_true(storage, "overwritten")
    writes.open_table(storage).clean(file_versions_retained=1)
    assert_true(storage, "cleaned")
    assert compact_metadata_table(storage, writes.open_table(storage).timeline, 1)
    assert_true(storage, "compacted again")
    write(storage, changed(storage, 2, id=lambda n: f"all{n}"), "INSERT_OVERWRITE_TABLE")
    assert_true(storage, "all overwritten")
    writes.open_table(storage).drop_partitions(["r0"])
    assert_true(storage, "dropped")
    table = writes.open_table(storage)
    assert partitions_of(storage) == had
    assert [] == [each for each in table.check() if each.severity.name != "INFO"]


@pytest.mark.parametrize("name", ["cow_record_index-1.1.1", "mor_record_index-1.0.2", "mor_record_index-0.15.0"])
def test_a_key_that_was_deleted_comes_back(name, fresh):
    """Also where the base file has it still, under a log file that deletes it."""
    storage = fresh(name)
    rows = changed(storage, 3, ts=99_999)
    write(storage, rows, "DELETE")
    assert not set(rows.column("id").to_pylist()) & places(storage).keys()
    write(storage, rows)
    assert_true(storage)


@pytest.mark.parametrize("name", FEW)
def test_a_rollback_takes_the_records_back(name, fresh):
    """Of rows that came, moved and went."""
    storage = fresh(name)
    before = places(storage)
    write(storage, pa.concat_tables([changed(storage, 2, ts=99_999), changed(storage, 2, id=lambda n: f"new{n}")]))
    write(storage, changed(storage, 2), "DELETE")
    for _ in range(2):
        table = writes.open_table(storage)
        table.rollback(table.timeline.commits.completed()[-1].requested_time)
        assert_true(storage)
    assert before == places(storage)


@pytest.mark.parametrize("name", ["cow_all_indexes-1.0.2", "mor_record_index-0.15.0"])
def test_a_restore_takes_the_records_back(name, fresh):
    """To what the savepoint has, file for file."""
    storage = fresh(name)
    table = writes.open_table(storage)
    kept = table.timeline.commits.completed()[-1].requested_time
    table.create_savepoint(kept)
    before = places(storage)
    write(storage, changed(storage, 3, id=lambda n: f"new{n}", ts=99_999))
    write(storage, changed(storage, 3), "DELETE")
    writes.open_table(storage).restore(kept)
    assert before == places(storage)
    assert_true(storage)


@pytest.mark.parametrize("name", ["cow_all_indexes-1.0.2"])
@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_what_a_compaction_merged_takes_the_index_along(name, way, fresh):
    """What the commit replaced is not known any more, so the index goes rather than say what is not so."""
    storage = fresh(name)
    table = writes.open_table(storage)
    kept = table.timeline.commits.completed()[-1].requested_time
    table.create_savepoint(kept)
    write(storage, changed(storage, 2), "DELETE")
    table = writes.open_table(storage)
    newest = table.timeline.commits.completed()[-1].requested_time
    assert compact_metadata_table(storage, table.timeline, 1)
    if way == "rollback":
        writes.open_table(storage).rollback(newest)
    else:
        writes.open_table(storage).restore(kept)
    assert RECORD_INDEX not in partitions_of(storage)
    assert not [path for path in storage.files() if "/record_index/" in path]
    assert_true(storage)


def test_a_clean_takes_the_filters_of_its_files(fresh):
    """As Apache Hudi does; nobody asks for the filter of a file that is gone."""
    storage = fresh("cow_all_indexes-1.0.2")
    write(storage, changed(storage, 4, ts=99_999))
    (clean,) = writes.open_table(storage).clean(file_versions_retained=1)
    assert clean.deleted_files
    filters = recorded(storage, BLOOM_FILTERS)
    for path in clean.deleted_files:
        folder, _, name = path.rpartition("/")
        assert decode_filter(filters[key_suffix(folder, name)]) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow_record_index-1.1.1", "mor_record_index-0.15.0"])
def test_an_interrupted_write_leaves_true_indexes(name, fresh):
    """Stopped at any change of the storage, and the write after it: the index has each row and no other."""
    rows = pa.concat_tables([changed(fresh(name), 1, ts=99_999), changed(fresh(name), 1, id=lambda _: "new")])
    for case in interruptions(lambda: fresh(name), modes=INTERRUPTION_MODES[:1]):
        case.run(lambda faulty: write(faulty, rows))
        assert_true(case.storage, case)
        write(case.storage, rows)
        assert_true(case.storage, case)


def test_an_index_within_partitions_is_dropped(fresh, caplog):
    """Its file groups are numbered within each partition of the table, which this release does not write."""
    storage = fresh("cow_record_index-1.1.1")
    path = ".hoodie/.index_defs/index.json"
    text = storage.read(path).replace(b'"isPartitioned" : "false"', b'"isPartitioned" : "true"')
    storage.delete(path)
    storage.create_new(path, text)
    write(storage, changed(storage, 1))
    assert RECORD_INDEX not in partitions_of(storage)
    assert RECORD_INDEX in caplog.text
    assert text == storage.read(path)


def test_without_a_record_index_nothing_is_tracked(fresh):
    """The keys of a write are gathered for tables that need them."""
    storage = fresh("cow_all_indexes-1.0.2")
    update_properties(storage)({"hoodie.table.metadata.partitions": "files,bloom_filters"})
    write(storage, changed(storage, 2, id=lambda n: f"new{n}"))
    assert_true(storage)


DEFINED = {"secondary_index_idx_name", "expr_index_idx_day"}


def test_actions_that_write_rows_drop_defined_indexes(fresh, caplog):
    """With their definitions, and a warning that names them and their columns."""
    name = "cow_all_indexes-1.1.1"
    actions = {
        "upsert": lambda storage: write(storage, changed(storage, 1, ts=9)),
        "delete": lambda storage: write(storage, rows_of(storage).slice(0, 1), "DELETE"),
        "overwrite": lambda storage: write(storage, rows_of(storage).slice(0, 1), "INSERT_OVERWRITE"),
        "cluster": lambda storage: writes.open_table(storage).cluster(),
        "rollback": lambda storage: writes.open_table(storage).rollback(
            writes.open_table(storage).timeline.completed("commit")[-1].requested_time
        ),
    }
    for action, act in actions.items():
        storage = fresh(name)
        had = set(partitions_of(storage))
        assert had > DEFINED
        caplog.clear()
        result = act(storage)
        if action in ("upsert", "delete", "overwrite"):
            assert set(result.indexes_dropped) == DEFINED
            assert write(storage, rows_of(storage).slice(0, 1)).indexes_dropped == ()
        lost = {RECORD_INDEX, "partition_stats"} if action == "rollback" else set()  # they were compacted
        assert set(partitions_of(storage)) == had - DEFINED - lost, action
        assert all(each in caplog.text for each in (*DEFINED, "columns='name'")), action
        defined = json.loads(storage.read(".hoodie/.index_defs/index.json"))["indexDefinitions"]
        assert set(defined) == {RECORD_INDEX, "column_stats"}
        assert not [path for path in storage.files() if any(each in path for each in DEFINED)]
        assert_true(storage, action)


def test_a_clean_keeps_defined_indexes(fresh):
    """It changes no rows, and nobody asks for records of deleted files."""
    storage = fresh("cow_all_indexes-1.1.1")
    had = partitions_of(storage)
    writes.open_table(storage).clean(commits_retained=1)
    assert had == partitions_of(storage)


@pytest.mark.slow
def test_an_interrupted_drop_of_defined_indexes_is_completed(fresh):
    """Stopped at any change of the storage: the next write leaves neither partition, nor definition, nor folder."""
    original = fresh("cow_all_indexes-1.1.1")
    definitions = ".hoodie/.index_defs/index.json"

    def drop(storage):
        kept = frozenset(set(partitions_of(original)) - DEFINED)
        config = writes.open_table(storage).config
        disable_unmaintained_partitions(
            storage, config, update_properties(storage), folders=partition_folders(storage), kept=kept
        )

    for case in interruptions(lambda: fresh("cow_all_indexes-1.1.1")):
        case.run(drop)
        drop(case.storage)
        assert not DEFINED & set(partitions_of(case.storage)), case
        assert not DEFINED & set(json.loads(case.storage.read(definitions))["indexDefinitions"]), case
        assert not [path for path in case.storage.files() if any(each in path for each in DEFINED)], case
