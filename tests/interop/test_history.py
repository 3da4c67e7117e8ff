"""Savepoints, rollbacks and archives: made by one side, respected, read and continued by the other."""

import pytest

import hudi_py
from hudi_py.model.instant import State
from support.interop_model import PARTITIONED, Model, numbers
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

PLAIN = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
KEPT = {
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.compact.max.delta.commits": "3",  # nothing is archived before its first compaction
}
ARCHIVING = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.archive.automatic": "true",
}


def _grown(peer, table, commits, options):
    """A table of real Hudi with that many commits; returns the rows after each."""
    model, states = Model(PARTITIONED), []
    for number in range(commits):
        batch = PARTITIONED.batch(range(9) if number == 0 else numbers(number, 9, 5), number + 1)
        create = PARTITIONED.create(peer.table_version) if number == 0 else {}
        peer.write(table, model.upsert(batch), "upsert", create | options)
        states.append(model.rows())
    return model, states


def _archived(peer, table):
    return {(i["requested_time"], i["action"]) for i in peer.timeline(table, archived=True)["archived"]}


def _files_of(table, instant):
    return [path for path in table.rglob(f"*_{instant}.parquet") if ".hoodie" not in path.parts]


@pytest.mark.parametrize("options", [PLAIN, KEPT], ids=["no-mdt", "mdt"])
def test_real_hudi_goes_on_after_our_rollback_of_a_completed_commit(peer, tmp_path, options):
    """The rows are those of before; real Hudi upserts and reads with and without its metadata table."""
    table = tmp_path / "t"
    _, states = _grown(peer, table, 3, options)
    before = Model(PARTITIONED)
    for number in range(2):
        before.upsert(PARTITIONED.batch(range(9) if number == 0 else numbers(number, 9, 5), number + 1))
    ours = hudi_py.open_table(str(table))
    last = ours.timeline.completed("commit")[-1].requested_time
    ours.rollback(last)
    assert not _files_of(table, last)
    has_metadata = options is KEPT
    assert states[1] == peer.read(table, metadata=has_metadata)
    peer.write(table, before.upsert(PARTITIONED.batch(numbers(7, 9, 5), 9)), "upsert", options)
    assert before.rows() == peer.read(table, metadata=False)
    if has_metadata:
        assert before.rows() == peer.read(table, metadata=True)
    states_now = {(i["requested_time"], i["action"]): i["state"] for i in peer.timeline(table)["instants"]}
    assert (last, "commit") not in states_now
    assert set(states_now.values()) == {"COMPLETED"}


def test_real_hudi_respects_our_savepoint_and_we_respect_its(peer, tmp_path):
    """A clean of either side spares what the other one pinned; once deleted, the files go."""
    table = tmp_path / "t"
    _, states = _grown(peer, table, 4, PLAIN)
    ours = hudi_py.open_table(str(table))
    first, second = (i.requested_time for i in ours.timeline.completed("commit")[:2])
    ours.create_savepoint(first, user="ann", comment="keep", name="first", ttl="30d")
    peer.savepoint(table, second)
    assert [first, second] == [i.requested_time for i, _ in ours.services.savepoint().savepoints()]
    peer.clean(table, {"hoodie.cleaner.commits.retained": "1"})
    assert _files_of(table, first)
    assert _files_of(table, second)
    assert states[-1] == peer.read(table)
    ours.refresh().delete_savepoint(second)
    peer.savepoint(table, first, delete=True)
    assert not ours.refresh().timeline.completed("savepoint")
    assert states[-1] == peer.read(table)


def test_our_clean_respects_a_savepoint_of_real_hudi(peer, tmp_path):
    """What it pinned stays until it lets go."""
    table = tmp_path / "t"
    _grown(peer, table, 4, PLAIN)
    first = hudi_py.open_table(str(table)).timeline.completed("commit")[0].requested_time
    peer.savepoint(table, first)
    pinned = _files_of(table, first)
    hudi_py.open_table(str(table)).clean(file_versions_retained=1)
    assert pinned == _files_of(table, first)


def test_real_hudi_restores_to_our_savepoint(peer, tmp_path):
    """A savepoint of ours, with a name and a time to live, is all that a restore of real Hudi needs; it keeps both."""
    table = tmp_path / "t"
    _, states = _grown(peer, table, 4, PLAIN)
    ours = hudi_py.open_table(str(table))
    second = ours.timeline.completed("commit")[1].requested_time
    ours.create_savepoint(second, name="second", ttl="30d")
    peer.restore(table, second)
    assert states[1] == peer.read(table)
    ((_, content),) = ours.refresh().services.savepoint().savepoints()
    assert content.name == "second"
    assert content.expires_at_ms == content.savepointed_at_ms + 30 * 86_400_000


BEYOND = {"hoodie.archive.beyond.savepoint": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def _behind_a_savepoint(peer, table):
    """A savepoint, and behind it a partition that is written once, and another one that is written on and on."""
    model = Model(PARTITIONED)
    options = PLAIN | {"hoodie.archive.automatic": "false"}
    for number, rows in enumerate([range(9), [0], [1], [1], [0], [1], [1], [1]]):
        create = PARTITIONED.create(peer.table_version) if number == 0 else {}
        peer.write(table, model.upsert(PARTITIONED.batch(rows, number + 1)), "upsert", create | options)
        if number == 1:
            peer.savepoint(table, hudi_py.open_table(str(table)).timeline.completed("commit")[-1].requested_time)
    return model


def test_rows_behind_a_savepoint_stay_in_sight_of_both(peer, tmp_path):
    """D-7: our archival beyond the savepoint takes no commit whose rows real Hudi would not show any more."""
    table = tmp_path / "t"
    model = _behind_a_savepoint(peer, table)
    result = hudi_py.open_table(str(table), settings=BEYOND).archive()
    savepoint = hudi_py.open_table(str(table)).timeline.completed("savepoint")[0].requested_time
    assert len([i for i in result.instants if i.requested_time > savepoint]) == 2
    assert model.rows() == peer.read(table)


def test_we_show_what_real_hudi_archived_behind_a_savepoint(peer, tmp_path):
    """
    D-7: real Hudi goes further, and loses sight of the newest rows itself; we take them for what they are.

    Our view begins with the first commit that no savepoint is of, so those slices count as committed, for readers and
    for a clean. Once the savepoint is let go of along with its commit, real Hudi sees all rows again.
    """
    table = tmp_path / "t"
    model = _behind_a_savepoint(peer, table)
    ours = hudi_py.open_table(str(table), settings={"hoodie.metadata.enable": False})
    before = {path: [s.base_instant_time for s in ours.file_slices(path)] for path in ours.partitions()}
    peer.archive(table, PLAIN | BEYOND | {"hoodie.cleaner.commits.retained": "1"})
    ours.refresh()
    assert before == {path: [s.base_instant_time for s in ours.file_slices(path)] for path in ours.partitions()}
    assert model.rows() != peer.read(table)
    ours.clean(commits_retained=1)
    assert before == {path: [s.base_instant_time for s in ours.file_slices(path)] for path in ours.partitions()}
    (savepoint,) = ours.timeline.completed("savepoint")
    assert ours.delete_savepoint(savepoint.requested_time, archive_commit=True)
    assert model.rows() == peer.read(table)


@pytest.mark.parametrize("options", [PLAIN, KEPT], ids=["no-mdt", "mdt"])
def test_real_hudi_reads_and_continues_our_archive(peer, tmp_path, options):
    """D-1: every instant we archived is listed by real Hudi, which writes, cleans and archives on; rows stay right."""
    table = tmp_path / "t"
    no_archive = options | {"hoodie.archive.automatic": "false"}
    model, states = _grown(peer, table, 8, no_archive)
    ours = hudi_py.open_table(str(table), settings={"hoodie.clean.commits.retained": 1})
    ours.clean()
    result = ours.archive(keep_min_commits=2, keep_max_commits=3)
    gone = {(i.requested_time, i.action.value) for i in result.instants}
    if options is PLAIN:
        assert len(gone) >= 6
    else:
        assert gone, result.bound
    assert gone <= _archived(peer, table)
    assert states[-1] == peer.read(table)
    for number in range(8, 12):
        batch = model.upsert(PARTITIONED.batch(numbers(number, 9, 5), number + 1))
        peer.write(table, batch, "upsert", options | ARCHIVING | {"hoodie.clean.automatic": "true"})
        assert model.rows() == peer.read(table)
    assert gone < _archived(peer, table)
    found = {
        (i.requested_time, i.action.value)
        for i in hudi_py.open_table(str(table)).archived_timeline()
        if i.state is State.COMPLETED
    }
    assert found == {each for each in _archived(peer, table) if each in found}
    assert gone < found
    ours.refresh().archive(keep_min_commits=2, keep_max_commits=3)
    assert model.rows() == peer.read(table)


@pytest.mark.parametrize("peer", releases(6), indirect=True)
def test_real_hudi_reads_archive_files_that_we_merged(peer, tmp_path):
    """Layout 1: three small files become one; real Hudi lists the same instants, merges it with its own, and so on."""
    table = tmp_path / "t"
    model, states = _grown(peer, table, 8, PLAIN | {"hoodie.archive.automatic": "false"})
    merging = {"hoodie.archive.merge.enable": "true", "hoodie.archive.merge.files.batch.size": "3"}
    ours = hudi_py.open_table(str(table), settings=merging | {"hoodie.clean.commits.retained": 1})
    ours.clean()
    gone = set()
    for kept in (6, 4, 2):
        result = ours.refresh().archive(keep_min_commits=kept, keep_max_commits=kept + 1)
        gone |= {(i.requested_time, i.action.value) for i in result.instants}
    assert result.merges == 3
    assert len(list(table.rglob(".commits_.archive.*_1-0-1"))) == 1
    assert gone == _archived(peer, table)
    assert states[-1] == peer.read(table)
    for number in range(8, 14):
        batch = model.upsert(PARTITIONED.batch(numbers(number, 9, 5), number + 1))
        peer.write(table, batch, "upsert", PLAIN | ARCHIVING | merging | {"hoodie.clean.automatic": "true"})
    assert gone < _archived(peer, table)
    archived = hudi_py.open_table(str(table)).archived_timeline()
    found = {(i.requested_time, i.action.value) for i in archived if i.state is State.COMPLETED}
    assert gone < found
    assert model.rows() == peer.read(table)


@pytest.mark.parametrize("options", [PLAIN, KEPT], ids=["no-mdt", "mdt"])
def test_real_hudi_goes_on_with_what_our_writes_archived(peer, ours, tmp_path, options):
    """
    G-4: our write client cleans and archives after every upsert; real Hudi reads the rows, lists every instant that
    went, upserts, cleans and archives on the same table, and then we do again.
    """
    table, model = tmp_path / "t", Model(PARTITIONED)
    services = options | ARCHIVING | {"hoodie.clean.automatic": "true"}
    we = ours(table, PARTITIONED.create(peer.table_version) | services)
    for number in range(10):
        numbers_now = range(9) if number == 0 else numbers(number, 9, 5)
        we.write(model.upsert(PARTITIONED.batch(numbers_now, number + 1)))
    view = hudi_py.open_table(str(table))
    gone = {(i.requested_time, i.action.value) for i in view.archived_timeline() if i.state is State.COMPLETED}
    active = {(i.requested_time, i.action.value) for i in view.timeline.instants}
    assert len([time for time, action in gone if action == "commit"]) + len(view.timeline.completed("commit")) == 10
    assert gone
    assert not gone & active
    assert gone == _archived(peer, table)
    assert model.rows() == peer.read(table)
    for number in range(10, 14):
        batch = model.upsert(PARTITIONED.batch(numbers(number, 9, 5), number + 1))
        peer.write(table, batch, "upsert", services)
        assert model.rows() == peer.read(table)
    theirs = _archived(peer, table)
    assert gone < theirs
    for number in range(14, 18):
        we.write(model.upsert(PARTITIONED.batch(numbers(number, 9, 5), number + 1)))
    assert model.rows() == we.read()
    assert model.rows() == peer.read(table)
    assert theirs < _archived(peer, table)
    if options is KEPT:
        assert model.rows() == peer.read(table, metadata=True)
        assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)
