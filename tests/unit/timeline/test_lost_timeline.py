"""A timeline that is lost as a whole looks like that of a new table; it is told from one, and nothing is touched."""

from __future__ import annotations

from functools import cache

import pytest

from hudi_py.errors import ConflictError
from hudi_py.model.instant import State
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.lost import TimelineLost
from hudi_py.timeline.properties_file import update_properties
from support import writes
from support.tables import TableBuilder, at

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
ALWAYS = {"hoodie.metadata.enable": True}
ACTIONS = {
    "rows": lambda t: t.rows().to_arrow(),
    "as of": lambda t: t.rows(as_of="0m").to_arrow(),
    "changes": lambda t: t.changes().to_arrow(),
    "changed until": lambda t: t.changed_until(),
    "schema": lambda t: t.schema,
    "overview": lambda t: t.overview(),
    "usage": lambda t: t.usage(),
    "orphans": lambda t: t.orphans(older_than="0m", delete=True),
    "clean": lambda t: t.clean(file_versions_retained=1),
    "archive": lambda t: t.archive(keep_min_commits=1, keep_max_commits=2),
    "cluster": lambda t: t.cluster(),
    "recover": lambda t: t.recover(),
    "upsert": lambda t: writes.upsert(t.storage, writes.CHANGES),
    "upsert, no metadata": lambda t: writes.upsert(t.storage, writes.CHANGES, **{"hoodie.metadata.enable": False}),
}


@cache
def filled(version, *, metadata):
    storage = writes.create_table(version)
    for rows in (writes.OLD, writes.CHANGES):
        writes.upsert(storage, rows, **{"hoodie.metadata.enable": metadata})
    return storage


def instants(storage):
    """Paths of the files of all instants of the table itself."""
    folder = writes.open_table(storage).config.timeline_folder
    layout = writes.open_table(storage).config.format.layout
    own = (path for path in storage.files() if path.rpartition("/")[0] == folder)
    return [path for path in own if layout.parse(path.rpartition("/")[2]) is not None]


def without_instants(storage):
    lost = storage.copy()
    for path in instants(storage):
        lost.delete(path)
    return lost


@VERSIONS
@pytest.mark.parametrize("metadata", [True, False])
def test_a_table_without_its_instants_is_not_taken_for_a_new_one(version, metadata):
    """Reads, services and writes refuse by name and leave every byte; the check has one finding, and no orphans."""
    storage = without_instants(filled(version, metadata=metadata))
    before = storage.files()
    for name, act in ACTIONS.items():
        with pytest.raises(TimelineLost, match=r"has no instants, yet .*: the timeline of the table is lost"):
            act(writes.open_table(storage, **writes.ALONE))
        assert storage.files() == before, name
    (found,) = writes.open_table(storage).check()
    assert (found.code, found.severity.value, found.where) == ("timeline-lost", "error", found.where)
    assert [each.code for each in writes.open_table(storage).doctor()] == ["table-damaged"]
    assert storage.files() == before


@VERSIONS
@pytest.mark.parametrize("left", ["data", "metadata", "archive"])
def test_each_sign_alone_is_enough(version, left):
    """Data files, what the metadata table has recorded, or the archive."""
    storage = filled(version, metadata=left == "metadata").copy()
    if left == "archive":
        for number in range(6):
            writes.upsert(storage, [{**writes.OLD[0], "ts": 9 + number}])
        assert writes.open_table(storage).archive(keep_min_commits=2, keep_max_commits=3)
    lost = without_instants(storage)
    for path in filter(writes.is_data, lost.files()):
        if left != "data":
            lost.delete(path)
    with pytest.raises(TimelineLost, match={"data": "data file", "metadata": "recorded", "archive": "archived"}[left]):
        writes.open_table(lost).rows()


@VERSIONS
@pytest.mark.parametrize("left", ["clean", "savepoint"])
def test_what_comes_after_a_commit_is_no_timeline_without_one(version, left):
    """Cleans and savepoints stay where somebody deleted all commits; which rows were committed cannot be told then."""
    storage = filled(version, metadata=False).copy()
    table = writes.open_table(storage)
    if left == "clean":
        table.clean(file_versions_retained=1)
    else:
        table.create_savepoint()
    for path in instants(storage):
        if f".{left}" not in path:
            storage.delete(path)
    assert instants(storage)
    with pytest.raises(TimelineLost, match=f"has {left} .* and no commit"):
        writes.open_table(storage).rows()
    assert [each.code for each in writes.open_table(storage).check()] == ["timeline-lost"]


def test_instants_in_another_place_are_found():
    """A wrong path in the properties hides a timeline that is there."""
    storage = filled(9, metadata=False).copy()
    for path in filter(writes.is_data, storage.files()):
        storage.delete(path)
    update_properties(storage, {"hoodie.timeline.path": "elsewhere"}, writes.open_table(storage).contents.store.clock)
    with pytest.raises(TimelineLost, match=r"\.hoodie/elsewhere has no instants, yet \.hoodie/timeline/\d+"):
        writes.open_table(storage).rows()


@VERSIONS
@pytest.mark.parametrize("metadata", [True, False])
def test_a_new_table_is_empty_and_takes_its_first_write(version, metadata):
    """With other tables and foreign files below it, too."""
    storage = writes.create_table(version)
    for path, data in filled(9, metadata=False).files().items():
        storage.create_new(f"other/{path}", data)
    storage.create_new("eu/report_2026_01.csv", b"x")
    assert writes.rows_of(storage) == []
    assert not writes.open_table(storage).check()
    writes.upsert(storage, writes.OLD, **{"hoodie.metadata.enable": metadata})
    assert writes.rows_of(storage) == writes.OLD


@pytest.mark.parametrize("layout", [1, 2])
def test_a_table_whose_first_write_failed_is_empty(layout):
    """Pending, its files are there; and when it is rolled back."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]}, state=State.INFLIGHT)
    assert builder.table().partitions() == ("eu",)
    assert builder.table().file_slices("eu") == ()
    builder.table().rollback(at(1))
    assert builder.table().file_slices("eu") == ()
    assert not builder.table().timeline.writes


@VERSIONS
def test_a_first_write_that_comes_in_between_is_no_loss(version):
    """The listing of the timeline is older than that of the files then."""
    storage = writes.create_table(version)
    folder = writes.open_table(storage).config.timeline_folder

    class WritesMeanwhile(DelegatingStorage):
        is_done = False

        def list(self, path, **asked):
            found = super().list(path, **asked)
            if path == folder and not self.is_done:
                self.is_done = True
                writes.upsert(storage, writes.OLD)
            return found

    opened = writes.open_table(WritesMeanwhile(storage))
    assert len(opened.timeline.completed()) == 1
    assert opened.rows().to_arrow().num_rows == 2


def test_a_table_that_was_upgraded_meanwhile_is_opened_again():
    """Its instants are in another folder; a reader follows, and an action of before says why it stops."""
    storage = filled(6, metadata=False).copy()
    opened, service = writes.open_table(storage), writes.open_table(storage).contents.store
    for path in list(storage.files()):
        storage.delete(path)
    for path, data in filled(9, metadata=False).files().items():
        storage.create_new(path, data)
    assert opened.rows().to_arrow().num_rows == 3
    with pytest.raises(ConflictError, match="changed from table version 6 to 9"):
        service.load()
