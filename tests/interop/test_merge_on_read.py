"""Merge-on-read tables of real Hudi: rolled back and restored by us, compared with Hudi's own work on a copy."""

import shutil
from contextlib import suppress

import pytest

import hudi_py
from hudi_py.formats.log_block import BlockType, iterate_log_blocks
from hudi_py.model.files import parse_log_file
from hudi_py.model.instant import Action, State
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore
from support.interop_model import PARTITIONED, Model, numbers
from support.interop_moments import moments, some
from support.interop_sample import sized

pytestmark = pytest.mark.oracle

BASICS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
PLAIN = BASICS | {"hoodie.metadata.enable": "false"}
KEPT = BASICS | {"hoodie.metadata.enable": "true"}
COPY_ON_WRITE = KEPT | {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


class Growing:
    """A merge-on-read table of real Hudi, and the rows it has to hold after each commit."""

    def __init__(self, peer, table, options) -> None:
        self.peer, self.table, self.options = peer, table, options
        self.is_mor = options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
        self.model, self.states, self.version = Model(PARTITIONED), [], 0

    def upsert(self, count=5, **more) -> None:
        """One delta commit that updates and inserts; with ``COMPACTING`` a compaction behind it."""
        self.version += 1
        batch = PARTITIONED.batch(range(9) if self.version == 1 else numbers(self.version, 9, count), self.version)
        create = PARTITIONED.create(self.peer.table_version) if self.version == 1 else {}
        self.peer.write(self.table, self.model.upsert(batch), "upsert", create | self.options | more)
        self.states.append(self.model.rows())

    def fail(self) -> str:
        """A delta commit that dies before its completion; into old and new file groups."""
        self.version += 1
        return self.peer.fail_write(self.table, PARTITIONED.batch(range(12), self.version), "upsert", self.options)

    def back_to(self, state: int) -> None:
        """What follows builds on the rows of that state."""
        self.model = Model(PARTITIONED)
        for number in range(state + 1):
            rows = range(9) if number == 0 else numbers(number + 1, 9, 5)
            self.model.upsert(PARTITIONED.batch(rows, number + 1))
        assert self.model.rows() == self.states[state]


def _names(table):
    """Data files; log files without the token of whoever wrote them, for rollback blocks have one of chance."""
    found = set()
    for path in table.rglob("*"):
        if not path.is_file() or ".hoodie" in path.parts or path.name.endswith(".crc"):
            continue
        log = parse_log_file(path.name)
        name = path.name if log is None else f"{log.file_id} {log.instant_time} {log.version}"
        found.add(f"{path.parent.relative_to(table)}/{name}")
    return found


def _commands(table):
    """Every rollback block: its slice and version, and what it takes back."""
    found = set()
    for path in table.rglob("*.log.*"):
        if ".hoodie" in path.parts or path.name.endswith(".crc"):
            continue
        log = parse_log_file(path.name)
        for block in iterate_log_blocks(path.read_bytes(), str(path)):
            if block.block_type is BlockType.COMMAND:
                found.add((log.file_id, log.instant_time, log.version, block.header[1], block.header[3]))
    return found


def _rollback_of(table, undone):
    """The completed rollback as both sides should record it: bare names, without tokens, times and durations."""
    view = hudi_py.open_table(str(table))
    for instant in reversed(view.timeline.completed("rollback")):
        metadata = view.contents.rollback(instant)
        if metadata.commits_rollback == (undone,):
            break
    partitions = {
        path: (
            sorted(name.rpartition("/")[2] for name in done.success_delete_files),
            sorted(name.rpartition("/")[2].rpartition("_")[0] for name in done.rollback_log_files),
            sorted(name.rpartition("/")[2] for name in done.log_files_from_failed_commit),
        )
        for path, done in metadata.partitions.items()
    }
    return metadata.total_files_deleted, metadata.instants_rollback, partitions


def _writes(peer, table):
    return [
        (i["requested_time"], i["action"], i["state"])
        for i in peer.timeline(table)["instants"]
        if i["action"] in ("commit", "deltacommit", "compaction", "replacecommit")
    ]


def _goes_on(growing, table):
    """Real Hudi reads, upserts, compacts and reads again."""
    growing.table = table
    growing.upsert()
    assert growing.model.rows() == growing.peer.read(table)
    growing.upsert(**(COMPACTING if growing.is_mor else {}))
    assert growing.model.rows() == growing.peer.read(table)
    if growing.options["hoodie.metadata.enable"] == "true":
        assert growing.model.rows() == growing.peer.read(table, metadata=True)
        assert growing.peer.file_slices(table) == growing.peer.file_slices(table, use_metadata=True)


@pytest.mark.parametrize("options", [PLAIN, KEPT], ids=["no-mdt", "mdt"])
@pytest.mark.parametrize("what", ["failed", "completed", "compacted before", "compaction"])
def test_our_rollback_does_what_real_hudi_does(peer, tmp_path, what, options):
    """Same files, same rollback blocks, same record, same timeline; real Hudi reads the rows of before and goes on."""
    theirs, ours = tmp_path / "theirs" / "t", tmp_path / "ours" / "t"
    growing = Growing(peer, theirs, options)
    growing.upsert()
    growing.upsert()
    growing.upsert(**(COMPACTING if what == "compacted before" else {}))
    if what == "failed":
        undone = growing.fail()
    else:
        growing.upsert(**(COMPACTING if what == "compaction" else {}))
        times = [i.requested_time for i in hudi_py.open_table(str(theirs)).timeline.writes.completed()]
        undone = times[-1]
    shutil.copytree(theirs, ours)
    hudi_py.open_table(str(ours)).rollback(undone)
    peer.rollback(theirs, undone)
    assert _names(theirs) == _names(ours)
    assert _commands(theirs) == _commands(ours)
    assert _rollback_of(theirs, undone) == _rollback_of(ours, undone)
    assert _writes(peer, theirs) == _writes(peer, ours)
    if what != "compaction":
        growing.back_to(2)
    assert growing.model.rows() == peer.read(ours)
    _goes_on(growing, ours)


def _savepointed(growing):
    """Two commits (savepoint), one more, one with a compaction, one on top of it, and a failed one."""
    growing.upsert()
    growing.upsert()
    time = hudi_py.open_table(str(growing.table)).timeline.writes.completed()[-1].requested_time
    growing.peer.savepoint(growing.table, time)
    growing.upsert()
    growing.upsert(**(COMPACTING if growing.is_mor else {}))
    growing.upsert()
    growing.fail()
    return time


@pytest.mark.parametrize("options", [PLAIN, KEPT, COPY_ON_WRITE], ids=["mor-no-mdt", "mor-mdt", "cow-mdt"])
def test_our_restore_does_what_real_hudi_does(peer, tmp_path, options):
    """
    Same files and timeline as after its own restore on a copy; it reads the rows of the savepoint and goes on.

    In layout 1 Hudi writes more rollback blocks than needed, so there the files are compared without them.
    """
    theirs, ours = tmp_path / "theirs" / "t", tmp_path / "ours" / "t"
    growing = Growing(peer, theirs, options)
    time = _savepointed(growing)
    shutil.copytree(theirs, ours)
    hudi_py.open_table(str(ours)).restore(time)
    peer.restore(theirs, time)
    without = peer.table_version == 6
    assert _without_blocks(theirs, without) == _without_blocks(ours, without)
    assert _writes(peer, theirs) == _writes(peer, ours)
    growing.back_to(1)
    assert growing.model.rows() == peer.read(ours)
    _goes_on(growing, ours)


def _without_blocks(table, leave_out):
    blocks = {f"{file_id} {base} {version}" for file_id, base, version, *_ in _commands(table)} if leave_out else set()
    return {name for name in _names(table) if name.rpartition("/")[2] not in blocks}


@pytest.mark.parametrize("what", ["rollback", "restore"])
def test_half_done_work_of_ours_is_finished_by_real_hudi(peer, tmp_path, what):
    """Our process dies in the middle, the plan is stored; Hudi carries it to its end, rows are those of before."""
    source = tmp_path / "source" / "t"
    growing = Growing(peer, source, KEPT)
    if what == "restore":
        time = _savepointed(growing)
    else:
        growing.upsert()
        growing.upsert()
        growing.fail()
    found = 0
    for stop in range(4, 60):
        table = tmp_path / f"copy{stop}" / "t"
        shutil.copytree(source, table)
        dying = Table(StopBefore(LocalStorage(str(table)), stop))
        with suppress(Crash):
            dying.restore(time) if what == "restore" else dying.rollback_failed_writes()
        pending = {i.action: i.state for i in hudi_py.open_table(str(table)).timeline.pending()}
        state = pending.get(Action.ROLLBACK)
        # no Hudi can finish a restore that left a rollback without its inflight file, its own neither
        hopeless = state is not State.INFLIGHT if what == "restore" else state is None
        if hopeless or stop % 3:
            shutil.rmtree(table)
            continue
        found += 1
        if found > 2:
            break
        peer.restore(table, time) if what == "restore" else peer.rollback(table)
        assert not hudi_py.open_table(str(table)).timeline.pending()
        assert growing.states[1] == peer.read(table)
        last = table
    assert found
    growing.back_to(1)
    _goes_on(growing, last)


def test_restore_of_real_hudi_that_was_stopped_is_finished_by_us(peer, tmp_path):
    """B-7, B-29: its process ends anywhere in the middle; we bring the table to where Hudi would have brought it."""
    theirs = tmp_path / "theirs" / "t"
    growing = Growing(peer, theirs, KEPT)
    time = _savepointed(growing)
    with moments(peer, theirs, tmp_path / "copies") as copies:
        peer.restore(theirs, time)
    begun = [copy for copy in copies if _is_restoring(copy)]
    assert begun
    for table in some(begun, sized(5, 2)):
        hudi_py.open_table(str(table)).restore(time)
        assert not hudi_py.open_table(str(table)).timeline.pending()
        assert _writes(peer, theirs) == _writes(peer, table)
        assert growing.states[1] == peer.read(table)
        assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)
    growing.back_to(1)
    _goes_on(growing, table)


def _is_restoring(table):
    """Whether the restore has its plan for sure; until then its file may be empty, which `recover` deals with."""
    pending = hudi_py.open_table(str(table)).timeline.pending(Action.RESTORE)
    return bool(pending) and pending[0].state is State.INFLIGHT


@pytest.mark.parametrize("what", ["rollback", "restore"])
def test_half_done_work_of_real_hudi_is_finished_by_us(peer, tmp_path, what):
    """The plan that Hudi stored, in a table where nothing was done by it yet: we carry it to its end."""
    theirs, ours = tmp_path / "theirs" / "t", tmp_path / "ours" / "t"
    growing = Growing(peer, theirs, KEPT)
    if what == "restore":
        time = _savepointed(growing)
    else:
        growing.upsert()
        growing.upsert()
        growing.fail()
    shutil.copytree(theirs, ours)
    peer.restore(theirs, time) if what == "restore" else peer.rollback(theirs)
    store = hudi_py.open_table(str(theirs)).contents.store
    for instant in store.load().all_states:
        if instant.action is Action(what) and instant.state is not State.COMPLETED:
            shutil.copy(theirs / store.path(instant), ours / store.path(instant))
    table = hudi_py.open_table(str(ours))
    assert table.timeline.pending(what)
    table.restore(time) if what == "restore" else table.rollback_failed_writes()
    assert not hudi_py.open_table(str(ours)).timeline.pending()
    growing.back_to(1)
    assert growing.model.rows() == peer.read(ours)
    _goes_on(growing, ours)
