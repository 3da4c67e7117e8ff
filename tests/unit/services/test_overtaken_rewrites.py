"""A clustering or log compaction that another writer was faster than: it cleans up after itself."""

from __future__ import annotations

import threading
from contextvars import Context
from unittest import mock

import pytest

from hudi_py.errors import ConflictError, StorageError
from hudi_py.services.clustering.service import ClusteringService
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.writing.rivals import Rivals
from support import writes
from support.many_writers import SEVERAL, contents, rows, service, table

MERGING = {**SEVERAL, "hoodie.log.compaction.blocks.threshold": 2}
ALONE_UNDER_THE_LOCK = {name: text for name, text in SEVERAL.items() if "concurrency" not in name}


class Waiting:
    """Rows of a writer that stops once its files are written."""

    def __init__(self, *given: tuple[str, str, int]) -> None:
        self.rows = rows(*given)
        self.schema = self.rows.schema
        self.are_written, self.go_on = threading.Event(), threading.Event()

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        results = self.rows.write(job)
        self.are_written.set()
        assert self.go_on.wait(5)
        return results


def overtaken_clustering(storage: MemoryStorage) -> None:
    """
    Cluster a table while another write to the same file group completes.

    That one began before the plan, has no heartbeat, and does not look at plans, as one of Apache Hudi with
    ``PreferWriter``.
    """
    given = Waiting(("a", "eu", 99))
    opened = writes.open_table(storage, **ALONE_UNDER_THE_LOCK)
    with mock.patch.object(Rivals, "check", return_value=None):
        other = threading.Thread(target=Context().run, args=(writes.write, storage, given, opened, "UPSERT"))
        other.start()
        assert given.are_written.wait(5)

        def overtake(*_: int) -> None:
            given.go_on.set()
            other.join()

        opened = writes.open_table(storage, **SEVERAL)
        opened.run_clustering(opened.services.clustering(on_group=overtake))


def assert_nothing_left(storage: MemoryStorage, case: object) -> None:
    opened = writes.open_table(storage)
    assert not opened.timeline.pending(), case
    assert not instants_with_markers(storage), case
    assert not storage.list(".hoodie/.heartbeat"), case
    known = {each.requested_time for each in opened.timeline}
    assert not [path for path in storage.files() if writes.is_data(path) and not any(t in path for t in known)], case
    assert not [each for each in opened.check() if each.severity.name == "ERROR"], case


@pytest.mark.parametrize("version", [6, 9])
def test_a_clustering_that_loses_leaves_neither_files_nor_its_plan(version):
    """They would stop writers of the same file groups until somebody ran a recovery."""
    storage = table(version)
    with pytest.raises(ConflictError, match="run it again"):
        overtaken_clustering(storage)
    assert ("eu", "a", 99) in contents(storage)
    assert_nothing_left(storage, version)
    # The writers of before go on at once.
    assert service(storage).write(rows(("a", "eu", 100)), "UPSERT").retries == 0
    assert ("eu", "a", 100) in contents(storage)


def test_what_cannot_be_taken_back_is_left_for_the_next_run():
    """The conflict is what the caller has to see."""
    storage = table(9)
    with (
        mock.patch.object(ClusteringService, "_take_back", side_effect=StorageError("away")),
        pytest.raises(ConflictError, match="run it again"),
    ):
        overtaken_clustering(storage)
    assert len(writes.open_table(storage).timeline.pending()) == 1
    writes.open_table(storage, **SEVERAL).cluster()
    assert ("eu", "a", 99) in contents(storage)
    assert not writes.open_table(storage).timeline.pending()


def test_a_log_compaction_that_loses_leaves_neither_files_nor_its_plan():
    """In layout 1 log files count in the order in which they came, so a write of that moment is in the way."""
    storage = table(6, "MERGE_ON_READ", ("compact logs",))

    def overtake(*_: int) -> None:
        Context().run(service(storage).write, rows(("d", "eu", 99)), "UPSERT")

    with pytest.raises(ConflictError, match="run it again"):
        writes.open_table(storage, **MERGING).compact_logs(on_group=overtake)
    assert ("eu", "d", 99) in contents(storage)
    opened = writes.open_table(storage)
    assert not [each for each in opened.timeline.pending() if each.state.name == "INFLIGHT"]
    assert not instants_with_markers(storage)
    writes.open_table(storage, **MERGING).compact_logs()
    assert ("eu", "d", 99) in contents(storage)
