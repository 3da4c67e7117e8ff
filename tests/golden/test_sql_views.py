"""The views for SQL say what the commands say, in DuckDB and in Spark."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest

import hudi_py
from hudi_py.errors import ConfigError
from hudi_py.snapshot.sql_views import SCHEMAS
from support import fixtures

NAMES = ["cow_archived-1.1.1", "cow_savepoints-0.15.0", "mor_compacted-1.2.0", "cow_empty-1.0.2"]


@pytest.fixture
def opened(tmp_path):
    """A fixture, opened."""
    return lambda name: hudi_py.open_table(str(fixtures.unpack(name, tmp_path)))


@pytest.mark.parametrize("name", NAMES)
def test_views_agree_with_the_methods(opened, name):
    """Numbers, archived instants, what keeps each file; columns are those that are promised, empty tables too."""
    table = opened(name)
    connection = duckdb.connect()
    assert table.register_views(connection, prefix="t_") == tuple(f"t_{view}" for view in SCHEMAS)

    def ask(sql):
        return connection.sql(sql).fetchall()

    for view, schema in SCHEMAS.items():
        assert [column for column, *_ in ask(f"describe t_{view}")] == schema.names
    history = table.history(archived=True)
    assert ask("select count(*), sum(bytes_written)::bigint, sum(rows_inserted)::bigint from t_instants") == [
        (
            len(history),
            sum(each.numbers.bytes_written for each in history) if history else None,
            sum(each.numbers.rows_inserted for each in history) if history else None,
        )
    ]
    cleans = [each for each in history if each.instant.action.value == "clean"]
    assert ask("select instant, files_deleted from t_cleans order by 1") == sorted(
        (each.instant.requested_time, each.numbers.files_deleted) for each in cleans
    )
    usage = table.usage()
    held = {holder.value: usage.of(holder) for holder in hudi_py.Holder if usage.of(holder).files}
    assert dict(ask("select held_by, sum(bytes)::bigint from t_files group by 1")) == {
        name: share.bytes for name, share in held.items()
    }
    assert ask("select count(*) from t_savepoints") == [(len(table.services.savepoint().savepoints()),)]
    assert ask("select code from t_findings order by 1") == sorted((each.code,) for each in table.doctor())


def test_times_are_times(opened):
    """So that they can be compared with dates; in the table's time zone."""
    table = opened("cow_cleaned-1.1.1")
    view = table.view("instants")
    for text, moment in zip(view["requested_time"].to_pylist(), view["requested_at"].to_pylist(), strict=True):
        assert moment == datetime.strptime(f"{text}000", "%Y%m%d%H%M%S%f").replace(tzinfo=table.zone)


def test_what_is_not_there_is_refused(opened):
    """A view, and a connection of another kind."""
    table = opened("cow_empty-1.0.2")
    with pytest.raises(ConfigError, match="instants, files, savepoints, cleans, findings"):
        table.view("rows")
    with pytest.raises(ConfigError, match="neither"):
        table.register_views(object())
