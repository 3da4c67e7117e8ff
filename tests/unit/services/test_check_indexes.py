"""A check finds where the indexes of keys in the metadata table differ from the files."""

import pyarrow as pa
import pytest

from hudi_py.formats.avro_registry import schema_text
from hudi_py.local.rows import ArrowRows
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.record_index import RecordLocation, encode_location
from hudi_py.mdt.records import RECORD
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS, StatisticsRecord, encode_statistics
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import write_delta_commit
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.indexes import loaded, places, recorded, recorded_statistics


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Files of a table with both indexes."""
    return loaded("cow_all_indexes-1.0.2", tmp_path_factory.mktemp("t")).files()


@pytest.fixture
def storage(original):
    return MemoryStorage.from_files(original)


def codes(storage):
    return {each.code for each in writes.open_table(storage).check() if each.severity.name != "INFO"}


def recording(storage, partition, records):
    """Records in the metadata table that belong to no action."""
    time = "20980101000000000"
    write_delta_commit(
        MetadataTable(storage), writes.open_table(storage).timeline, time, ListingChanges(), {partition: records}
    )


def test_what_hudi_wrote_agrees(storage):
    """Nothing to report, before and after a write of ours."""
    assert codes(storage) == set()
    rows = writes.open_table(storage).rows().to_arrow()
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    writes.write(storage, ArrowRows(pa.concat_tables([rows.slice(0, 2)])), writes.open_table(storage), "UPSERT")
    assert codes(storage) == set()


def test_a_row_that_the_record_index_lacks_is_found(storage):
    """A writer that looks keys up there would insert it again."""
    recording(storage, RECORD_INDEX, {min(places(storage)): None})
    assert codes(storage) == {"mdt-index-row-missing"}


def test_a_place_that_does_not_exist_is_found(storage):
    """A writer would put the row's next version there."""
    at = RecordLocation("r0", "00000000-0000-0000-0000-00000000abcd-0", 1)
    recording(storage, RECORD_INDEX, {min(places(storage)): encode_location(at, 8)})
    assert codes(storage) == {"mdt-index-group-missing"}


def test_a_filter_of_another_file_is_found(storage):
    """It would rule out keys that the file has."""
    filters = recorded(storage, BLOOM_FILTERS)
    first = next(iter(filters.values())).value
    recording(storage, BLOOM_FILTERS, dict.fromkeys(filters, first))
    assert codes(storage) == {"mdt-filter-differs"}


@pytest.mark.parametrize("partition", [COLUMN_STATS, PARTITION_STATS])
def test_bounds_that_do_not_hold_the_values_are_found(partition, storage):
    """Readers that ask them would skip the file."""
    schema = schema_text(RECORD, 8)
    records = recorded_statistics(storage, partition)
    wrong = {key: _narrower(each) for key, each in records.items() if each.fields["columnName"] == "ts"}
    recording(storage, partition, {key: encode_statistics(each, schema, file_name=None) for key, each in wrong.items()})
    assert codes(storage) == {"mdt-statistics-differ"}


def _narrower(record):
    wrapper, value = record.fields["minValue"]
    fields = {**record.fields, "minValue": (wrapper, {"value": value["value"] + 1}), "isTightBound": True}
    return StatisticsRecord(record.kind, fields)
