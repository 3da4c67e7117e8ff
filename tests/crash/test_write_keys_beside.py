"""Two writers that write the same rows with the same write key at once: the rows are there once."""

from __future__ import annotations

import itertools
import logging
from contextlib import suppress

import pytest

from hudi_py.errors import HudiError, OutcomeUnknown
from hudi_py.testing import ReportFailure
from hudi_py.writing.commit_words import commit_words
from support import writes
from support.laws import SHARE
from support.many_writers import contents, rows, service, table
from support.meanwhile import Meanwhile

AT_ONCE = {"hoodie.write.lock.client.num_retries": 0}


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    yield
    logging.getLogger("hudi_py").setLevel(logging.NOTSET)


def write(storage, **settings):
    """Keys are not looked up, so a second write would be seen."""
    return service(storage, **settings).write(rows(("n", "eu", 7)), "BULK_INSERT", commit_words(write_key=("job", 7)))


def beside(storage, n):
    """The other one writes before the nth call of the first, unless that holds the lock."""

    def other():
        with suppress(HudiError):
            write(storage, **AT_ONCE)

    return Meanwhile(storage, other, n=n)


FAULTS = {
    "beside": beside,
    "no answer": lambda storage, n: ReportFailure(storage, n, error=OutcomeUnknown("no answer")),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("version", "kind"), [(6, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_a_write_key_counts_once_whoever_wrote_it_and_whatever_was_answered(version, kind, fault):
    """At each call that changes something; whoever writes it again succeeds without a further row."""
    start = table(version, kind)
    for n in itertools.count(0, SHARE):
        storage = start.copy()
        faulty = FAULTS[fault](storage, n)
        with suppress(HudiError):
            write(faulty)
        assert write(storage).instant
        assert write(storage).is_repeated
        assert [row for row in contents(storage) if row[1] == "n"] == [("eu", "n", 7)], (n, faulty.fired)
        assert not [each for each in writes.open_table(storage).check() if each.severity.name == "ERROR"]
        if faulty.fired is None:
            break
