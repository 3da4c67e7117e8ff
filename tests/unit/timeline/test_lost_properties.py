"""A table that lost its properties is named as damaged, and no new one is created in its place."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import CorruptMetadata, TableNotFound
from hudi_py.local.rows import ArrowRows
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.properties_copies import COPIES_MAX, copies
from hudi_py.timeline.properties_file import BACKUP_FILE, PROPERTIES_FILE, read_table_config, update_properties
from hudi_py.write_service import WriteService
from support import writes

NEW = Settings(
    {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.table.ordering.fields": "ts",
    }
)
CHANGES = ArrowRows(pa.Table.from_pylist(writes.CHANGES, schema=writes.SCHEMA))
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


@VERSIONS
def test_no_new_table_is_created_where_a_timeline_lies(version):
    """A write in another table version would not see the old timeline; it is refused, and nothing is changed."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    storage.delete(PROPERTIES_FILE)
    storage.delete(BACKUP_FILE)
    before = {path: storage.read(path) for path in storage.files()}
    with pytest.raises(CorruptMetadata, match=r"hoodie\.properties is missing, and \.hoodie/\S+ shows"):
        WriteService(storage, NEW, FixedClock(writes.START), LocalEngine).write(CHANGES, "UPSERT")
    assert {path: storage.read(path) for path in storage.files()} == before


def test_what_the_properties_were_is_kept_and_named():
    """The last ten contents, the oldest first; whoever has lost the file is told where they are."""
    storage = writes.create_table(9)
    contents = []
    for number in range(COPIES_MAX + 3):
        contents.append(storage.read(PROPERTIES_FILE))
        update_properties(storage, {"note": str(number)}, FixedClock(writes.START + timedelta(seconds=number)))
    update_properties(storage, {"note": str(number)}, FixedClock(writes.START))  # nothing changes: no copy
    assert [storage.read(path) for path in copies(storage)] == contents[-COPIES_MAX:]
    writes.upsert(storage, writes.OLD, **{"hoodie.metadata.enable": False})
    newest = copies(storage)[-1]
    for lose in (lambda: storage.replace(PROPERTIES_FILE, b""), lambda: storage.delete(PROPERTIES_FILE)):
        lose()
        with pytest.raises(CorruptMetadata, match=f"before the last change is in \\S*{newest}"):
            read_table_config(storage)


def test_a_creation_that_died_is_no_table_yet():
    """Folders alone are what a creation leaves that died before its last step: the next one goes on."""
    storage = writes.create_table(9)
    storage.delete(PROPERTIES_FILE)
    with pytest.raises(TableNotFound):
        writes.open_table(storage)


@VERSIONS
def test_no_new_table_is_created_over_data_files_without_a_timeline(version):
    """All that is older than the first instant counts as committed, a failed write's rows as well."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    for path in [path for path in storage.files() if path.startswith(".hoodie/")]:
        storage.delete(path)
    before = {path: storage.read(path) for path in storage.files()}
    assert before
    with pytest.raises(CorruptMetadata, match=r"is not a table, but \S+\.parquet is a data file of one"):
        WriteService(storage, NEW, FixedClock(writes.START), LocalEngine).write(CHANGES, "UPSERT")
    assert {path: storage.read(path) for path in storage.files()} == before


def test_files_of_others_are_no_table():
    """What is no data file of Hudi's does not keep a table from being created beside it."""
    storage = MemoryStorage.from_files({"notes.txt": b"x", "eu/report_2024_01.csv": b"x"})
    done = WriteService(storage, NEW, FixedClock(writes.START), LocalEngine).write(CHANGES, "UPSERT")
    assert done.instant
