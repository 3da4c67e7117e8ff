"""Tables whose rows are deleted, and the question whether their bytes are gone."""

from __future__ import annotations

from support import writes
from support.writes import open_table, upsert

PLAIN = {"hoodie.metadata.enable": False}


def made(version=9, merge_on_read=False, **more):
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"}
    storage = writes.create_table(version, **kind, **PLAIN, **more)
    upsert(storage, [*writes.OLD, {"id": "d", "region": "eu", "ts": 1}], **PLAIN)
    return storage


def delete(storage, *rows):
    upsert(storage, list(rows), operation="DELETE", **PLAIN)


def cleaned(storage, **settings):
    return open_table(storage, **PLAIN, **settings).clean(file_versions_retained=1)


def erased(storage, **asked):
    return open_table(storage, **PLAIN).erased(**asked)
