"""Tables of real Hudi with partitions by time: their rows are deleted as they are read, and as they were written."""

import pytest

import hudi_py
from hudi_py.errors import ConfigError, WriteError
from support import fixtures

BY_TIME = {
    "hoodie.keygen.timebased.timezone": "UTC",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,event_ms:TIMESTAMP",
}
AS_TEXT = {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"}


def opened(name, folder, settings):
    return hudi_py.open_table(fixtures.unpack_rows(name, folder), settings=settings)


def ids(table):
    return sorted(table.refresh().rows().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("name", fixtures.row_fixture_names("cow_custom_keygen"))
def test_rows_are_found_whatever_a_reader_shows_for_their_time(name, tmp_path):
    """Release 0.15 shows the text of the path, 1.x the value."""
    table = opened(name, tmp_path, BY_TIME)
    rows = table.rows().to_arrow()
    table.delete(rows.slice(0, 4))
    assert ids(table) == sorted(rows["id"].slice(4).to_pylist())


def test_texts_that_are_shown_as_days_are_found(tmp_path):
    """Such a text does not have the form of the input, which is no reason to refuse it."""
    table = opened("cow_timestamp_keygen-0.15.0", tmp_path, AS_TEXT)
    rows = table.rows().to_arrow()
    table.delete(rows.slice(0, 4))
    assert ids(table) == sorted(rows["id"].slice(4).to_pylist())


@pytest.mark.parametrize("name", ["cow_timestamp_keygen-1.0.2", "cow_timestamp_keygen-1.1.1"])
def test_numbers_that_are_shown_as_text_are_named(name, tmp_path):
    """Release 1.x shows them so; the message says the type to cast to, and then the rows are found."""
    table = opened(name, tmp_path, {})
    rows = table.rows().to_arrow()
    with pytest.raises(ConfigError, match="cast the column to int64"):
        table.delete(rows.slice(0, 4))
    at = rows.schema.get_field_index("event_ms")
    table.delete(rows.slice(0, 4).set_column(at, "event_ms", rows["event_ms"].slice(0, 4).cast("int64")))
    assert ids(table) == sorted(rows["id"].slice(4).to_pylist())


def test_a_value_that_means_two_partitions_is_refused(tmp_path):
    """Shown for one day it is a time of 1970, of which the table has rows, too."""
    table = opened("cow_custom_keygen-0.15.0", tmp_path, BY_TIME)
    shown = table.rows().to_arrow().slice(0, 1)
    table.upsert(shown)  # an upsert takes the number for milliseconds: 1970
    before = ids(table)
    with pytest.raises(WriteError, match="the table has both"):
        table.delete(shown)
    assert ids(table) == before
