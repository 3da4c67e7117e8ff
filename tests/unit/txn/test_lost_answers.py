"""The answer to the request that completes an action is lost: whoever sent it looks for its own instant first."""

from __future__ import annotations

import pytest

from hudi_py.errors import HudiError, OutcomeUnknown, ServiceFailed, StorageError
from hudi_py.storage.wrappers import DelegatingStorage
from support import many_writers, writes

ACTIONS = {**many_writers.ACTORS, **many_writers.SERVICES}
COMPLETING = (
    *("upsert", "bulk_insert", "insert_overwrite", "drop", "merge", "clean", "savepoint", "rollback", "cluster"),
    *("restore", "undo", "expire", "compact", "compact logs"),
)
OF_LOG_FILES = ("compact", "compact logs")
ERRORS = {
    "failed": StorageError("no answer", True),
    "unknown": OutcomeUnknown("no answer"),
}


class Lost(DelegatingStorage):
    """Completed files are created, and then reported as not created; *then* follows."""

    def __init__(self, inner, error, then=lambda _path: None):
        super().__init__(inner)
        self.error, self.then, self.created = error, then, 0

    def create_new(self, path, *given, **named):
        super().create_new(path, *given, **named)
        folder, _, name = path.rpartition("/")
        if (
            folder in (".hoodie", ".hoodie/timeline")
            and name[:1] == "2"
            and not name.endswith(("requested", "inflight"))
        ):
            self.created += 1
            self.then(path)
            raise self.error


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("name", COMPLETING)
def test_what_has_come_about_is_done(name, version, error):
    """The caller is told that it is done, as with an answer, and does it no second time."""
    kind = "MERGE_ON_READ" if name in OF_LOG_FILES else "COPY_ON_WRITE"
    expected, storage = (many_writers.table(version, kind, (name,)) for _ in range(2))
    ACTIONS[name](expected)
    lost = Lost(storage, ERRORS[error])
    ACTIONS[name](lost)
    assert lost.created
    assert many_writers.contents(storage) == many_writers.contents(expected)
    assert not writes.open_table(storage).timeline.pending()


@pytest.mark.parametrize("name", ["upsert", "cluster"])
def test_the_file_of_another_is_not_taken_for_ours(name):
    """Layout 1 has one name for whoever completes an action: what the file says decides."""
    storage = many_writers.table(6)

    class Faster(DelegatingStorage):
        def create_new(self, path, data, *given, **named):
            if path.endswith((".commit", ".clean", ".replacecommit")):
                super().create_new(path, data + b"\n")
                raise StorageError("no answer", True)
            super().create_new(path, data, *given, **named)

    with pytest.raises(HudiError, match="no answer"):
        ACTIONS[name](Faster(storage), **{"hoodie.write.num.retries.on.conflict.failures": 0})


@pytest.mark.parametrize("name", ["savepoint", "rollback", "clean"])
def test_what_cannot_be_looked_for_is_unknown(name):
    """Neither done nor failed, and the way to find out is told."""
    storage = many_writers.table(9)

    class Away(DelegatingStorage):
        away = ""

        def read(self, path):
            if path == self.away:
                raise StorageError("away")
            return super().read(path)

    away = Away(storage)

    def leave(path):
        away.away = path

    with pytest.raises(OutcomeUnknown, match="hudi-py timeline"):
        ACTIONS[name](Lost(away, StorageError("no answer", True), leave))


class Unanswered(DelegatingStorage):
    """The *n*-th request to change something is done or not, and not answered; later ones are."""

    def __init__(self, inner, n, *, is_done):
        super().__init__(inner)
        self.n, self.is_done, self.paths = n, is_done, ()

    def _around(self, verb, paths, call):
        if verb not in ("create_new", "replace", "delete"):
            return call()
        self.n -= 1
        if self.n != 0:
            return call()
        self.paths = paths
        if self.is_done:
            call()
        raise OutcomeUnknown("no answer")


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_what_is_lost_before_rows_are_written_leaves_nothing_unknown(version, is_done):
    """Only the completed file leaves the commit in doubt: whoever hears of anything else can write the rows again."""
    start, number = many_writers.table(version), 0
    while True:
        number += 1
        unanswered = Unanswered(start.copy(), number, is_done=is_done)
        try:
            many_writers.ACTORS["insert"](unanswered)
        except ServiceFailed:
            assert ("eu", "n", 7) in many_writers.contents(unanswered.inner), number
        except StorageError as error:
            assert ("eu", "n", 7) not in many_writers.contents(unanswered.inner), number
            assert "again" in error.fix, number
        except OutcomeUnknown:
            folder, _, name = unanswered.paths[0].rpartition("/")
            assert folder in (".hoodie", ".hoodie/timeline"), name
            assert name.endswith(".commit"), name
        if unanswered.n > 0:
            break
    assert number > 10
