"""
The leases of a table: one small file for each, below ``.hoodie/.aux/hudi_py/leases``, which Apache Hudi does not read.

Everything that deletes files of rows asks `LeaseFolder.in_force` right before: a lease appears between two listings of
the timeline without changing it. A file that does not decode stops deletion, because it is unknown what its reader
needs.

What a crash leaves: a lease that nobody renews. It counts until it expires, and is deleted when a clean plans next.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import attrs

from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, NotFound
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.lease import Lease, check_id, decode_lease, encode_lease, iso
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage

FOLDER: Final = f"{OWN_FOLDER}/leases"
_ENDING: Final = ".json"


@attrs.frozen
class LeaseFolder:
    """
    Args:
        storage: The table's storage.
        clock: Decides which leases have expired.
        is_ignored: Whether deletions go on in spite of leases (``hoodie_py.leases.ignored``); it is logged who is hurt.
    """

    storage: Storage
    clock: Clock
    is_ignored: bool = False

    def all(self) -> tuple[Lease, ...]:
        """
        Every lease, expired ones too, in the order in which they were taken.

        Raises:
            CorruptMetadata: One does not decode.
        """
        found = []
        for entry in self.storage.list(FOLDER):
            path = f"{FOLDER}/{entry.name}"
            if entry.is_folder or not entry.name.endswith(_ENDING):
                raise CorruptMetadata(
                    f"{self.storage.root}/{path} is not a lease, so it is unknown whether a reader needs files: "
                    "nothing was deleted; remove it if nothing uses it"
                )
            try:
                found.append(decode_lease(self.storage.read(path), f"{self.storage.root}/{path}"))
            except NotFound:  # released since the folder was listed
                continue
        return tuple(sorted(found, key=lambda each: (each.created, each.id)))

    def damaged(self) -> Iterator[tuple[str, str]]:
        """Yield the path of each file that is not a lease or does not decode, with what is wrong."""
        for entry in self.storage.list(FOLDER):
            path = f"{FOLDER}/{entry.name}"
            if entry.is_folder or not entry.name.endswith(_ENDING):
                yield path, "it is not a lease"
                continue
            try:
                decode_lease(self.storage.read(path), f"{self.storage.root}/{path}")
            except NotFound:  # released since the folder was listed
                continue
            except CorruptMetadata as error:
                yield path, str(error)

    def in_force(self) -> tuple[Lease, ...]:
        """
        The leases that deletions honour: all but those that are expired on every machine's clock.

        Raises:
            CorruptMetadata: One does not decode; nothing may be deleted.
        """
        now = self.clock.now()
        try:
            found = tuple(each for each in self.all() if not each.is_dead(now))
        except CorruptMetadata as error:
            if not self.is_ignored:
                raise
            log.warning("lease.unreadable.ignored", why=str(error))
            return ()
        if self.is_ignored:
            for each in found:
                log.warning("lease.ignored", lease=each.id, holder=each.holder, instant=each.instant)
            return ()
        return found

    def create(self, lease: Lease) -> None:
        """
        Store a lease.

        Raises:
            AlreadyExists: There is one with this id.
            OutcomeUnknown: It may be stored or not.
        """
        self.storage.create_new(_path(lease.id), encode_lease(lease))

    def find(self, id_: str) -> Lease | None:
        """
        The lease with this id; None if there is none.

        Raises:
            CorruptMetadata: It does not decode.
        """
        path = _path(check_id(id_))
        try:
            return decode_lease(self.storage.read(path), f"{self.storage.root}/{path}")
        except NotFound:
            return None

    def beside(self, id_: str) -> tuple[Lease, ...]:
        """
        The leases whose ids are that one and more behind a dot.

        Raises:
            CorruptMetadata: One does not decode.
        """
        names = (entry.name.removesuffix(_ENDING) for entry in self.storage.list(FOLDER))
        found = (self.find(name) for name in names if name.startswith(f"{check_id(id_)}."))
        return tuple(each for each in found if each is not None)  # released since the folder was listed

    def put(self, lease: Lease) -> None:
        """Store a lease in the place of the one with its id, if there is one."""
        self.storage.replace(_path(lease.id), encode_lease(lease))

    def renew(self, id_: str, expires: datetime) -> Lease:
        """
        Let a lease last until another time.

        Args:
            id_: Its id.
            expires: With a time zone; a lease is never shortened.

        Returns:
            The lease as it is stored now.

        Raises:
            ConfigError: There is no such lease.
            ConflictError: It has expired, or another process changed it at the same time.
            CorruptMetadata: It does not decode.
        """
        path = _path(check_id(id_))
        is_conditional = self.storage.capabilities.conditional_replace
        try:
            content, version = self.storage.read_version(path) if is_conditional else (self.storage.read(path), "")
        except NotFound as error:
            raise ConfigError(
                f"{self.storage.root} has no lease {id_}: it was released, or expired and deleted; take a new one"
            ) from error
        lease = decode_lease(content, f"{self.storage.root}/{path}")
        # A clean may have deleted files since, so a lease cannot be brought back to life.
        if not lease.is_usable(self.clock.now()):
            raise ConflictError(
                f"{self.storage.root}: {lease} has expired, and files that it kept may be deleted; take a new one"
            )
        renewed = attrs.evolve(lease, expires=max(lease.expires, expires))
        if not is_conditional:
            self.storage.replace(path, encode_lease(renewed))
        elif self.storage.swap(path, encode_lease(renewed), version) is None:
            raise ConflictError(f"{self.storage.root}: lease {id_} was released or renewed by another process")
        # The process may have slept while it wrote, for so long that others took the lease for dead.
        if lease.is_dead(self.clock.now()):
            self.release(id_)
            raise ConflictError(
                f"{self.storage.root}: lease {id_} expired at {iso(lease.expires)}, before it was renewed; take a "
                "new one"
            )
        return renewed

    def release(self, id_: str) -> bool:
        """Delete a lease; False if there was none. One that does not decode is deleted, too."""
        return self.storage.delete(_path(check_id(id_)))

    def dead(self) -> tuple[Lease, ...]:
        """The leases that are expired on every machine's clock; none of them if one is damaged."""
        now = self.clock.now()
        try:
            return tuple(each for each in self.all() if each.is_dead(now))
        except CorruptMetadata as error:
            log.warning("lease.unreadable", why=str(error))
            return ()

    def purge(self) -> tuple[Lease, ...]:
        """
        Delete the dead leases; returns them. If one is damaged, all stay.

        Under the table's lock, as whatever stores a lease: the progress of a consumer that comes back has the name of
        its dead one.
        """
        dead = self.dead()
        for each in dead:
            self.storage.delete(_path(each.id))
            log.info("lease.expired", lease=each.id, holder=each.holder, expired=iso(each.expires))
        return dead


def _path(id_: str) -> str:
    return f"{FOLDER}/{id_}{_ENDING}"
