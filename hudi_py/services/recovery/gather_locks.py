"""
Reads the locks inside a table: which process may still hold them, and when any other may take them.

Two of Hudi's providers keep a file there. That of `FileSystemBasedLockProvider` is held as long as it exists, unless
an age is set from which on it is not, or hudi_py made it and that process has ended. That of
`StorageBasedLockProvider` says until when it is valid, and its owner renews it; released, it stays.

Source: rules/table-services F.1.
"""

from __future__ import annotations

from typing import Final

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import NotFound
from hudi_py.services.recovery.facts import Lock
from hudi_py.services.recovery.finding import seconds
from hudi_py.storage.base import Storage
from hudi_py.txn.file_lock import is_left_behind
from hudi_py.txn.lease_lock import TABLE_LOCK, parse_lease

CLOCKS_MS_MAX: Final = 60_000
"""How far the clocks of two machines may be apart; Hudi itself allows for half a second."""
_VALIDITY_MS_MAX: Final = 86_400_000
"""Hudi's default is five minutes, renewed every half minute; nobody sets a day."""
_SHOWN_MAX: Final = 200


def gather_locks(storage: Storage, settings: Settings, *, now_ms: int) -> tuple[Lock, ...]:
    """Every lock that is not released; locks outside of the table are left out, for other tables may share them."""
    found = (_file_lock(storage, settings, now_ms), _table_lock(storage, now_ms))
    return tuple(each for each in found if each is not None)


def _file_lock(storage: Storage, settings: Settings, now_ms: int) -> Lock | None:
    folder = _lock_folder(storage, settings)
    entries = () if folder is None else storage.list(folder, details=True)
    for entry in entries:
        if entry.name != "lock" or entry.is_folder:
            continue
        path = f"{folder}/lock"
        # An unknown age counts as none: no lock may expire by a guess.
        age_ms = 0 if entry.modified_ms is None else now_ms - entry.modified_ms
        expiry_ms = settings[keys.LOCK_FILE_EXPIRE_MINUTES] * 60_000
        # By the setting of this call; 0 is the default and means that a lock never expires (F.1).
        if expiry_ms and age_ms > expiry_ms:
            return Lock(path, (f"it is {seconds(age_ms)} old and expires after {seconds(expiry_ms)}",), is_expired=True)
        content = _content(storage, path)
        if is_left_behind(content):
            return Lock(path, ("the process that held it has ended", _owner(content)), is_expired=True)
        return Lock(
            path,
            (f"it is {seconds(age_ms)} old", _owner(content)),
            way_out="if no writer is running, delete it, or set hoodie.write.lock.filesystem.expire (minutes)",
        )
    return None


def _lock_folder(storage: Storage, settings: Settings) -> str | None:
    given = settings[keys.LOCK_FILE_FOLDER].rstrip("/")
    if not given:
        return ".hoodie"
    return given.removeprefix(storage.root + "/") if given.startswith(storage.root + "/") else None


def _content(storage: Storage, path: str) -> bytes:
    try:
        return storage.read(path)
    except NotFound:
        # Released since the folder was listed.
        return b""


def _owner(content: bytes) -> str:
    shown = " ".join(content.decode(errors="replace").split())[:_SHOWN_MAX]
    return f"the file names its owner: {shown}" if shown else "the file does not name its owner"


def _table_lock(storage: Storage, now_ms: int) -> Lock | None:
    try:
        data = storage.read(TABLE_LOCK)
    except NotFound:
        return None
    lease = parse_lease(data)
    if lease is None:
        return Lock(
            TABLE_LOCK,
            ("it does not parse, so its expiry is unknown, and writers wait for it",),
            way_out="if no writer is running, delete it",
        )
    if lease.is_released:
        return None
    left_ms = lease.valid_until_ms - now_ms
    owner = f"its owner is {lease.owner}"
    # A minute more than Hudi allows for clocks: deleting a lock that is in use costs rows.
    if left_ms < -CLOCKS_MS_MAX:
        over = f"it expired {seconds(-left_ms)} ago, and a running owner renews it long before that"
        return Lock(TABLE_LOCK, (owner, over), is_expired=True)
    if left_ms > _VALIDITY_MS_MAX:
        return Lock(
            TABLE_LOCK,
            (owner, f"it is valid for {seconds(left_ms)} more, which no owner asks for: some clock was wrong"),
            way_out="if no writer is running, delete it",
        )
    valid = f"it is valid for {seconds(left_ms)} more" if left_ms > 0 else f"it expired {seconds(-left_ms)} ago"
    return Lock(TABLE_LOCK, (owner, f"{valid}; if its owner has ended, it expires, and the next writer takes it over"))
