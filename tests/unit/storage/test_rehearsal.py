"""A rehearsal behaves like the storage it stands for, and leaves that storage as it is."""

import random

import pytest

from hudi_py.errors import AlreadyExists, NotFound
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.rehearsal import RehearsalStorage

FILES = {"a/x": b"1", "a/y": b"2", "b/c/z": b"3", "top": b"4"}
FOLDERS = ("", "a", "b", "b/c")


def outcome(call):
    try:
        return call()
    except (AlreadyExists, NotFound) as error:
        return type(error)


def change(storage, chance):
    """A random change; its result."""
    path = chance.choice([*FILES, "a/new", "b/new"])
    verb = chance.choice(["create_new", "replace", "delete", "delete_many", "delete_folder", "open_write", "swap"])
    data = bytes([chance.randrange(256)])
    if verb in ("create_new", "replace"):
        return outcome(lambda: getattr(storage, verb)(path, data))
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
    paths = [*FILES, "a/new", "b/new"]
    return (
        listed,
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


def test_rehearsal_can_do_no_more_than_the_storage(tmp_path):
    """A lock that needs conditional writes is refused in a rehearsal, too, where the storage has none."""
    inner = LocalStorage(tmp_path)
    assert not inner.capabilities.conditional_replace
    assert not RehearsalStorage(inner).capabilities.conditional_replace
