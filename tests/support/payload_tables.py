"""A merge-on-read table of one of Apache Hudi's payload classes, which a release writes at random; and its answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
from real_hudi import RealHudi, RealHudiError

import hudi_py

_KEYS: Final = 40
_MODEL: Final = "org.apache.hudi.common.model."
_MARK: Final = "__debezium_unavailable_value"
_DEBEZIUM: Final = ("_change_operation_type", "_event_lsn", "_event_seq", "_event_bin_file", "_event_pos")
_TYPES: Final = {
    "id": pa.string(),
    "region": pa.string(),
    "ts": pa.int64(),
    "a": pa.string(),
    "n": pa.int32(),
    "x": pa.float64(),
    "y": pa.binary(),
    "_hoodie_is_deleted": pa.bool_(),
    "Op": pa.string(),
    "_change_operation_type": pa.string(),
    "_event_lsn": pa.int64(),
    "_event_seq": pa.string(),
    "_event_bin_file": pa.string(),
    "_event_pos": pa.int64(),
}


@attrs.frozen
class Payload:
    """
    A payload class, and what rows of its tables have.

    Args:
        package: Of the class, behind `_MODEL`.
        ordering: The ordering field.
        columns: Columns beside those that all have.
    """

    package: str = ""
    ordering: str = "ts"
    columns: tuple[str, ...] = ("_hoodie_is_deleted",)


PAYLOADS: Final = {
    "EventTimeAvroPayload": Payload(),
    "FirstValueAvroPayload": Payload(),
    "PartialUpdateAvroPayload": Payload(),
    "OverwriteNonDefaultsWithLatestAvroPayload": Payload(),
    "AWSDmsAvroPayload": Payload(columns=("_hoodie_is_deleted", "Op")),
    "MySqlDebeziumAvroPayload": Payload("debezium.", "_event_seq", _DEBEZIUM),
    "PostgresDebeziumAvroPayload": Payload("debezium.", "_event_lsn", _DEBEZIUM),
    # Ordered by texts, which Hudi compares with those of deletes in another way than numbers.
    "DefaultHoodieRecordPayload": Payload(ordering="_event_seq", columns=("_hoodie_is_deleted", *_DEBEZIUM)),
}
"""By the name of the class."""


def settings_of(name: str, table_version: int) -> dict[str, str]:
    """Settings of a writer of such a table: with one bucket, so that log files have keys that the base file lacks."""
    payload = PAYLOADS[name]
    ordering = payload.ordering
    if name == "MySqlDebeziumAvroPayload" and table_version >= 9:
        ordering = "_event_bin_file,_event_pos"
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.datasource.write.payload.class": _MODEL + payload.package + name,
        "hoodie.write.table.version": str(table_version),
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.metadata.enable": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
    }


def rows_of(name: str, chance: random.Random, number: int) -> pa.Table:
    """Rows of the write *number*, with lower, equal and higher ordering values, nulls, marks and deletions."""
    columns = ("id", "region", "ts", "a", "n", "x", "y", *PAYLOADS[name].columns)
    # 0.15.0 and 1.0.2 cannot read a delete of a row that they would have to ask this class about, and do not have.
    needs_row = name == "AWSDmsAvroPayload"
    keys = range(_KEYS) if needs_row and number == 0 else chance.sample(range(_KEYS), 24)
    rows = [_row(chance, key, may_delete=not needs_row or key % 4 == (number > 4) - (number == 0)) for key in keys]
    return pa.Table.from_pylist(rows, schema=pa.schema([(each, _TYPES[each]) for each in columns]))


def _row(chance: random.Random, key: int, *, may_delete: bool) -> dict[str, Any]:
    time = chance.randrange(1, 6)
    return {
        "id": f"k{key:02}",
        "region": "r",
        "ts": time,
        "a": chance.choice((None, "", "x", "y", _MARK, _MARK)),
        "n": chance.choice((None, 0, 1, 2)),
        "x": chance.choice((None, 0.0, 0.5)),
        "y": chance.choice((None, b"", b"z", _MARK.encode())),
        "_hoodie_is_deleted": chance.choice((None, False, False, False, may_delete)),
        "Op": chance.choice((None, "I", "U", "U", "D", "d") if may_delete else (None, "I", "U")),
        "_change_operation_type": chance.choice("cuuuud"),
        "_event_lsn": time,
        # Files are numbered, so 10 is behind 9.
        "_event_seq": f"{8 + time // 2:0{chance.choice((1, 3))}}.{time * 5}",
        "_event_bin_file": f"binlog.{8 + time // 2:06}",
        "_event_pos": time * 5,
    }


def _deleted_rows(name: str, chance: random.Random, number: int) -> pa.Table:
    """Rows of six keys, for a delete by key."""
    rows = rows_of(name, chance, number)
    return rows.set_column(0, "id", pa.array([f"k{key * 4:02}" for key in range(rows.num_rows)])).slice(2, 6)


def compact(hudi: RealHudi, path: Path) -> str:
    """Compact the table with Apache Hudi; returns the time."""
    settings = {"hoodie.compact.inline.max.delta.commits": "1"}
    plan = hudi.schedule(path, "COMPACT", settings)
    assert plan is not None
    hudi.carry_out(path, "COMPACT", plan, settings)
    return plan


def write_table(
    hudi: RealHudi, path: Path, name: str, seed: int, compacted: Callable[[RealHudi, Path], str] = compact
) -> list[str]:
    """
    Write seven commits and a compaction after the fifth.

    Args:
        hudi: The release that writes; of its own table version.
        path: Where the table is to be.
        name: Of the payload class.
        seed: Of the rows.
        compacted: Carries the compaction out and returns its time.

    Returns:
        Requested times of the commits and of the compaction.
    """
    chance = random.Random(seed)
    settings = settings_of(name, hudi.table_version)
    # 1.0.2 cannot read a row that follows a delete by key in the log files (docs/merge-on-read.md).
    deleting = 4 if hudi.version == "1.0.2" else 2
    times = []
    for number in range(7):
        if number == deleting:
            done = hudi.write(path, _deleted_rows(name, chance, number), "delete", settings)
        else:
            done = hudi.write(path, rows_of(name, chance, number), "upsert", settings)
        times.append(done["requested_time"])
        if number == 4:
            times.append(compacted(hudi, path))
    return times


def questions(hudi: RealHudi, path: Path, times: list[str]) -> list[tuple[str, str, str | None]]:
    """What is asked of such a table: kind of read, begin and end, as that release takes them."""
    done = {each["requested_time"]: each["completion_time"] for each in hudi.timeline(path)["instants"]}
    ends = [done[time] or time for time in times]
    found: list[tuple[str, str, str | None]] = [("snapshot", "", None), ("read_optimized", "", None)]
    found += [("as_of", time, None) for time in times]
    found += [
        ("incremental", begin, end) for begin, end in (("000", ends[-1]), (ends[1], ends[4]), (ends[5], ends[-1]))
    ]
    return found


def answer(hudi: RealHudi, path: Path, kind: str, begin: str, end: str | None) -> list[dict[str, Any]] | str:
    """Rows with meta columns, or the message of the error."""
    options: dict[str, object] = {}
    if kind == "read_optimized":
        options = {"hoodie.datasource.query.type": "read_optimized"}
    if kind == "incremental":
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
            "hoodie.datasource.read.end.instanttime": end,
        }
    try:
        return hudi.read(path, as_of=begin if kind == "as_of" else None, meta=True, options=options)
    except RealHudiError as error:
        return str(error)


def our_answer(table: hudi_py.Table, release: str, kind: str, begin: str, end: str | None) -> Any:
    """The same as an Arrow stream of hudi_py."""
    if kind == "incremental":
        if release == "1.0.2" and begin.strip("0"):  # the release takes the commit of this time in
            begin = str(int(begin) - 1)
        return table.changes(begin if begin.strip("0") else "0", end, with_meta=True)
    how: dict[str, Any] = {"read_optimized": True} if kind == "read_optimized" else {}
    return table.rows(with_meta=True, **how, **({"as_of": begin} if kind == "as_of" else {}))
