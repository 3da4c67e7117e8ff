"""Rows in pieces, each read by whoever it is sent to."""

import pickle

import pytest

import hudi_py
from support import fixtures

TABLES = [
    *("cow_types-1.1.1", "cow_all_indexes-1.1.1", "cow_custom_keygen-0.15.0", "cow_cdc_op_key_only-0.15.0"),
    *("mor_cdc-1.1.1", "mor_event_time-0.15.0", "mor_partial_update-1.0.2", "mor_rolled_back_logs-1.1.1"),
]


def sent(batches):
    """Rows of each piece by itself, read from pickled bytes alone."""
    found = batches.in_pieces()
    assert len(found.sizes) == len(found.pieces)
    for piece in found.pieces:
        read, what = pickle.loads(pickle.dumps((found.read, piece)))
        for batch in read(what):
            assert batch.schema == batches.schema
            yield from batch.to_pylist()


def answers(table):
    """Each kind of answer that a table gives."""
    key = table.schema.names[0]
    yield table.rows(with_meta=True)
    yield table.rows(where=f"{key} is not null", columns=[key])
    instants = table.timeline.commits.completed()
    end = instants[-1]
    start: str | None = instants[len(instants) // 2].completion_time or instants[len(instants) // 2].requested_time
    if "partial_update" in table.config.name:  # a range may not begin behind the rows that are updated
        start = None
    yield table.changes(start, end.completion_time or end.requested_time, with_deletes=True)
    if "true" == table.config.properties.get("hoodie.table.cdc.enabled"):
        yield table.change_log()


@pytest.mark.parametrize("name", TABLES)
def test_pieces_read_apart_are_the_rows(name, tmp_path):
    """Whatever is asked, the pieces hold what iterating gives, in the same order, and need nothing but themselves."""
    for batches in answers(hudi_py.open_table(fixtures.unpack_rows(name, tmp_path))):
        whole = [row for batch in batches for row in batch.to_pylist()]
        assert whole == list(sent(batches))
