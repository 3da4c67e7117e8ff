"""Which log files compactions and clusterings merge, by the table's properties."""

import json

import pytest

from hudi_py.errors import UnsupportedTable
from hudi_py.rows.table_logs import table_log_reading, why_not_read

FILLED = {
    "hoodie.table.version": "9",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
}


def schema(default):
    fields = [{"name": "id", "type": ["null", "string"], "default": None}]
    fields += [{"name": "amount", "type": ["long", "null"], "default": default}] if default else []
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def test_defaults_that_releases_fill_in_differently_are_refused_by_name():
    """Null is no such default, and a table without that mode fills nothing in."""
    assert why_not_read(FILLED, schema(5), "t").startswith("t: column amount has the default 5")
    with pytest.raises(UnsupportedTable, match="amount has the default 5"):
        table_log_reading(FILLED, schema(5), lambda _: True, "t")
    assert why_not_read(FILLED, schema(None), "t") is None
    assert why_not_read({"hoodie.table.version": "9"}, schema(5), "t") is None
