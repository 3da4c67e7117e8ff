"""The history of columns of a table with schema on read is lost: no file is read by the names of today."""

import json

import pyarrow as pa
import pytest

from hudi_py.errors import HudiError
from hudi_py.formats.column_history import HISTORY_FOLDER
from support.altering import alter, renamed
from support.writes import ALONE, create_table, open_table

SETTINGS = {
    **ALONE,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
}


def write(storage, key, region, **columns):
    row = {"id": key, "region": region, "ts": 1, **columns}
    open_table(storage, **SETTINGS).upsert(pa.Table.from_pylist([row]))


def values_of(storage, **given):
    rows = open_table(storage).rows(**given).to_arrow().to_pylist()
    return {row["id"]: row["z"] for row in rows}


@pytest.mark.parametrize("damage", ["gone", "empty", "older"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_files_that_only_the_history_knows_are_not_read_without_it(version, kind, damage):
    """Their renamed columns would be null, and a condition on them would find no row."""
    storage = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    write(storage, "a", "eu", x="xa")
    write(storage, "u", "us", x="xu")
    alter(storage, renamed("x", "z"))
    for _ in range(4):
        write(storage, "u", "us", z="zu")
    open_table(storage, **SETTINGS).archive()
    files = [path for path in storage.files() if path.startswith(HISTORY_FOLDER)]
    whole = {path: content for path in files if (content := storage.read(path))}
    for path, content in whole.items():
        if damage == "gone":
            storage.delete(path)
        elif damage == "empty":
            storage.replace(path, b"")
        else:
            storage.replace(path, json.dumps({"schemas": json.loads(content)["schemas"][1:]}).encode())
    for given in ({}, {"where": "z = 'xa'"}, {"columns": ["id", "z"]}):
        with pytest.raises(HudiError, match=HISTORY_FOLDER):
            values_of(storage, **given)
    for path, content in whole.items():
        storage.replace(path, content)
    assert values_of(storage) == {"a": "xa", "u": "zu"}
