"""The clean beside a write: it runs while files are written, and the commit waits for it, whatever becomes of them."""

from __future__ import annotations

import threading
from contextlib import suppress

import pyarrow as pa
import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import HudiError, ServiceFailed
from hudi_py.local.rows import ArrowRows
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, FailNth, StopAfter
from hudi_py.write_service import WriteService
from support import writes
from support.tables import rows_of

BESIDE = {
    "hoodie.clean.async.enabled": True,
    "hoodie.clean.commits.retained": 1,
    "hoodie.archive.automatic": False,
}
ROWS = [{"id": key, "region": "eu", "ts": 9} for key in "ab"]
PATIENCE_S = 30  # only a test that fails waits for so long


def history(version=9, commits=4, **more):
    storage = writes.create_table(version, **more)
    clock = writes.open_table(storage).services.metadata_table.clock
    for ts in range(1, commits + 1):
        table = Table(storage, clock=clock, settings=more)
        writes.upsert(storage, [{"id": key, "region": "eu", "ts": ts} for key in "ab"], opened=table)
    return storage, clock


def write(storage, clock, rows=ROWS, **more):
    settings = Table(storage).settings.merged(BESIDE | more)
    service = WriteService(storage, settings, clock, LocalEngine)
    return service.write(ArrowRows(pa.Table.from_pylist(rows, schema=writes.SCHEMA)), "UPSERT")


def kept(storage):
    return sorted((row["id"], row["ts"]) for row in rows_of(Table(storage)))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("metadata", [True, False])
def test_it_cleans_what_was_due_before_the_commit(version, metadata):
    """Its plan does not see the commit that is being written; otherwise it is the clean of ever."""
    storage, clock = history(version, **{"hoodie.metadata.enable": metadata})
    before, _ = history(version, **{"hoodie.metadata.enable": metadata})
    (usual,) = Table(before, clock=clock).clean(commits_retained=1)
    result = write(storage, clock, **{"hoodie.metadata.enable": metadata})
    (clean,) = result.cleans
    assert len(clean.deleted_files) == len(usual.deleted_files) == 2
    assert clean.instant > result.instant
    assert clean.metadata.last_completed_commit_timestamp < result.instant
    assert kept(storage) == [("a", 9), ("b", 9)]
    assert not [finding for finding in Table(storage).check() if finding.severity.value != "info"]


class Watched(DelegatingStorage):
    """Lets the files of the write and the deletions of the clean wait for each other, and notes what is completed."""

    def __init__(self, inner):
        super().__init__(inner)
        self.files_begin, self.plan_is_there, self.order = threading.Event(), threading.Event(), []

    def open_write(self, path):
        self.files_begin.set()
        assert self.plan_is_there.wait(PATIENCE_S), "no clean runs beside the write"
        return self.inner.open_write(path)

    def delete_many(self, paths):
        assert self.files_begin.wait(PATIENCE_S), "the write waits for the clean before it writes files"
        return self.inner.delete_many(paths)

    def create_new(self, path, data, before=None, *, lasts=True):
        self.inner.create_new(path, data, before, lasts=lasts)
        if path.endswith(".clean.inflight"):
            self.plan_is_there.set()
        if path.endswith((".clean", ".commit")):
            self.order.append(path.rpartition(".")[2])


def test_files_are_written_while_the_clean_runs_and_the_commit_waits_for_it():
    """Each waits for the other to have begun; the clean is complete before the commit is."""
    storage, clock = history()
    watched = Watched(storage)
    write(watched, clock)
    assert watched.order == ["clean", "commit"]


def test_a_clean_that_fails_does_not_take_the_rows_along():
    """The commit is completed and the error says so; the next write finishes the clean."""
    storage, clock = history()
    with pytest.raises(ServiceFailed, match="is completed and its rows are visible"):
        write(FailNth(storage, 0, verbs=["delete_many"]), clock)
    assert kept(storage) == [("a", 9), ("b", 9)]
    (clean, *_) = write(storage, clock).cleans
    assert clean.deleted_files
    assert not Table(storage).timeline.pending()


def test_a_write_that_fails_leaves_its_clean_complete():
    """Its own error is raised, and nothing is pending that the clean has still to do."""
    storage, clock = history()
    with pytest.raises(HudiError, match="simulated"):
        write(FailNth(storage, 0, None, verbs=["open_write"]), clock)
    timeline = Table(storage).timeline
    assert not timeline.pending("clean")
    assert len(timeline.completed("clean")) == 1
    assert kept(storage) == [("a", 4), ("b", 4)]


@pytest.mark.parametrize(
    "more",
    [{"hoodie.clean.automatic": False}, {"hoodie_py.gc.enabled": False}, {"hoodie.table.services.enabled": False}],
)
def test_where_no_clean_may_follow_a_commit_none_runs_beside_it(more):
    """The same switches count."""
    storage, clock = history()
    assert write(storage, clock, **more).cleans == ()
    assert not Table(storage).timeline.of(["clean"])


@pytest.mark.slow
def test_cut_at_any_call_of_either_the_next_write_finds_the_table_whole():
    """The rows of the write are there or not, those of before always; nothing stays pending."""
    number, is_cut = 0, True
    while is_cut:
        storage, clock = history()
        faulty = StopAfter(storage, number)
        with suppress(Crash):
            write(faulty, clock)
        is_cut = faulty.fired is not None
        assert kept(storage) in ([("a", 4), ("b", 4)], [("a", 9), ("b", 9)]), faulty.fired
        write(storage, clock)
        write(storage, clock)
        table = Table(storage)
        assert kept(storage) == [("a", 9), ("b", 9)], faulty.fired
        assert not table.timeline.pending(), faulty.fired
        assert not [finding for finding in table.check() if finding.severity.value != "info"], faulty.fired
        number += 3
