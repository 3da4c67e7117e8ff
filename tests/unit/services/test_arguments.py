"""Arguments are refused by name, before anything is touched, if they would be passed over or misread."""

from datetime import datetime, timedelta
from inspect import signature

import attrs
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.txn.hooks import add_hook
from support import writes

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is refused
MISSPELT = {
    "clean": lambda table: table.clean(comits_retained=None),
    "doctor": lambda table: table.doctor(comits_retained=1),
    "orphans": lambda table: table.orphans(dryrun=True),
    "expire": lambda table: table.expire_partitions(dry_run=True, day=1),
    "archive": lambda table: table.archive(keep_min=1),
    "list of orphans": lambda table: table.list_for_approval("orphans", commits_retained=1),
    "list of orphans, for good": lambda table: table.list_for_approval("orphans", delete=True),
}
REFUSED = {
    "delete": lambda table: table.orphans(delete="false"),
    "dry_run": lambda table: table.orphans(dry_run=None),
    "dry_run=": lambda table: table.maintain(dry_run=0),
    "dry_run='no'": lambda table: table.recover(dry_run="no"),
    "archive_commit": lambda table: table.delete_savepoint("x", archive_commit="false"),
    "max_deletes=True": lambda table: table.orphans(dry_run=True, max_deletes=True),
    "max_deletes='5'": lambda table: table.orphans(dry_run=True, max_deletes="5"),
    "max_deletes=1.5": lambda table: table.maintain(max_deletes=1.5),
    "max_bytes": lambda table: table.maintain(max_bytes=True),
    "max_duration=0": lambda table: table.maintain(max_duration=0),
    "older_than=5": lambda table: table.orphans(dry_run=True, older_than=5),
    "older_than=datetime": lambda table: table.orphans(dry_run=True, older_than=NAIVE),
    "now": lambda table: table.plan_clean(now=NAIVE),
    "now=datetime": lambda table: table.orphans(dry_run=True, now=NAIVE),
    "now='2030'": lambda table: table.usage(now="2030"),
    "days=True": lambda table: table.expire_partitions(dry_run=True, days=True),
    "days='1d'": lambda table: table.expire_partitions(dry_run=True, days="1d"),
    "partitions": lambda table: table.expire_partitions(dry_run=True, days=1, partitions=[]),
    "partitions=b'eu'": lambda table: table.expire_partitions(dry_run=True, days=1, partitions=b"eu"),
    "read_optimized": lambda table: table.rows(read_optimized="false"),
    "with_meta": lambda table: table.rows(with_meta=1),
    "with_deletes": lambda table: table.changes(with_deletes="false"),
    "savepoint": lambda table: table.take_lease(ttl="1h", savepoint="false"),
    "archived": lambda table: table.history(archived="false"),
    "contents": lambda table: table.check(contents="no"),
    "the name of a savepoint": lambda table: table.create_savepoint(name=""),
    "time to live 5": lambda table: table.create_savepoint(ttl=5),
    "time to live 0": lambda table: table.take_lease(ttl=0),
    "keys": lambda table: table.erased(keys=[1]),
    "keys=b'1'": lambda table: table.erased(keys=b"1"),
    "now=NAIVE": lambda table: table.doctor(now=NAIVE),
    "not a function": lambda _: add_hook(None),
    "partitions is": lambda table: table.cluster(partitions=[]),
    "nowhere": lambda table: table.cluster(partitions=["nowhere"]),
    "sort_by": lambda table: table.plan_cluster(sort_by=b"id"),
    "instants": lambda table: table.plan_clean(instants="20260101000000000"),
    "instants=[5]": lambda table: table.plan_clean(instants=[5]),
    "max_commits": lambda table: table.plan_clean(older_than="1h", max_commits=1),
    "max_files": lambda table: table.simulate(commits_retained=1, max_files=1),
    "max_duration is": lambda table: table.simulate(commits_retained=1, max_duration="1h"),
}


@pytest.fixture
def table():
    return writes.filled_table()


def state(table):
    return {path: table.storage.read(path) for path in table.storage.files()}


@pytest.mark.parametrize("call", MISSPELT)
def test_misspelt_keyword_is_refused(table, call):
    """A search with ``dryrun=True`` removed files."""
    before = state(table)
    with pytest.raises(TypeError, match="unknown keyword"):
        MISSPELT[call](table)
    assert state(table) == before


@pytest.mark.parametrize("words", REFUSED)
def test_argument_that_says_nothing_clear_is_refused_by_name(table, words):
    """The text ``"false"`` is true for Python, and an empty list of partitions counted as all."""
    before = state(table)
    with pytest.raises(ConfigError, match=words.partition("=")[0]):
        REFUSED[words](table)
    assert state(table) == before


def test_blank_name_approves_nothing(table):
    """A list whose ``approved_by`` was a blank was carried out."""
    asked = attrs.evolve(table.list_for_approval(commits_retained=1), approved_by=" ")
    with pytest.raises(RefusedError, match="nobody has approved"):
        table.remove_approved(asked)


def test_clean_that_was_approved_takes_no_delete(table):
    """It would have looked as if the files were gone for good."""
    asked = attrs.evolve(table.list_for_approval(commits_retained=1), approved_by="ann")
    with pytest.raises(ConfigError, match="delete is about lists of orphans"):
        table.remove_approved(asked, delete=True)


def test_limits_and_spans_of_other_libraries_are_taken(table):
    """Limits come out of NumPy and pandas, too."""
    numpy = pytest.importorskip("numpy")
    assert not table.orphans(dry_run=True, max_deletes=numpy.int64(1), older_than=timedelta(hours=1)).done


def test_client_of_spark_passes_the_same_defaults_on():
    """What it hands to the table without having been given it must mean what the table means by it."""
    pytest.importorskip("pyspark")
    from hudi_py.spark.client import WriteClient
    from hudi_py.table import Table

    for name in ("cluster", "clean", "compact", "compact_logs"):
        theirs = signature(getattr(Table, name)).parameters
        for argument, parameter in signature(getattr(WriteClient, name)).parameters.items():
            assert parameter.default == theirs[argument].default, (name, argument)
