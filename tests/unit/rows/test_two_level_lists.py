"""
Lists as Hudi's Avro writer stores them: two levels, ``repeated <T> array``, which Arrow reads and cannot write.

``two_level_lists.parquet`` was written by Spark 3.5.9 with ``spark.sql.parquet.writeLegacyFormat=true``, which gives
lists without null elements that very form: of longs, structs with a list inside, lists, lists in a map, and structs
with one field called ``element``.
"""

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_py.formats.record_schema import format_record_schema, parse_record_schema, storage_schema
from hudi_py.model.files import parse_base_file
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.merge import RowChanges, merge_base_file
from hudi_py.rows.precedence import MergeMode, MergeRules

DATA = (Path(__file__).parent / "two_level_lists.parquet").read_bytes()
TEXT = format_record_schema(storage_schema(pq.read_table(io.BytesIO(DATA)).schema), "t")
LOOSE = TEXT  # elements declared nullable, as Spark mostly does, although no list holds a null
for strict in ("long", "string", "int"):
    LOOSE = LOOSE.replace(f'"items":"{strict}"', f'"items":["null","{strict}"]')


@pytest.mark.parametrize("text", [TEXT, LOOSE], ids=["required elements", "nullable elements"])
def test_two_level_lists_become_three_level_ones_with_the_same_values(files, text):
    """Copied and updated rows alike, whatever the table's schema says about the elements."""
    assert (text == TEXT) == (LOOSE != text)
    schema = parse_record_schema(text)
    before = pq.read_table(io.BytesIO(DATA)).to_pylist()
    update = before[3] | {"id": "k1"}
    batch = files.batch([{name: update[name] for name in schema.names}], schema)
    sink = io.BytesIO()
    merge_base_file(
        io.BytesIO(DATA),
        parse_base_file("two_1-1-1_20260101000000001.parquet"),
        RowChanges(batch, batch.column(0)),
        sink=sink,
        target=files.target("20260101000000002", file_id="two", partition_path=""),
        avro_schema=text,
        rules=MergeRules(MergeMode.OVERWRITE_WITH_LATEST),
        options=BaseFileOptions(),
    )
    after = files.read(sink.getvalue())
    expected = [before[0], update, before[2], before[3]]
    assert [{name: row[name] for name in schema.names} for row in expected] == [
        {name: row[name] for name in schema.names} for row in after
    ]
    columns = pq.ParquetFile(sink).schema
    paths = {columns.column(index).path for index in range(len(columns))}
    assert {"ints.list.element", "structs.list.element.y.list.element", "one.list.element.element"} < paths
