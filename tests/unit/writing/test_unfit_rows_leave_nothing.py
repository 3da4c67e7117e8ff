"""Rows that no write can store are refused before anything is touched, or, met in a stream, taken back at once."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError, HudiError, WriteError
from hudi_py.rows.path_lengths import PathLengths
from hudi_py.storage.memory import MemoryStorage

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
}
FIT = {"id": "a", "p": "x", "ts": 1}
UNFIT = {
    "long name": {"p": "x" * 256},
    "long name beyond ASCII": {"p": "é" * 128},
    "long path": {"p": "/".join(["y" * 200] * 20)},
    "no folder": {"p": ".."},
    "control character": {"p": "a\0"},
    "no key": {"id": None},
    "empty key": {"id": ""},
    "no ordering value": {"ts": None},
}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "delete"])
@pytest.mark.parametrize("case", UNFIT)
def test_rows_in_memory_are_refused_before_anything_is_touched(case, operation, tmp_path):
    """No table is made for them, and of one that is there no byte changes."""
    rows = pa.Table.from_pylist([{**FIT, "id": "b"}, FIT | UNFIT[case]], SCHEMA)
    if case == "no ordering value" and operation != "upsert":
        return  # those compare nothing
    with pytest.raises(HudiError):  # a delete finds no table
        hudi_py.write(tmp_path / "new", rows, operation, settings=SETTINGS)
    assert not contents(tmp_path)
    hudi_py.write(tmp_path / "t", pa.Table.from_pylist([FIT], SCHEMA), settings=SETTINGS)
    before = contents(tmp_path)
    with pytest.raises(WriteError):
        hudi_py.write(tmp_path / "t", rows, operation, settings=SETTINGS)
    assert contents(tmp_path) == before


UNFIT_TYPES = {
    "id": [pa.float64(), pa.binary(), pa.list_(pa.int64())],
    "p": [pa.float32(), pa.struct([("a", pa.int64())])],
    "ts": [pa.binary(), pa.list_(pa.int64())],
}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in UNFIT_TYPES.items() for kind in kinds])
def test_columns_of_which_no_keys_are_made_make_no_table(name, kind, operation, tmp_path):
    """With or without rows: no later write would fit the table. So it is with ordering values that are not compared."""
    schema = pa.schema([field.with_type(kind) if field.name == name else field for field in SCHEMA])
    values = {pa.float64(): 1.5, pa.float32(): 1.5, pa.binary(): b"x", pa.list_(pa.int64()): [1]}
    row = FIT | {name: values.get(kind, {"a": 1})}
    for rows in ([], [row]):
        with pytest.raises(ConfigError, match=f"column '{name}' is .* and cannot be"):
            hudi_py.write(tmp_path / "t", pa.Table.from_pylist(rows, schema), operation, settings=SETTINGS)
    assert not contents(tmp_path)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("partition", ["p", ""])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_what_a_stream_brings_late_is_taken_back_at_once(operation, partition, version, tmp_path):
    """Files of the batches before are gone, and nothing is pending."""
    settings = SETTINGS | {"hoodie.memory.merge.max.size": 1, "hoodie.write.table.version": version}
    settings["hoodie.datasource.write.partitionpath.field"] = partition
    hudi_py.write(tmp_path / "t", pa.Table.from_pylist([FIT], SCHEMA), settings=settings)
    before = {path for path in contents(tmp_path) if ".hoodie" not in path.parts}
    batches = [pa.RecordBatch.from_pylist([{**FIT, "id": f"{n}"}], SCHEMA) for n in range(3)]
    batches.append(pa.RecordBatch.from_pylist([{"id": "z", "p": "x", "ts": "no number"}]))
    table = hudi_py.open_table(tmp_path / "t", settings=settings)
    with pytest.raises(HudiError, match="ts"):
        getattr(table, operation)(iter(batches))
    table.refresh()
    assert not [each for each in table.timeline if not each.is_completed]
    assert {path for path in contents(tmp_path) if ".hoodie" not in path.parts} == before
    assert not table.check()


def test_object_stores_have_a_limit_for_whole_keys_alone():
    """A long name is a key like any other there."""
    lengths = PathLengths.of(MemoryStorage())
    lengths.check(pa.array(["x" * 700]), "p")
    with pytest.raises(WriteError, match="made of p"):
        lengths.check(pa.array(["ok", None, "x" * 900]), "p")
