"""A rehearsal behaves like the storage it stands for, and leaves that storage as it is."""

import random

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import AlreadyExists, ConfigError, NotFound, RefusedError
from hudi_py.runtime.clock import SystemClock
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.rehearsal import RehearsalStorage
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.txn.table_lock import table_lock

FILES = {"a/x": b"1", "a/y": b"2", "b/c/z": b"3", "top": b"4"}
FOLDERS = ("", "a", "b", "b/c", "b/deep", "q", "q/deep", "q/deep/a")


def outcome(call):
    try:
        return call()
    except (AlreadyExists, NotFound) as error:
        return type(error)


def change(storage, chance):
    """A random change; its result."""
    path = chance.choice([*FILES, "a/new", "b/new"])
    verb = chance.choice(
        ["create_new", "replace", "delete", "delete_many", "delete_folder", "open_write", "swap", "move_many"]
    )
    data = bytes([chance.randrange(256)])
    if verb in ("create_new", "replace"):
        return outcome(lambda: getattr(storage, verb)(path, data))
    if verb == "move_many":
        source, target = chance.choice([("a", "b"), ("a", "q/deep"), ("q/deep", "a"), ("", "q/deep"), ("q", "b/c")])
        return storage.move_many(["x", "y", "a/x", "deep/x", "new"], source, target)
    if verb == "open_write":
        with storage.open_write(path) as sink:
            sink.write(data)
        return None
    if verb == "swap":
        version = None if storage.size(path) is None else storage.read_version(path).version
        return storage.swap(path, data, version)
    if verb == "delete_folder":
        return storage.delete_folder(chance.choice(["a", "b/c"]))
    return storage.delete(path) if verb == "delete" else storage.delete_many([path])


def seen(storage):
    listed = {folder: sorted(e for e in storage.list(folder, details=False) if not e.is_folder) for folder in FOLDERS}
    paths = [*FILES, "a/new", "b/new", "b/x", "b/deep/x", "q/deep/x", "q/deep/a/x", "b/c/deep/x"]
    sizes = {folder: {e.name: e.size_bytes for e in storage.list(folder, details=True)} for folder in FOLDERS}
    return (
        listed,
        {folder: {name: size for name, size in found.items() if size is not None} for folder, found in sizes.items()},
        {p: (storage.size(p), outcome(lambda p=p: storage.read(p))) for p in paths},
        storage.sizes("a", ["x", "new"]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_rehearsal_equals_the_storage_and_leaves_it_alone(seed):
    """Any changes: the same results and the same contents, and not a byte of the table changes."""
    inner, twin = MemoryStorage.from_files(FILES), MemoryStorage.from_files(FILES)
    rehearsal = RehearsalStorage(inner)
    for step in range(30):
        state = f"{seed}/{step}"
        assert change(rehearsal, random.Random(state)) == change(twin, random.Random(state)), state
        assert seen(rehearsal) == seen(twin), state
    assert inner.files() == MemoryStorage.from_files(FILES).files()


def test_files_that_are_moved_are_not_read():
    """They may be large; their content is where it was, their place in the listing is the new one."""
    inner = RecordingStorage(MemoryStorage.from_files({"a/x": b"1", "a/y": b"2"}))
    rehearsal = RehearsalStorage(inner)
    assert rehearsal.move_many(["x", "z"], "a", "q/1") == {"x": True, "z": False}
    assert [entry.name for entry in rehearsal.list("q")] == ["1"]
    (moved,) = rehearsal.list("q/1", details=True)
    assert moved == inner.list("a", details=["x"])[0]
    assert not [verb for verb, _ in inner.calls if verb in ("read", "open_read")]
    assert (rehearsal.read("q/1/x"), rehearsal.sizes("q/1", ["x"])) == (b"1", {"x": 1})
    rehearsal.delete_folder("q")
    assert (rehearsal.list("q"), rehearsal.list("q/1"), rehearsal.size("q/1/x")) == ([], [], None)


def test_what_would_fill_the_memory_is_refused_by_name():
    """All files together; small ones go on."""
    rehearsal = RehearsalStorage(MemoryStorage.from_files(FILES), bytes_max=10)
    with rehearsal.open_write("a/data") as sink:
        sink.write(b"1234")
    assert (rehearsal.read("a/data"), rehearsal.too_large) == (b"1234", [])
    with pytest.raises(RefusedError, match="a/large"), rehearsal.open_write("a/large") as sink:
        sink.write(b"1234")
        sink.write(memoryview(b"5678901"))
    assert rehearsal.too_large == ["a/large"]
    rehearsal.replace("a/small", b"12345678901")
    assert rehearsal.size("a/small") == 11


def test_a_lock_is_rehearsed_too():
    """It is taken for free, and nobody is kept out by it; a provider that nobody knows is refused."""
    settings = Settings(
        {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
    )
    inner = MemoryStorage.from_files(FILES)
    held = table_lock(inner, settings, SystemClock())
    with held.held("a write"), table_lock(RehearsalStorage(inner), settings, SystemClock()).held("a dry run") as _:
        pass
    unknown = table_lock(RehearsalStorage(inner), Settings({"hoodie.write.lock.provider": "no.such"}), SystemClock())
    with pytest.raises(ConfigError), unknown.held("a dry run"):
        pytest.fail("it was taken")


def test_rehearsal_can_do_no_more_than_the_storage(tmp_path):
    """A lock that needs conditional writes is refused in a rehearsal, too, where the storage has none."""
    inner = LocalStorage(tmp_path)
    assert not inner.capabilities.conditional_replace
    assert not RehearsalStorage(inner).capabilities.conditional_replace
