"""What a table must contain: a dict of rows; and the kinds of tables that the suite uses."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa
from real_hudi import canonical_rows

from support.interop_sample import sized

Row = dict[str, Any]
EPOCH = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, dt.timezone.utc)


@attrs.frozen
class Variant:
    """
    One kind of table.

    Args:
        name: Short, for test ids.
        keys: Record key fields.
        partitions: Partition fields, empty for a table without partitions.
        schema: Of a batch.
        settings: What a writer of either side has to be told when it creates the table.
        fill: Makes a row from a number (which decides the key) and a version (which decides everything else).
        upserts: Commits of ours in the long test.
    """

    name: str
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    schema: pa.Schema
    settings: dict[str, str]
    fill: Callable[[int, int], Row]
    upserts: int

    def batch(self, numbers: Iterable[int], version: int) -> pa.Table:
        """A batch with one row for each number."""
        return pa.Table.from_pylist([self.fill(number, version) for number in numbers], schema=self.schema)

    def create(self, table_version: int) -> dict[str, str]:
        """Settings that create the table."""
        return {
            **self.settings,
            "hoodie.table.name": f"t_{self.name}",
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": ",".join(self.keys),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partitions),
            "hoodie.table.ordering.fields": "ts",
            "hoodie.datasource.write.precombine.field": "ts",  # the same, as releases before 1.1 spell it
            "hoodie.write.table.version": str(table_version),
        }


class Model:
    """The rows a table must hold. Keys are unique within a partition only, as with Hudi's default index."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._rows: dict[tuple[Any, ...], Row] = {}

    def upsert(self, batch: pa.Table) -> pa.Table:
        """Later batches have higher ordering values, so the newest row wins; returns *batch*."""
        for row in _pylist(batch):
            self._rows[self._key(row)] = row
        return batch

    def delete(self, batch: pa.Table) -> pa.Table:
        """Drop the keys of *batch*; returns it."""
        for row in _pylist(batch):
            self._rows.pop(self._key(row), None)
        return batch

    def rows(self) -> list[Row]:
        """Canonical rows."""
        return canonical_rows(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[field] for field in (*self._variant.partitions, *self._variant.keys))


def _pylist(batch: pa.Table) -> list[Row]:
    return batch.to_pylist(maps_as_pydicts="strict")


def numbers(seed: int, known: int, batch: int) -> list[int]:
    """Numbers for one upsert: some of those below *known*, and a few new ones behind them."""
    old = random.Random(seed).sample(range(known), min(known, batch))
    return [*old, *range(known, known + 2)]


# ------------------------------------------------------------------ the kinds of tables
PARTITIONED_SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("region", pa.string()), ("note", pa.string()), ("amount", pa.float64())]
)
KEY_TEXTS = ("k{}", "key-{}", "ключ{}", "é{}", "{}", "日本{}", "𝄞{}", "a b {}")


def _partitioned(number: int, version: int) -> Row:
    return {
        "id": KEY_TEXTS[number % len(KEY_TEXTS)].format(number),
        "ts": version,
        "region": ("eu", "us", "asia")[number % 3],
        "note": None if (number + version) % 5 == 0 else f"note {version}/{number}",
        "amount": number + version / 8,
    }


_ITEM = pa.struct([("name", pa.string()), ("count", pa.int32())])
TYPED_FIELDS = [
    ("ts", pa.int64()),
    ("flag", pa.bool_()),
    ("tiny", pa.int8()),
    ("small", pa.int16()),
    ("whole", pa.int32()),
    ("single", pa.float32()),
    ("double", pa.float64()),
    ("text", pa.string()),
    ("blob", pa.binary()),
    ("date", pa.date32()),
    ("moment", pa.timestamp("us", "UTC")),
    ("money5", pa.decimal128(5, 2)),
    ("money9", pa.decimal128(9, 3)),
    ("money18", pa.decimal128(18, 4)),
    ("money38", pa.decimal128(38, 10)),
    ("longs", pa.list_(pa.int64())),
    ("items", pa.list_(_ITEM)),
    ("scores", pa.map_(pa.string(), pa.float64())),
    ("nested", pa.struct([("inner", _ITEM), ("tags", pa.list_(pa.string())), ("day", pa.date32())])),
]


def _typed(number: int, version: int) -> Row:
    """Values of every type; one row in five has NULL everywhere, floats are exact in binary."""
    x = number * 100 + version
    if (number + version) % 5 == 0:
        return {"ts": version}
    return {
        "ts": version,
        "flag": x % 2 == 0,
        "tiny": x % 256 - 128,
        "small": x % 65536 - 32768,
        "whole": -x,
        "single": x / 4,
        "double": x / 1024,
        "text": f"“{x}” \\ ' \n",
        "blob": bytes([x % 256, 0, 255]),
        "date": dt.date(1969, 12, 31) + dt.timedelta(days=x),
        "moment": EPOCH + dt.timedelta(microseconds=x * 1_000_003),
        "money5": Decimal(x % 1000) / 100 - 5,
        "money9": Decimal(x) / 1000,
        "money18": Decimal(-x) / 10_000 + 10**13,
        "money38": Decimal(f"{10**27}.{x:010d}"),
        "longs": [] if x % 3 == 0 else [x, -x, 2**62],
        "items": [{"name": f"i{x}", "count": x}, {"name": None, "count": None}],
        "scores": {f"s{x % 7}": x / 2, "ö": 0.5},
        "nested": {
            "inner": {"name": f"n{x}", "count": None},
            "tags": ["a", f"b{x}"],
            "day": dt.date(2024, 1, 1) + dt.timedelta(days=x % 60),
        },
    }


def _flat(number: int, version: int) -> Row:
    return {"id": number, **_typed(number, version)}


PLACES = ("pl ain", "a/b", "x=1:2 é", "50%", "日本")


def _deep(number: int, version: int) -> Row:
    return {
        "tenant": number % 4,
        "id": f"id {number}",
        **_typed(number, version),
        "place": PLACES[number % len(PLACES)],
        "day": dt.date(2024, 1, 1 + number % 2),
    }


PARTITIONED = Variant("partitioned", ("id",), ("region",), PARTITIONED_SCHEMA, {}, _partitioned, upserts=sized(12, 6))
FLAT = Variant("flat", ("id",), (), pa.schema([("id", pa.int64()), *TYPED_FIELDS]), {}, _flat, upserts=5)
DEEP = Variant(
    "deep",
    ("tenant", "id"),
    ("place", "day"),
    # the partition fields stand last, because 0.15.0 moves them there when it reads
    pa.schema(
        [("tenant", pa.int32()), ("id", pa.string()), *TYPED_FIELDS, ("place", pa.string()), ("day", pa.date32())]
    ),
    {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    },
    _deep,
    upserts=5,
)
VARIANTS = (PARTITIONED, FLAT, DEEP)
