"""A savepoint that is made while a write runs which was requested before its commit."""

from __future__ import annotations

import pytest

from support import writes
from support.many_writers import SEVERAL, DuringWhich, contents, rows, service, table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("operation", ["INSERT", "BULK_INSERT", "UPSERT", "INSERT_OVERWRITE"])
@pytest.mark.parametrize("is_made_later", [False, True], ids=["before it completes", "after it completed"])
def test_a_restore_to_it_loses_no_row_of_that_write(version, kind, operation, is_made_later):
    """If it belongs to what the restore ends in, its files outlive cleans although the savepoint does not name them."""
    storage = table(version, kind)
    made = []

    def other():
        done = service(storage).write(rows(("o", "us", 7)), "INSERT")
        made.extend((done.instant, contents(storage)))
        if not is_made_later:
            writes.open_table(storage, **SEVERAL).create_savepoint(done.instant)

    service(storage).write(DuringWhich([("n", "eu", 7)], other), operation)
    if is_made_later:
        writes.open_table(storage, **SEVERAL).create_savepoint(made[0])
    whole = contents(storage)
    assert ("eu", "n", 7) in whole
    assert ("us", "o", 7) in whole
    for ts in (8, 9):
        service(storage).write(rows(("n", "eu", ts)), "UPSERT")
        writes.open_table(storage, **{**SEVERAL, "hoodie.compact.inline.max.delta.commits": 1}).maintain()
    writes.open_table(storage, **SEVERAL).clean(file_versions_retained=1)
    opened = writes.open_table(storage, **SEVERAL)
    assert [each for each in opened.check() if each.severity.name == "ERROR"] == []
    opened.restore(made[0])
    # Of a table of version 9 the restore undoes by completion, and so that write, too (B-29).
    assert contents(storage) == (made[1] if version == 9 else whole)
