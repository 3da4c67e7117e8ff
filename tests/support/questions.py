"""A table that a release of Apache Hudi makes at random, and questions at random, which both sides answer."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
from real_hudi import RealHudi, RealHudiError, canonical_rows

import hudi_py
from hudi_py.errors import HudiError, RefusedError
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import format_instant_time, parse_instant_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
_KEYS = 24
_REGIONS = ("eu", "us", "asia", "a b")
_EPOCH = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone.utc)
_STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
_TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "i": (pa.int32(), lambda chance: chance.randrange(-5, 6)),
    "n": (pa.int64(), lambda chance: chance.randrange(-5, 6) * 10**12),
    "d": (pa.float64(), lambda chance: chance.choice((0.0, 1.5, -2.25, 1e300, float("nan")))),
    "f": (pa.float32(), lambda chance: chance.choice((0.0, 0.5, -2.25))),
    "s": (pa.string(), lambda chance: chance.choice(("", "x", "xy", "é", "日本", "a%b", "A"))),
    "b": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "day": (pa.date32(), lambda chance: (_EPOCH + dt.timedelta(days=chance.randrange(5))).date()),
    "at": (pa.timestamp("us", "UTC"), lambda chance: _EPOCH + dt.timedelta(hours=chance.randrange(50))),
    "p": (pa.decimal128(12, 2), lambda chance: Decimal(chance.randrange(-300, 300)) / 100),
    "st": (_STRUCT, lambda chance: {"a": chance.choice((None, 1, 2)), "b": chance.choice((None, "x", "y"))}),
    "l": (pa.list_(pa.string()), lambda chance: [chance.choice("xyz") for _ in range(chance.randrange(3))]),
    "m": (pa.map_(pa.string(), pa.int64()), lambda chance: [(each, 1) for each in "xy"[: chance.randrange(3)]]),
    "y": (pa.binary(), lambda chance: bytes(chance.randrange(256) for _ in range(chance.randrange(3)))),
}
"""Column names to types, and to what makes a value."""
_SIDES = ("before", "after")
_REPEATING = ("0.15.0", "1.0.2")
"""Releases whose change logs repeat one row for each that an overwrite deleted (docs/changes.md)."""
_ALIKE = ("id", "ts", "region", "part", "i", "n", "s", "b")
_FORMS = ("snapshot", "as_of", "changes", "read_optimized", "change_log")
_OF_WRITERS = (
    "hoodie.metadata.", "hoodie.index.", "hoodie.bucket.", "hoodie.clean.", "hoodie.compact.", "hoodie.logfile.",
    "hoodie.parquet.", "hoodie.datasource.write.drop.", "hoodie.datasource.write.payload.",
)  # fmt: skip


@attrs.frozen
class Sketch:
    """What a table is to be; drawn from its seed."""

    settings: dict[str, str]
    columns: tuple[str, ...]
    added: tuple[str, ...]
    """Columns that only later writes have."""
    partitions: tuple[str, ...]

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates go to log files."""
        return self.settings["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"

    @property
    def has_change_log(self) -> bool:
        """Whether each change is logged."""
        return "hoodie.table.cdc.enabled" in self.settings


def sketch(chance: random.Random, table_version: int) -> Sketch:
    """Draw a kind of table."""
    kind = chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ", "MERGE_ON_READ"))
    names = chance.sample(sorted(_TYPES), chance.randrange(2, 8))
    cut = chance.randrange(1, len(names) + 1) if chance.random() < 0.4 else len(names)
    partitions = chance.choice(((), ("region",), ("region",), ("region", "part")))
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": chance.choice(("id", "id", "id,part")),
        "hoodie.datasource.write.partitionpath.field": ",".join(partitions),
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": chance.choice(("true", "false")),
        "hoodie.write.table.version": str(table_version),
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": chance.choice(("true", "false")),
        "hoodie.metadata.index.column.stats.enable": chance.choice(("true", "false")),
        "hoodie.parquet.small.file.limit": chance.choice(("0", "104857600")),
    }
    if kind == "MERGE_ON_READ":
        settings["hoodie.logfile.data.block.format"] = chance.choice(("avro", "avro", "parquet"))
    if not partitions:
        settings["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    elif len(partitions) > 1 or "," in settings["hoodie.datasource.write.recordkey.field"]:
        settings["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.ComplexKeyGenerator"
    if table_version >= 8 and chance.random() < 0.3:
        settings["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
    if chance.random() < 0.3:
        settings["hoodie.table.cdc.enabled"] = "true"
        settings["hoodie.table.cdc.supplemental.logging.mode"] = chance.choice(
            ("op_key_only", "data_before", "data_before_after")
        )
    elif chance.random() < 0.15 and partitions:
        settings["hoodie.datasource.write.drop.partition.columns"] = "true"
    if table_version == 6 and chance.random() < 0.4:
        settings["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    index = chance.choice(("", "", "BUCKET", "RECORD_INDEX"))
    if index == "BUCKET":
        settings |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    if index == "RECORD_INDEX":
        settings |= {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
        settings["hoodie.metadata.enable"] = "true"
    return Sketch(settings, tuple(names[:cut]), tuple(names[cut:]), partitions)


@attrs.define
class Asked:
    """A table of a release and what was asked of it."""

    peer: RealHudi
    path: Path
    seed: int
    table_version: int
    told: list[str] = attrs.field(factory=list)
    """What was done, and what came of it."""
    spark: SparkSession | None = None
    """Has our DataFrames asked, too."""
    settings: dict[str, str] = attrs.field(factory=dict)
    """Of the table, besides those that are drawn."""
    counts: Counter[str] = attrs.field(factory=Counter)
    differences: list[str] = attrs.field(factory=list)

    def play(self, steps: int, questions: int) -> None:
        """Make the table, and ask."""
        chance = random.Random(f"{self.peer.version} {self.table_version} {self.seed}")
        drawn = sketch(chance, self.table_version)
        drawn.settings.update(self.settings)
        self.told.append(str(drawn))
        maker = _Maker(self, drawn, chance)
        for number in range(steps):
            maker.step(number)
        for number in range(questions if self.path.exists() and self._writes() else 0):
            self._ask(chance, drawn, maker, number)

    def __str__(self) -> str:
        """What was done and asked, and where the answers differ."""
        return "\n".join([*(f"  {each}" for each in self.told), *(f"! {each}" for each in self.differences)])

    def _ask(self, chance: random.Random, drawn: Sketch, maker: _Maker, number: int) -> None:
        """One question; the first ones are whole reads of each kind."""
        form, words, options = self._form(chance, drawn, number)
        where = "" if number < len(_FORMS) or form == "change_log" else condition(chance, maker.values)
        known = ["id", "ts", "region", "part", *drawn.columns]
        columns = chance.sample(known, chance.randrange(1, 4)) if chance.random() < 0.3 and form != "change_log" else []
        told = f"{form} {words} of {columns or 'all'} where {where or '-'}"
        try:
            found = (
                self.peer.find(self.path, where, options)["rows"]
                if where
                else self.peer.read(self.path, options=options)
            )
        except RealHudiError as error:
            self.counts[f"{form}: refused by Hudi"] += 1
            self.told.append(f"{told}: Hudi says {str(error)[:300]}")
            return
        try:
            ours = self._ours(form, words, where, columns)
        except HudiError as error:
            # Apache Hudi reads the latest files then, which lack what changed later (docs/changes.md).
            if form == "changes" and isinstance(error, RefusedError) and ": clean " in str(error):
                self.counts[f"{form}: refused because of a clean"] += 1
                return
            self.counts[f"{form}: refused by us"] += 1
            self.differences.append(f"{told}: refused by us: {error}")
            return
        self.counts[form] += 1
        if self.spark is not None:
            on_spark = self._on_spark(form, words, where, columns, filters=chance.random() < 0.5)
            if on_spark != ours:
                self.differences.append(_difference(f"{told} on Spark", "we", ours, on_spark))
        if form == "change_log":
            replaced = {each.requested_time for each in self._writes() if each.action is Action.REPLACE_COMMIT}
            if self.peer.version not in _REPEATING:
                replaced = set()
            found, ours = (
                sorted(_change(row) for row in rows if row["op"] != "d" or _moment(row) not in replaced)
                for rows in (found, ours)
            )
        elif columns:
            found = canonical_rows({name: row.get(name) for name in columns} for row in found)
        if found != ours and not (form == "changes" and self._may_fall_back(words, found, ours)):
            self.differences.append(_difference(told, "Hudi", found, ours))

    def _form(self, chance: random.Random, drawn: Sketch, number: int) -> tuple[str, Row, dict[str, str]]:
        """How is read: its name, our arguments, and the options of Apache Hudi."""
        left_out = {"read_optimized": not drawn.is_merge_on_read, "change_log": not drawn.has_change_log}
        forms = [each for each in _FORMS if not left_out.get(each)]
        form = forms[number] if number < len(forms) else chance.choice(forms)
        writes = self._writes()
        if form == "as_of":
            time = chance.choice(writes).requested_time
            return form, {"as_of": time}, {"as.of.instant": time}
        if form in ("changes", "change_log"):
            ends = self._ends()
            at = chance.randrange(len(ends))
            end = ends[chance.randrange(at, len(ends))]
            # A millisecond on: what is exclusive in one release is inclusive in another.
            start = _next(ends[at]) if _next(ends[at]) < end and chance.random() < 0.7 else "0"
            options = {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "000" if start == "0" else start,
                "hoodie.datasource.read.end.instanttime": end,
            }
            if form == "change_log":
                options["hoodie.datasource.query.incremental.format"] = "cdc"
            return form, {"start": start, "end": end}, options
        return form, {}, {"hoodie.datasource.query.type": form} if form == "read_optimized" else {}

    def _ends(self) -> list[str]:
        """What ranges are compared with, in order."""
        is_first = self.table_version < 8
        return sorted(each.requested_time if is_first else each.completion_time or "" for each in self._writes())

    def _may_fall_back(self, words: Row, found: list[Row], ours: list[Row]) -> bool:
        """
        Whether Apache Hudi may have left rows out (docs/changes.md): it has less, and a clean deleted something, so it
        read the latest files, or commits were archived.
        """
        table = hudi_py.open_table(self.path)
        is_past = words["end"] < self._ends()[-1] and bool(table.timeline.completed(Action.CLEAN))
        is_archived = words["start"] == "0" and bool(table.archived_timeline.instants)
        return (is_past or is_archived) and all(each in ours for each in found)

    def _writes(self) -> Sequence[Instant]:
        return hudi_py.open_table(self.path).timeline.writes.completed()

    def _on_spark(self, form: str, words: Row, where: str, columns: list[str], *, filters: bool) -> list[Row]:
        """Our rows as a DataFrame; the condition is one of the read, or a filter of the query."""
        assert self.spark is not None
        forms = {each: True for each in ("read_optimized", "change_log") if each == form}
        given: Row = {**({} if filters or not where else {"where": where}), **forms}
        frame = hudi_py.read(self.spark, self.path, **words, **given)
        frame = frame.where(where) if filters and where else frame
        return _canonical((row.asDict(True) for row in (frame.select(columns) if columns else frame).collect()), form)

    def _ours(self, form: str, words: Row, where: str, columns: list[str]) -> list[Row]:
        table = hudi_py.open_table(self.path)
        given: Row = {**({"where": where} if where else {}), **({"columns": columns} if columns else {})}
        if form == "change_log":
            batches = table.change_log(**words)
        elif form == "changes":
            batches = table.changes(**words, **given)
        else:
            batches = table.rows(**words, **given, **({"read_optimized": True} if form == "read_optimized" else {}))
        return _canonical((row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")), form)


def _canonical(rows: Iterable[Row], form: str) -> list[Row]:
    """Rows that can be compared; a change log in the order of its texts, with the columns of Apache Hudi."""
    if form != "change_log":
        return canonical_rows(rows)
    return sorted(
        ({name: _inner(value) if name in _SIDES else value for name, value in row.items()} for row in rows),
        key=str,
    )


def _inner(row: Row | None) -> Row | None:
    return None if row is None else canonical_rows([row])[0]


def _difference(told: str, other: str, found: list[Any], ours: list[Any]) -> str:
    missing = [each for each in found if each not in ours]
    further = [each for each in ours if each not in found]
    numbers = f"{other} {len(found)} rows, other than {len(ours)}"
    return f"{told}: {numbers}\n    only in the first: {missing[:4]}\n    only in the second: {further[:4]}"


def _next(instant: str) -> str:
    """The time a millisecond later."""
    moment = parse_instant_time(instant, dt.timezone.utc)
    return format_instant_time(moment + dt.timedelta(milliseconds=1))


def _change(row: Row) -> str:
    """A change as text that can be compared: Apache Hudi gives the rows as JSON, with its own columns."""
    sides = []
    for side in _SIDES:
        given = row[side]
        values = (json.loads(given) if isinstance(given, str) else given) or {}
        # Of types that JSON and Arrow show alike.
        sides.append(sorted((name, str(values[name])) for name in _ALIKE if values.get(name) is not None))
    return str([row["op"], _moment(row), *sides])


def _moment(row: Row) -> str:
    """The instant of a change; the column has two names."""
    return str(row["ts_ms"] if "ts_ms" in row else row["ts"])


class _Maker:
    """Has the release write and serve the table."""

    def __init__(self, asked: Asked, drawn: Sketch, chance: random.Random) -> None:
        self._asked, self._drawn, self._chance = asked, drawn, chance
        self._columns = drawn.columns
        # The table has the others, and some releases refuse to be told again.
        self._again = {name: value for name, value in drawn.settings.items() if name.startswith(_OF_WRITERS)}
        self._is_known = False
        self.values: dict[str, list[Any]] = {}
        """What was written to each column."""

    def step(self, number: int) -> None:
        """One action; one that the release refuses is told and left out."""
        chance, drawn = self._chance, self._drawn
        actions = ["upsert"] * 6 + ["insert", "delete", "delete", "bulk_insert", "insert_overwrite", "cluster", "clean"]
        actions += ["archive", *(["undo"] if number > 1 else [])]
        if drawn.is_merge_on_read:
            actions += ["compact", "compact"]
            is_simple = "," not in drawn.settings["hoodie.datasource.write.recordkey.field"]
            # With buckets it stores updates of rows that are not there, and shows garbage for them.
            if self._asked.table_version >= 8 and is_simple and drawn.settings.get("hoodie.index.type") != "BUCKET":
                actions += ["merge_into"] * 3
        action = "upsert" if number == 0 else chance.choice(actions)
        if number > 1 and drawn.added and chance.random() < 0.4:
            self._columns = (*drawn.columns, *drawn.added)
        try:
            self._do(action, number)
        except RealHudiError as error:
            self._asked.told.append(f"{number} {action}: refused by Hudi: {str(error)[:200]}")
            self._asked.counts[f"{action} refused by Hudi"] += 1
        else:
            self._asked.told.append(f"{number} {action}")

    def _do(self, action: str, number: int) -> None:
        peer, path, settings = self._asked.peer, self._asked.path, self._again
        if action in ("compact", "cluster"):
            service = {"compact": "COMPACT", "cluster": "CLUSTER"}[action]
            options = {
                "hoodie.compact.inline.max.delta.commits": "1", "hoodie.clustering.inline.max.commits": "1",
                "hoodie.clustering.async.max.commits": "1",
            } | settings  # fmt: skip
            time = peer.schedule(path, service, options)
            if time is not None and self._chance.random() < 0.8:
                peer.carry_out(path, service, time, options)
        elif action == "undo":
            peer.rollback(path, hudi_py.open_table(path).timeline.writes.completed()[-1].requested_time)
        elif action == "archive":
            peer.archive(
                path, {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.cleaner.commits.retained": 1}
            )
        elif action == "clean":
            peer.clean(path, {"hoodie.cleaner.commits.retained": str(self._chance.randrange(1, 4))})
        elif action == "merge_into":
            self._merge_into(number)
        else:
            least = _KEYS if action in ("insert", "bulk_insert") else 0
            count = self._chance.randrange(1, 10)
            keys = self._chance.sample(range(least, least + _KEYS), count)
            if action in ("insert", "bulk_insert"):
                keys = [each + number * 100 for each in keys]
            peer.write(path, self._rows(keys, number), action, self._drawn.settings if number == 0 else settings)

    def _rows(self, keys: list[int], number: int) -> pa.Table:
        chance, rows = self._chance, []
        for key in keys:
            row = {
                "id": f"k{key}", "part": key % 3, "region": _REGIONS[key % len(_REGIONS)],
                "ts": number if chance.random() < 0.7 else chance.randrange(9),
            }  # fmt: skip
            for name in self._columns:
                row[name] = None if chance.random() < 0.2 else _TYPES[name][1](chance)
            for name, value in row.items():
                self.values.setdefault(name, []).append(value)
            rows.append(row)
        own = [("id", pa.string()), ("part", pa.int64()), ("region", pa.string()), ("ts", pa.int64())]
        return pa.Table.from_pylist(rows, pa.schema([*own, *((name, _TYPES[name][0]) for name in self._columns)]))

    def _merge_into(self, number: int) -> None:
        """Some columns of some rows."""
        chance, peer = self._chance, self._asked.peer
        plain = [name for name in self._columns if name in _ALIKE]
        name = chance.choice([*plain, "ts"])
        value = {"i": "7", "n": "8", "s": "'merged'", "b": "true", "ts": str(number)}[name]
        table = re.sub(r"\W", "_", f"q{self._asked.path}")
        if not self._is_known:
            self._is_known = True
            peer.sql(f"CREATE TABLE IF NOT EXISTS {table} USING hudi LOCATION '{self._asked.path}'")
        keys = " UNION ALL ".join(
            f"SELECT 'k{key}' AS id, CAST({key % 3} AS BIGINT) AS part, '{_REGIONS[key % len(_REGIONS)]}' AS region, "
            f"CAST({number} AS BIGINT) AS ts"
            for key in chance.sample(range(_KEYS), 4)
        )
        sets = f"{name} = {value}" if name != "ts" else "ts = src.ts"
        sets += ", ts = src.ts" if name != "ts" and chance.random() < 0.8 else ""
        peer.sql(
            f"MERGE INTO {table} t USING ({keys}) src ON t.id = src.id WHEN MATCHED THEN UPDATE SET {sets}",
            self._again | {"hoodie.spark.sql.merge.into.partial.updates": "true"},
        )


# ------------------------------------------------------------------ conditions
def condition(chance: random.Random, values: dict[str, list[Any]], depth: int = 0) -> str:
    """A condition that Spark SQL and hudi_py take, often with values that the table has or had."""
    if depth < 2 and chance.random() < 0.4:
        parts = [condition(chance, values, depth + 1) for _ in range(chance.randrange(1, 4))]
        joined = f" {chance.choice(('and', 'or'))} ".join(f"({each})" for each in parts)
        return f"not ({joined})" if chance.random() < 0.3 else joined
    return chance.choice(list(_simple(chance, values)))


def _simple(chance: random.Random, values: dict[str, list[Any]]) -> Iterator[str]:
    name = chance.choice(sorted(values))
    yield f"{name} is null"
    yield f"{name} is not null"
    known = [each for each in values[name] if each is not None]
    if name == "st":
        yield from ("st.a = 1", "st.b = 'x'", "st.a is null", "st.a > 1 or st.b is null", "st.b in ('x', 'z')")
        return
    if name in ("l", "m", "y") or not known:
        return
    one, other = (literal(chance.choice(known)) for _ in range(2))
    for _ in range(3):
        yield f"{name} {chance.choice(('=', '!=', '<', '<=', '>', '>='))} {one}"
    if name != "b":
        yield f"{name} in ({one}, {other})"
        yield f"{name} not in ({one}, {other})"
        yield f"{name} between {one} and {other}"
    if name in ("s", "id", "region"):
        yield f"{name} like '{chance.choice(('x%', '%y', '_', '%1%', 'k_', 'é%'))}'"


def literal(value: Any) -> str:
    """A value as both dialects write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return "'NaN'" if math.isnan(value) else str(value)
    if isinstance(value, dt.datetime):
        return f"timestamp '{value:%Y-%m-%d %H:%M:%S}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    return str(value)
