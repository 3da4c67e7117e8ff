"""Backends of fsspec without a proven conditional create: readable and deletable, but no place to start a commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound, StorageError
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.factory import open_storage
from hudi_py.storage.remote import RemoteStorage

fsspec = pytest.importorskip("fsspec", reason="needs fsspec")


@pytest.fixture
def storage() -> Iterator[RemoteStorage]:
    found = open_storage("memory://tables/trips")
    assert isinstance(found, RemoteStorage)
    yield found
    fsspec.filesystem("memory").rm("/tables", recursive=True)


def test_creation_is_refused_without_proof(storage):
    """Testing first and writing then would let two writers win."""
    storage.replace("other", b"x")
    assert not storage.capabilities.atomic_create
    with pytest.raises(StorageError, match="not proven for memory://"):
        storage.create_new("a", b"x")
    assert [entry.name for entry in storage.list("")] == ["other"]


def test_conditional_replacement_is_refused_without_proof(storage):
    """The lock that needs it has to be refused as well."""
    storage.replace("a", b"x")
    assert not storage.capabilities.conditional_replace
    with pytest.raises(ConfigError, match="nothing was changed"):
        storage.swap("a", b"y", storage.read_version("a").version)
    assert storage.read("a") == b"x"


def test_no_more_than_the_bound_is_read_at_once(storage):
    """The size is asked anyway; a larger file is refused before its content is taken."""
    bounded = open_storage("memory://tables/trips", read_bytes_max=10)
    storage.replace("just", bytes(10))
    storage.replace("more", bytes(11))
    assert len(bounded.read("just")) == len(bounded.read_version("just").content) == 10
    for read in (bounded.read, bounded.read_version):
        with pytest.raises(CorruptMetadata, match=r"trips/more: 11 bytes, .*hoodie_py\.read\.max\.bytes"):
            read("more")
    with bounded.open_read("more") as stream:
        assert len(stream.read()) == 11, "data files are read by ranges"


def test_the_other_verbs_work(storage):
    """Writing, reading, listing with details, deleting: as the protocol says."""
    storage.replace("p=1/a", b"123")
    with storage.open_write("p=1/b c") as stream:
        stream.write(b"45")
    assert storage.read("p=1/b c") == b"45"
    assert storage.open_read("p=1/a").read() == b"123"
    assert storage.size("p=1/a") == 3
    assert storage.size("p=1") is storage.size("none") is None
    assert {(entry.name, entry.size_bytes) for entry in storage.list("p=1", details=True)} == {("a", 3), ("b c", 2)}
    assert storage.list("none") == storage.list("p=1/a") == []
    with pytest.raises(NotFound):
        storage.read("none")
    with pytest.raises(StorageError, match="is a folder"):
        storage.delete("p=1")
    outcome = storage.delete_many(["p=1/a", "none", "p=1"])
    assert (outcome["p=1/a"], outcome["none"]) == (True, False)
    assert isinstance(outcome["p=1"], StorageFailure)
    assert storage.delete("p=1/b c") is True


def test_folder_with_a_pattern_for_a_name_takes_no_others_along(storage):
    """Fsspec's recursive removal would expand it."""
    for path in ("a*/x/y", "ab/x", "a"):
        storage.replace(path, b"")
    for _ in range(2):
        storage.delete_folder("a*")
        assert {entry.name for entry in storage.list("")} == {"ab", "a"}


def test_options_that_the_library_does_not_take(monkeypatch):
    """Named as what they are: a setting to fix, without the secret in it."""

    def refuse(*arguments: object, **options: object) -> None:
        raise TypeError(f"unexpected {options}")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "__init__", refuse)
    with pytest.raises(ConfigError, match="check the storage options") as caught:
        open_storage("memory://x/y", {"password": "hunter22"}).list("")
    assert "hunter22" not in str(caught.value)
