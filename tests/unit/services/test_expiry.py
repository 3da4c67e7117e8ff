"""Which partitions expire: never one that is young, unknown, or in use; and dropping one changes no other row."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.expiry import ExpiryBy, ExpiryConfig, expiry_config, expiry_config_with
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError
from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.expiry.plan import PartitionFacts, end_of, plan
from hudi_py.services.expiry.service import ExpiryService
from hudi_py.services.maintenance.service import Chore
from hudi_py.table import Table
from support import writes
from support.tables import TableBuilder, at, rows_of

NOW = datetime(2026, 6, 15, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def days_ago(days, **more):
    return format_instant_time(NOW - timedelta(days=days, **more))


def planned(facts, **config):
    return plan(ExpiryConfig(**config), facts, now=NOW, zone=timezone.utc)


def test_older_than_the_days_expires_and_nothing_else():
    """At the very moment not yet, as in Apache Hudi; the oldest first; empty, unknown and waiting ones stay."""
    facts = [
        PartitionFacts(path="young", since=days_ago(9)),
        PartitionFacts(path="exact", since=days_ago(10)),
        PartitionFacts(path="old", since=days_ago(10, milliseconds=1)),
        PartitionFacts(path="older", since=days_ago(500)),
        PartitionFacts(path="empty", since=days_ago(500), is_empty=True),
        PartitionFacts(path="waits", since=days_ago(500), waits_for="compaction 1"),
        PartitionFacts(path="undated", since="00000000000001"),
        PartitionFacts(path="unknown"),
        PartitionFacts(path="absent", since=days_ago(500), is_there=False),
    ]
    made = planned(facts, days=10)
    assert made.expired == ("older", "old")
    assert "compaction 1" in next(verdict.reason for verdict in made.verdicts if verdict.path == "waits")
    assert planned(reversed(facts), days=10) == made
    assert planned(facts, days=10, partitions_max=1).expired == ("older",)
    for never in (-1, 0, 10**12):
        assert planned(facts, days=never).expired == ()


@pytest.mark.parametrize(
    ("value", "form", "end"),
    [
        ("2026-02-28", "%Y-%m-%d", (2026, 3, 1)),
        ("2026/12/31", "%Y/%m/%d", (2027, 1, 1)),
        ("2026-12", "%Y-%m", (2027, 1, 1)),
        ("2026-01", "%Y-%m", (2026, 2, 1)),
        ("2024", "%Y", (2025, 1, 1)),
        ("2026061423", "%Y%m%d%H", (2026, 6, 15)),
        ("9999-12-31", "%Y-%m-%d", None),
        ("__HIVE_DEFAULT_PARTITION__", "%Y-%m-%d", None),
        ("2026-02-30", "%Y-%m-%d", None),
        ("2026-02-28x", "%Y-%m-%d", None),
        ("", "%Y", None),
    ],
)
def test_a_value_counts_from_its_end(value, form, end):
    """Rows of the whole day are in its partition; what is no date never expires."""
    found = end_of(value, form, timezone.utc)
    assert found == (None if end is None else datetime(*end, tzinfo=timezone.utc))
    facts = [PartitionFacts(path="p", value=value)]
    days = (NOW - found).days if found is not None and found < NOW else None
    if days:
        assert planned(facts, by=ExpiryBy.VALUE, value_format=form, days=days - 1).expired == ("p",)
        assert planned(facts, by=ExpiryBy.VALUE, value_format=form, days=days + 1).expired == ()
    elif end is None:
        assert planned(facts, by=ExpiryBy.VALUE, value_format=form, days=1).expired == ()


@pytest.mark.parametrize("form", ["", "day", "%d", "%Y-%d", "%m-%d", "%Y-%m-%d-%d", "%Y-%j", "%%Y"])
def test_a_format_without_whole_dates_is_refused(form):
    """Without a year, or with a gap, a value would mean many times."""
    with pytest.raises(ConfigError, match="format with a year"):
        expiry_config_with(Settings({}), by="value", value_format=form)


@pytest.mark.parametrize("by", [None, "last-change", "creation"])
@pytest.mark.parametrize(
    "overlooked", [{"value_format": "%Y"}, {"value_field": "day"}], ids=lambda each: next(iter(each))
)
def test_what_is_about_values_is_refused_where_they_do_not_count(by, overlooked):
    """Partitions would expire by another time than the one that was meant."""
    if by is None and "value_format" in overlooked:
        assert expiry_config_with(Settings({}), **overlooked).by is ExpiryBy.VALUE
        return
    with pytest.raises(ConfigError, match="would have no effect"):
        expiry_config_with(Settings({}), by=by, **overlooked)


def test_settings_of_apache_hudi_and_what_contradicts_them():
    """Both spellings of a strategy; a class of somebody else is refused by name."""
    name = "hoodie.partition.ttl.strategy.class"
    package = "org.apache.hudi.table.action.ttl.strategy."
    by = expiry_config(Settings({"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"})).by
    assert by is expiry_config(Settings({name: f"{package}KeepByCreationTimeStrategy"})).by is ExpiryBy.CREATION
    assert expiry_config(Settings({})).days == -1
    with pytest.raises(ConfigError, match=r"com\.acme"):
        expiry_config(Settings({name: "com.acme.Strategy"}))
    form = {"hoodie_py.partition.ttl.value.format": "%Y"}
    with pytest.raises(ConfigError, match="leave one of them out"):
        expiry_config(Settings({name: f"{package}KeepByTimeStrategy", **form}))
    with pytest.raises(ConfigError, match="without"):
        expiry_config(Settings({"hoodie_py.partition.ttl.value.field": "day"}))


def aged(version=9):
    """A table with rows of eu and us; only eu is written to a hundred days later."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    clock = writes.open_table(storage).services.metadata_table.clock
    clock.move(100 * DAY)
    later = Table(storage, clock=clock)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 5}], opened=later)
    clock.move(timedelta(minutes=1))
    return Table(storage, settings=writes.ALONE, clock=clock)


@pytest.mark.parametrize("version", [6, 9])
def test_expired_rows_are_gone_and_all_others_stay(version):
    """Earlier times still show them; a second run finds nothing; the dry run writes nothing and says the same."""
    table = aged(version)
    before, shown = table.storage.files(), table.timeline.completed()[0].requested_time
    plan = table.read_only().expire_partitions(days=50, dry_run=True).plan
    assert table.storage.files() == before
    report = table.expire_partitions(days=50)
    assert report.plan == plan
    assert plan.expired == ("us",)
    assert [row["id"] for row in rows_of(table)] == ["a"]
    assert sorted(row["id"] for row in table.rows(as_of=shown).to_arrow().to_pylist()) == ["a", "b"]
    commit = table.contents.commit(table.timeline.find(report.commit))
    assert (commit.operation_type, list(commit.partition_to_replace_file_ids)) == ("DELETE_PARTITION", ["us"])
    assert "50 days" in commit.extra_metadata["hudi_py.expiry"]
    assert table.expire_partitions(days=50).commit is None
    assert table.expire_partitions(days=50, partitions=["eu", "nowhere"]).plan.expired == ()
    assert not [finding for finding in table.check() if finding.severity.value != "info"]


def test_by_creation_the_partition_that_was_written_to_expires_too():
    """The metafile tells when it was created."""
    assert set(aged().expire_partitions(days=50, by="creation", dry_run=True).plan.expired) == {"eu", "us"}


def test_a_time_to_come_is_told_by_a_run_that_drops(caplog):
    """The days are counted from it, so partitions go that are young; to look at it is what it is for."""
    table = aged()
    later = table.contents.store.clock.now() + timedelta(days=60)
    for dry_run, told in ((True, 0), (False, 1)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="hudi_py"):
            found = table.expire_partitions(days=50, now=later, dry_run=dry_run)
            assert set(found.plan.expired) == {"eu", "us"}
        assert sum("run.time_to_come" in each.getMessage() for each in caplog.records) == told


@pytest.mark.parametrize("layout", [1, 2])
def test_rows_in_log_files_count_as_a_change(layout):
    """Apache Hudi looks at base files alone, and drops rows that were updated an hour ago."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"old": ["f"], "kept": ["g"]}, action="deltacommit")
    builder.log_files(at(24 * 20), [("kept", "g", at(1))])
    table = builder.table()
    service = table.services.expiry(ExpiryConfig(days=10), now=datetime(2026, 1, 25, tzinfo=timezone.utc))
    assert service.plan().expired == ("old",)


def test_rows_that_come_between_the_plan_and_the_commit_are_not_lost():
    """The ages are looked at again when the commit has begun; it is given up without a trace."""
    table = aged()
    real, calls = ExpiryService.plan, []

    def and_then_somebody_writes(self):
        made = real(self)
        if not calls:
            calls.append(1)
            opened = Table(table.storage, clock=table.services.metadata_table.clock)
            writes.upsert(table.storage, [{"id": "b", "region": "us", "ts": 9}], opened=opened)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExpiryService, "plan", and_then_somebody_writes)
        with pytest.raises(ConflictError, match="us was changed"):
            table.expire_partitions(days=50)
    assert sorted((row["id"], row["ts"]) for row in rows_of(table.refresh())) == [("a", 5), ("b", 9)]
    assert not table.timeline.pending()


def test_a_table_without_partitions_has_nothing_that_expires():
    """It is wrong usage, as is a column that it does not have."""
    builder = TableBuilder(partitioned=False)
    with pytest.raises(ConfigError, match="no partition columns"):
        builder.table().expire_partitions(days=1)
    with pytest.raises(ConfigError, match="no partition column dag"):
        TableBuilder().table().expire_partitions(days=1, value_format="%Y", value_field="dag")


@pytest.mark.parametrize("version", [6, 9])
def test_a_dry_run_of_maintenance_shows_all_that_the_run_deletes(version):
    """Neither does the commit that drops partitions move the window of its clean, nor is there another after it."""
    table = aged(version)
    clock = table.contents.store.clock
    for number in range(4):
        writes.upsert(table.storage, [{"id": "a", "region": "eu", "ts": 10 + number}], opened=table)
        clock.move(timedelta(minutes=1))
    settings = {"hoodie.clean.commits.retained": 2, "hoodie.partition.ttl.strategy.days.retain": 50}
    table = Table(table.storage, settings=settings, clock=clock)
    shown, done = (
        {each.step: set(each.found.files) for each in table.maintain(dry_run=dry_run).steps}
        for dry_run in (True, False)
    )
    assert shown == done
    assert (shown[Chore.PARTITIONS], len(shown[Chore.CLEAN])) == ({"us"}, 3)
    assert len(table.refresh().timeline.completed("clean")) == 1
    clock.move(timedelta(minutes=1))
    assert table.clean()
