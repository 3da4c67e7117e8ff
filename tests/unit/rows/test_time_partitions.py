"""Partition columns of time-based key generators: the path's text, or the value as text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_py.rows.partition_values import PathTexts
from hudi_py.rows.time_partitions import TimePartitions


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def shown(fields, path, columns, **form):
    found = PathTexts(fields=fields, **form).shown(path, pa.schema(columns))
    return {name: value.as_py() for name, value in found.items()}


def test_text_of_the_path_takes_the_type_of_the_column():
    """Table version 6: the segments of the path in the order of the partition columns."""
    columns = {"id": pa.int64(), "region": pa.string(), "at": pa.int64()}
    assert shown(("region", "at"), "r1/20231101", columns) == {"region": "r1", "at": 20231101}


@pytest.mark.parametrize("path", ["2023/11/01", "2023-11-01", "a=b"])
def test_a_single_column_has_the_whole_path(path):
    """Formats such as yyyy/MM/dd make several segments of one time."""
    assert shown(("at",), path, {"at": pa.string()}) == {"at": path}


@pytest.mark.parametrize("path", ["2023-11-01/r1/x", "2023-11-01"])
def test_what_is_no_value_of_the_column_is_shown_as_stored(path):
    """Apache Hudi fails there, or takes the table for one without partitions."""
    assert shown(("at", "region"), path, {"at": pa.int64(), "region": pa.string()}) == {}
    assert shown(("at",), "2023-11-01", {"at": pa.int64()}) == {}


def test_names_and_escapes_of_the_path_are_taken_off():
    """Hive style and URL encoding; the default partition holds nulls."""
    form = {"is_hive_style": True, "is_encoded": True}
    assert shown(("at",), "at=2023%2F11", {"at": pa.string()}, **form) == {"at": "2023/11"}
    assert shown(("at",), "at=__HIVE_DEFAULT_PARTITION__", {"at": pa.string()}, **form) == {"at": None}


def test_values_as_text():
    """Table versions 8 and 9: the value that is stored, whatever its type, and other columns as they are."""
    times = TimePartitions(fields=("at",))
    rows = times.shown(batch(at=[1698832800000, None], n=[1, 2]))
    assert rows.to_pydict() == {"at": ["1698832800000", None], "n": [1, 2]}
    assert rows.schema.field("at").type == pa.string()
