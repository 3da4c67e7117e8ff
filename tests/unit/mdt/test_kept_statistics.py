"""Statistics of columns: ours for their files are theirs, and every action of ours keeps them true of what is there."""

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_py.local.rows import ArrowRows
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS
from hudi_py.mdt.table import MetadataTable
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import INTERRUPTION_MODES
from support import fixtures, writes
from support.crash_points import interruptions
from support.indexes import recorded_statistics
from support.metadata_tables import compact_metadata_table, update_properties
from support.statistics import LOGS, assert_statistics_true, is_same, loaded, recomputed

ALL = {"0.15.0": "rows/cow_all_indexes-0.15.0", "1.0.2": "cow_partitioned-1.0.2", "1.2.0": "cow_partitioned-1.2.0"}
"""Release to a table of it that has statistics."""
QUIET = {"hoodie.index.bloom.num_entries": 10, "hoodie.parquet.small.file.limit": 0}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """``fresh(release)``: a table of that release with nothing but statistics beside its listing."""
    kept = {}

    def of(release):
        if release not in kept:
            storage = loaded((ALL | LOGS)[release], tmp_path_factory.mktemp("t"))
            if "all_indexes" in ALL.get(release, ""):
                names = "column_stats,files" if release == "0.15.0" else "column_stats,files,partition_stats"
                update_properties(storage)({"hoodie.table.metadata.partitions": names})
                for gone in set(MetadataTable(storage).partitions()) - set(names.split(",")):
                    storage.delete_folder(f".hoodie/metadata/{gone}")
            kept[release] = storage.files()
        return MemoryStorage.from_files(kept[release])

    return of


def stats_of(storage):
    return set(writes.open_table(storage).config.metadata_partitions) - {"files"}


def changed(storage, count, **columns):
    """The first rows of a table, with other values."""
    rows = writes.open_table(storage).rows().to_arrow()
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")]).slice(0, count)
    for name, value in columns.items():
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array([value] * rows.num_rows, rows.schema.field(at).type))
    return rows


def upsert(storage, rows, operation="UPSERT", **settings):
    writes.write(storage, ArrowRows(rows), writes.open_table(storage, **QUIET, **settings), operation)


@pytest.mark.parametrize(
    "name",
    [
        *(f"rows/{name}" for name in fixtures.row_fixture_names("cow_all_indexes")),
        "cow_partitioned-1.0.2",
        "cow_partitioned-1.1.1",
        "cow_partitioned-1.2.0",
        *LOGS.values(),
    ],
)
def test_records_of_their_files_are_theirs(name, tmp_path):
    """Each record of `column_stats`, of every file and column of the three releases, computed again from the file."""
    storage = loaded(name, tmp_path)
    if "column_stats" not in stats_of(storage):
        pytest.skip("the table has no statistics")
    ours, theirs = recomputed(storage)[COLUMN_STATS], recorded_statistics(storage, COLUMN_STATS)
    if "0.15.0" not in name:  # its records of deleted files stay
        assert ours.keys() == theirs.keys()
    for key, record in ours.items():
        assert is_same(record, theirs[key])


@pytest.mark.parametrize("release", ALL)
def test_a_write_keeps_the_statistics_of_a_table(release, fresh):
    """Updates beyond all bounds, a delete, a clean, a compaction: nothing is switched off, and all stays true."""
    storage = fresh(release)
    had = stats_of(storage)
    upsert(storage, changed(storage, 3, ts=99_999))
    assert stats_of(storage) == had
    assert_statistics_true(storage, "upsert")
    upsert(storage, changed(storage, 1), "DELETE")
    upsert(storage, changed(storage, 2, ts=100_000), **{"hoodie.metadata.compact.max.delta.commits": 1})
    assert_statistics_true(storage, "compacted")
    before = recorded_statistics(storage, COLUMN_STATS)
    writes.open_table(storage).clean(file_versions_retained=1)
    assert_statistics_true(storage, "cleaned")
    if release != "0.15.0":
        gone = {name for name in storage_names(before) if name not in {Path(path).name for path in storage.files()}}
        assert gone
        assert not gone & storage_names(recorded_statistics(storage, COLUMN_STATS))
    table = writes.open_table(storage)
    assert compact_metadata_table(storage, table.timeline, 1)
    assert_statistics_true(storage, "compacted again")
    assert [] == [each for each in table.check() if each.severity.name != "INFO"]
    assert stats_of(storage) == had


def storage_names(records):
    return {record.fields["fileName"] for record in records.values()}


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_rows_beyond_all_bounds_are_found(release, fresh):
    """Skipping by statistics sees the new rows, and skips the other files."""
    storage = fresh(release)
    rows = changed(storage, 1, ts=77_777)
    upsert(storage, rows)
    found = writes.open_table(storage).rows(where="ts = 77777").to_arrow()
    assert found.column("id").to_pylist() == rows.column("id").to_pylist()


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_rollback_takes_the_statistics_of_its_files_along(release, fresh):
    """Rolled back as recorded, and after a compaction has taken the records in."""
    for due in (10, 1):
        storage = fresh(release)
        upsert(storage, changed(storage, 3, ts=99_999))
        table = writes.open_table(storage)
        newest = table.timeline.completed("commit")[-1]
        mine = {path.rpartition("/")[2] for path in storage.files() if f"_{newest.requested_time}.parquet" in path}
        if due == 1:
            assert compact_metadata_table(storage, table.timeline, 1)
        try:
            writes.open_table(storage).rollback(newest.requested_time)
        except Exception as error:
            if due == 1 and "compact" in str(error):
                continue
            raise
        assert mine
        assert not mine & storage_names(recorded_statistics(storage, COLUMN_STATS))
        assert_statistics_true(storage, due)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["1.2.0"])
def test_an_interrupted_write_leaves_true_statistics(release, fresh):
    """Stopped at any change of the storage, and the write after it: every file that counts has its records."""
    rows = changed(fresh(release), 1, ts=99_999)
    for case in interruptions(lambda: fresh(release), modes=INTERRUPTION_MODES[:1]):
        case.run(lambda faulty: upsert(faulty, rows))
        upsert(case.storage, rows)
        assert_statistics_true(case.storage, case)


@pytest.mark.parametrize("release", ["1.0.2", "1.2.0"])
def test_a_new_column_has_statistics_at_once(release, fresh):
    """Apache Hudi takes a file without a record of a column for one of nulls, and would skip it."""
    storage = fresh(release)
    rows = changed(storage, 2)
    more = rows.append_column("extra", pa.array([5, 6][: rows.num_rows], pa.int64()))
    upsert(storage, more)
    newest = writes.open_table(storage).timeline.completed("commit")[-1].requested_time
    found = [
        each for each in recorded_statistics(storage, COLUMN_STATS).values() if each.fields["columnName"] == "extra"
    ]
    assert {newest in each.fields["fileName"] for each in found} == {True}
    together = [
        each for each in recorded_statistics(storage, PARTITION_STATS).values() if each.fields["columnName"] == "extra"
    ]
    assert together
    assert all(each.fields["nullCount"] for each in together)  # of the files that lack it


def test_a_wider_type_drops_the_statistics(fresh):
    """Bounds of two kinds cannot be merged: Apache Hudi's next write computes all of them again."""
    storage = fresh("1.2.0")
    rows = changed(storage, 1)
    name = next(field.name for field in rows.schema if field.type in (pa.int32(), pa.float32()))
    at = rows.column_names.index(name)
    wider = pa.int64() if rows.schema.field(at).type == pa.int32() else pa.float64()
    upsert(storage, rows.set_column(at, pa.field(name, wider), rows.column(name).cast(wider)))
    assert stats_of(storage) == set()
    assert not [path for path in storage.files() if "stats/" in path]


def test_a_restore_takes_the_statistics_along(fresh):
    """Files that a restore deletes leave no record, and those that are back have theirs."""
    storage = fresh("1.2.0")
    table = writes.open_table(storage)
    kept = table.timeline.completed("commit")[-1].requested_time
    table.create_savepoint(kept)
    upsert(storage, changed(storage, 3, ts=99_999))
    upsert(storage, changed(storage, 3, ts=99_998))
    writes.open_table(storage).restore(kept)
    there = {path.rpartition("/")[2] for path in storage.files()}
    assert storage_names(recorded_statistics(storage, COLUMN_STATS)) <= there
    assert_statistics_true(storage, "restored")


@pytest.mark.parametrize("version", LOGS)
def test_log_files_have_records_as_base_files_do(version, fresh):
    """Updates and deletes in logs, a compaction, a clean, a rollback: all records are true, and none is missing."""
    storage = fresh(version)
    had = stats_of(storage)
    rows = changed(storage, 3, ts=99_999)
    upsert(storage, rows)
    assert [path for path in storage.files() if ".log." in path and not path.startswith(".hoodie")]
    assert_statistics_true(storage, "upsert")
    upsert(storage, rows.slice(0, 1), "DELETE")
    assert_statistics_true(storage, "delete")
    found = writes.open_table(storage).rows(where="ts = 99999").to_arrow()
    assert found.num_rows == 2
    upsert(storage, changed(storage, 3, ts=100_000))
    newest = writes.open_table(storage).timeline.completed("deltacommit")[-1]
    writes.open_table(storage).rollback(newest.requested_time)
    assert_statistics_true(storage, "rolled back")
    settings = {"hoodie.compact.inline.max.delta.commits": 1}
    assert writes.open_table(storage, **settings).compact()
    assert_statistics_true(storage, "compacted")
    writes.open_table(storage).clean(file_versions_retained=1)
    assert_statistics_true(storage, "cleaned")
    there = {path.rpartition("/")[2] for path in storage.files()}
    if version != "6":
        assert storage_names(recorded_statistics(storage, COLUMN_STATS)) <= there
    assert stats_of(storage) == had
    assert writes.open_table(storage).rows(where="ts = 99999").to_arrow().num_rows == 2
    assert [] == [each for each in writes.open_table(storage).check() if each.severity.name != "INFO"]


@pytest.mark.parametrize("name", ["cow_partitioned-1.2.0", "cow_partitioned-1.0.2"])
def test_bounds_of_partitions_go_when_their_records_cannot_be_set_back(name, tmp_path, caplog):
    """
    Apache Hudi's bounds are those of its newest files. After a rollback the older ones count again, and would be hidden
    if a compaction of the metadata table had made the bounds final.
    """
    storage = loaded(name, tmp_path)
    table = writes.open_table(storage)
    assert compact_metadata_table(storage, table.timeline, 1)
    writes.open_table(storage).rollback(table.timeline.completed("commit")[-1].requested_time)
    assert stats_of(storage) == {COLUMN_STATS}
    assert PARTITION_STATS in caplog.text
    assert_statistics_true(storage)
    upsert(storage, changed(storage, 2))
    assert_statistics_true(storage)
