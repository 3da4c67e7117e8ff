"""Conditions on partition columns are about what is shown, where that is not what is stored."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

import hudi_py
from support import fixtures

NAMES = [*fixtures.row_fixture_names("cow_timestamp_keygen"), *fixtures.row_fixture_names("cow_custom_keygen")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["rows", "changes"])
def test_conditions_are_about_what_is_shown(name, kind, tmp_path):
    """Whatever is stored: the rows that a query without the condition shows, chosen afterwards."""
    table = hudi_py.open_table(fixtures.unpack_rows(name, tmp_path))

    def read(**asked):
        rows = table.rows(**asked) if kind == "rows" else table.changes("0", **asked)
        return sorted(rows.to_arrow().to_pylist(), key=str)

    everything = read()
    for field in (each.partition(":")[0] for each in table.config.partition_fields):
        values = sorted({row[field] for row in everything})
        assert len(values) > 1
        for value in values:
            assert read(where=[(field, "=", value)]) == [row for row in everything if row[field] == value]
            others = [row for row in everything if row[field] != value]
            assert read(where=[(field, "!=", value)]) == read(where=[(field, "not in", [value])]) == others
            greater = [row for row in everything if row[field] > value or row["ts"] < 0]
            assert read(where=[[(field, ">", value)], [("ts", "<", 0)]]) == greater
        assert read(where=[(field, "is null")]) == []
        assert read(where=[(field, "is not null")], columns=["ts"]) == sorted(
            ({"ts": row["ts"]} for row in everything), key=str
        )


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_conditions_in_the_default_partition_are_about_what_is_shown(version, kind, tmp_path):
    """Null and an empty text lie there; which of them is shown depends on the release and the kind of read."""
    settings = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
    }
    rows = pa.table({"id": ["a", "b", "c"], "region": ["eu", None, ""]})
    hudi_py.write(tmp_path / "t", rows, settings=settings)
    table = hudi_py.open_table(tmp_path / "t")
    meant = {
        "region is null": lambda value: value is None,
        "region is not null": lambda value: value is not None,
        "region != 'eu'": lambda value: value is not None and value != "eu",
        "not (region = '')": lambda value: value is not None and value != "",
        "region not in ('eu', null)": lambda value: False,
        "region < 'eu' or id = 'a'": lambda value: value is not None and value <= "eu",
        "region like '%'": lambda value: value is not None,
    }
    for read in (table.rows, partial(table.rows, read_optimized=True), partial(table.changes, "0")):
        everything = read(columns=["region", "id"]).to_arrow().to_pylist()
        assert len(everything) == 3
        for where, is_meant in meant.items():
            found = read(columns=["region", "id"], where=where).to_arrow().to_pylist()
            assert found == [row for row in everything if is_meant(row["region"])], where
