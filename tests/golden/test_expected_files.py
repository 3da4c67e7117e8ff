"""
What the completed commits say must be there, beside what is there: tables of three releases of Apache Hudi.

No list of expected files is kept here: the commits tell it, and Hudi's own view of the latest slices has to agree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_py.fsview.expected import ExpectedSlice, expected_slices, mismatches
from hudi_py.fsview.listing import FolderListing
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.fixtures import expected, fixture_names, unpack


@pytest.fixture(scope="module", params=fixture_names())
def fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, unpack(request.param, tmp_path_factory.mktemp("fixture"))


def slices_of(table: Table) -> list[ExpectedSlice]:
    commits = [(each, table.contents.commit(each)) for each in table.timeline.writes.completed()]
    return list(expected_slices(commits, table.config.format.log_naming).values())


def there(path: Path) -> dict[str, dict[str, int | None]]:
    walked = FolderListing(LocalStorage(path)).walk(details=True)
    return {partition: {entry.name: entry.size_bytes for entry in entries} for partition, entries in walked}


def test_what_the_commits_name_is_there_on_every_table_of_hudi(fixture):
    """No file that the commits say is needed is missing or of another size on a table in good health."""
    _, path = fixture
    assert mismatches(slices_of(Table(LocalStorage(path))), there(path)) == []


def test_every_file_of_a_latest_slice_is_expected_where_its_commit_is_active(fixture):
    """
    The files of Hudi's latest slices that active commits wrote are the files that are expected, and no others.

    Beside a pending compaction, Hudi's latest slice lacks the log files that came after it, which its readers merge.
    """
    name, path = fixture
    table = Table(LocalStorage(path))
    files = {file.path for each in slices_of(table) for file in each.files}
    commits = [table.contents.commit(each) for each in table.timeline.writes.completed()]
    named = {stat.path for each in commits for stats in each.partition_to_write_stats.values() for stat in stats}
    shown = set()
    view = expected(name)["expected"]["file_slices"]
    for partition, listed in view["partitions"].items():
        for file_slice in listed["latest_slices"]:
            names = [file_slice["base_file"], *file_slice["log_files"]]
            shown |= {f"{partition}/{each}".lstrip("/") for each in names if each}
    assert files >= shown & named
    after = {log for log in files - shown if any(each["file_id"] in log for each in view["pending_compaction"])}
    assert files - after == shown & named


def test_each_file_that_is_lost_or_cut_short_is_told(fixture):
    """Whichever file of a latest slice is missing or shorter, exactly that one is named, with its commit."""
    _, path = fixture
    slices, files = slices_of(Table(LocalStorage(path))), there(path)
    for file in (file for each in slices for file in each.files):
        others = {name: size for name, size in files[file.partition_path].items() if name != file.name}
        assert mismatches(slices, {**files, file.partition_path: others}) == [(file, None)]
        others[file.name] = file.size_bytes - 1
        assert mismatches(slices, {**files, file.partition_path: others}) == [(file, file.size_bytes - 1)]
        assert file.commit.is_completed
