"""What a local disk is asked to make durable, and in which order."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from hudi_py.errors import HudiError
from hudi_py.storage.local import LocalStorage
from support.power_loss import Disk

PATHS = ["name", "new/folder/name"]
CONTENTS = [b"", b"data", b"d" * 200_000]


def stream(storage: LocalStorage, path: str, data: bytes) -> None:
    with storage.open_write(path) as sink:
        sink.write(data)


VERBS: dict[str, Callable[[LocalStorage, str, bytes], None]] = {
    "create_new": LocalStorage.create_new,
    "replace": LocalStorage.replace,
    "open_write": stream,
}


@pytest.fixture
def disk(tmp_path, monkeypatch) -> Disk:
    return Disk(monkeypatch, tmp_path)


@pytest.fixture
def storage(tmp_path) -> LocalStorage:
    """Its root is not there yet, nor is the folder above."""
    return LocalStorage(tmp_path / "lake" / "trips")


@pytest.fixture(params=[True, False], ids=["hard links", "no hard links"])
def _has_links(request, monkeypatch):
    """A file system with hard links, and one without."""

    def link(*arguments: object, **more: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not request.param:
        monkeypatch.setattr(os, "link", link)


@pytest.mark.usefixtures("_has_links")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("data", CONTENTS, ids=len)
@pytest.mark.parametrize("verb", VERBS)
def test_what_a_verb_has_written_outlives_a_power_loss(storage, disk, verb, data, path):
    """Data, name, and every folder on the way, the root's too; for a name that is there already as well."""
    VERBS[verb](storage, path, data)
    assert disk.lost() == set()
    assert storage.read(path) == data
    if verb != "create_new":
        VERBS[verb](storage, path, b"other data")
        assert disk.lost() == set()


@pytest.mark.usefixtures("_has_links")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verb", ["create_new", "replace"])
def test_no_name_appears_before_its_data_is_durable(storage, disk, verb, path):
    """Otherwise an instant could be there after a power loss, empty or torn, and with it a commit without its files."""
    appeared: list[str] = []
    torn: list[str] = []

    def look(names: set[str]) -> None:
        appeared.extend(names)
        torn.extend(disk.torn(names))

    disk.on_new_name = look
    VERBS[verb](storage, path, b"data")
    if verb == "replace":
        VERBS[verb](storage, path, b"more data")
    assert f"lake/trips/{path}" in appeared
    assert torn == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_synchronisation_that_fails_is_never_a_success(tmp_path, monkeypatch, verb):
    """Whichever of them it is: the disk has not confirmed the write, and the caller has to know."""
    original, calls = os.fsync, 0
    is_refused, failing = True, 0
    while is_refused:
        failing += 1
        calls = 0

        def fsync(descriptor: int, failing: int = failing) -> None:
            nonlocal calls
            calls += 1
            if calls == failing:
                raise OSError(errno.EIO, "Input/output error")
            original(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        try:
            VERBS[verb](LocalStorage(tmp_path / str(failing)), "new/name", b"data")
        except HudiError:
            continue
        is_refused = False
    assert calls == failing - 1 == 4  # the root, its folder, the data, the name
