"""A table as of the name of a savepoint: by the savepoint's own files, in every way to ask for them."""

from __future__ import annotations

import pickle

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.inspection.report import files_report
from support.tables import TableBuilder, at


@pytest.fixture(params=[1, 2])
def table(request):
    """Six commits, the second one tagged; a clean left only the last, and archival has passed the tag."""
    builder = TableBuilder(request.param)
    for number in range(1, 7):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b"]} if number % 2 == 0 else {"r0": ["a"]})
    opened = builder.table(archive_beyond_savepoint=True)
    opened.create_savepoint(at(2), name="before")
    assert opened.clean(commits_retained=1)
    assert opened.archive(keep_min_commits=2, keep_max_commits=3)
    return builder.table()


def test_a_name_reads_the_files_of_the_savepoint(table):
    """As the savepoint itself, where the time alone is refused: other files of that time are gone."""
    with pytest.raises(RefusedError):
        table.as_of(at(2)).base_files()
    named = table.as_of("before")
    assert named.requested_time == at(2)
    assert [(path, base.instant_time) for path, base in named.base_files()] == [("r0", at(2)), ("r1", at(2))]
    assert named.base_files() == table.base_files("before") == table.base_files(savepoint="before")
    assert pickle.loads(pickle.dumps(named)).base_files() == named.base_files()


def test_a_name_shows_partitions_and_groups_with_sizes(table):
    """The same documents as of any other time, so that the command line and the page show them alike."""
    named = table.as_of("before")
    assert named.partitions() == ("r0", "r1")
    views = [named.partition(path) for path in named.partitions()]
    shown = [
        (each.partition_path, slice_.base_file) for view in views for each in view.groups for slice_ in each.slices
    ]
    assert [(path, base.instant_time, base.size_bytes) for path, base in shown] == [
        ("r0", at(2), 4),
        ("r1", at(2), 4),
    ]
    assert [each.file_id for each in named.file_slices("r1")] == ["b"]
    report = files_report(named.view_context, views)
    assert sorted(report["partitions"]) == ["r0", "r1"]


def test_a_name_that_no_savepoint_has_is_named(table):
    """Neither a time nor a name: the message says both."""
    with pytest.raises(ConfigError, match="no savepoint 'after'"):
        table.as_of("after")
