"""Tables whose files lack the partition columns: real Hudi shows what the path tells, behind all others, as text."""

from datetime import date

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import UnsupportedTable
from support import fixtures

DAY, NEXT = date(2024, 1, 2), date(2024, 1, 3)
HIVE = [  # what Hudi 1.1.1 shows: hive style, URL-encoded, two columns
    {"id": "k1", "ts": 1, "qty": 5, "name": "n1", "region": "eu", "day": "2024-01-02"},
    {"id": "k2", "ts": 1, "qty": 7, "name": "n2", "region": "us", "day": "2024-01-03"},
    {"id": "k3", "ts": 1, "qty": 5, "name": "n3", "region": None, "day": "2024-01-02"},
    {"id": "k4", "ts": 1, "qty": 7, "name": "n4", "region": None, "day": "2024-01-02"},
    {"id": "k5", "ts": 1, "qty": 5, "name": "n5", "region": "a b=c", "day": None},
]
PLAIN = [  # what Hudi 0.15.0 shows, but for "c" in the last row, the rest of the folder's name behind its "="
    {"id": "k1", "ts": 1, "day": DAY, "qty": 5, "name": "n1", "region": "eu"},
    {"id": "k2", "ts": 1, "day": NEXT, "qty": 7, "name": "n2", "region": "us"},
    {"id": "k3", "ts": 1, "day": DAY, "qty": 5, "name": "n3", "region": None},
    {"id": "k4", "ts": 1, "day": DAY, "qty": 7, "name": "n4", "region": None},
    {"id": "k5", "ts": 1, "day": None, "qty": 5, "name": "n5", "region": "a b=c"},
]
TABLES = {"dropped_columns_hive-1.1.1": HIVE, "dropped_columns-0.15.0": PLAIN}


@pytest.fixture(params=TABLES)
def table(request, tmp_path):
    return hudi_py.open_table(fixtures.unpack_more(request.param, tmp_path))


@pytest.fixture
def expected(table):
    return HIVE if table.config.version > 6 else PLAIN


def by_id(batches):
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])


def test_the_path_tells_what_files_lack(table, expected):
    """Snapshots, ranges, deletes asked for, each column alone: the same values, in the same order of columns."""
    assert expected == by_id(table.rows()) == by_id(table.changes())
    assert list(expected[0]) == table.schema.names
    marked = by_id(table.changes(with_deletes=True, columns=["region", "id"]))
    assert [(row["id"], row["region"]) for row in expected] == [(row["id"], row["region"]) for row in marked]
    alone = [row["region"] for row in table.rows(columns=["region"]).to_arrow().to_pylist()]
    assert sorted(map(str, alone)) == sorted(str(row["region"]) for row in expected)


def test_conditions_ask_for_what_is_shown(table, expected):
    """Beside conditions on what files hold."""
    assert expected[:1] == by_id(table.rows(where="region = 'eu'"))
    assert expected[1:2] == by_id(table.rows(where="region in ('us', 'eu') and qty > 5"))
    assert [] == by_id(table.rows(where="region = 'eu' and qty > 5"))
    for where, is_null in (("region is null", True), ("not (region is null)", False)):
        assert [row for row in expected if (row["region"] is None) is is_null] == by_id(table.rows(where=where))


def test_files_are_not_the_rows(table):
    """For whoever reads them by himself."""
    with pytest.raises(UnsupportedTable, match="lack the partition columns"):
        table.base_files()


def without_partition_columns(path):
    """The table at *path* as one whose files lack them; these have them all the same."""
    properties = path / ".hoodie" / "hoodie.properties"
    name = "hoodie.datasource.write.drop.partition.columns"
    properties.write_text(properties.read_text("utf-8").replace(f"{name}=false", f"{name}=true"), "utf-8")
    table = hudi_py.open_table(path)
    assert table.config.properties[name] == "true"
    return table


def test_a_column_that_commits_know_keeps_its_type(tmp_path):
    """Where the property was set later, files and commits have the column; the path tells it all the same."""
    path = fixtures.unpack("cow_nomdt-1.1.1", tmp_path)
    before = by_id(hudi_py.open_table(path).rows())
    assert before == by_id(without_partition_columns(path).rows())


@pytest.mark.parametrize("name", ["cow_cdc-1.1.1", "mor_cdc-1.1.1"])
def test_change_logs_have_the_columns_of_paths(name, tmp_path):
    """In the rows before and after each change, whichever file they are from."""
    path = fixtures.unpack_rows(name, tmp_path)
    before = hudi_py.open_table(path).change_log("0").to_arrow()
    assert before.num_rows
    assert before.equals(without_partition_columns(path).change_log("0").to_arrow())


def test_a_table_without_partitions_lacks_no_columns(tmp_path):
    """Apache Hudi takes the setting there, too, and reads such tables."""
    rows = pa.table({"id": ["a", "b"], "region": ["eu", None]})
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    hudi_py.write(tmp_path / "t", rows, settings=settings)
    table = without_partition_columns(tmp_path / "t")
    for read in (table.rows, table.changes):
        assert by_id(read(columns=["id", "region"])) == rows.to_pylist()
    assert by_id(table.rows(columns=["id", "region"], where="region is null")) == rows.slice(1).to_pylist()
