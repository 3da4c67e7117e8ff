"""
A listing of the timeline that takes long shows a commit and lacks one that completed before it.

In an object store it comes in pages: what is created behind the page in hand and before the next one is seen, what
completes on a page that was passed is not. Whoever follows a table must get both, sooner or later.
"""

from __future__ import annotations

from functools import cache

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.storage.wrappers import DelegatingStorage
from support import writes

ROWS = [[{"id": key, "region": region, "ts": 1}] for key, region in zip("abc", ("eu", "us", "ap"), strict=True)]
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
PARTS = {"all of it": "", "its completion": ".commit"}


class TornListings(DelegatingStorage):
    """
    The first listing of the timeline lacks the second of three commits.

    Args:
        part: What the names of the files that it lacks end with.
    """

    def __init__(self, inner, part=""):
        super().__init__(inner)
        table = writes.open_table(inner)
        self.folder, self.left = table.config.timeline_folder, 1
        self.hidden = table.timeline.commits.completed()[1].requested_time, part

    def list(self, folder, **asked):
        found = super().list(folder, **asked)
        if folder != self.folder or not self.left:
            return found
        self.left -= 1
        time, part = self.hidden
        return [each for each in found if not (each.name.startswith(time) and each.name.endswith(part))]


@cache
def filled(version, *, metadata):
    storage = writes.create_table(version, **{"hoodie.table.cdc.enabled": not metadata})
    for rows in ROWS:
        writes.upsert(storage, rows, **{"hoodie.metadata.enable": metadata})
    return storage


def keys(table):
    return [row["id"] for row in table.to_arrow().to_pylist()]


def by_known_end(table, start):
    until = table.changed_until()
    return keys(table.changes(start, until)), until


def by_open_end(table, start):
    return keys(table.changes(start)), table.changed_until()


def by_deletes(table, start):
    until = table.changed_until()
    return keys(table.changes(start, until, with_deletes=True)), until


def by_log(table, start):
    until = table.changed_until()
    return [row["after"]["id"] for row in table.change_log(start, until).to_arrow().to_pylist()], until


def by_snapshot(table, start):
    """The latest rows first, and only then what has changed."""
    return keys(table.rows()) if start is None else keys(table.changes(start)), table.changed_until()


def by_consumer(table, _):
    until, progress = table.changed_until(), table.consumer("job")
    found = keys(table.changes(progress.instant, until))
    progress.at(until)
    return found, until


FOLLOWERS = [by_known_end, by_open_end, by_deletes, by_log, by_snapshot, by_consumer]


@VERSIONS
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("follow", FOLLOWERS)
@pytest.mark.parametrize("metadata", [False, True])
def test_a_follower_gets_the_commit_that_a_listing_missed(version, part, follow, metadata):
    """With its next range at the latest; and where it asks for an end, nothing twice."""
    if metadata and follow is by_log:
        pytest.skip("tables with a change log are without a metadata table here")
    storage = TornListings(filled(version, metadata=metadata).copy(), PARTS[part])
    seen, start = [], None
    for _ in range(3):
        try:
            found, start = follow(writes.open_table(storage), start)
        except RefusedError as error:  # a range without an end, in layout 1
            assert follow in (by_open_end, by_snapshot) and "may still complete" in str(error)
            continue
        seen += found
    assert not storage.left
    assert set(seen) == set("abc")
    if follow not in (by_open_end, by_snapshot):
        assert sorted(seen) == list("abc")
    assert start == writes.open_table(storage).changed_until()


@VERSIONS
@pytest.mark.parametrize("part", PARTS)
def test_a_range_to_a_known_end_has_all_commits_before_it(version, part):
    """Whoever found out the end, and however old the timeline of the table that is asked."""
    if version == 6 and PARTS[part]:
        pytest.skip("a range with a pending commit is refused there")
    whole = filled(version, metadata=False).copy()
    until = writes.open_table(whole).changed_until()
    storage = TornListings(whole, PARTS[part])
    assert sorted(keys(writes.open_table(storage).changes(None, until))) == list("abc")

    opened = writes.open_table(whole)
    assert len(opened.timeline) == 3
    writes.upsert(whole, [{"id": "d", "region": "eu", "ts": 9}], **{"hoodie.metadata.enable": False})
    assert keys(opened.changes(until, writes.open_table(whole).changed_until())) == ["d"]
    assert len(opened.timeline) == 3  # what was opened stays as it was


@pytest.mark.parametrize("version", [8, 9])
def test_a_table_that_never_rests_is_an_error(version):
    """In place of a range that lacks something, and of a loop without an end."""
    whole = filled(version, metadata=False).copy()
    until = writes.open_table(whole).changed_until()

    class Alternating(TornListings):
        calls = 0

        def list(self, folder, **asked):
            self.calls += folder == self.folder
            self.left = self.calls % 2  # every other listing lacks the commit
            return super().list(folder, **asked)

    storage = Alternating(whole)
    with pytest.raises(ConflictError, match="each time it was listed"):
        writes.open_table(storage).changes(None, until)
