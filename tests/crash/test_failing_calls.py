"""A write whose calls to the storage fail, reading ones too: its error says whether the rows are in the table."""

import itertools

import pyarrow as pa
import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import HudiError, OutcomeUnknown, ServiceFailed
from hudi_py.local.rows import ArrowRows
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS
from hudi_py.testing import FailNth, ReportFailure
from hudi_py.write_service import WriteService
from support.crash_points import EVERY, IS_SAMPLE
from support.writes import OLD, SCHEMA, create_table, merged_rows_of, open_table

SERVICES = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.automatic": True,
    "hoodie.archive.automatic": True,
    "hoodie.metadata.enable": True,
}
ALL = READING_VERBS | MUTATING_VERBS
FAULTS = {
    "one call fails": lambda storage, n: FailNth(storage, n, verbs=ALL),
    "all calls fail from one on": lambda storage, n: FailNth(storage, n, times=None, verbs=ALL),
    "an answer is lost": ReportFailure,
    "nobody knows": lambda storage, n: ReportFailure(storage, n, error=OutcomeUnknown("no answer")),
}


NEXT = [{"id": "d", "region": "eu", "ts": 9}]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", [(6, {}), (9, {}), (9, {"hoodie.table.type": "MERGE_ON_READ"})], ids=str)
def test_error_of_a_write_says_whether_its_rows_are_there(record_property, kind, fault):
    """
    Only `ServiceFailed` says that they are, only `OutcomeUnknown` that nobody knows; after any other error they are
    not. Who writes them again then has them once.
    """
    version, more = kind
    original = create_table(version, **more)
    for number in range(6):  # so that the clean and the archival have something to do
        _write(original, [{**row, "ts": number} for row in OLD])
    before = merged_rows_of(original)
    after = sorted([*before, *NEXT], key=lambda row: (row["region"], row["id"]))
    ended = dict.fromkeys(("done", "services failed", "unknown", "not written"), 0)
    for n in itertools.count(0, EVERY):
        storage = original.copy()
        faulty = FAULTS[fault](storage, n)
        try:
            _write(faulty, NEXT)
        except ServiceFailed:
            how, possible = "services failed", [after]
        except OutcomeUnknown:
            how, possible = "unknown", [before, after]
        except HudiError:
            how, possible = "not written", [before]
        else:
            how, possible = "done", [after]
        ended[how] += 1
        assert merged_rows_of(storage) in possible, (fault, n, how, faulty.fired)
        if faulty.fired is None:
            break
    record_property("calls that failed", sum(ended.values()))
    assert ended["done"], ended
    assert IS_SAMPLE or (ended["services failed"] and ended["not written"]), ended


def _write(storage, rows):
    opened = open_table(storage)
    settings = opened.settings.merged(SERVICES)
    service = WriteService(storage, settings, opened.services.metadata_table.clock, LocalEngine)
    service.write(ArrowRows(pa.Table.from_pylist(rows, schema=SCHEMA)), "UPSERT")
