"""What only a local disk can do wrong: torn files, checksums, links, a full disk, missing permissions."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_py.errors import AlreadyExists, ConfigError, OutcomeUnknown, StorageError
from hudi_py.model.files import NOT_REGULAR
from hudi_py.storage import _create, _rename, local
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.local import LocalStorage

RACES = 30
CONTENT_BYTES = 200_000


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def files(storage: LocalStorage) -> set[str]:
    """Every file below the root, hidden ones too."""
    root = Path(storage.root)
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


# ---------------------------------------------------------------------- processes


def contend(root: str, number: int, barrier: threading.Barrier, results: multiprocessing.Queue[list[int]]) -> None:
    """One of several processes that create the same names; reports the ones it won."""
    storage, won = LocalStorage(root), []
    barrier.wait(60)
    for name in range(RACES):
        try:
            storage.create_new(f"race/{name}", bytes([65 + number]) * (CONTENT_BYTES if name % 3 else 0))
            won.append(name)
        except AlreadyExists:
            pass
    results.put(won)


def test_racing_processes_have_exactly_one_winner_and_readers_see_no_part(storage):
    """Three processes create the same names while this one reads them."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    rivals = [context.Process(target=contend, args=(storage.root, number, barrier, results)) for number in range(3)]
    for rival in rivals:
        rival.start()
    barrier.wait(60)
    sizes, complete = set(), {0, CONTENT_BYTES}
    while rivals[0].is_alive():
        for entry in storage.list("race"):
            sizes.add(len(storage.read(f"race/{entry.name}")))
    won = [results.get(timeout=60) for _ in rivals]
    for rival in rivals:
        rival.join(60)
        assert rival.exitcode == 0
    assert sorted(name for names in won for name in names) == list(range(RACES))
    assert sizes <= complete
    contents = [storage.read(f"race/{name}") for name in range(RACES)]
    assert all(len(set(content)) <= 1 and len(content) in complete for content in contents)
    assert files(storage) == {f"race/{name}" for name in range(RACES)}


KILLED = """
import os, sys
from hudi_py.storage import _create, local
storage = local.LocalStorage(sys.argv[1])
os.{call} = lambda *arguments, **more: os._exit(9)
storage.{verb}("t/name", b"new" * 100_000)
"""


@pytest.mark.parametrize(("verb", "call"), [("create_new", "link"), ("replace", "replace")])
def test_killed_writer_leaves_nothing_under_the_name(storage, verb, call):
    """A process that dies before the atomic step leaves a hidden temporary file, and the next try works."""
    if verb == "replace":
        storage.create_new("t/name", b"old")
    script = KILLED.format(verb=verb, call=call)
    root = str(Path(local.__file__).parents[2])
    died = subprocess.run(
        [sys.executable, "-c", script, storage.root], env={**os.environ, "PYTHONPATH": root}, timeout=60
    )
    assert died.returncode == 9
    assert len(files(storage) - {"t/name"}) == 1  # the temporary file
    assert [(entry.name, storage.read("t/name")) for entry in storage.list("t")] == (
        [("name", b"old")] if verb == "replace" else []
    )
    getattr(storage, verb)("t/name", b"new")
    assert storage.read("t/name") == b"new"


# ---------------------------------------------------------------------- checksums


def put_with_crc(storage: LocalStorage, path: str) -> Path:
    """A file as Hadoop leaves it; returns the path of its (wrong) checksum."""
    storage.replace(path, b"data")
    crc = Path(storage.root, path).with_name(f".{Path(path).name}.crc")
    crc.write_bytes(b"crc\0\0\0\2\0stale")
    return crc


@pytest.mark.parametrize("verb", ["create_new", "replace"])
@pytest.mark.parametrize("data", [b"", b"new"])
def test_stale_checksum_is_gone_before_new_data_appears(storage, monkeypatch, verb, data):
    """Hadoop would refuse new data with an old checksum, so at no moment do both exist."""
    crc = put_with_crc(storage, "t/001.commit")
    if verb == "create_new":
        os.unlink(f"{storage.root}/t/001.commit")
    seen = []

    def watch(name: str) -> None:
        original = getattr(os, name)

        def call(*arguments: object, **more: object) -> object:
            if "001.commit" in arguments:
                seen.append(crc.exists())
            return original(*arguments, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("link", "replace", "open"):
        watch(name)
    getattr(storage, verb)("t/001.commit", data)
    assert seen
    assert not any(seen)
    assert files(storage) == {"t/001.commit"}


def test_checksum_goes_with_the_data(storage):
    """Streaming over a file, deleting one or many removes the checksum; deleting again finds a forgotten one."""
    assert put_with_crc(storage, "a").exists()
    with storage.open_write("a"):
        assert files(storage) == {"a"}
    put_with_crc(storage, "a")
    assert storage.delete("a") is True
    put_with_crc(storage, "b/x"), put_with_crc(storage, "b/y")
    os.unlink(f"{storage.root}/b/y")
    assert storage.delete_many(["b/x", "b/y"]) == {"b/x": True, "b/y": False}
    assert files(storage) == set()


def test_a_checksum_that_refuses_to_go_is_told_and_is_no_failure(storage, monkeypatch):
    """The data is deleted, so that rollback and recovery go on; a clean remembers what stays."""
    put_with_crc(storage, "b/x"), put_with_crc(storage, "a")
    unlink = os.unlink

    def refuse(name: str, **more: object) -> None:
        if str(name).endswith(".crc"):
            raise PermissionError(errno.EPERM, "it is immutable")
        unlink(name, **more)

    monkeypatch.setattr(os, "unlink", refuse)
    assert storage.delete("a") is True
    outcomes = storage.delete_many(["b/x", "b/y"])
    assert outcomes["b/x"].name == ".x.crc"
    assert outcomes["b/x"].was_there
    assert "b/.x.crc: it is immutable" in outcomes["b/x"].message
    assert storage.delete_many(["b/x"])["b/x"].was_there is False
    assert files(storage) == {"b/.x.crc", ".a.crc"}


def test_refused_creation_keeps_the_checksum_of_the_other_file(storage):
    """The name is taken: nothing that belongs to it is touched."""
    crc = put_with_crc(storage, "a")
    for data in (b"", b"x"):
        with pytest.raises(AlreadyExists):
            storage.create_new("a", data)
    assert crc.exists()


# ---------------------------------------------------------------------- file systems


def refuse_links(monkeypatch: pytest.MonkeyPatch, code: int = errno.EPERM) -> None:
    def link(*arguments: object, **more: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_creation_is_still_exclusive(storage, monkeypatch, code):
    """The exclusive rename takes over, with the same outcome for the first and for the second writer."""
    refuse_links(monkeypatch, code)
    storage.create_new("a", b"first")
    with pytest.raises(AlreadyExists):
        storage.create_new("a", b"second")
    # as if the rival came right after the look
    monkeypatch.setattr(_create, "_refuse_taken", lambda folder, name: None)
    with pytest.raises(AlreadyExists):
        storage.create_new("a", b"third")
    assert storage.read("a") == b"first"
    assert files(storage) == {"a"}


@pytest.mark.parametrize("missing", ["library", "file system"])
def test_without_any_exclusive_step_creation_is_refused(storage, monkeypatch, missing):
    """Rather than test-and-write, which two writers could both pass."""

    class Library:
        def __init__(self, *arguments: object, **more: object) -> None:
            if missing == "file system":
                self.renameat2 = lambda *arguments: -1

    refuse_links(monkeypatch)
    monkeypatch.setattr(_rename.ctypes, "CDLL", Library)
    monkeypatch.setattr(_rename.ctypes, "get_errno", lambda: errno.EINVAL)
    with pytest.raises(StorageError, match="neither hard links nor an exclusive rename"):
        storage.create_new("a", b"x")
    assert files(storage) == set()


def test_link_that_worked_but_was_answered_exists_is_ours(storage, monkeypatch):
    """NFS may lose the answer and repeat the request: two links on our own temporary file prove that we won."""
    original = os.link

    def link(*arguments: str, **more: int) -> None:
        original(*arguments, **more)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", link)
    storage.create_new("a", b"x")
    assert storage.read("a") == b"x"
    assert files(storage) == {"a"}


def test_unconfirmed_folder_is_an_unknown_outcome(storage, monkeypatch):
    """The name is there, but may not survive a power loss: neither success nor failure."""

    def fail(folder: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    storage.create_new("first", b"x")
    monkeypatch.setattr(local, "synchronise", fail)
    for verb in (storage.create_new, storage.replace):
        with pytest.raises(OutcomeUnknown, match="did not confirm"):
            verb("a" if verb == storage.create_new else "b", b"x")
    assert files(storage) == {"first", "a", "b"}


def test_full_disk_loses_nothing(small_disk):
    """Each writing verb says so; the former content and the space are still there."""
    storage = LocalStorage(small_disk(256))
    storage.create_new("kept", b"old")
    for verb, path in ((storage.create_new, "new"), (storage.replace, "kept")):
        with pytest.raises(StorageError, match="the disk is full") as caught:
            verb(path, b"x" * 1_000_000)
        assert not isinstance(caught.value, AlreadyExists)
    assert files(storage) == {"kept"}
    with pytest.raises(StorageError, match="the disk is full"), storage.open_write("data") as stream:
        for _ in range(100):
            stream.write(b"x" * 10_000)
    assert stream.closed
    with pytest.raises(StorageError, match="the disk is full"), storage.open_write("data") as stream:
        stream.write(b"x" * 240_000)
        with storage.open_write("buffered") as second:  # fits into the buffer, fails at close
            second.write(b"y" * 60_000)
    assert second.closed
    storage.delete_many(["data", "buffered"])
    storage.replace("kept", b"x" * 100_000)
    assert storage.size("kept") == 100_000


@pytest.fixture
def foreign_folder() -> Iterator[Path]:
    """A folder with one file that this process, for the time of the test, may read but not write."""
    folder = Path(tempfile.mkdtemp(prefix="hudi-py-foreign-"))
    (folder / "file").write_bytes(b"x")
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_missing_permission_says_what_to_do(foreign_folder):
    """Each writing verb is said in a word, names the path and the way out, and is not worth a retry."""
    storage = LocalStorage(foreign_folder)
    attempts = {
        "create": lambda: storage.create_new("new", b"x"),
        "create ": lambda: storage.create_new("new", b""),
        "replace": lambda: storage.replace("file", b"y"),
        "open": lambda: storage.open_write("new"),
        "delete": lambda: storage.delete("file"),
    }
    for verb, attempt in attempts.items():
        with pytest.raises(StorageError, match=f"^{verb.strip()} /.*give this user access") as caught:
            attempt()
        assert not caught.value.retryable
    failure = storage.delete_many(["file", "none"])
    assert isinstance(failure["file"], StorageFailure)
    assert "give this user access" in failure["file"].message
    assert failure["none"] is False
    assert storage.read("file") == b"x"


# ---------------------------------------------------------------------- folders and links


def test_folder_is_not_deleted_as_a_file(storage):
    """Delete refuses, delete_many reports, neither recurses."""
    storage.create_new("folder/file", b"x")
    with pytest.raises(StorageError, match="is a folder"):
        storage.delete("folder")
    (failure,) = storage.delete_many(["folder"]).values()
    assert isinstance(failure, StorageFailure)
    assert not failure.retryable
    with pytest.raises(AlreadyExists):
        storage.create_new("folder", b"x")
    assert files(storage) == {"folder/file"}


def test_folder_filled_while_it_is_deleted_goes_in_the_end(storage, monkeypatch):
    """A rival's file makes the first attempt fail; the next one takes it too."""
    storage.create_new("p/a", b"x")
    original, rounds = os.rmdir, []

    def rmdir(*arguments: object, **more: object) -> None:
        if not rounds:
            rounds.append(1)
            Path(storage.root, "p", "late").write_bytes(b"x")
        original(*arguments, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    storage.delete_folder("p")
    assert rounds
    assert storage.list("") == []


def test_emptied_folder_stays_until_deleted(storage):
    """As the capabilities say."""
    storage.create_new("p/a", b"x")
    storage.delete("p/a")
    assert [entry.name for entry in storage.list("")] == ["p"]
    storage.delete_folder("p")
    assert storage.list("") == []


def test_names_that_leave_no_room_for_a_suffix(storage):
    """The temporary file's name is shortened, the final one is not."""
    name = "n" * 250
    storage.create_new(name, b"x")
    storage.replace(name, b"y")
    assert files(storage) == {name}
    with pytest.raises(StorageError, match="too long"):
        storage.create_new("n" * 300, b"x")


def test_listing_without_details_does_not_ask_for_each_file(storage, monkeypatch):
    """30,000 names in a moment: no stat per name."""
    for name in ("a", "b", "c/d"):
        storage.create_new(name, b"")
    with os.scandir(storage.root) as found:
        real = list(found)

    class Item:
        def __init__(self, item: os.DirEntry[str]) -> None:
            self.name, self.is_dir, self.is_symlink = item.name, item.is_dir, item.is_symlink

    class Listing(list):
        def __enter__(self):
            return self

        def __exit__(self, *arguments: object) -> None: ...

    monkeypatch.setattr(os, "scandir", lambda path: Listing(Item(item) for item in real))
    assert {tuple(entry) for entry in storage.list("")} == {
        ("a", False, None, None), ("b", False, None, None), ("c", True, None, None),
    }  # fmt: skip


def test_root_is_absolute_and_never_a_url(tmp_path, monkeypatch):
    """A relative root is resolved once, so a later chdir does not move the table."""
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage("table/")
    assert storage.root == str(tmp_path / "table")
    assert pickle.loads(pickle.dumps(storage)).root == storage.root
    for bad in ("", "s3://bucket/x", "file:///x"):
        with pytest.raises(ConfigError):
            LocalStorage(bad)


def test_what_is_no_regular_file_has_no_size(tmp_path):
    """Folders, pipes and links to such are told apart from files; a link to a file is one, a dangling one is absent."""
    storage = LocalStorage(tmp_path)
    storage.replace("p/file", b"abc")
    os.mkfifo(tmp_path / "p/pipe")
    (tmp_path / "p/folder").mkdir()
    for name in ("file", "pipe", "folder", "nothing"):
        os.symlink(name, tmp_path / f"p/to {name}")
    found = storage.sizes("p", [f"{to}{name}" for name in ("file", "pipe", "folder", "nothing") for to in ("", "to ")])
    odd = {f"{to}{name}": NOT_REGULAR for name in ("pipe", "folder") for to in ("", "to ")}
    assert found == {"file": 3, "to file": 3, **odd}
    os.symlink("loop", tmp_path / "p/loop")
    with pytest.raises(StorageError, match=r"size .*/p"):
        storage.sizes("p", ["loop"])
