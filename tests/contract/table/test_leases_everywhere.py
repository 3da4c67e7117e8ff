"""Leases on each storage: taken, renewed, honoured by a clean, released; two that change one at the same time."""

from datetime import timedelta
from uuid import uuid4

import pytest

from hudi_py.errors import ConfigError, ConflictError
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.tables import TableBuilder, at


@pytest.fixture(params=["memory", "local", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.slow])])
def storage(request, tmp_path):
    """An empty folder on each kind of storage."""
    if request.param == "memory":
        return MemoryStorage("/lake/copy")
    if request.param == "local":
        return LocalStorage(str(tmp_path / "t"))
    from hudi_py.storage.remote import RemoteStorage

    return RemoteStorage(f"s3://contract/{uuid4()}", request.getfixturevalue("s3_options"))


def test_a_lease_lives_and_is_honoured(storage):
    """Its clean keeps what it shows; once it is released, the next one deletes that, and nobody can renew it."""
    builder = filled(storage, 4)
    table = Table(storage, clock=builder.clock)
    lease = table.take_lease(ttl="1h", at=at(1), holder="a test")
    builder.clock.move(timedelta(minutes=30))
    renewed = table.renew_lease(lease.id, "1h")
    assert (renewed,) == table.leases()
    assert lease.expires + timedelta(minutes=30) == renewed.expires
    table.clean(commits_retained=1)
    assert {base.instant_time for _, base in table.as_of(at(1)).base_files()} == {at(1)}
    assert names(storage) == [TableBuilder.base_name("a", at(number)) for number in (1, 3, 4)]
    assert table.release_lease(lease.id)
    with pytest.raises(ConfigError, match="has no lease"):
        table.renew_lease(lease.id, "1h")
    builder.commit(at(5), {"r0": ["a"]})
    copied(builder, storage, 5)
    Table(storage, clock=builder.clock).clean(commits_retained=1)
    assert names(storage) == [TableBuilder.base_name("a", at(number)) for number in (4, 5)]


def test_a_renewal_does_not_bring_back_what_was_released_meanwhile(storage):
    """Where the storage replaces conditionally; on a local disk such a lease lasts until it expires."""
    builder = filled(storage, 1)
    lease = Table(storage, clock=builder.clock).take_lease(ttl="1h", holder="a test")

    class Released(DelegatingStorage):
        def swap(self, path, data, version):
            assert Table(storage, clock=builder.clock).release_lease(lease.id)
            return super().swap(path, data, version)

    if not storage.capabilities.conditional_replace:
        pytest.skip("this storage replaces without condition")
    with pytest.raises(ConflictError, match="released or renewed"):
        Table(Released(storage), clock=builder.clock).renew_lease(lease.id, "1h")
    assert Table(storage).leases() == ()


def filled(storage, commits):
    """A table with one group, written by each commit."""
    builder = TableBuilder()
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["a"]})
    copied(builder, storage)
    return builder


def copied(builder, storage, *numbers):
    """Put files of the builder there: all, or those of some commits."""
    for path, data in builder.storage.files().items():
        if not numbers or any(at(number) in path for number in numbers):
            storage.replace(path, data)


def names(storage):
    """Names of the data files, in order of time."""
    return sorted(entry.name for entry in storage.list("r0") if entry.name.endswith(".parquet"))
