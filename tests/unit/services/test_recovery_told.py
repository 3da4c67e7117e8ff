"""Locks, damaged metafiles, all that a check finds: put right where that is proven, else told with a way out."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from hudi_py.model.instant import State
from hudi_py.services.check.findings import RULES, Severity
from hudi_py.services.recovery.contradictions import _HARMLESS
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support import fixtures
from support.damages import newest_base_file, opened, shortened, timeline_folder
from support.recoveries import LAYOUTS, healthy, recovered
from support.tables import NOW, at

TABLE_LOCK = ".hoodie/.locks/table_lock.json"
NOW_MS = int(NOW.timestamp() * 1000)


def table_lock(*, left: timedelta, expired: bool = False) -> bytes:
    """As `StorageBasedLockProvider` writes it."""
    until = NOW_MS + left // timedelta(milliseconds=1)
    return json.dumps({"expired": expired, "validUntil": until, "owner": "0b7ac9f8"}).encode()


# --- locks (F.1) ---
@LAYOUTS
@pytest.mark.parametrize(
    ("content", "step"),
    [
        (table_lock(left=timedelta(minutes=4), expired=True), None),
        (table_lock(left=timedelta(days=-9), expired=True), None),
        (table_lock(left=timedelta(minutes=4)), Step.LEAVE),
        (table_lock(left=timedelta(seconds=-1)), Step.LEAVE),
        (table_lock(left=timedelta(seconds=-60)), Step.LEAVE),
        (table_lock(left=timedelta(seconds=-61)), Step.REMOVE_FILES),
        (table_lock(left=timedelta(days=2)), Step.DECIDE),
        (b"", Step.DECIDE),
        (b"{torn", Step.DECIDE),
        (b'{"expired": "no", "validUntil": 1}', Step.DECIDE),
        (b'{"expired": false, "validUntil": true}', Step.DECIDE),
    ],
)
def test_table_lock_goes_only_when_its_time_is_over(layout, content, step):
    """Released it is no finding; held, or about to be taken over, it stays; what nobody can judge needs a human."""
    builder = healthy(layout)
    builder.put(TABLE_LOCK, content)
    found = recovered(builder)
    assert found == ([] if step is None else [(Problem.LOCK, step, step is Step.REMOVE_FILES)])
    assert (builder.storage.size(TABLE_LOCK) is None) == (step is Step.REMOVE_FILES)


class TakenOver(DelegatingStorage):
    """The lock is taken by another process once it has been looked at *looks* times."""

    def __init__(self, inner, looks):
        super().__init__(inner)
        self.looks = looks

    def read(self, path):
        data = super().read(path)
        if path == TABLE_LOCK:
            self.looks -= 1
            if not self.looks:
                self.replace(path, table_lock(left=timedelta(minutes=5)))
        return data


def test_lock_that_was_taken_over_meanwhile_stays():
    """It is looked at again right before it would go."""
    builder = healthy(2)
    builder.put(TABLE_LOCK, table_lock(left=timedelta(days=-1)))
    (outcome, *_) = Table(TakenOver(builder.storage, 1), clock=builder.clock).recover()
    assert outcome.error is not None
    assert "taken over" in outcome.error
    assert not outcome.done
    assert builder.storage.read(TABLE_LOCK) == table_lock(left=timedelta(minutes=5))


def test_file_lock_tells_what_it_says_of_its_owner():
    """What Hudi wrote into it is evidence; that, and how to go on, is for people."""
    builder = healthy(1)
    builder.put(".hoodie/lock", b'{"lockCreateTime": "2026-01-01 00:00:00.000",\n "lockThreadName": "main"}')
    (outcome,) = builder.table().recover(dry_run=True)
    assert any('"lockThreadName": "main"' in each for each in outcome.finding.evidence)
    assert "delete it" in outcome.finding.evidence[-1]


# --- partition metafiles ---
METAFILE = "eu/.hoodie_partition_metadata"


@LAYOUTS
@pytest.mark.parametrize(
    ("damaged", "commit_time"),
    [
        (b"", at(1)),
        (b"\x00\xff", at(1)),
        (b"commitTime=20250101000000000\npartitionDepth=7\n", "20250101000000000"),
        (b"#partition metadata\ncommitTime=20250101000000000\nparti", "20250101000000000"),
        (b"commitTime=2025010100", at(1)),
    ],
)
def test_damaged_metafile_is_written_again_where_a_commit_names_the_partition(layout, damaged, commit_time):
    """The depth follows from the path; the time is what is left of it, or that of the first commit there."""
    builder = healthy(layout)
    builder.put(METAFILE, damaged)
    assert recovered(builder) == [(Problem.PARTITION_METAFILE, Step.REWRITE_METAFILE, True)]
    lines = builder.storage.read(METAFILE).decode().splitlines()
    assert {f"commitTime={commit_time}", "partitionDepth=1"} <= set(lines)
    assert builder.storage.read(f".hoodie/.aux/hudi_py/quarantine/{METAFILE}") == damaged
    assert not [each for each in builder.table().check() if each.severity is not Severity.INFO]


@LAYOUTS
def test_damaged_metafile_of_a_folder_that_no_commit_names_stays(layout):
    """It may be no partition of this table at all."""
    builder = healthy(layout)
    builder.put("us/.hoodie_partition_metadata", b"noise")
    (found,) = recovered(builder)
    assert found == (Problem.CONTRADICTION, Step.DECIDE, False)
    assert builder.storage.read("us/.hoodie_partition_metadata") == b"noise"


# --- everything that a check finds ---
def tear_newest(path: Path) -> None:
    shortened(newest_base_file(path))


def tear_instant_of_metadata_table(path: Path) -> None:
    folder = timeline_folder(path / ".hoodie" / "metadata")
    shortened(max(folder.glob("*.deltacommit")))


def tear_archive(path: Path) -> None:
    for file in [*path.glob(".hoodie/archived/.commits*"), *path.glob(".hoodie/timeline/history/*.parquet")]:
        shortened(file)


def metafiles(path: Path) -> list[Path]:
    """Of the table's own partitions."""
    return sorted(each for each in path.rglob(".hoodie_partition_metadata") if ".hoodie" not in each.parts)


def remove_metafile(path: Path) -> None:
    metafiles(path)[0].unlink()


def remove_newest(path: Path) -> None:
    newest_base_file(path).unlink()


def tear_every_metafile(path: Path) -> None:
    for file in metafiles(path):
        shortened(file)


def copy_a_file(path: Path) -> None:
    file = newest_base_file(path)
    file.with_name(file.name.replace("-0_", "-0_9")).write_bytes(file.read_bytes())


DAMAGE = [
    tear_newest,
    tear_instant_of_metadata_table,
    tear_archive,
    remove_metafile,
    remove_newest,
    tear_every_metafile,
    copy_a_file,
]


@pytest.mark.parametrize("name", ["cow_archived-0.15.0", "cow_archived-1.1.1"])
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda each: each.__name__)
def test_nothing_that_a_check_reports_is_passed_over(damage, name, tmp_path):
    """After a recovery every error and warning that is left stands among its findings, with a way out."""
    path = fixtures.unpack(name, tmp_path)
    damage(path)
    told = {each for each in opened(path).check() if each.severity is not Severity.INFO and each.code not in _HARMLESS}
    assert told
    dry = Table(LocalStorage(str(path))).recover(dry_run=True)
    outcomes = Table(LocalStorage(str(path))).recover()
    left = [each for each in opened(path).check() if each.severity is not Severity.INFO and each.code not in _HARMLESS]
    paths = {path.rstrip("/") for each in outcomes for path in each.finding.paths}
    text = " ".join(line for each in outcomes for line in each.finding.evidence)
    for each in left:
        assert each.where in paths or each.where in text, each
    assert dry
    assert all(each.done or each.is_open for each in outcomes)


@LAYOUTS
def test_many_of_one_kind_are_one_finding(layout):
    """With every place by name."""
    builder = healthy(layout)
    for number in (1, 2, 3):
        builder.storage.delete(f"eu/{builder.base_name('a', at(number))}")
    (outcome,) = builder.table().recover(dry_run=True)
    assert outcome.finding.problem is Problem.CONTRADICTION
    assert "file-missing" in outcome.finding.evidence[0]
    assert outcome.finding.evidence[1] == RULES["file-missing"].fix
    assert outcome.finding.paths == tuple(f"eu/{builder.base_name('a', at(number))}" for number in (1, 2, 3))


@LAYOUTS
def test_what_a_step_settles_is_not_told_as_open(layout):
    """A failed write is one finding, and so are its files, whatever a check says of both before."""
    builder = healthy(layout)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    assert recovered(builder) == [(Problem.FAILED_WRITE, Step.ROLL_BACK, True)]
