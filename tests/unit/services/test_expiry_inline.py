"""Each commit drops what has expired, and nothing more; whatever goes wrong with that, its rows are written."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, ServiceFailed
from hudi_py.local.rows import ArrowRows
from hudi_py.services.expiry.service import ExpiryService
from hudi_py.table import Table
from hudi_py.testing import Crash, StopAfter
from hudi_py.write_service import WriteService
from support import writes
from support.tables import rows_of

INLINE = writes.ALONE | {"hoodie.partition.ttl.inline": True, "hoodie.partition.ttl.strategy.days.retain": 50}
NEW = [{"id": "c", "region": "eu", "ts": 9}]


def aged(version=9, **more):
    """A table of which eu is written to a hundred days after us."""
    storage = writes.create_table(version, **more)
    writes.upsert(storage, writes.OLD)
    clock = writes.open_table(storage).services.metadata_table.clock
    clock.move(timedelta(days=100))
    return storage, clock


def write(storage, clock, settings=INLINE, rows=NEW):
    service = WriteService(storage, Table(storage).settings.merged(settings), clock, LocalEngine)
    return service.write(ArrowRows(pa.Table.from_pylist(rows, schema=writes.SCHEMA)), "UPSERT")


def ids(storage):
    return sorted(row["id"] for row in rows_of(Table(storage)))


@pytest.mark.parametrize("version", [6, 9])
def test_a_commit_drops_what_has_expired_in_a_commit_of_its_own(version):
    """That one is followed by nothing; earlier times still show the rows; the next commit finds nothing."""
    storage, clock = aged(version)
    shown = Table(storage).timeline.completed()[0].requested_time
    result = write(storage, clock)
    assert result.expired_partitions == ("us",)
    table = Table(storage)
    assert [i.action.value for i in table.timeline.completed()] == ["commit", "commit", "replacecommit"]
    assert "us" not in {row["region"] for row in rows_of(table)}
    assert {row["region"] for row in table.rows(as_of=shown).to_arrow().to_pylist()} == {"eu", "us"}
    clock.move(timedelta(minutes=1))
    assert write(storage, clock).expired_partitions == ()
    assert not [finding for finding in Table(storage).check() if finding.severity.value != "info"]


@pytest.mark.parametrize(
    "settings",
    [
        {"hoodie.partition.ttl.inline": False},
        {"hoodie.partition.ttl.strategy.days.retain": -1},
        {"hoodie.partition.ttl.strategy.days.retain": 200},
        {"hoodie.table.services.enabled": False},
        {"hoodie.partition.ttl.strategy.partition.selected": "eu"},
    ],
    ids=str,
)
def test_nothing_is_dropped_unless_all_asks_for_it(settings):
    """Neither a plan nor a commit is made."""
    storage, clock = aged()
    assert write(storage, clock, INLINE | settings).expired_partitions == ()
    assert "b" in ids(storage)


def test_a_table_without_partitions_is_written_as_ever():
    """As by Apache Hudi: in it nothing expires."""
    storage, clock = aged(**{"hoodie.datasource.write.partitionpath.field": ""})
    assert write(storage, clock).expired_partitions == ()
    assert ids(storage) == ["a", "b", "c"]


def test_settings_that_contradict_each_other_are_refused_before_anything_is_written():
    """Not after the rows."""
    storage, clock = aged()
    before = storage.files()
    with pytest.raises(ConfigError, match="without"):
        write(storage, clock, INLINE | {"hoodie_py.partition.ttl.value.field": "day"})
    assert storage.files() == before


def test_rows_that_come_meanwhile_are_kept_and_the_next_commit_looks_again():
    """The ages are looked at again once the commit has begun."""
    storage, clock = aged()
    real, calls = ExpiryService.plan, []

    def and_then_somebody_writes(self):
        made = real(self)
        if not calls:
            calls.append(1)
            write(storage, clock, writes.ALONE, [{"id": "b", "region": "us", "ts": 9}])
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExpiryService, "plan", and_then_somebody_writes)
        assert write(storage, clock).expired_partitions == ()
    assert ids(storage) == ["a", "b", "c"]
    assert not Table(storage).timeline.pending()


@pytest.mark.slow
def test_at_every_call_the_rows_of_the_commit_are_there_once_it_is_complete():
    """Cut anywhere, the next write ends with the same rows, and the partition dropped."""
    number, is_cut, outcomes = 0, True, set()
    while is_cut:
        storage, clock = aged()
        faulty = StopAfter(storage, number)
        try:
            write(faulty, clock)
        except (Crash, ServiceFailed) as error:
            outcomes.add(type(error).__name__)
        is_cut = faulty.fired is not None
        clock.move(timedelta(minutes=1))
        write(storage, clock)
        assert ids(storage) == ["a", "c"], faulty.fired
        assert not Table(storage).timeline.pending()
        number += 5
    assert outcomes == {"Crash"}
