"""A statement that fits no row of the table is refused before its write begins, so that nothing changes."""

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, WriteError
from support import writes

MADE = {"hoodie.metadata.enable": True, **writes.ALONE}
SOURCE = pa.Table.from_pylist(writes.CHANGES, schema=writes.SCHEMA)
MORE = SOURCE.append_column("other", pa.array([1, 2]))
ON = ["id", "region"]
STATEMENTS = {
    "update: no such column": lambda table: table.update({"nothing": 1}),
    "update: a part of the key": lambda table: table.update({"id": "'x'"}),
    "update: no such column in a value": lambda table: table.update({"ts": "nothing + 1"}),
    "update: a text for a number": lambda table: table.update({"ts": "'abc'"}),
    "update: a date for a number": lambda table: table.update({"ts": "date '2026-01-01'"}),
    "update: too large": lambda table: table.update({"ts": "1e400"}),
    "update: where no such column": lambda table: table.update({"ts": 1}, where="nothing > 3"),
    "update: where a text is no number": lambda table: table.update({"ts": 1}, where="ts > 'abc'"),
    "delete: where no such column": lambda table: table.delete(where="nothing = 3"),
    "delete: where a number has no field": lambda table: table.delete(where="ts.x = 3"),
    "merge: on no such column": lambda table: table.merge(SOURCE, "nothing").when_matched_update().execute(),
    "merge: no such column of the table": lambda table: (
        table.merge(SOURCE, ON).when_matched_update({"nothing": "1"}).execute()
    ),
    "merge: a column that the table lacks": lambda table: table.merge(MORE, ON).when_matched_update().execute(),
    "merge: no such column of the source": lambda table: (
        table.merge(SOURCE, ON).when_matched_update({"ts": "source.nothing"}).execute()
    ),
    "merge: where no such column": lambda table: (
        table.merge(SOURCE, ON).when_matched_delete(where="source.nothing > 1").execute()
    ),
    "merge: no such column of a new row": lambda table: (
        table.merge(SOURCE, ON).when_not_matched_insert({"id": "id", "region": "region", "ts": "nothing"}).execute()
    ),
    "merge: the source, where nothing of it matches": lambda table: (
        table.merge(SOURCE, ON).when_not_matched_by_source_update({"ts": "source.ts"}).execute()
    ),
    "merge: keys of another type": lambda table: (
        table.merge(pa.table({"id": [["a"]], "region": ["eu"], "ts": [1]}), ON).when_matched_update().execute()
    ),
}


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(("version", "kind"), [(6, "COPY_ON_WRITE"), (8, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_refused_statement_changes_nothing(version, kind, statement):
    """The metadata table, which a write makes where it is asked for, would stay behind; so would a rollback."""
    storage = writes.create_table(version, **{"hoodie.datasource.write.table.type": kind})
    writes.upsert(storage, writes.OLD, **{"hoodie.metadata.enable": False})
    before = {path: storage.read(path) for path in storage.files()}
    with pytest.raises((ConfigError, WriteError)):
        STATEMENTS[statement](writes.open_table(storage, **MADE))
    assert {path: storage.read(path) for path in storage.files()} == before


@pytest.mark.parametrize("version", [6, 9])
def test_statement_that_fits_is_not_refused_for_want_of_values(version):
    """What is checked before has no values; columns divided, compared and joined with null give null."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    writes.open_table(storage, **MADE).update({"ts": "10 / (ts + 1) * 2"}, where="ts = 1 and region like 'e%'")
    statement = writes.open_table(storage, **MADE).merge(MORE, ON)
    statement = statement.when_matched_update({"ts": "source.ts * 2"}, where="source.ts < ts and source.other = 1")
    statement = statement.when_not_matched_insert({"id": "id", "region": "source.region", "ts": "ts + other"})
    assert statement.execute().rows_updated == 1
    expected = [{**writes.OLD[0], "ts": 4}, writes.OLD[1], {**writes.CHANGES[1], "ts": 4}]
    assert writes.rows_of(storage) == expected
