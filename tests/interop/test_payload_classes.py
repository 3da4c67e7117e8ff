"""Merge-on-read tables whose rows a payload class of Apache Hudi merges: read and compacted as by the release."""

import shutil

import pytest
from real_hudi import canonical_rows

import hudi_py
from support.interop_sample import seed_of, sized
from support.payload_tables import PAYLOADS, answer, compact, our_answer, questions, write_table

pytestmark = pytest.mark.oracle

LEFT = {"FirstValueAvroPayload": ("0.15.0", "1.0.2")}
"""Classes that only these releases have."""
OTHERWISE_COMPACTED = ("DefaultHoodieRecordPayload",)
"""Its table is ordered by texts, of which 0.15.0 takes others when it compacts than when it reads."""
MARK_IS_LEFT = {"PostgresDebeziumAvroPayload": ("1.1.1", "1.2.0")}
"""Releases that fill texts with the mark of Debezium when they read, and leave the mark when they compact."""


def shown(rows):
    """Comparable rows; the names of base files are their writer's choice."""
    return [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in rows]


def compacted_to_what_is_shown(hudi, path):
    """Compact the table; the release sees the same rows as before."""
    before = shown(hudi.read(path, meta=True))
    (done,) = hudi_py.open_table(str(path), settings={"hoodie.compact.inline.max.delta.commits": 1}).compact()
    assert shown(hudi.read(path, meta=True)) == before
    return done.instant


def compacted_by_us(hudi, path):
    """Compact the table, and a copy with the release; it sees the same rows in both."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    compact(hudi, copy)
    (done,) = hudi_py.open_table(str(path), settings={"hoodie.compact.inline.max.delta.commits": 1}).compact()
    ours, theirs = (shown(hudi.read(each, meta=True)) for each in (path, copy))
    assert ours == theirs
    return done.instant


@pytest.mark.parametrize("name", PAYLOADS)
def test_rows_are_those_of_the_release(peer, tmp_path, name):
    """Snapshot, base files alone, as of each commit, ranges; and what our compaction leaves."""
    if peer.version not in LEFT.get(name, (peer.version,)):
        pytest.skip(f"{peer.version} does not have this class")
    for number in range(sized(3, 1)):
        path = tmp_path / str(number) / "t"
        ours = compacted_to_what_is_shown if peer.version in MARK_IS_LEFT.get(name, ()) else compacted_by_us
        by = compact if number % 2 or name in OTHERWISE_COMPACTED else ours
        times = write_table(peer, path, name, seed_of(peer.version, number), by)
        for question in questions(peer, path, times):
            theirs = answer(peer, path, *question)
            if isinstance(theirs, str):
                continue
            rows = our_answer(hudi_py.open_table(str(path)), peer.version, *question).to_arrow().to_pylist()
            assert canonical_rows(shown(rows), meta=True) == canonical_rows(shown(theirs), meta=True), question
