"""A statement that changes rows takes a condition that is given without any for a mistake: it would change all rows."""

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError
from support import writes

SOURCE = pa.Table.from_pylist(writes.CHANGES, schema=writes.SCHEMA)
ON = ["id", "region"]
STATEMENTS = {
    "delete": lambda table, where: table.delete(where=where),
    "update": lambda table, where: table.update({"ts": 1}, where=where),
    "matched update": lambda table, where: table.merge(SOURCE, ON).when_matched_update(where=where),
    "matched delete": lambda table, where: table.merge(SOURCE, ON).when_matched_delete(where=where),
    "insert": lambda table, where: table.merge(SOURCE, ON).when_not_matched_insert(where=where),
    "left update": lambda table, where: table.merge(SOURCE, ON).when_not_matched_by_source_update(
        {"ts": "1"}, where=where
    ),
    "left delete": lambda table, where: table.merge(SOURCE, ON).when_not_matched_by_source_delete(where=where),
}
EMPTY = {"list": list, "mapping": dict, "iterator": lambda: iter(()), "text": str, "bytes": bytes, "None": lambda: None}


@pytest.fixture
def table():
    return writes.filled_table()


def rows(table):
    return sorted(map(str, table.refresh().rows().to_arrow().to_pylist()))


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("empty", EMPTY)
def test_condition_that_came_out_empty_is_refused(table, statement, empty):
    """Only where no condition is given at all, all rows are meant."""
    before = rows(table), len(list(table.timeline))
    with pytest.raises(ConfigError):
        STATEMENTS[statement](table, EMPTY[empty]())
    assert (rows(table), len(list(table.timeline))) == before


def test_condition_of_an_iterator_counts_in_every_clause(table):
    """It was read when the clauses were checked, and the clause took all rows afterwards."""
    before = rows(table)
    none = (text for text in ["ts < 0"])
    table.merge(SOURCE, ON).when_matched_delete(where=none).when_matched_delete(where="ts < -1").execute()
    assert rows(table) == before


def test_stream_is_merged_once(table):
    """The second time it has no rows, and every row of the table would be without one."""
    whole = table.rows().to_arrow()
    merge = table.merge(whole.to_reader(), ON).when_not_matched_by_source_delete()
    merge.execute()
    before = rows(table)
    with pytest.raises(ConfigError, match="read already"):
        merge.execute()
    assert rows(table) == before


def test_iterator_of_partitions_is_dropped(table):
    """It was read by the check of the names, and the commit dropped nothing."""
    wanted = table.partitions()[:1]
    table.drop_partitions(iter(wanted))
    assert not [row for row in table.refresh().rows().to_arrow().to_pylist() if row["region"] == wanted[0]]


@pytest.mark.parametrize("paths", ["eu", b"eu", {"eu": 1}, [b"eu"]])
def test_partitions_that_are_no_list_are_refused(table, paths):
    """Their letters, bytes or keys could be partitions."""
    with pytest.raises(ConfigError, match="paths="):
        table.drop_partitions(paths)


def test_rows_without_a_source_take_no_values_from_it(table):
    """The clause was carried out as a commit that changed nothing."""
    with pytest.raises(ConfigError, match="at least one column"):
        table.merge(SOURCE, ON).when_not_matched_by_source_update(None)
