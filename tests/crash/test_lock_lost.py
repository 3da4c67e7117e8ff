"""The lock expires while it is held: whatever its holder then meets is told as a conflict, and the write done again."""

from __future__ import annotations

import contextlib
from contextvars import Context
from unittest import mock

import pytest

from hudi_py.errors import ConflictError, ServiceFailed
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.txn.beginners import Beginners
from support import writes
from support.many_writers import SEVERAL, contents, rows, service

LOCK = ".hoodie/lock"
METADATA = {"hoodie.metadata.enable": True}
INDEXED = {**METADATA, "hoodie.metadata.record.index.enable": True, "hoodie.index.type": "RECORD_INDEX"}


class Thief(DelegatingStorage):
    """Before the *n*-th call that changes something while the lock is held, another writer takes it over and writes."""

    def __init__(self, inner, n):
        super().__init__(inner)
        self.n = n

    def _around(self, verb, paths, call):
        if verb in ("create_new", "replace", "delete") and self.inner.size(LOCK) is not None:
            self.n -= 1
            if self.n == 0:
                self.inner.delete(LOCK)  # its age is over
                # It would wait for one that is only requested, until that goes on.
                with mock.patch.object(Beginners, "of", return_value=None):
                    Context().run(self.goes_on)
        return call()

    def goes_on(self):
        service(self.inner, **METADATA).write(rows(("a", "eu", 5)), "UPSERT")


class Heir(Thief):
    """As `Thief`; the holder has been stopped for so long that it is taken for dead, too, and rolled back."""

    def goes_on(self):
        opened = writes.open_table(self.inner, **SEVERAL, **INDEXED)
        for each in opened.timeline.writes.pending():
            self.inner.delete(f".hoodie/.heartbeat/{each.requested_time}")
        opened.rollback_failed_writes()
        service(self.inner, **INDEXED).write(rows(("a", "eu", 5)), "UPSERT")


@pytest.mark.parametrize("version", [6, 9])
def test_whatever_a_writer_without_its_lock_meets_it_writes_again(version):
    """Its rows are there once and those of the other one, nothing is left, and no file of the other is damaged."""
    start = writes.create_table(version)
    writes.upsert(start, writes.OLD, **METADATA)
    number = 0
    while True:
        number += 1
        thief = Thief(start.copy(), number)
        try:
            service(thief, **METADATA).write(rows(("n", "us", 7)), "UPSERT")
        except (ConflictError, ServiceFailed) as error:
            assert isinstance(error, ServiceFailed) == (("us", "n", 7) in contents(thief.inner)), number
            assert isinstance(error, ServiceFailed), number
        if thief.n > 0:
            break
        assert contents(thief.inner) == [("eu", "a", 5), ("us", "b", 1), ("us", "n", 7)], number
        assert not [each for each in writes.open_table(thief.inner).check() if each.severity.name == "ERROR"], number
    assert number > 10


@pytest.mark.parametrize(("version", "operation"), [(6, "UPSERT"), (8, "INSERT"), (9, "UPSERT")])
def test_a_writer_that_was_rolled_back_in_its_sleep_leaves_nothing_in_the_indexes(version, operation):
    """What it records there would count as if its commit were archived: files that are gone, keys in groups of none."""
    start = writes.create_table(version)
    writes.upsert(start, writes.OLD, **INDEXED)
    number = 0
    while True:
        number += 1
        heir = Heir(start.copy(), number)
        with contextlib.suppress(ServiceFailed):  # it is completed
            service(heir, **INDEXED).write(rows(("n", "us", 7)), operation)
        if heir.n > 0:
            break
        # By the index, which says where the key is.
        service(heir.inner, **INDEXED).write(rows(("n", "us", 8)), "UPSERT")
        assert contents(heir.inner) == [("eu", "a", 5), ("us", "b", 1), ("us", "n", 8)], number
        assert not [each for each in writes.open_table(heir.inner).check() if each.severity.name == "ERROR"], number
    assert number > 10
