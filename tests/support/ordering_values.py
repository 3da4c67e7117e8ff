"""Tables in which ordering values decide between two rows of a key, as each release is asked for that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

_SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": False,
    "hoodie.metadata.enable": False,
}
_EVENT_TIME = (
    {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
)


def settings_of(table_version: int) -> dict[str, Any]:
    """Settings of writes by Apache Hudi; ours take the table version, too."""
    return _SETTINGS | _EVENT_TIME[table_version == 6]


def rows(version: int, times: Iterable[float], arrow: pa.DataType) -> pa.Table:
    """A row for each ordering value of this type, its place for a key, and a column that names the version."""
    table = [{"id": str(n), "p": "x", "ts": ts, "v": version} for n, ts in enumerate(times)]
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", arrow), ("v", pa.int32())])
    return pa.Table.from_pylist(table, schema)
