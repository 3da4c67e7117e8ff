"""Archival that died in the middle, on one side, and is done again by the other."""

import shutil
from contextlib import suppress

import pytest

import hudi_py
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore
from support.interop_model import PARTITIONED, Model, numbers
from support.interop_moments import moments, some
from support.interop_sample import sized

pytestmark = pytest.mark.oracle

WRITING = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
ARCHIVING = WRITING | {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
COPIES = sized(4, 2)


@pytest.fixture
def grown(peer, tmp_path):
    """Eight commits and a clean of real Hudi, and their rows."""
    table, model = tmp_path / "source" / "t", Model(PARTITIONED)
    for number in range(8):
        batch = PARTITIONED.batch(range(9) if number == 0 else numbers(number, 9, 5), number + 1)
        create = PARTITIONED.create(peer.table_version) if number == 0 else {}
        peer.write(table, model.upsert(batch), "upsert", create | WRITING)
    peer.clean(table, {"hoodie.cleaner.commits.retained": "1"})
    return table, model


def _instants(peer, table):
    """Completed ones, by real Hudi: active, and archived."""
    timeline = peer.timeline(table, archived=True)
    done = [i for i in timeline["instants"] if i["state"] == "COMPLETED"]
    return tuple({(i["requested_time"], i["action"]) for i in part} for part in (done, timeline["archived"]))


def _check(peer, table, model, wanted):
    """Nothing lost, nothing in both places; both sides see the same instants, and the rows are there."""
    active, archived = _instants(peer, table)
    assert wanted < active | archived
    assert len(active | archived) == len(wanted) + 1
    assert not active & archived
    assert 2 <= len([each for each in active if each[1] == "commit"]) <= 3
    view = hudi_py.open_table(str(table))
    assert archived == {(i.requested_time, i.action.value) for i in view.archived_timeline().completed()}
    assert not view.timeline.pending()
    assert model.rows() == peer.read(table)


def test_our_half_done_archival_is_finished_by_real_hudi(peer, grown, tmp_path):
    """D-19: whatever our process had done when it died, Hudi archives the rest, and no instant is lost or doubled."""
    source, model = grown
    wanted, _ = _instants(peer, source)
    begun = []
    for stop in range(1, 100):
        table = tmp_path / f"copy{stop}" / "t"
        shutil.copytree(source, table)
        before = _files(table)
        dying = Table(StopBefore(LocalStorage(str(table)), stop), settings={"hoodie.clean.commits.retained": 1})
        with suppress(Crash):
            dying.archive(keep_min_commits=2, keep_max_commits=3)
            break
        if _files(table) != before:
            begun.append(table)
    assert len(begun) > COPIES
    batch = model.upsert(PARTITIONED.batch(numbers(8, 9, 5), 9))
    for table in some(begun, COPIES):
        peer.write(table, batch, "upsert", ARCHIVING)  # one more, or too few may be left for it to begin
        _check(peer, table, model, wanted)


def test_half_done_archival_of_real_hudi_is_finished_by_us(peer, grown, tmp_path):
    """D-19: stopped while it takes the instants away; we archive the rest, and no instant is lost or doubled."""
    source, model = grown
    wanted, _ = _instants(peer, source)
    with moments(peer, source, tmp_path / "copies") as copies:
        peer.archive(source, ARCHIVING)
    assert copies
    batch = model.upsert(PARTITIONED.batch(numbers(8, 9, 5), 9))
    for table in some(copies, COPIES):
        peer.write(table, batch, "upsert", WRITING)
        ours = hudi_py.open_table(str(table), settings={"hoodie.clean.commits.retained": 1})
        ours.archive(keep_min_commits=2, keep_max_commits=3)
        _check(peer, table, model, wanted)


def _files(table):
    return {path: path.stat().st_size for path in (table / ".hoodie").rglob("*") if path.is_file()}
