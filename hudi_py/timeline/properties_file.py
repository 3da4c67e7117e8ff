"""
``.hoodie/hoodie.properties`` on storage: reading, creating, and rewriting it so that a crash loses nothing.

Source: rules/timeline 1.1 to 1.4; Hudi ``HoodieTableConfig.modify``, ``ConfigUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Final

from hudi_py.config.table import TableConfig, table_config
from hudi_py.errors import AlreadyExists, ConflictError, CorruptMetadata, NotFound, TableNotFound
from hudi_py.formats.properties import checksum, format_properties, parse_properties
from hudi_py.model.files import METADATA_FOLDER
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_copies import keep_copy, newest_copy
from hudi_py.versions.layout import LAYOUT_V1, LAYOUT_V2

PROPERTIES_FILE: Final = ".hoodie/hoodie.properties"
BACKUP_FILE: Final = ".hoodie/hoodie.properties.backup"
CHECKSUM_KEY: Final = "hoodie.table.checksum"
_ATTEMPTS_MAX: Final = 5
TIMELINE_FOLDERS: Final = ((f"{METADATA_FOLDER}/timeline", LAYOUT_V2), (METADATA_FOLDER, LAYOUT_V1))
"""Where the timeline of a table is, unless its properties name another place; and in which layout."""


def read_table_config(storage: Storage) -> TableConfig:
    """
    Read the table's properties, from their backup while they are rewritten or after that was interrupted.

    Raises:
        TableNotFound: Neither file exists.
        CorruptMetadata: A file is damaged, or there is a timeline without either file.
        UnsupportedTable: The table's version is not supported.
    """
    return table_config(read_properties(storage), f"{storage.root}/{PROPERTIES_FILE}")


def read_properties(storage: Storage) -> dict[str, str]:
    """The properties as key to text. Raises as `read_table_config`."""
    return _choose(storage)[0]


def _choose(storage: Storage, *, is_repeated: bool = False) -> tuple[dict[str, str], str]:
    """
    The valid properties, and which of the two files they are from.

    A file without checksum is accepted as Hudi accepts it, unless there is a backup that has one: then a rewrite was
    torn (rules/timeline 1.4, step 6).
    """
    problem: CorruptMetadata | None = None
    unproven: dict[str, str] | None = None
    for _ in range(_ATTEMPTS_MAX):  # a rewrite by another process may fall between our two reads
        for path in (PROPERTIES_FILE, BACKUP_FILE):
            try:
                properties = _read_valid(storage, path)
            except NotFound:
                continue
            except CorruptMetadata as error:
                problem = problem or error
                continue
            # A file without checksum is taken only if nothing better is found: it may be the beginning of one with.
            if CHECKSUM_KEY in properties or (path == BACKUP_FILE and unproven is None):
                return properties, path
            unproven = unproven or properties
        if unproven is not None:
            return unproven, PROPERTIES_FILE
    if problem is not None:
        raise CorruptMetadata(f"{problem}{newest_copy(storage)}") from problem
    # Asked last, since it costs two listings, and only where there is neither file.
    left = instant_file(storage)
    if left is not None:
        # Another process may have created the table after we had looked for the file.
        if not is_repeated:
            return _choose(storage, is_repeated=True)
        raise CorruptMetadata(
            f"{storage.root}/{PROPERTIES_FILE} is missing, and {left} shows that there is a table; nothing was "
            f"changed. Put the file back from a copy of the table{newest_copy(storage)}"
        )
    raise TableNotFound(
        f"{storage.root} is not a Hudi table: it has no {PROPERTIES_FILE}; check the path and the storage options"
    )


def instant_file(storage: Storage) -> str | None:
    """
    Path of some file of a timeline, in either layout.

    Properties are written before the first instant. So a timeline without properties shows that they were lost. A new
    table in this place would not see that timeline, or would take files of failed writes for committed rows.
    """
    for folder, layout in TIMELINE_FOLDERS:
        for entry in storage.list(folder):
            if not entry.is_folder and layout.parse(entry.name) is not None:
                return f"{folder}/{entry.name}"
    return None


def _read_valid(storage: Storage, path: str) -> dict[str, str]:
    source = f"{storage.root}/{path}"
    properties = parse_properties(storage.read(path), source)
    if not properties.get("hoodie.table.name"):
        what = "holds no hoodie.table.name" if properties else "is empty"
        raise CorruptMetadata(f"{source} {what}; restore it from {BACKUP_FILE} or from a copy of the table")
    expected = checksum(properties.get("hoodie.database.name", ""), properties.get("hoodie.table.name", ""))
    if properties.get(CHECKSUM_KEY, str(expected)) != str(expected):
        raise CorruptMetadata(
            f"{source}: {CHECKSUM_KEY} is {properties[CHECKSUM_KEY]}, its database and table name give {expected}; "
            f"the file is damaged, restore it from {BACKUP_FILE} or correct the names"
        )
    return properties


def properties_problem(storage: Storage) -> str | None:
    """Why hoodie.properties itself, not its backup, cannot be trusted; None if it can."""
    try:
        properties = _read_valid(storage, PROPERTIES_FILE)
    except (NotFound, CorruptMetadata) as error:
        return str(error)
    if CHECKSUM_KEY not in properties and storage.size(BACKUP_FILE) is not None:
        return f"{storage.root}/{PROPERTIES_FILE}: no checksum although there is a backup: its rewrite was torn"
    return None


def create_properties(storage: Storage, properties: Mapping[str, str], clock: Clock) -> None:
    """
    Turn a folder into a table: the last step of creating one.

    Raises:
        ConflictError: It is a table already.
    """
    try:
        storage.create_new(PROPERTIES_FILE, _format(_with_checksum(properties), clock.now(), "Properties saved on"))
    except AlreadyExists as error:
        raise ConflictError(f"{storage.root} is a Hudi table already") from error


def update_properties(storage: Storage, changes: Mapping[str, str | None], clock: Clock) -> None:
    """
    Rewrite the properties with *changes* (None removes a key).

    The old content goes to the backup file first and stays there until the new content has been read back, so at
    every moment one of the two files is whole: after a crash anywhere, Apache Hudi and we read one of the two states.
    The caller holds the table's lock where it has one.

    Raises:
        ConflictError: Another process is rewriting them at this moment.
    """
    # First: changes made to a half-written file would be lost with it.
    recover_properties(storage)
    source, old = f"{storage.root}/{PROPERTIES_FILE}", storage.read(PROPERTIES_FILE)
    current = parse_properties(old, source)
    # Keys that hudi_py does not know stay: they are settings of other writers.
    merged = {**current, **{key: value for key, value in changes.items() if value is not None}}
    for key in (key for key, value in changes.items() if value is None):
        merged.pop(key, None)
    if merged == current:
        return
    now = clock.now()
    content = _format(_with_checksum(merged), now, "Updated at")
    keep_copy(storage, old, now)
    try:
        storage.create_new(BACKUP_FILE, old)
    except AlreadyExists as error:
        raise ConflictError(f"{storage.root}/{BACKUP_FILE} appeared: another writer is changing the table") from error
    # The lock may have been lost since they were read; from here on, the backup keeps others out.
    if storage.read(PROPERTIES_FILE) != old:
        storage.delete(BACKUP_FILE)
        raise ConflictError(f"{source} was changed by another process at this moment; nothing was changed, try again")
    storage.replace(PROPERTIES_FILE, content)
    # Read back while the backup is still there: without it nothing could take the place of a torn file.
    _read_valid(storage, PROPERTIES_FILE)
    storage.delete(BACKUP_FILE)


def unfinished_rewrite(storage: Storage) -> str | None:
    """Why `recover_properties` is needed; None if it is not."""
    if storage.size(BACKUP_FILE) is None:
        return None
    return f"{BACKUP_FILE} exists: a rewrite of the properties was interrupted"


def finish_rewrite(storage: Storage) -> None:
    """
    `recover_properties` if a rewrite was interrupted; only for callers that know that no other writer is running.

    Apache Hudi 1.0 does not recognize a table with an empty properties file, whatever its backup contains.
    """
    if unfinished_rewrite(storage) is not None:
        recover_properties(storage)


def recover_properties(storage: Storage) -> dict[str, str]:
    """
    Finish or undo a rewrite that was interrupted; return the valid properties.

    Raises:
        TableNotFound, CorruptMetadata: As `read_table_config`; then nothing was changed.
    """
    properties, source = _choose(storage)
    if source == BACKUP_FILE:
        storage.replace(PROPERTIES_FILE, storage.read(BACKUP_FILE))
    # Last: until the properties are whole again, the backup is their only copy.
    storage.delete(BACKUP_FILE)
    return properties


def _with_checksum(properties: Mapping[str, str]) -> dict[str, str]:
    value = checksum(properties.get("hoodie.database.name", ""), properties["hoodie.table.name"])
    return {**properties, CHECKSUM_KEY: str(value)}


def _format(properties: Mapping[str, str], now: datetime, verb: str) -> bytes:
    moment = now.astimezone(timezone.utc)
    stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}Z"
    return format_properties(properties, (f"{verb} {stamp}", moment.strftime("%a %b %d %H:%M:%S UTC %Y")))
