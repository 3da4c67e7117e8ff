"""
The last contents of ``hoodie.properties``, kept before each change: below ``.hoodie/.aux/hudi_py/properties``.

Nothing reads them to decide anything. They are for a person whose table has lost its properties, or whose properties
were changed by mistake.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final

from hudi_py.errors import AlreadyExists
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.instant_time import format_instant_time
from hudi_py.storage.base import Storage

FOLDER: Final = f"{OWN_FOLDER}/properties"
COPIES_MAX: Final = 10


def keep_copy(storage: Storage, content: bytes, now: datetime) -> None:
    """Keep *content*, which is about to be replaced at *now*, and forget the oldest copy if there are too many."""
    # The digest tells copies of one millisecond apart.
    name = f"{format_instant_time(now.astimezone(timezone.utc))}-{hashlib.sha256(content).hexdigest()[:8]}.properties"
    with suppress(AlreadyExists):
        storage.create_new(f"{FOLDER}/{name}", content)
    for path in copies(storage)[:-COPIES_MAX]:
        storage.delete(path)


def copies(storage: Storage) -> list[str]:
    """Paths of the copies, the oldest first; their names begin with the time in UTC at which they were replaced."""
    names = sorted(entry.name for entry in storage.list(FOLDER) if not entry.is_folder)
    return [f"{FOLDER}/{name}" for name in names if name.endswith(".properties")]


def newest_copy(storage: Storage) -> str:
    """Words for a message about damaged properties: where the newest copy is; nothing if there is none."""
    found = copies(storage)
    return f". What they were before the last change is in {storage.root}/{found[-1]}" if found else ""
