"""Writes and services on tables whose columns were renamed, interrupted at every call of the storage."""

import pyarrow as pa
import pytest

from support.altering import added, alter, dropped, renamed
from support.crash_points import interruptions
from support.writes import ALONE, create_table, open_table

SETTINGS = {
    **ALONE,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clustering.plan.strategy.small.file.limit": 1 << 30,
}
FIRST = [
    {"id": "a", "region": "eu", "ts": 1, "x": "xa", "y": "ya"},
    {"id": "b", "region": "eu", "ts": 1, "x": "xb", "y": "yb"},
]
OLD = [{"id": row["id"], "region": "eu", "ts": 1, "z": row["x"], "y": None} for row in FIRST]
CHANGED = {"id": "a", "region": "eu", "ts": 2, "z": "za", "y": "new", "more": "m"}
NEW = [CHANGED, {**OLD[1], "more": None}]


def evolved(version, kind):
    """Two rows; then ``x`` is renamed to ``z``, and ``y`` is dropped and added again."""
    storage = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    open_table(storage, **SETTINGS).upsert(pa.Table.from_pylist(FIRST))
    if kind == "MERGE_ON_READ":  # with log files of the first names, too
        open_table(storage, **SETTINGS).upsert(pa.Table.from_pylist(FIRST[:1]))
    alter(storage, renamed("x", "z"))
    alter(storage, dropped("y"))
    alter(storage, added("y"))
    return storage


def rows_of(storage):
    found = open_table(storage).rows().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def write(storage):
    open_table(storage, **SETTINGS).upsert(pa.Table.from_pylist([CHANGED]))


RUNS = {
    "upsert": (write, NEW),
    "delete": (lambda storage: open_table(storage, **SETTINGS).delete(where="id = 'a'"), OLD[1:]),
    "cluster": (lambda storage: open_table(storage, **SETTINGS).cluster(), OLD),
    "compact": (lambda storage: open_table(storage, **SETTINGS).compact(), OLD),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_interrupted_anywhere_the_rows_keep_their_columns(version, kind, name):
    """Invisible or whole; the next run completes it, and another change of columns goes on from its history."""
    if name == "compact" and kind == "COPY_ON_WRITE":
        pytest.skip("there is nothing to compact")
    original, (run, after) = evolved(version, kind), RUNS[name]
    for case in interruptions(original.copy):
        case.run(run)
        assert rows_of(case.storage) in (OLD, after), case
        if rows_of(case.storage) != after or after == OLD:
            run(case.storage)
        assert rows_of(case.storage) == after, case
        alter(case.storage, renamed("z", "w"))
        expected = [{"w" if name == "z" else name: value for name, value in row.items()} for row in after]
        assert rows_of(case.storage) == expected, case
        codes = {finding.code for finding in open_table(case.storage).check()}
        assert codes <= {"leftover-markers"}, (case, codes)
