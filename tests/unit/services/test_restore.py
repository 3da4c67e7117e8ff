"""Restoring to a savepoint (format/table-services B.5, J.8)."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.instant import Action, State
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from tests.tables import TableBuilder, at, data_files


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    """J.8: c1, c2 (savepoint), c3 in eu only, a failed write that c5 rolled back, c6 = insert_overwrite of us."""
    builder = TableBuilder(request.param)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"eu": ["a"], "us": ["b"]})
    builder.table().create_savepoint(at(2))
    builder.commit(at(3), {"eu": ["a"]})
    builder.commit(at(4), {"eu": ["a"]}, state=State.INFLIGHT)
    builder.table().rollback_failed_writes()
    builder.commit(at(5), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(6), {"us": ["n"]}, replaced={"us": ["b"]})
    return builder


def test_trace_of_real_hudi(builder):
    """J.8: newest first, each with a rollback of its own; then the restore completes, then all rollbacks go."""
    recording = RecordingStorage(builder.storage)
    Table(recording, clock=builder.clock).restore(at(2))
    prefix = builder.folder + "/"
    steps = []
    for verb, path in recording.mutations:
        name = path.removeprefix(prefix)
        if path.startswith(prefix) and "/" not in name:
            time, _, word = name.partition(".")
            number = next((n for n in range(1, 7) if time.startswith(at(n))), "new")
            steps.append(("-" if verb == "delete" else "+", number, word))
    kinds = [step for step in steps if "rollback" not in step[2]]
    undone = [(n, word) for sign, n, word in kinds if sign == "-"]
    assert [n for n, _ in undone] == [6, 6, 6, 5, 5, 5, 3, 3, 3]
    assert [word for n, word in undone if n == 5] == ["commit", "inflight", "commit.requested"]
    assert [word for sign, n, word in kinds if sign == "+"] == ["restore.requested", "restore.inflight", "restore"]
    after = steps[steps.index(("+", "new", "restore")) + 1 :]
    assert {(sign, word.partition(".")[0]) for sign, _, word in after} == {("-", "rollback")}
    assert len([s for s in steps if s[2] == "rollback.requested" and s[0] == "+"]) == 3


def test_afterwards_the_table_is_as_it_was(builder):
    """What is left: c1, c2, the savepoint, the restore; the files of c2; nothing pending."""
    metadata = builder.table().restore(at(2))
    timeline = builder.table().timeline
    assert [i.requested_time for i in timeline.completed("commit", "replacecommit")] == [at(1), at(2)]
    assert {i.action for i in timeline} == {Action.COMMIT, Action.SAVEPOINT, Action.RESTORE}
    assert not timeline.pending()
    assert data_files(builder.storage) == [
        f"{p}/{builder.base_name(g, at(t))}" for p, g in (("eu", "a"), ("us", "b")) for t in (1, 2)
    ]
    assert metadata.instants_to_rollback == (at(6), at(5), at(3))
    assert set(metadata.rollbacks) == {at(6), at(5), at(3)}
    builder.commit(at(9), {"eu": ["a"]})
    assert builder.table().file_slices("eu")[0].base_instant_time == at(9)


def test_second_restore_has_nothing_to_do(builder):
    """Asked again it answers with what was done, and adds no instant."""
    first = builder.table().restore(at(2))
    before = builder.storage.files()
    assert first == builder.table().restore(at(2))
    assert before == builder.storage.files()


def test_needs_a_savepoint(builder):
    """B-27: a commit alone is not enough."""
    with pytest.raises(ConfigError):
        builder.table().restore(at(3))


def test_refused_beyond_savepoints(builder):
    """B-27: with archival beyond savepoints it is unknown what came after."""
    with pytest.raises(ConfigError):
        builder.table(archive_beyond_savepoint=True).restore(at(2))


def test_refused_when_a_file_of_the_savepoint_is_gone(builder):
    """Somebody deleted it by hand: nothing is undone."""
    assert builder.storage.delete(f"eu/{builder.base_name('a', at(2))}")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="gone"):
        builder.table().restore(at(2))
    assert before == builder.storage.files()


def test_pending_clustering_goes_with_its_plan(builder):
    """B-29: its plan was made of files that are undone."""
    from tests.unit.services.test_rollback import clustering

    clustering(builder, at(8), State.INFLIGHT)
    plan = builder.table().restore_service().plan(at(2))
    assert plan.instants_to_rollback[0].requested_time == at(8)
    builder.table().restore(at(2))
    assert not builder.table().timeline.pending()


def test_pending_restore_stops_another_one(builder):
    """One at a time; the pending one is named."""
    builder.table().create_savepoint(at(6))
    plan = builder.table().restore_service().plan(at(2))
    from hudi_py.formats import records_codec as codec
    from tests.tables import SYNC

    builder.instant(at(9), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    with pytest.raises(RefusedError, match="pending"):
        builder.table().restore(at(6))
