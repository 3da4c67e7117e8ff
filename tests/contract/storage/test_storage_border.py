"""The table's border on a local disk: nothing is written or deleted through a link, only files are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound, StorageError
from hudi_py.storage import _beneath
from hudi_py.storage.base import SMALL_BYTES_MAX, StorageFailure
from hudi_py.storage.factory import open_storage
from hudi_py.storage.local import LocalStorage

CANARY = "precious"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """A table with one partition."""
    storage = LocalStorage(tmp_path / "table")
    storage.create_new("p/file", b"inside")
    return storage


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the table whose names are those that the tests use."""
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    for name in (CANARY, "file", ".file.crc", "sub/file", "sub/.file.crc"):
        (folder / name).write_bytes(name.encode())
    return folder


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Every name below *folder* with its bytes; None for a folder, text for a link."""

    def content(path: Path) -> bytes | str | None:
        return os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()

    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*"))}


def write_stream(storage: LocalStorage, path: str) -> None:
    with storage.open_write(path) as stream:
        stream.write(b"new")


VERBS: dict[str, Callable[[LocalStorage, str], object]] = {
    "create_new": lambda storage, path: storage.create_new(path, b"new"),
    "create_new of nothing": lambda storage, path: storage.create_new(path, b""),
    "replace": lambda storage, path: storage.replace(path, b"new"),
    "open_write": write_stream,
    "delete": lambda storage, path: storage.delete(path),
    "delete_folder": lambda storage, path: storage.delete_folder(path),
}
LINKS: dict[str, tuple[str, Callable[[Path, Path], str]]] = {
    "absolute": ("q/{}", lambda table, outside: str(outside)),
    "relative": ("q/{}", lambda table, outside: os.path.relpath(outside, table)),
    "nested": ("q/sub/{}", lambda table, outside: str(outside)),
    "inside the table": ("q/{}", lambda table, outside: str(table / "p")),
    "to the table itself": ("q/p/{}", lambda table, outside: "."),
    "to nowhere": ("q/{}", lambda table, outside: str(outside / "missing")),
}


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_happens_through_a_link(storage, outside, kind, verb):
    """Whatever the verb and the link: both sides stay as they are, and the refusal names the link and its target."""
    path, target = LINKS[kind]
    where = target(Path(storage.root), outside)
    os.symlink(where, f"{storage.root}/q")
    before = tree(outside), tree(Path(storage.root))
    for name in ("file", "new", "deep/new"):
        with pytest.raises(StorageError) as caught:
            VERBS[verb](storage, path.format(name))
        assert f"{storage.root}/q is a symbolic link to {where}; " in str(caught.value)
        assert "put the folder itself there" in str(caught.value)
        assert not caught.value.retryable
    assert (tree(outside), tree(Path(storage.root))) == before


@pytest.mark.parametrize("kind", LINKS)
def test_what_would_be_refused_is_told_beforehand(storage, outside, kind):
    """The same words as the refusal's; nothing bars what is a folder, or is not there."""
    path, target = LINKS[kind]
    os.symlink(target(Path(storage.root), outside), f"{storage.root}/q")
    with pytest.raises(StorageError) as caught:
        storage.delete(path.format("file"))
    barrier = storage.barrier(path.format("").rstrip("/"))
    assert barrier is not None
    assert barrier in str(caught.value)
    assert [storage.barrier(each) for each in ("", "p", "none", "p/none", "p/file")] == [None] * 5


def test_deletion_in_bulk_refuses_only_what_lies_behind_a_link(storage, outside):
    """The rest of a clean goes on; the outcome of each file says what happened."""
    os.symlink(outside, f"{storage.root}/q")
    before = tree(outside)
    outcomes = storage.delete_many([*(f"q/{name}" for name in before), "p/file", "none/file"])
    assert tree(outside) == before
    assert (outcomes.pop("p/file"), outcomes.pop("none/file")) == (True, False)
    assert all(isinstance(each, StorageFailure) and "symbolic link" in each.message for each in outcomes.values())


def test_links_to_files_are_replaced_and_deleted_never_followed(storage, outside):
    """A link in the place of a file, or a second name of a file: what they stand for keeps its bytes."""
    before = tree(outside)
    for make in (os.symlink, os.link):
        for verb in ("replace", "open_write", "delete", "create_new"):
            make(outside / CANARY, f"{storage.root}/p/linked")
            try:
                VERBS[verb](storage, "p/linked")
            except StorageError:
                assert verb == "create_new"
            assert tree(outside) == before
            storage.delete("p/linked")
    assert tree(outside) == before


def test_deleted_folder_takes_links_along_and_leaves_their_targets(storage, outside):
    """Links deep inside of what goes are names like others."""
    before = tree(outside)
    os.mkdir(f"{storage.root}/p/deep")
    os.symlink(outside, f"{storage.root}/p/deep/folder")
    os.symlink(outside / CANARY, f"{storage.root}/p/deep/file")
    storage.delete_folder("p")
    assert not os.path.lexists(f"{storage.root}/p")
    assert tree(outside) == before


def test_root_may_be_a_link_and_may_be_relative(tmp_path, monkeypatch, outside):
    """The user named it: everything works as in the folder itself, through paths and file URLs."""
    os.symlink(outside, tmp_path / "alias")
    monkeypatch.chdir(tmp_path)
    for number, root in enumerate(("alias", tmp_path / "alias", f"file://{tmp_path}/alias", "./sub/../alias")):
        storage = open_storage(root)
        storage.create_new(f"n{number}/a", b"x")
        with storage.open_write(f"n{number}/b") as stream:
            stream.write(b"y")
        assert storage.delete_many([f"n{number}/a"]) == {f"n{number}/a": True}
        storage.delete_folder(f"n{number}")
    assert set(tree(outside)) == {CANARY, "file", ".file.crc", "sub", "sub/file", "sub/.file.crc"}


@pytest.mark.parametrize("path", ["../outside/file", "p/../../outside/file", "/etc/passwd", "p//file", "p/./file"])
@pytest.mark.parametrize("verb", VERBS)
def test_paths_that_leave_the_table_are_refused(storage, outside, path, verb):
    """Paths of plans and of metadata come through the same door."""
    before = tree(outside)
    with pytest.raises(ConfigError):
        VERBS[verb](storage, path)
    with pytest.raises(ConfigError):
        storage.delete_many([path])
    assert tree(outside) == before


def test_swap_between_the_look_and_the_deed_is_without_effect(storage, outside, monkeypatch):
    """The folder is held by its descriptor: a link that takes its place after the walk is not in the way."""
    before = tree(outside)
    original = os.unlink

    def unlink(name: str, **more: int) -> None:
        if name == "file":
            os.rename(f"{storage.root}/p", f"{storage.root}/old")
            os.symlink(outside, f"{storage.root}/p")
        original(name, **more)

    monkeypatch.setattr(os, "unlink", unlink)
    assert storage.delete_many(["p/file"]) == {"p/file": True}
    assert tree(outside) == before
    assert not os.path.exists(f"{storage.root}/old/file")


def test_folders_nested_beyond_reason_are_left(storage):
    """Deleting holds a descriptor for each level, so the number of levels is bounded."""
    deep = Path(storage.root, "d", *["x"] * (_beneath._DEPTH_MAX + 2))
    deep.mkdir(parents=True)
    with pytest.raises(StorageError, match="remove it by hand"):
        storage.delete_folder("d")
    assert deep.exists()


# ---------------------------------------------------------------------- reading


def test_only_regular_files_are_read(storage, outside):
    """A pipe would wait for ever, an endless device would never end; links to files are read."""
    os.mkfifo(f"{storage.root}/p/pipe")
    os.symlink(f"{storage.root}/p/pipe", f"{storage.root}/p/to-pipe")
    os.symlink("/dev/zero", f"{storage.root}/p/endless")
    os.symlink(outside / CANARY, f"{storage.root}/p/linked")
    for name in ("pipe", "to-pipe", "endless"):
        for read in (storage.read, storage.open_read, storage.read_version):
            with pytest.raises(CorruptMetadata, match="is not a regular file"):
                read(f"p/{name}")
    assert storage.read("p/linked") == CANARY.encode()
    with pytest.raises(NotFound):
        storage.read("p")


def test_no_more_than_the_bound_is_read_at_once(tmp_path):
    """A sparse file costs nothing to make; the refusal names the setting for those that are real."""
    storage = LocalStorage(tmp_path, read_bytes_max=1000)
    storage.create_new("just", bytes(1000))
    assert len(storage.read("just")) == 1000
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(3_000_000_000)
    for read in (storage.read, storage.read_version, LocalStorage(tmp_path).read):
        with pytest.raises(CorruptMetadata, match=r"sparse: 3000000000 bytes, .*hoodie_py\.read\.max\.bytes"):
            read("sparse")


@pytest.mark.parametrize(
    "path",
    [
        ".hoodie/hoodie.properties",
        ".hoodie/hoodie.properties.backup",
        ".hoodie/metadata/.hoodie/hoodie.properties",
        ".hoodie/.heartbeat/20260101000000000",
        ".hoodie/.temp/20260101000000000/MARKERS0",
        ".hoodie/.temp/20260101000000000/p/x.parquet.marker.CREATE",
        ".hoodie/lock",
        ".hoodie/.locks/table_lock.json",
        ".hoodie/timeline/history/_version_",
        "p/q/.hoodie_partition_metadata",
        ".hoodie/.20260101000000000.commit.crc",
    ],
)
def test_files_that_are_small_by_their_nature_have_a_small_bound(tmp_path, path):
    """A gigabyte of properties is no reason to hold a gigabyte; and nobody is told to remove them."""
    for name, is_refused in ((path, True), (".hoodie/20260101000000000.commit", False), ("p/x.parquet", False)):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            stream.truncate(SMALL_BYTES_MAX + 1)
        if not is_refused:
            assert len(LocalStorage(tmp_path).read(name)) == SMALL_BYTES_MAX + 1
            continue
        with pytest.raises(CorruptMetadata, match="restore it from a copy of the table") as told:
            LocalStorage(tmp_path).read(name)
        assert "remove" not in str(told.value)
        assert "max.bytes" not in str(told.value)
        os.truncate(file, 1000)
        assert len(LocalStorage(tmp_path).read(name)) == 1000


@pytest.mark.parametrize("target", [".", "..", "p", "../table/p"])
def test_listing_refuses_links_that_show_the_table_again(storage, target):
    """Two links of this kind in one folder would make a walk over the partitions endless."""
    os.symlink(target, f"{storage.root}/again")
    for details in (False, True):
        with pytest.raises(CorruptMetadata, match="again is a symbolic link to"):
            storage.list("", details=details)


def test_listing_follows_a_link_out_of_the_table_once(storage, outside):
    """A partition on another disk is read; a link behind it is not followed, wherever it leads."""
    os.symlink(outside, f"{storage.root}/q")
    assert {entry.name for entry in storage.list("q")} == {CANARY, "file", "sub"}
    os.symlink(outside, outside / "round")
    with pytest.raises(CorruptMetadata, match="q/round is a symbolic link"):
        storage.list("q")


def test_a_list_tells_more_of_named_files_where_these_are_asked_for(storage):
    """Size and time of them as of all; a name that is not there is none, and all others are listed."""
    for name, data in (("a/one", b"1"), ("a/two", b"22"), ("a/below/three", b"")):
        storage.create_new(name, data)
    found = {each.name.rstrip("/"): each for each in storage.list("a", details={"one", "absent"})}
    assert found.keys() == {"one", "two", "below"}
    assert found["one"] == next(each for each in storage.list("a", details=True) if each.name == "one")
    assert found["one"].modified_ms is not None
