"""Times as texts, asked of Hudi and of us about a table with commits in one second."""

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.runtime.clock import FixedClock

pytestmark = pytest.mark.oracle

SECOND = datetime(2026, 11, 21, 6, 30, tzinfo=timezone.utc)
COMMITS = (-500, 0, 1, 500, 999, 1000)  # milliseconds from there
TEXTS = (
    "2026-11-21 06:30:00", "2026-11-21 06:30:00.000", "2026-11-21 06:30:00.500", "2026-11-21 06:30:00.999",
    "20261121063000", "20261121063000000", "20261121063000500", "2026-11-21", "2026-11-22",
)  # fmt: skip
SINCE_1_2 = ("2026-11-21T06:30:00", "2026-11-21T06:30:00.500")
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_text_means_the_same_moment_to_both(peer, tmp_path, kind):
    """
    As a time to read as of, in every release; as an end of a range digits do, and since Hudi 1.2 all texts.

    Before, Hudi compares a text with dashes to the digits of instants, or fails.
    """
    path = tmp_path / "t"
    settings = SETTINGS | {
        "hoodie.write.table.version": peer.table_version,
        "hoodie.datasource.write.table.type": kind,
    }
    for number, millis in enumerate(COMMITS):
        rows = pa.table({"id": [f"k{millis}", "every"], "ts": [number, number]})
        clock = FixedClock(SECOND + timedelta(milliseconds=millis))
        hudi_py.write(path, rows, operation="upsert", settings=settings, clock=clock)
    table = hudi_py.open_table(path)
    is_newest = peer.version.startswith("1.2")
    for text in (*TEXTS, *(SINCE_1_2 if is_newest else ())):
        assert told(table.as_of(text).rows()) == told_by(peer.read(path, as_of=text)), text
        if text.isdigit() or is_newest:
            asked = {"hoodie.datasource.query.type": "incremental"}
            begin = asked | {"hoodie.datasource.read.begin.instanttime": text}
            end = asked | {
                "hoodie.datasource.read.begin.instanttime": "000",
                "hoodie.datasource.read.end.instanttime": text,
            }
            # 1.0.2 takes its begin in; none of the completion times is one of the texts
            assert told(table.changes(text)) == told_by(peer.read(path, options=begin)), text
            assert told(table.changes("0", text)) == told_by(peer.read(path, options=end)), text


def told(batches):
    return told_by(row for batch in batches for row in batch.to_pylist())


def told_by(rows):
    return {(row["id"], row["ts"]) for row in rows}
