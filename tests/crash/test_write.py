"""A write interrupted at every call that changes something: nothing of it is visible, or all of it."""

import io

import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.timeline.markers import read_markers
from support.change_logs import rows_by_changes
from support.crash_points import EVERY, interruptions
from support.writes import CHANGES, NEW, OLD, assert_tidy, create_table, open_table, rows_of, upsert


def assert_marked(storage, case):
    """Every data file of a write that is not completed has its marker: that is how the next write finds it (G-3)."""
    completed = {instant.requested_time for instant in open_table(storage).timeline.completed("commit")}
    for path in storage.files():
        name = path.rpartition("/")[2]
        file = parse_base_file(name) or parse_log_file(name)
        if file is not None and not path.startswith(".hoodie/") and file.instant_time not in completed:
            markers = read_markers(storage, file.instant_time) or frozenset()
            assert path in {marker.path for marker in markers}, case


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
def test_write_interrupted_anywhere_is_invisible_or_whole(record_property, version):
    """
    Requested, inflight, markers, data files, completion; the next write rolls back what was left (G-1 to G-3).

    With change logs: what a failed write logged is gone with it, and the rows follow from the changes.
    """
    original = create_table(version, **{"hoodie.table.cdc.enabled": True})
    upsert(original, OLD)
    assert rows_of(original) == OLD
    committed = {path: data for path, data in original.files().items() if path.endswith(".parquet")}
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: upsert(storage, CHANGES))
        assert rows_of(case.storage) in (OLD, NEW), case
        assert_marked(case.storage, case)
        commits = len(open_table(case.storage).timeline.completed("commit"))
        assert rows_of(case.storage) == (OLD if commits == 1 else NEW), case
        for number in (1, 2):
            upsert(case.storage, CHANGES)
            assert rows_of(case.storage) == rows_by_changes(case.storage) == NEW, case
            assert_tidy(case.storage, case)
            assert len(open_table(case.storage).timeline.completed("commit")) == commits + number, case
        assert committed.items() <= case.storage.files().items(), case
    record_property("interruptions", count)
    assert count * EVERY > 60


@pytest.mark.parametrize("operation", ["UPSERT", "INSERT", "DELETE"])
@pytest.mark.parametrize("version", [6, 9])
def test_nothing_is_written_over_a_base_file_that_is_lost_or_another(version, operation):
    """Else the version before it, or what lies there instead, would be merged and committed as the latest rows."""
    whole = create_table(version)
    upsert(whole, OLD)
    upsert(whole, CHANGES[:1])
    newest = max(
        (path for path in whole.files() if path.startswith("eu/") and path.endswith(".parquet")),
        key=lambda path: path.rpartition("_")[2],
    )
    for what, damage in (
        ("is missing, which the completed commit", lambda storage: storage.delete(newest)),
        ("bytes, and the completed commit", lambda storage: storage.replace(newest, compressed(whole.read(newest)))),
    ):
        storage = whole.copy()
        damage(storage)
        with pytest.raises(CorruptMetadata, match=f"{newest}.*{what}.*hudi-py check"):
            upsert(storage, [{"id": "a", "region": "eu", "ts": 9}], operation=operation)
        assert len(open_table(storage).timeline.completed("commit")) == 2
        upsert(storage, [{"id": "z", "region": "us", "ts": 9}])  # the others are whole, and the way is free


def compressed(parquet):
    """The same rows in other bytes."""
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(parquet)), sink, compression="gzip")
    return sink.getvalue()
