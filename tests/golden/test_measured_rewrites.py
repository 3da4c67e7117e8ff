"""Compactions and clusterings of Apache Hudi as measures of what the next one takes."""

import os
from pathlib import Path

import pytest

import hudi_py
from hudi_py.model.instant import Action
from hudi_py.services.rewriting.expected import expected, measured
from support.fixtures import unpack

RELEASES = ["0.15.0", "1.0.2", "1.1.1", "1.2.0"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["mor_compacted", "cow_clustered"])
def test_what_apache_hudi_did_is_measured(name, release, tmp_path):
    """Its bytes by the sizes of the files, which nobody has cleaned, its time by those of the timeline."""
    path = unpack(f"{name}-{release}", tmp_path)
    table = hudi_py.open_table(str(path))
    is_clustering = name == "cow_clustered"
    kind = table.contents.store.layout.clustering if is_clustering else Action.COMPACTION
    (found,) = measured(table.contents, table.timeline, kind)
    (pending,) = path.glob(f".hoodie/**/{found.instant}.{kind.value}.inflight")
    (instant,) = (each for each in table.timeline.completed() if each.requested_time == found.instant)
    completed = Path(path, table.contents.store.path(instant))
    assert found.seconds == pytest.approx(completed.stat().st_mtime - pending.stat().st_mtime, abs=0.002)
    stats = [stat for of in table.contents.commit(instant).partition_to_write_stats.values() for stat in of]
    assert found.bytes_written == sum((path / stat.path).stat().st_size for stat in stats)
    assert found.bytes_read == sum((path / each).stat().st_size for each in planned_files(table, instant, kind))


def planned_files(table, instant, kind):
    """Paths of the files that a plan names, relative to the table."""
    pending = hudi_py.Instant(instant.requested_time, kind, hudi_py.State.REQUESTED)
    if kind is Action.COMPACTION:
        for each in table.contents.compaction_plan(pending).operations:
            yield from (f"{each.partition_path}/{name}" for name in (each.data_file_path, *each.delta_file_paths))
        return
    for group in table.contents.requested_replace(pending).clustering_plan.input_groups:
        for each in group.slices:
            yield f"{each.partition_path}/{each.data_file_path.rpartition('/')[2]}"


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_copied_files_tell_bytes_but_no_time(release, tmp_path):
    """All of them have the time of the copy, so what lies between them says nothing."""
    path = unpack(f"mor_compacted-{release}", tmp_path)
    for each in path.rglob("*"):
        os.utime(each)
    table = hudi_py.open_table(str(path))
    (found,) = measured(table.contents, table.timeline, Action.COMPACTION)
    assert found.seconds is None
    assert found.bytes_read > 0
    assert expected([found], files=3, bytes_read=10).seconds is None
