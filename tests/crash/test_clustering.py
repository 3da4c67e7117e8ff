"""Clusterings interrupted at every call."""

import pyarrow as pa
import pytest

from support.crash_points import interruptions
from support.writes import ALONE, SCHEMA, create_table, open_table, rows_of

QUICK = {**ALONE, "hoodie.index.bloom.num_entries": 100}
ROWS = [{"id": f"k{number}", "region": "eu", "ts": number} for number in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("has_metadata_table", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_interrupted_anywhere_it_changes_no_row(version, has_metadata_table):
    """The next run finishes it from the stored plan, after a recovery too; what the first attempt wrote is deleted."""
    original = create_table(version)
    more = {"hoodie.metadata.enable": True} if has_metadata_table else {}
    for row in ROWS:
        open_table(original, **QUICK, **more).bulk_insert(pa.Table.from_pylist([row], schema=SCHEMA))
    for number, case in enumerate(interruptions(original.copy)):
        case.run(lambda storage: open_table(storage, **QUICK).cluster(sort_by="ts"))
        assert rows_of(case.storage) == ROWS, case
        if number % 2:
            assert not [each for each in open_table(case.storage).recover() if each.error], case
            assert rows_of(case.storage) == ROWS, case
        open_table(case.storage, **QUICK).cluster(sort_by="ts")
        table = open_table(case.storage)
        assert rows_of(case.storage) == ROWS, case
        assert not table.timeline.pending(), case
        assert len(table.file_slices("eu")) == 1, case
        assert {finding.code for finding in table.check()} <= {"leftover-markers"}, case
