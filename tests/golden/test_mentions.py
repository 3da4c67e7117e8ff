"""Instants that Apache Hudi wrote, searched for writes before a time without being decoded."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.fsview.gone import told_of_lost_archive
from hudi_py.model.instant import Action
from hudi_py.model.records import CleanMetadata
from hudi_py.timeline.before_start import may_mention_earlier
from hudi_py.timeline.contents import Contents
from support import fixtures

NAMES = [
    f"{name}-{version}"
    for name in ("cow_cleaned", "cow_mixed", "cow_clustered", "mor_compacted")
    for version in ("0.15.0", "1.0.2", "1.1.1")
]


def times_in(content):
    """Times of other instants that a decoded commit or clean names as written before it."""
    if isinstance(content, CleanMetadata):
        names = [name for each in content.partitions.values() for name in each.delete_path_patterns]
        return {content.last_completed_commit_timestamp, *(name.rpartition("_")[2].partition(".")[0] for name in names)}
    return {stat.prev_commit for stats in content.partition_to_write_stats.values() for stat in stats} - {"null", None}


@pytest.mark.parametrize("name", NAMES)
def test_no_time_that_an_instant_mentions_is_overlooked(name, tmp_path):
    """Whatever the timeline may begin with; and the first commit mentions none before itself."""
    table = hudi_py.open_table(fixtures.unpack(name, tmp_path))
    commits = table.timeline.commits.completed()
    starts = [each.requested_time for each in table.timeline]
    mentioned = 0
    for instant in (*commits, *table.timeline.completed(Action.CLEAN)):
        data = table.contents.store.read(instant)
        content = (table.contents.clean if instant.action is Action.CLEAN else table.contents.commit)(instant)
        times = times_in(content)
        for start in starts:
            if any(time < start for time in times):
                mentioned += 1
                assert may_mention_earlier(data, start), (instant, start, times)
    assert mentioned > 0
    assert not may_mention_earlier(table.contents.store.read(commits[0]), commits[0].requested_time)


class Counting(Contents):
    """Counts the commits that are decoded."""

    decoded = 0

    def commit(self, instant):
        Counting.decoded += 1
        return super().commit(instant)


@pytest.mark.parametrize("version", ["0.15.0", "1.1.1"])
def test_a_timeline_that_mentions_nothing_before_itself_is_not_decoded(version, tmp_path):
    """Of ten thousand commits that takes a second, and a page asks after each of them."""
    table = hudi_py.open_table(fixtures.unpack(f"cow_many-{version}", tmp_path))
    Counting.decoded = 0
    assert told_of_lost_archive(Counting(table.contents.store), table.timeline) is None
    assert Counting.decoded == 0


@pytest.mark.parametrize(
    ("data", "may"),
    [
        (b'{"prevCommit" : "20240101000000000"}', False),
        (b'{"prevCommit" : "20231231235959999"}', True),
        (b'{"prevCommit" : "20231231235959"}', True),
        (b'{"prevCommit" : "20240101000000"}', True),  # older than the same second with its milliseconds
        (b'{"prevCommit" : "null", "id" : 1234567890123}', False),
        (b'{"prevCommit" : "\\u00320231231235959999"}', True),
        (b"", False),
        (b"Obj\x01 null, 20230101000000000" + b"S" * 16 + b"20240101000000000" + b"S" * 16, False),
        (b"Obj\x01 null" + b"S" * 16 + b"\x2220231231235959999" + b"S" * 16, True),
        (b"Obj\x01 deflate" + b"S" * 16 + b"\x7f" + b"S" * 16, True),
    ],
)
def test_what_may_be_a_time_is_found_in_any_form(data, may):
    """Of seconds as in old releases, behind escapes of JSON, compressed; not in the schema of an Avro file."""
    assert may_mention_earlier(data, "20240101000000000") is may
