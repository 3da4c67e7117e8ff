"""Files that the store deletes by a rule of its own: never one that a reader of the table still sees."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.tag import Tag
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.deleters import LeftToTheStore, Quarantine, Unlink
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopAfter
from hudi_py.timeline import quarantine
from support.tables import NOW, TableBuilder, at, data_files

TAG = "hudi-py=removed"
SETTINGS = {"hoodie_py.clean.quarantine": True, "hoodie_py.quarantine.tag": TAG}


def history():
    builder = TableBuilder(2)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def opened(storage, clock, settings=SETTINGS):
    return Table(storage, settings=settings, clock=clock)


def tagged(storage):
    """Paths of the files that the store is free to delete."""
    return {path for path in storage.files() if "hudi-py" in storage.tags(path)}


def in_table(paths):
    return {path for path in paths if not path.startswith(quarantine.FOLDER)}


def as_the_store(storage):
    """Do what a lifecycle rule of the store does."""
    gone = tagged(storage)
    for path in gone:
        storage.delete(path)
    return gone


def test_each_way_to_remove_takes_the_files_out_of_the_table():
    """One protocol: whichever it is, the file is not at its place, and where it is says whether it can come back."""
    for deleter in (Unlink(), Quarantine("q"), LeftToTheStore("q", Tag("k", "v"))):
        storage = MemoryStorage.from_files({"p/a": b"1"})
        assert deleter.remove(storage, ["p/a", "p/none"]) == {"p/a": True, "p/none": False}
        assert deleter.remove(storage, ["p/a"]) == {"p/a": False}
        assert storage.size("p/a") is None
        assert [*storage.files()] == ([f"{deleter.undoable_from}/p/a"] if deleter.undoable_from else [])
    assert storage.tags("q/p/a") == {"k": "v"}


def test_the_store_deletes_what_a_clean_removed_and_nothing_else():
    """The timeline says what any clean says; the rest of the table is untouched; then the removal is forgotten."""
    plain, builder = history(), history()
    (usual,) = plain.table().clean(commits_retained=1)
    (result,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    assert result.metadata.partitions == usual.metadata.partitions
    table = opened(builder.storage, FixedClock(NOW + timedelta(days=30)))
    assert table.empty_quarantine() == table.empty_quarantine(dry_run=True) == ()
    assert in_table(as_the_store(builder.storage)) == set()
    assert data_files(builder.storage) == data_files(plain.storage)
    assert table.empty_quarantine() == (result.instant,)
    assert not [path for path in builder.storage.files() if path.startswith(quarantine.FOLDER)]


def test_a_file_that_could_not_be_tagged_is_tagged_later():
    """It is out of the table all the same; the emptying of the quarantine leaves none behind."""

    class Untaggable(DelegatingStorage):
        def tag_many(self, paths, tag, *, remove=False):
            return {path: StorageFailure("refused", False) for path in paths}

    builder = history()
    (result,) = opened(Untaggable(builder.storage), builder.clock).clean(commits_retained=1)
    assert result.deleted_files
    assert not result.failed_files
    assert tagged(builder.storage) == set()
    opened(builder.storage, FixedClock(NOW + timedelta(days=30))).empty_quarantine()
    assert len(tagged(builder.storage)) == len(result.deleted_files)


def test_at_every_call_of_a_clean_and_its_undo_no_file_of_the_table_is_tagged():
    """Whatever the store deletes at any moment, no reader of the table misses it; undone, all is as before."""
    number, is_cut = 0, True
    while is_cut:
        builder = history()
        before = data_files(builder.storage)
        for verb in ("clean", "undo"):
            faulty = StopAfter(builder.storage, number)
            with suppress(Crash):
                run(verb, opened(faulty, builder.clock))
            assert in_table(tagged(builder.storage)) == set(), (verb, faulty.fired)
            is_cut = faulty.fired is not None
            builder.clock.move(timedelta(seconds=5))
            run(verb, opened(builder.storage, builder.clock))
            builder.clock.move(timedelta(seconds=5))
            assert in_table(tagged(builder.storage)) == set(), (verb, faulty.fired)
        assert as_the_store(builder.storage) == set()
        assert data_files(builder.storage) == before
        number += 1
    assert number > 10


def run(verb, table):
    if verb == "clean":
        table.clean(commits_retained=1)
        return
    for name in quarantine.removals(table.storage):
        with suppress(RefusedError):  # it was done, but for the folder: the clean is not on the timeline any more
            table.undo(name)


def test_what_the_store_has_deleted_cannot_be_undone():
    """The refusal says so and changes nothing."""
    builder = history()
    (result,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    as_the_store(builder.storage)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="in no place any more"):
        opened(builder.storage, builder.clock).undo(result.instant)
    assert builder.storage.files() == before


def test_bytes_that_the_store_deleted_are_gone_since_they_were_seen_to_be():
    """Not since the clean: for days after it the store still had them."""
    builder = history()
    builder.commit(at(4), {"r1": ["g"]}, action="replacecommit", replaced={"r0": ["f"]})
    builder.commit(at(5), {"r1": ["g"]})
    opened(builder.storage, builder.clock).clean(commits_retained=1)
    table = opened(builder.storage, FixedClock(NOW + timedelta(days=3)))
    assert table.erased(partition="r0").verdict.value == "held"
    as_the_store(builder.storage)
    report = table.erased(partition="r0")
    assert report.verdict.value == "gone"
    assert report.last_removal.at == report.looked_at


def test_orphans_are_left_to_the_store_too():
    """With the same tag, in the same place."""
    builder = history()
    path = f"r0/{builder.base_name('x', at(2)[:-7] + '1500000')}"
    builder.put(path)
    table = opened(builder.storage, FixedClock(NOW + timedelta(days=400)))
    report = table.orphans(older_than="1d")
    assert report.done == (path,)
    assert tagged(builder.storage) == {f"{report.quarantine}/files/{path}"}


def test_a_table_on_a_disk_is_refused_before_anything_is_done(tmp_path):
    """By name: its files have no tags."""
    builder = history()
    for path, data in builder.storage.files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    before = sorted(str(each) for each in tmp_path.rglob("*"))
    for act in (lambda table: table.clean(), lambda table: table.orphans()):
        with pytest.raises(ConfigError, match="only objects in S3 have tags"):
            act(opened(LocalStorage(tmp_path), builder.clock))
    assert sorted(str(each) for each in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("text", ["removed", "=x", "a=", "aws:k=v", "k=\u00e9", "k=" + "v" * 257])
def test_what_is_no_tag_of_s3_is_refused(text):
    """Before the store refuses it in the middle of a clean."""
    builder = history()
    with pytest.raises(ConfigError, match=r"hoodie_py\.quarantine\.tag"):
        opened(builder.storage, builder.clock, SETTINGS | {"hoodie_py.quarantine.tag": text}).clean()
