"""Partition columns of time-based key generators: the path's text, or the value as text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_py.rows.time_partitions import TimePartitions


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_text_of_the_path_takes_the_type_of_the_column():
    """Table version 6: the segments of the path in the order of the partition columns."""
    shown = TimePartitions(fields=("region", "at"), is_path_shown=True)
    rows = shown.shown(batch(id=[1, 2], region=["r1", "r1"], at=[1698832800000, 1698840000000]), "r1/20231101")
    assert rows.to_pydict() == {"id": [1, 2], "region": ["r1", "r1"], "at": [20231101, 20231101]}
    assert rows.schema == shown.schema(rows.schema)


def test_a_single_column_has_the_whole_path():
    """Formats such as yyyy/MM/dd make several segments of one time."""
    shown = TimePartitions(fields=("at",), is_path_shown=True)
    assert shown.shown(batch(at=["2023-11-01 10:00:00"]), "2023/11/01").to_pydict() == {"at": ["2023/11/01"]}


@pytest.mark.parametrize("path", ["2023-11-01/r1/x", "2023-11-01"])
def test_what_is_no_value_of_the_column_is_shown_as_stored(path):
    """Apache Hudi fails there, or takes the table for one without partitions."""
    rows = batch(at=[1698832800000], region=["r1"])
    assert TimePartitions(fields=("at", "region"), is_path_shown=True).shown(rows, path) == rows
    numbers = batch(at=[1698832800000])
    assert TimePartitions(fields=("at",), is_path_shown=True).shown(numbers, "2023-11-01") == numbers


def test_names_and_escapes_of_the_path_are_taken_off():
    """Hive style and URL encoding; the default partition holds nulls."""
    shown = TimePartitions(fields=("at",), is_path_shown=True, is_hive_style=True, is_encoded=True)
    rows = batch(at=["2023-11-01 10:00:00"])
    assert shown.shown(rows, "at=2023%2F11").to_pydict() == {"at": ["2023/11"]}
    assert shown.shown(rows, "at=__HIVE_DEFAULT_PARTITION__").to_pydict() == {"at": [None]}


def test_values_as_text():
    """Table versions 8 and 9: the value that is stored, whatever its type, and other columns as they are."""
    shown = TimePartitions(fields=("at",), is_path_shown=False)
    rows = shown.shown(batch(at=[1698832800000, None], n=[1, 2]), "2023/11/01")
    assert rows.to_pydict() == {"at": ["1698832800000", None], "n": [1, 2]}
    assert rows.schema.field("at").type == pa.string()
