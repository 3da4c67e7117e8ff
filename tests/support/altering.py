"""Changes of a table's columns as Apache Hudi makes them with schema on read, without Apache Hudi."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from hudi_py.config.settings import Settings
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import format_record_schema, parse_record_schema, with_meta_fields
from hudi_py.timeline.column_folder import read_history
from hudi_py.timeline.row_schema import IDS_ENTRY, column_ids
from hudi_py.writing.transaction import begin_write
from support.writes import open_table

_TYPES = {"string": "string", "int64": "long", "int32": "int", "float": "float", "double": "double"}
_AVRO = {"string": "string", "long": "long", "int": "int", "float": "float", "double": "double"}

Fields = list[dict[str, object]]


def alter(storage, change: Callable[[Fields, Callable[[], int]], Fields]) -> str:
    """
    One ``ALTER TABLE``: an empty commit of the operation ALTER_SCHEMA, and the history with one version more.

    Args:
        change: From the columns with their ids, without meta columns, to those of after; the second argument gives
            out a fresh id.

    Returns:
        The requested time of the commit.
    """
    table = open_table(storage)
    contents, timeline = table.contents, table.timeline
    latest = column_ids(contents, timeline)
    if latest is None:  # the first change numbers the columns, the meta columns before them
        columns = parse_record_schema(table.snapshot().schema_text())
        found = [(name, "string") for name in META_COLUMNS]
        found += [(field.name, _TYPES[str(field.type)]) for field in columns]
        fields = [
            {"id": number, "name": name, "optional": True, "type": kind} for number, (name, kind) in enumerate(found)
        ]
        old = {"max_column_id": len(found) - 1, "version_id": 0, "type": "record", "fields": fields}
        versions = [old]
    else:
        old = json.loads(latest)
        versions = json.loads(read_history(storage, timeline))["schemas"]
    ids = itertools.count(old["max_column_id"] + 1)
    after = change(old["fields"][len(META_COLUMNS) :], lambda: next(ids))
    with begin_write(contents, table.config, Settings({}), table.services.metadata_table, "UPSERT") as transaction:
        time = transaction.instant_time
        new = {
            "max_column_id": next(ids) - 1,
            "version_id": int(time),
            "type": "record",
            "fields": [*old["fields"][: len(META_COLUMNS)], *after],
        }
        text = {
            **json.loads(format_record_schema(parse_record_schema(_avro([])), "t")),
            "fields": json.loads(_avro(after))["fields"],
        }
        transaction.commit(
            [],
            operation="ALTER_SCHEMA",
            extra_metadata={"schema": with_meta_fields(json.dumps(text)), IDS_ENTRY: _dump(new)},
            history=_dump({"schemas": [new, *versions]}).encode(),
        )
    return time


def renamed(old: str, new: str):
    """A column gets another name."""
    return lambda fields, _: [{**each, "name": new} if each["name"] == old else each for each in fields]


def dropped(name: str):
    """A column goes."""
    return lambda fields, _: [each for each in fields if each["name"] != name]


def added(name: str, kind: str = "string"):
    """A column comes, at the end."""
    return lambda fields, fresh: [*fields, {"id": fresh(), "name": name, "optional": True, "type": kind}]


def retyped(name: str, kind: str):
    """A column gets a wider type."""
    return lambda fields, _: [{**each, "type": kind} if each["name"] == name else each for each in fields]


def _avro(fields: Fields) -> str:
    found = [{"name": each["name"], "type": ["null", _AVRO[each["type"]]], "default": None} for each in fields]
    return json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": found})


def _dump(node: object) -> str:
    return json.dumps(node, separators=(",", ":"))
