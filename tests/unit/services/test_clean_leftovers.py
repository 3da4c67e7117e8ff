"""Files that refuse to go: named, remembered, retried while they are garbage, and never in the way."""

import errno
import json
import os

import pytest

from hudi_py.errors import StorageError
from hudi_py.services.clean.memory import leftovers
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.crash_points import EVERY, interruptions
from support.tables import TableBuilder, at
from support.tables import data_files as listed

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def data_files(storage):
    return set(listed(storage))


class Refusing(DelegatingStorage):
    """Deletes everything but the paths that *refuse* says."""

    def __init__(self, inner, refuse):
        super().__init__(inner)
        self.refuse = refuse

    def delete_many(self, paths):
        wanted = tuple(paths)
        outcome = dict(super().delete_many(path for path in wanted if not self.refuse(path)))
        return outcome | {p: StorageFailure(f"{p}: not yours", False) for p in wanted if self.refuse(p)}


def history(layout):
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def name_of(path):
    return path.rpartition("/")[2]


def is_first(path):
    return name_of(path).startswith("f")


def refusing(builder, refuse=is_first, storage=None):
    return Table(Refusing(storage or builder.storage, refuse), clock=builder.clock)


@LAYOUTS
def test_what_refuses_is_named_and_the_clean_completes(layout):
    """K-12: in the result, in the completed instant under the failed ones, and as long as it is there."""
    builder = history(layout)
    (result,) = refusing(builder).clean(commits_retained=1)
    assert result.failed_files
    assert all(is_first(path) for path in result.failed_files)
    assert set(result.failed_files) <= data_files(builder.storage)
    assert not set(result.deleted_files) & data_files(builder.storage)
    recorded = result.metadata.partitions["r0"]
    assert {f"r0/{name}" for name in recorded.failed_delete_files} == set(result.failed_files)
    assert result.metadata.total_files_deleted == len(result.deleted_files)
    assert not builder.table().timeline.pending("clean")


@LAYOUTS
def test_the_next_clean_deletes_them_without_a_new_commit(layout):
    """Hudi's incremental plan would never look into that partition again."""
    builder = history(layout)
    (first,) = refusing(builder).clean(commits_retained=1)
    (second,) = builder.table().clean(commits_retained=1)
    assert set(second.deleted_files) == set(first.failed_files)
    assert leftovers.LEFTOVERS.path not in builder.storage.files()
    assert builder.table().clean(commits_retained=1) == []


@LAYOUTS
def test_what_refuses_for_ever_stands_in_nobodys_way(layout):
    """Every clean tries again, names it and completes; the other partitions are cleaned as ever."""
    builder = history(layout)
    for number in range(4, 8):
        (result,) = refusing(builder).clean(commits_retained=1)
        assert result.failed_files
        builder.commit(at(number), {"r1": ["g"]})
    assert len([path for path in data_files(builder.storage) if name_of(path).startswith("g")]) <= 3


@LAYOUTS
def test_what_is_needed_again_is_not_deleted(layout):
    """The planner judges a leftover like any other file: here a longer retention needs it."""
    builder = history(layout)
    (first,) = refusing(builder).clean(commits_retained=1)
    builder.table().clean(commits_retained=5)
    assert set(first.failed_files) <= data_files(builder.storage)
    assert leftovers.LEFTOVERS.path in builder.storage.files(), "it is still remembered"


@LAYOUTS
def test_what_somebody_else_deleted_is_forgotten(layout):
    """Otherwise every clean would look into that folder for ever."""
    builder = history(layout)
    (first,) = refusing(builder).clean(commits_retained=1)
    builder.storage.delete_many(first.failed_files)
    assert builder.table().clean(commits_retained=1) == []
    assert leftovers.LEFTOVERS.path not in builder.storage.files()


@LAYOUTS
@pytest.mark.parametrize("damage", [b"", b"[]", b'{"files": 7}', None])
def test_a_lost_or_damaged_note_harms_nothing(layout, damage):
    """It is our own; without it a full look finds the files."""
    builder = history(layout)
    (first,) = refusing(builder).clean(commits_retained=1)
    builder.storage.delete(leftovers.LEFTOVERS.path)
    if damage is not None:
        builder.put(leftovers.LEFTOVERS.path, damage)
    builder.commit(at(9), {"r1": ["g"]})
    builder.table(clean_incremental_enabled=False).clean(commits_retained=1)
    assert not set(first.failed_files) & data_files(builder.storage)


@LAYOUTS
@pytest.mark.parametrize("folder", ["../other", "/other", "r0/..", ".hoodie/metadata/files", "", "nowhere"])
def test_a_note_of_a_folder_that_is_no_partition_leads_nowhere(layout, folder):
    """Edited by hand, it must neither stop every clean nor lead one to files that are none of the table's."""
    builder = history(layout)
    strangers = [
        f"{prefix}{builder.base_name('f', at(n))}" for prefix in ("", ".hoodie/metadata/files/") for n in (1, 2)
    ]
    for path in strangers:
        builder.put(path)
    builder.put(leftovers.LEFTOVERS.path, json.dumps({"files": {folder: [builder.base_name("f", at(1))]}}).encode())
    (result,) = builder.table().clean(commits_retained=1)
    assert {path.partition("/")[0] for path in result.deleted_files} == {"r0", "r1"}
    assert set(strangers) <= set(builder.storage.files())


@LAYOUTS
def test_wrong_access_is_an_error_once_and_no_obstacle_afterwards(layout):
    """Nothing can be deleted at all: the clean stays pending; the second attempt completes without the files."""
    builder = history(layout)
    before = data_files(builder.storage)
    with pytest.raises(StorageError, match="none of 2 files could be deleted"):
        refusing(builder, lambda path: True).clean(commits_retained=1)
    assert builder.table().timeline.pending("clean")
    (result,) = refusing(builder, lambda path: True).clean(commits_retained=1)
    assert data_files(builder.storage) == before
    assert len(result.failed_files) == 2


@pytest.mark.slow
@LAYOUTS
def test_interrupted_anywhere_no_leftover_is_forgotten(layout, record_property):
    """A storage that refuses some files and is interrupted at every call; afterwards one that refuses nothing."""
    count = 0
    fresh = history(layout)
    expected = data_files(clean_with(fresh.storage.copy(), fresh))
    for case in interruptions(fresh.storage.copy):
        count += case.run(lambda storage: refusing(fresh, storage=storage).clean(commits_retained=1))
        refusing(fresh, storage=case.storage).clean(commits_retained=1)
        clean_with(case.storage, fresh)
        assert data_files(case.storage) == expected, case
        assert leftovers.LEFTOVERS.path not in case.storage.files(), case
    record_property("interruptions", count)
    assert count * EVERY > 20


def clean_with(storage, builder):
    Table(storage, clock=builder.clock).clean(commits_retained=1)
    return storage


@LAYOUTS
def test_with_a_metadata_table_the_folder_is_looked_at(layout):
    """The metadata table was told that they are deleted; only the folder shows that they are there."""
    builder = history(layout)
    builder.table(metadata_enable=True).services.metadata_table.prepare(writes_data=True)
    (first,) = refusing(builder).clean(commits_retained=1)
    table = builder.table()
    listing = table.services.clean(table.services.clean_config(commits_retained=1)).planner.situation().listing
    assert not {f"r0/{entry.name}" for entry in listing.partition("r0")} & set(first.failed_files)
    (second,) = table.clean(commits_retained=1)
    assert set(second.deleted_files) == set(first.failed_files)


@LAYOUTS
def test_a_checksum_file_that_refuses_is_tried_again_until_it_is_gone(layout, tmp_path, monkeypatch):
    """Its data is deleted, no listing shows it: only what is remembered leads back to it."""
    builder = history(layout)
    storage = LocalStorage(str(tmp_path))
    for path, content in builder.storage.files().items():
        storage.replace(path, content)
    side_files = {tmp_path / path.replace("/", "/.", 1) for path in data_files(builder.storage)}
    side_files = {path.with_name(f"{path.name}.crc") for path in side_files}
    for path in side_files:
        path.write_bytes(b"crc")
    table = Table(storage, clock=builder.clock)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refusing_side_files(os.unlink))
        (result,) = table.clean(commits_retained=1)
        assert result.deleted_count == 2
        assert not result.failed_files
        assert {name_of(path) for path in result.side_files_left} == {
            f".{name_of(path)}.crc" for path in result.deleted_files
        }
        assert table.clean(commits_retained=1) == []
        assert all((tmp_path / path).exists() for path in result.side_files_left), "remembered, and refused again"
    assert table.clean(commits_retained=1) == []
    assert not any((tmp_path / path).exists() for path in result.side_files_left)
    assert not (tmp_path / leftovers.LEFTOVERS.path).exists()
    assert sum(path.exists() for path in side_files) == len(side_files) - 2, "those of live files stay"


def refusing_side_files(unlink):
    def call(name, **more):
        if str(name).endswith(".parquet.crc"):
            raise PermissionError(errno.EPERM, "it is immutable")
        unlink(name, **more)

    return call


def test_a_note_names_no_checksum_file_but_those_of_data(tmp_path):
    """Edited by hand, it must not lead a clean to files that are none of a data file."""
    storage = LocalStorage(str(tmp_path))
    names = {"r0": [".x.crc", "x", ".hoodie_partition_metadata.crc", "../.hoodie/hoodie.properties"]}
    (tmp_path / "r0").mkdir()
    for name in names["r0"][:3]:
        (tmp_path / "r0" / name).write_bytes(b"x")
    left = {path: frozenset(each) for path, each in names.items()}
    assert leftovers.side_files_left(storage, left) == {}
    assert all((tmp_path / "r0" / name).exists() for name in names["r0"][:3])
