"""
Tables of four releases of Apache Hudi: our answers beside theirs.

Every expected value was computed by real Hudi (``tests/fixtures/README.md``); nothing here comes from our own output.
"""

from __future__ import annotations

import json
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from hudi_py.inspection.instant_entry import instant_entry
from hudi_py.inspection.report import files_report, plan_report
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.fixtures import expected, fixture_names, unpack

KEEP: dict[str, str] = {}
DROP = {"hoodie.metadata.enable": "false"}


def metadata_modes(names: list[str]) -> list[Any]:
    """Each table with its metadata table kept in step, and those that have one with it dropped too."""
    modes = [pytest.param(name, KEEP, id=name) for name in names]
    with_table = [name for name in names if "metadata_listing_agrees" in expected(name)["expected"]]
    return modes + [pytest.param(name, DROP, id=f"{name}-dropped") for name in with_table]


def assert_listing_is_true(path: Path) -> None:
    """The metadata table, where there is one, lists what is on disk."""
    table, folders = Table(LocalStorage(path)), Table(LocalStorage(path), settings=DROP)
    assert table.partitions() == folders.partitions()
    for partition in folders.partitions():
        listed, there = table.partition(partition), folders.partition(partition)
        assert listed.groups == there.groups
        assert listed.replaced_groups == there.replaced_groups


def data_files(table: Path) -> dict[str, int]:
    """Relative path to size of everything but the metadata folder and checksum side files."""
    return {
        path.relative_to(table).as_posix(): path.stat().st_size
        for path in table.rglob("*")
        if path.is_file() and ".hoodie" not in path.relative_to(table).parts[:1] and not path.name.endswith(".crc")
    }


def comparable(plan: dict[str, Any]) -> dict[str, Any]:
    """Savepoint times are a set, whatever the order of the list (fixtures/README.md)."""
    times = plan["plan"]["extra_metadata"].get("savepointed_timestamps")
    if times:
        plan["plan"]["extra_metadata"]["savepointed_timestamps"] = sorted(times.split(","))
    return {key: plan[key] for key in ("needs_cleaning", "would_schedule", "plan")}


@pytest.fixture(scope="module", params=fixture_names())
def fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, unpack(request.param, tmp_path_factory.mktemp("fixture"))


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixtures were written by processes in UTC, and their timeline's zone is that of the process."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_timeline_has_the_instants_that_hudi_lists(fixture: tuple[str, Path]) -> None:
    """Instants, their highest states and completion times (rules/timeline 7)."""
    name, path = fixture
    ours = [instant_entry(instant) for instant in Table(LocalStorage(path)).timeline]
    assert ours == expected(name)["expected"]["timeline"]["instants"]


def test_partitions_are_those_that_hudi_lists(fixture: tuple[str, Path]) -> None:
    """Partitions are the folders with a partition metafile (rules/data-files 2)."""
    name, path = fixture
    assert sorted(Table(LocalStorage(path)).partitions()) == expected(name)["expected"]["partitions"]


def test_file_slices_equal_hudis_view(fixture: tuple[str, Path]) -> None:
    """Groups, slices, latest slices, replaced groups, pending compaction and clustering (rules Z-1 to Z-6)."""
    name, path = fixture
    table = Table(LocalStorage(path))
    ours = files_report(table.view_context, [table.partition(each) for each in table.partitions()])
    assert ours == expected(name)["expected"]["file_slices"]


def test_clean_plans_equal_hudis(fixture: tuple[str, Path]) -> None:
    """Every policy and retention, full and incremental (rules A-10 to A-57)."""
    name, path = fixture
    now = parse_instant_time(expected(name)["inputs"]["now"], timezone.utc)
    for question in expected(name)["expected"]["clean_plans"]:
        arguments = dict(question["args"])
        settings = {"hoodie.clean.incremental.enabled": arguments.pop("incremental", True)}
        plan = Table(LocalStorage(path), settings=settings).plan_clean(now=now, **arguments)
        ours, theirs = comparable(plan_report(plan, ())), comparable(question["result"])
        if name.endswith("-1.2.0") and not theirs["would_schedule"]:  # 1.2.0 fills in the rest of a plan never stored
            ours["plan"] = {key: ours["plan"][key] for key in ("files_to_delete", "partitions_to_delete")}
            theirs["plan"] = {key: theirs["plan"][key] for key in ours["plan"]}
        assert ours == theirs, question["args"]


def cleaned(name: str, key: str) -> bool:
    return key in expected(name)["expected"]["after"]


@pytest.mark.parametrize(("name", "metadata"), metadata_modes([n for n in fixture_names() if cleaned(n, "clean")]))
def test_a_clean_leaves_the_files_that_hudis_leaves(name: str, metadata: dict[str, str], tmp_path: Path) -> None:
    """Deleted files, remaining files and the record of the clean (rules A-60 to A-67)."""
    arguments = expected(name)["inputs"]["after"]["clean"]
    after = expected(name)["expected"]["after"]["clean"]
    path = unpack(name, tmp_path)
    now = parse_instant_time(expected(name)["inputs"]["now"], timezone.utc)
    results = Table(LocalStorage(path), settings=metadata).clean(now=now, **arguments)
    assert sorted(data_files(path)) == after["remaining_files"]
    assert sorted(file for result in results for file in result.deleted_files) == after["deleted_files"]
    assert_recorded(path, results, record_of(name, after, results))
    assert_listing_is_true(path)


@pytest.mark.parametrize(
    ("name", "metadata"), metadata_modes([n for n in fixture_names() if cleaned(n, "clean_pending")])
)
def test_a_pending_clean_is_finished_as_hudi_does(name: str, metadata: dict[str, str], tmp_path: Path) -> None:
    """The stored plan is carried out, files already gone are recorded as Hudi records them (rules A-8, A-65)."""
    after = expected(name)["expected"]["after"]["clean_pending"]
    path = unpack(name, tmp_path)
    table = Table(LocalStorage(path), settings=metadata)
    pending = table.timeline.pending("clean")
    results = table.clean()
    assert [result.instant for result in results] == [instant.requested_time for instant in pending]
    assert sorted(data_files(path)) == after["remaining_files"]
    assert_recorded(path, results, record_of(name, after, results))
    assert_listing_is_true(path)


def record_of(name: str, after: dict[str, Any], results: list[Any]) -> dict[str, Any] | None:
    """
    Hudi's record of the clean; that of 1.2.0 as the earlier releases write it, and we do.

    Hudi 1.2.0 counts files that were missing already among those it deleted, the others among those that could not be
    deleted. Which release a table belongs to cannot be seen from the table: 1.1 and 1.2 write the same version.
    """
    metadata: dict[str, Any] | None = after["metadata"]
    if metadata is None or not name.endswith("-1.2.0"):
        return metadata
    missing = [path for result in results for path in result.missing_files]
    for path in missing:
        partition, _, file_name = path.rpartition("/")
        record = metadata["partitionMetadata"][partition]
        record["successDeleteFiles"].remove(file_name)
        record["failedDeleteFiles"].append(file_name)
    metadata["totalFilesDeleted"] -= len(missing)
    return metadata


def assert_recorded(path: Path, results: list[Any], theirs: dict[str, Any] | None) -> None:
    """Compare the completed instant with Hudi's record, times apart."""
    if theirs is None:
        assert results == []
        return
    table = Table(LocalStorage(path))
    done = table.timeline.find(results[-1].instant)
    assert done is not None and done.is_completed
    ours = json.loads(json.dumps(table.contents.plain(done)))
    for key in ("startCleanTime", "timeTakenInMillis"):
        ours.pop(key)
        theirs.pop(key, None)
    for record in (ours, theirs):
        for partition in record["partitionMetadata"].values():
            for key in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles"):
                partition[key] = sorted(partition[key])
        times = record["extraMetadata"].get("savepointed_timestamps", "")
        record["extraMetadata"] = {**record["extraMetadata"], "savepointed_timestamps": sorted(times.split(","))}
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "metadata"),
    metadata_modes([n for n in fixture_names() if cleaned(n, "rollback") and n.startswith("cow")]),
)
def test_rollback_of_a_failed_write_removes_exactly_its_files(
    name: str, metadata: dict[str, str], tmp_path: Path
) -> None:
    """Files of the failed write, found by its markers (rules B-1 to B-22)."""
    after = expected(name)["expected"]["after"]["rollback"]
    path = unpack(name, tmp_path)
    before = set(data_files(path))
    table = Table(LocalStorage(path), settings=metadata)
    table.rollback_failed_writes()
    assert sorted(data_files(path)) == after["remaining_files"]
    assert sorted(before - set(data_files(path))) == after["deleted_files"]
    assert not table.refresh().timeline.commits.pending()
    assert_listing_is_true(path)


def test_archived_timeline_equals_hudis(fixture: tuple[str, Path]) -> None:
    """Log files of layout 1 and the Parquet history of layout 2 (rules/timeline 5.2, 5.3)."""
    name, path = fixture
    ours = [instant_entry(instant) for instant in Table(LocalStorage(path)).archived_timeline()]
    key = lambda each: (each["requested_time"], each["action"], each["state"])
    assert sorted(ours, key=key) == sorted(expected(name)["expected"]["timeline"]["archived"], key=key)


def test_archived_timeline_ascends(fixture: tuple[str, Path]) -> None:
    """Oldest first, as the contract says."""
    times = [instant.requested_time for instant in Table(LocalStorage(fixture[1])).archived_timeline()]
    assert sorted(times) == times
