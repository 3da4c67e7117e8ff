"""Rollbacks and restores beside pending plans and newer savepoints: what real Hudi does, and finds after ours."""

import pytest
from real_hudi import RealHudiError

import hudi_py
from hudi_py.errors import RefusedError
from support.interop_model import PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle

PLAIN = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
ONE_VERSION = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
ALL = range(6)  # each write touches every file group


def _grown(peer, table, commits):
    """A table of real Hudi; returns the model and the rows after each commit."""
    model, states = Model(PARTITIONED), []
    for number in range(commits):
        create = PARTITIONED.create(peer.table_version) if number == 0 else {}
        peer.write(table, model.upsert(PARTITIONED.batch(ALL, number + 1)), "upsert", create | PLAIN)
        states.append(model.rows())
    return states


def _planned(table):
    """Our plan of a clean that takes all but the newest slices; carried out by nobody yet."""
    ours = hudi_py.open_table(str(table), settings={"hoodie_py.clean.breakers": "false"})
    ours.services.clean(ours.services.clean_config(file_versions_retained=1)).schedule()
    return ours.refresh().timeline.completed("commit")[-1].requested_time


def test_real_hudi_carries_out_a_stale_clean_after_its_own_rollback(peer, tmp_path):
    """Why a rollback of ours withdraws such a plan: the rows that have become the latest are deleted."""
    table = tmp_path / "t"
    states = _grown(peer, table, 3)
    newest = _planned(table)
    peer.rollback(table, newest)
    assert states[1] == peer.read(table)
    peer.clean(table, ONE_VERSION)
    assert states[1] != peer.read(table)


def test_real_hudi_finds_no_stale_clean_after_our_rollback(peer, tmp_path):
    """It cleans and goes on writing, and no row is missing."""
    table = tmp_path / "t"
    states = _grown(peer, table, 3)
    newest = _planned(table)
    hudi_py.open_table(str(table)).rollback(newest)
    peer.clean(table, ONE_VERSION)
    assert states[1] == peer.read(table)
    model = Model(PARTITIONED)
    for number in range(2):
        model.upsert(PARTITIONED.batch(ALL, number + 1))
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(7, 9, 5), 9)), "upsert", PLAIN)
    assert model.rows() == peer.read(table)


def test_restore_of_real_hudi_stops_at_a_newer_savepoint_and_ours_finishes_it(peer, tmp_path):
    """It undoes what is newer, then fails; ours names the savepoint, and goes on once that is deleted."""
    table = tmp_path / "t"
    states = _grown(peer, table, 4)
    first, _, third, _ = (i.requested_time for i in hudi_py.open_table(str(table)).timeline.completed("commit"))
    for time in (first, third):
        peer.savepoint(table, time)
    with pytest.raises(RefusedError, match=third):
        hudi_py.open_table(str(table)).restore(first)
    assert states[-1] == peer.read(table)
    with pytest.raises(RealHudiError):
        peer.restore(table, first)
    ours = hudi_py.open_table(str(table))
    assert [i.action.value for i in ours.timeline.pending("restore")] == ["restore"]
    with pytest.raises(RefusedError, match=third):
        ours.restore(first)
    ours.delete_savepoint(third)
    hudi_py.open_table(str(table)).restore(first)
    assert states[0] == peer.read(table)
    model = Model(PARTITIONED)
    model.upsert(PARTITIONED.batch(ALL, 1))
    peer.write(table, model.upsert(PARTITIONED.batch(ALL, 9)), "upsert", PLAIN)
    assert model.rows() == peer.read(table)
