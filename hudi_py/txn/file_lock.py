"""
The lock of Hudi's ``FileSystemBasedLockProvider``: a file ``lock`` that exists as long as it is held.

It is created complete, and never replaces another one. It counts as left behind if it is older than the configured age
(``hoodie.write.lock.filesystem.expire``), or if it is of hudi_py and its process is proven to have ended. Then it is
taken over, by only one of several processes: the one that creates the claim for exactly this file.

A release that fails is tried again. If the file stays, the process that held it takes it over at its own next attempt;
so it does with a file that an attempt left which ended with an error.

What a crash leaves: the lock, which processes on the same machine take over at once, and others when it expires or was
removed by hand or by recovery; or a claim, which is left behind in the same cases as a lock and then keeps nobody out.

Hudi is less careful: it removes the file when it gives up or closes, even if another process holds it, and on a local
disk it checks before it creates, so it empties a lock that appeared in between. So holders call `FileLock.is_ours` in
the call that makes an instant complete.

Source: rules/table-services F.1; Hudi 0.15.0 to 1.1.1 ``FileSystemBasedLockProvider``, ``LockInfo``.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from contextlib import suppress
from typing import Final, NamedTuple

from hudi_py.errors import AlreadyExists, NotFound, OutcomeUnknown, StorageError
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.json_document import parse_json
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.storage.base import Storage
from hudi_py.txn.process import is_gone, this_process

NAME: Final = "lock"
_CLAIMS: Final = f"{OWN_FOLDER.partition('/')[2]}/lock"
_SHOWN_MAX: Final = 200
_RELEASES_MAX: Final = 3
_given_up: Final[set[bytes]] = set()
"""Contents of locks, unique to each, that this process no longer holds and whose files it could not delete."""


class _Seen(NamedTuple):
    """The lock as it was found."""

    content: bytes
    modified_ms: int | None


class FileLock:
    """
    Args:
        storage: Storage of the file.
        folder: Its folder; ``""`` for the root.
        expire_ms: Age at which the file counts as left behind; 0 for never.
        clock: Tells that age.
        randomness: Makes the content of the file unique.
    """

    def __init__(
        self, storage: Storage, folder: str, expire_ms: int, clock: Clock, randomness: Randomness = MACHINE
    ) -> None:
        self._storage, self._clock, self._expire_ms, self._randomness = storage, clock, expire_ms, randomness
        self._folder = folder
        self._path = f"{folder}/{NAME}" if folder else NAME
        self._content = b""

    def is_in(self, storage: Storage) -> bool:
        """Whether the file lies in *storage*."""
        return self._storage is storage

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`."""
        self._content = self._described(purpose)
        try:
            return self._create() or self._take_over()
        except BaseException:
            # Nobody will hold it, so nobody would release it either; the file may be there all the same.
            try:
                with suppress(StorageError, OutcomeUnknown):
                    if self.is_ours():
                        self._storage.delete(self._path)
            finally:
                # After the deletion: a thread of this process could take it over between look and deletion.
                _given_up.add(self._content)
            raise

    def release(self) -> None:
        """See `LockProvider`."""
        try:
            for left in reversed(range(_RELEASES_MAX)):
                try:
                    # Never deleted unread: after a take-over the file is the lock of another process.
                    if self.is_ours():
                        self._storage.delete(self._path)
                    elif left + 1 == _RELEASES_MAX:  # else it was deleted, and only the answer was lost
                        log.warning("lock.lost", path=f"{self._storage.root}/{self._path}")
                    return
                except StorageError as error:
                    if not (error.retryable and left):
                        raise
        except BaseException:
            # This process lives on, so to all others the lock is held; but it is free for its own next attempt.
            _given_up.add(self._content)
            raise

    def is_ours(self) -> bool:
        """See `LockProvider`."""
        try:
            return self._storage.read(self._path) == self._content
        except NotFound:
            return False

    def is_held(self) -> bool:
        """Whether anybody holds it; not if it is left behind."""
        seen = self._read()
        return seen is not None and not self._is_left_behind(seen)

    def holder(self) -> str:
        """See `LockProvider`."""
        where = f"{self._storage.root}/{self._path}"
        seen = self._read()
        if seen is None:
            return f"{where} was released just now"
        age = "" if seen.modified_ms is None else f", {max(0, self._now_ms() - seen.modified_ms) // 1000} s old,"
        return f"{where}{age} is another writer's lock ({_owner(seen.content)})"

    def age_ms(self) -> int:
        """For how long the file has been there; 0 if it is gone, or its storage does not tell."""
        seen = self._read()
        return 0 if seen is None or seen.modified_ms is None else self._now_ms() - seen.modified_ms

    def _create(self) -> bool:
        try:
            self._storage.create_new(self._path, self._content)
        except AlreadyExists:
            return self.is_ours()  # a repeated request may find the file that the first one created
        except (StorageError, OutcomeUnknown):  # the file may exist although its creation was reported as failed
            if not self.is_ours():
                raise
        return True

    def _take_over(self) -> bool:
        """
        Replace a lock that is left behind.

        The claim is created before the last look at the lock, and deleted after the new lock exists. So a process that
        has the claim and still sees the old lock is the only one that removes it.
        """
        seen = self._read()
        if seen is None:
            return self._create()
        if not self._is_left_behind(seen):
            return False
        # The claim is for this lock and no later one: its content is unique, and so is its name.
        digest = hashlib.sha256(b"%d %s" % (seen.modified_ms or 0, seen.content)).hexdigest()[:32]
        claims = self._claims()
        # Claims on the same lock, of any process.
        same = {name for name in claims if name.startswith(digest)}
        if not all(claims[name] for name in same):  # another process has a valid one, and replaces the lock now
            return False
        # A claim that a crash left keeps its name taken until it is deleted; the next claim gets the next number.
        claim = f"{digest}-{len(same)}"
        try:
            try:
                self._storage.create_new(self._claim(claim), self._content)
            except AlreadyExists:
                return False
            # Looked at again, for a claim may have been deleted since, and then two processes count differently.
            if not all(
                is_left for name, is_left in self._claims().items() if name.startswith(digest) and name != claim
            ):
                self._storage.delete(self._claim(claim))
                return False
            is_acquired = False
            if self._read() == seen:  # otherwise another process has replaced it since, and that lock is valid
                log.warning("lock.taken_over", path=f"{self._storage.root}/{self._path}", holder=_owner(seen.content))
                self._storage.delete(self._path)
                is_acquired = self._create()
        except BaseException:
            # It would keep others out as long as this process lives. Those left behind stay: the old lock may, too.
            with suppress(StorageError):
                self._delete_claim(claim)
            raise
        for name in {*(name for name, is_left in claims.items() if is_left), claim}:
            self._storage.delete(self._claim(name))
        return is_acquired

    def _claims(self) -> dict[str, bool]:
        """Whether each claim is left behind, by name."""
        found = {}
        for entry in self._storage.list(self._claim("").rstrip("/"), details=True):
            with suppress(NotFound):
                content = self._storage.read(self._claim(entry.name))
                found[entry.name] = self._is_left_behind(_Seen(content, entry.modified_ms))
        return found

    def _delete_claim(self, name: str) -> None:
        """Delete a claim of this attempt; one of the same name may be of another process."""
        with suppress(NotFound):
            if self._storage.read(self._claim(name)) == self._content:
                self._storage.delete(self._claim(name))

    def _read(self) -> _Seen | None:
        entry = next((e for e in self._storage.list(self._folder, details=True) if e.name == NAME), None)
        if entry is None:
            return None
        try:
            return _Seen(self._storage.read(self._path), entry.modified_ms)
        except NotFound:
            return None

    def _is_left_behind(self, seen: _Seen) -> bool:
        return (
            seen.content in _given_up or self._is_older_than_allowed(seen.modified_ms) or is_left_behind(seen.content)
        )

    def _is_older_than_allowed(self, modified_ms: int | None) -> bool:
        return bool(self._expire_ms) and modified_ms is not None and self._now_ms() - modified_ms > self._expire_ms

    def _claim(self, name: str) -> str:
        return f"{self._folder}/{_CLAIMS}/{name}" if self._folder else f"{_CLAIMS}/{name}"

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _described(self, purpose: str) -> bytes:
        """
        Content of the file, in the form of Hudi's ``LockInfo``, with a unique name.

        Hudi leaves its own files empty, but prints what others wrote in its log.
        """
        moment = self._clock.now().astimezone()
        created = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
        name = f"hudi_py {purpose} {new_uuid(self._randomness)}"
        # First the name that `is_left_behind` reads, then the same for people.
        who = [this_process(), f"hudi_py on {socket.gethostname()} (process:{os.getpid()})"]
        stack = ", ".join(json.dumps(line) for line in who if line)
        text = (
            f'{{\n  "lockCreateTime" : {json.dumps(created)},\n  "lockThreadName" : {json.dumps(name)},\n'
            f'  "lockStacksInfo" : [ {stack} ]\n}}'
        )
        return text.encode()


def is_left_behind(content: bytes) -> bool:
    """Whether hudi_py wrote the lock and its process is proven to have ended; Hudi's locks name no process."""
    try:
        return is_gone(str(parse_json(content)["lockStacksInfo"][0]))
    except (ValueError, KeyError, IndexError, TypeError):
        return False


def _owner(content: bytes) -> str:
    """The owner of a lock file in one line."""
    try:
        found = parse_json(content)
        owner = f"since {found['lockCreateTime']} by {found['lockThreadName']}, {found['lockStacksInfo'][-1]}"
    except (ValueError, KeyError, IndexError, TypeError):
        owner = " ".join(content.decode(errors="replace").split())
    return owner[:_SHOWN_MAX] or "it does not name its owner"
