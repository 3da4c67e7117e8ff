"""Columns get fields and wider types at any depth between any writes, and no row is lost or shown otherwise."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_py.formats.stored_values import java_text
from support import writes

STEPS = 12
DECIMAL = pa.decimal128(18, 3)
PLAIN = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), DECIMAL)
WIDER = {
    pa.int32(): (pa.int64(), pa.float64(), pa.string()),
    pa.int64(): (pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
}
SETTINGS = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.clean.automatic": False}
INDEXED = {
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.index.bloom.filter.enable": True,
}


def drawn(chance, depth):
    """A type of any shape."""
    kind = chance.choice(("struct", "struct", "list", "map")) if depth else "plain"
    if kind == "struct":
        return pa.struct([(f"f{at}", drawn(chance, chance.randrange(depth))) for at in range(chance.randint(1, 3))])
    if kind == "list":
        return pa.list_(drawn(chance, depth - 1))
    if kind == "map":
        return pa.map_(pa.string(), drawn(chance, depth - 1))
    return chance.choice(PLAIN)


def evolved(chance, arrow):
    """The type with more fields and wider leaves, some of its fields in another order."""
    if isinstance(arrow, pa.StructType):
        fields = [(field.name, evolved(chance, field.type)) for field in arrow]
        if chance.random() < 0.4:
            fields.append((f"f{len(fields)}", drawn(chance, chance.randrange(3))))
        chance.shuffle(fields)
        return pa.struct(fields)
    if isinstance(arrow, pa.ListType):
        return pa.list_(evolved(chance, arrow.value_type))
    if isinstance(arrow, pa.MapType):
        return pa.map_(pa.string(), evolved(chance, arrow.item_type))
    return chance.choice(WIDER.get(arrow, (arrow,))) if chance.random() < 0.4 else arrow


def value(chance, arrow, *, may_be_null=True):
    """A value of a type; lists hold no nulls, which Hudi cannot store."""
    if may_be_null and chance.random() < 0.2:
        return None
    if isinstance(arrow, pa.StructType):
        return {field.name: value(chance, field.type) for field in arrow}
    if isinstance(arrow, pa.ListType):
        return [value(chance, arrow.value_type, may_be_null=False) for _ in range(chance.randrange(3))]
    if isinstance(arrow, pa.MapType):
        return [(key, value(chance, arrow.item_type)) for key in "ab"[: chance.randrange(3)]]
    number = chance.randrange(-(2**31), 2**31) if arrow != pa.float32() else chance.randrange(1000)
    if pa.types.is_floating(arrow):
        return number / 8  # the same number in both types
    return str(number) if pa.types.is_string(arrow) else Decimal(number) / 1000 if arrow == DECIMAL else number


def plain(found):
    """A value without the fields that are null, so that fields of later make no difference; numbers as texts."""
    if isinstance(found, dict):
        return {name: plain(each) for name, each in found.items() if each is not None}
    if isinstance(found, list):
        return [plain(each) for each in found]
    if isinstance(found, tuple):
        return found[0], plain(found[1])
    return text_of(found)


def text_of(found):
    """The text that any of the types makes of a number: 12 and 12.0 are the same one, as text too."""
    if isinstance(found, int | float):
        return text_of(java_text(float(found)))
    if isinstance(found, str):
        number = Decimal(found)
        return str(int(number)) if number == int(number) else str(number.normalize())
    return found


def leaves(arrow, path=""):
    """Types of all fields at any depth, by path."""
    if isinstance(arrow, pa.StructType):
        return {name: kind for field in arrow for name, kind in leaves(field.type, f"{path}.{field.name}").items()}
    if isinstance(arrow, pa.ListType):
        return leaves(arrow.value_type, f"{path}[]")
    return leaves(arrow.item_type, f"{path}{{}}") if isinstance(arrow, pa.MapType) else {path: arrow}


def logged(table):
    """The rows to which the single changes of a table add up."""
    rows = {}
    changes = table.change_log().to_arrow().to_pylist()
    for change in sorted(changes, key=lambda each: each["ts"]):
        for side in ("before", "after"):
            row = change[side]
            if row is not None and side == "before":
                assert rows.pop((row["id"], row["region"])) == plain(row["v"])
            elif row is not None:
                rows[row["id"], row["region"]] = plain(row["v"])
    return rows


class Model:
    """Rows by key, and the types that their writers have had."""

    def __init__(self, storage, seed, **settings):
        self.storage, self.settings, self.chance = storage, settings, random.Random(seed)
        self.types = [drawn(self.chance, 3)]
        self.rows, self.time, self.past = {}, 0, []

    @property
    def table(self):
        return writes.open_table(self.storage, **self.settings)

    def some(self, count=3, arrow=None):
        """Rows of the newest type, or of an older one, by their keys."""
        self.time += 1
        arrow = arrow or self.chance.choice([self.types[-1], self.chance.choice(self.types)])
        # A record index knows one place of each key, so each key has one region.
        numbers = {self.chance.randrange(10) for _ in range(count)}
        keys = {(str(number), ("eu", "us")[number % 2]) for number in numbers}
        rows = {key: value(self.chance, arrow) for key in sorted(keys)}
        schema = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("v", arrow)])
        flat = [{"id": i, "region": r, "ts": self.time, "v": v} for (i, r), v in rows.items()]
        return pa.Table.from_pylist(flat, schema=schema), {key: plain(v) for key, v in rows.items()}

    def evolve(self):
        self.types.append(evolved(self.chance, self.types[-1]))
        data, rows = self.some(arrow=self.types[-1])
        self.table.upsert(data)
        self.rows |= rows

    def upsert(self):
        data, rows = self.some()
        self.table.upsert(data)
        self.rows |= rows

    def insert(self):
        self.table.delete(where="id < '3'")
        self.rows = {key: row for key, row in self.rows.items() if key[0] >= "3"}
        data, rows = self.some()
        new = pa.array([key not in self.rows for key in rows])
        getattr(self.table, self.chance.choice(("insert", "bulk_insert")))(data.filter(new))
        self.rows = rows | self.rows

    def delete(self):
        data, rows = self.some()
        self.table.delete(data)
        self.rows = {key: row for key, row in self.rows.items() if key not in rows}

    def update(self):
        self.time += 1
        self.table.update({"ts": self.time}, where="id >= '5'")

    def merge(self):
        data, rows = self.some(arrow=self.types[-1])
        self.table.merge(data, on=["id", "region"]).when_not_matched_insert().execute()
        self.rows = rows | self.rows

    def overwrite(self):
        data, rows = self.some()
        self.table.insert_overwrite(data)
        regions = {region for _, region in rows}
        self.rows = {key: row for key, row in self.rows.items() if key[1] not in regions} | rows

    def rewrite(self):
        table = self.table
        if self.settings.get("hoodie.table.type") == "MERGE_ON_READ":
            table.compact()
        table.refresh().cluster()

    def shown(self, table, **asked):
        found = (table.changes(**asked) if "start" in asked else table.rows(**asked)).to_arrow()
        rows = {(r["id"], r["region"]): plain(r["v"]) for r in found.to_pylist()}
        assert len(rows) == found.num_rows
        return rows, found.schema

    def play(self):
        data, self.rows = self.some()
        self.table.upsert(data)
        steps = (
            self.evolve,
            self.evolve,
            self.upsert,
            self.insert,
            self.delete,
            self.update,
            self.merge,
            self.overwrite,
            self.rewrite,
        )
        for number in range(STEPS):
            step = self.chance.choice(steps)
            step()
            case = f"{number}: {step.__name__}, {self.types[-1]}"
            table = self.table
            rows, schema = self.shown(table)
            assert rows == self.rows, case
            assert leaves(schema.field("v").type) == leaves(self.types[-1]), case
            assert self.shown(table, start="0")[0] == self.rows, case
            if self.settings.get("hoodie.table.cdc.enabled"):
                assert logged(table) == self.rows, case
            self.past.append((table.timeline.completed()[-1].requested_time, dict(self.rows)))
            time, before = self.chance.choice(self.past)
            assert self.shown(table, as_of=time)[0] == before, case
            changed = self.shown(table, start=time)[0]
            assert {key: row for key, row in (before | changed).items() if key in self.rows} == self.rows, case
        assert not self.table.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("more", [{}, {"hoodie.table.cdc.enabled": True}, INDEXED], ids=("plain", "cdc", "indexed"))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_any_evolution_between_any_writes_equals_a_dictionary(version, kind, more, seed):
    """Base and log files of any age are merged, rewritten and read in the columns of today."""
    settings = {"hoodie.table.type": kind, "hoodie_py.write.numbers.to.text": True, **SETTINGS, **more}
    Model(writes.create_table(version, **settings), seed, **settings).play()
