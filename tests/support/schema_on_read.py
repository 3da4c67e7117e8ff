"""A table that real Hudi and hudi_py write in turn while its columns change, with a model that knows them by id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
from real_hudi.canonical import canonical_rows

import hudi_py

COLUMNS = (
    "id int, name string, old string, qty int, price float, s struct<a:int,b:string>, l array<struct<x:int,y:int>>, "
    "m map<string,struct<v:int,w:int>>, ts bigint, part string"
)
ALTER = (
    "rename column name to title",
    "add columns (extra string after id)",
    "drop column old",
    "add columns (old string)",
    "alter column qty type bigint",
    "rename column s.b to c",
    "add columns (s.d int)",
    "rename column l.element.x to z",
    "rename column m.value.v to u",
    "alter column price type string",
    "alter column title after ts",
)
_ON = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
}

_OURS = {
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clustering.plan.strategy.small.file.limit": 1 << 30,
}

Row = dict[str, Any]


class Evolving:
    """
    Args:
        peer: Real Hudi.
        path: Folder of the table.
        name: Name of the table in SQL.
        kind: ``cow`` or ``mor``.
    """

    def __init__(self, peer: Any, path: Path, name: str, kind: str) -> None:
        self.peer, self.path, self.name, self.kind = peer, path, name, kind
        self.rows: dict[int, Row] = {}

    def sql(self, statement: str) -> list[Row]:
        return self.peer.sql(statement, _ON if not statement.startswith(("set", "reset")) else None)

    def create(self, columns: str) -> None:
        self.sql(
            f"create table {self.name} ({columns}) using hudi partitioned by (part) location '{self.path}' "
            f"tblproperties (type='{self.kind}', primaryKey='id', preCombineField='ts')"
        )

    def hudi_inserts(self, rows: Iterable[Row]) -> None:
        values = []
        for row in rows:
            self.rows[row["id"]] = deepcopy(row)
            s, x, m = row["s"], row["l"][0], row["m"]["k"]
            values.append(
                f"({row['id']}, '{row['name']}', '{row['old']}', {row['qty']}, float({row['price']}), "
                f"named_struct('a', {s['a']}, 'b', '{s['b']}'), array(named_struct('x', {x['x']}, 'y', {x['y']})), "
                f"map('k', named_struct('v', {m['v']}, 'w', {m['w']})), {row['ts']}, '{row['part']}')"
            )
        self.sql(f"insert into {self.name} values {', '.join(values)}")

    def hudi_updates(self, values: Mapping[str, str], key: int, change: Row) -> None:
        said = ", ".join(f"{name} = {text}" for name, text in values.items())
        self.sql(f"update {self.name} set {said} where id = {key}")
        self.rows[key] |= change
        self.both_read_the_model()

    def alter(self, statement: str) -> None:
        self.sql(f"alter table {self.name} {statement}")
        for row in self.rows.values():
            _CHANGES[statement](row)
        self.we_read_the_model()

    def we_write(self, operation: str, rows: list[Row], *, adds: Any = None, replaces: str | None = None) -> None:
        table = self.opened()
        schema = pa.schema([*table.schema, *(pa.field(name, arrow) for name, arrow in (adds or {}).items())])
        for name in adds or ():
            for row in self.rows.values():
                row[name] = None
        full = [dict.fromkeys(schema.names) | row for row in rows]
        getattr(table, operation)(pa.Table.from_pylist(full, schema=schema))
        if replaces is not None:
            self.rows = {key: row for key, row in self.rows.items() if row["part"] != replaces}
        self.rows |= {row["id"]: row for row in full}
        self.both_read_the_model()

    def we_delete(self, keys: list[Row]) -> None:
        self.opened().delete(pa.Table.from_pylist(keys, schema=pa.schema([("id", pa.int32()), ("part", pa.string())])))
        for key in keys:
            del self.rows[key["id"]]
        self.both_read_the_model()

    def we_update(self, values: Mapping[str, str], where: str, changes: Mapping[int, Row]) -> None:
        self.opened().update(values, where=where)
        for key, change in changes.items():
            self.rows[key] |= change
        self.both_read_the_model()

    def we_run(self, service: str) -> None:
        """One of our services, which has something to do."""
        assert getattr(self.opened(), service)(), service
        self.both_read_the_model()

    def hudi_compacts(self) -> None:
        time = self.peer.schedule(self.path, "COMPACT", {"hoodie.compact.inline.max.delta.commits": 1})
        assert time is not None
        self.peer.carry_out(self.path, "COMPACT", time)
        self.both_read_the_model()

    def opened(self) -> hudi_py.Table:
        return hudi_py.open_table(self.path, settings=_OURS)

    def we_read_the_model(self) -> None:
        ours = self.opened().rows().to_arrow().to_pylist(maps_as_pydicts="strict")
        assert canonical_rows(ours) == canonical_rows(self.rows.values()), "hudi_py"

    def both_read_the_model(self) -> None:
        self.we_read_the_model()
        expected = canonical_rows(self.rows.values())
        assert self.peer.read(self.path, options={"hoodie.schema.on.read.enable": True}) == expected, "Hudi"

    def newest_commit(self) -> Mapping[str, Any]:
        """Entries of the newest commit."""
        table = self.opened()
        return table.contents.commit(table.timeline.commits.completed()[-1]).extra_metadata

    @staticmethod
    def shape(name: str) -> str:
        """A file name with its times replaced."""
        return re.sub(r"\d{17}", "T", name)


def _renamed(old: str, new: str) -> Callable[[Row], None]:
    def change(row: Row) -> None:
        row[new] = row.pop(old)

    return change


def _added(name: str) -> Callable[[Row], None]:
    return lambda row: row.update({name: None})


def _in(path: tuple[str, ...], change: Callable[[Row], None]) -> Callable[[Row], None]:
    """The change in each struct at a path; ``*`` stands for the elements of a list and the values of a map."""

    def at(node: Any, rest: tuple[str, ...]) -> None:
        if node is None:
            return
        if not rest:
            change(node)
        elif rest[0] == "*":
            for each in node.values() if isinstance(node, dict) else node:
                at(each, rest[1:])
        else:
            at(node[rest[0]], rest[1:])

    return lambda row: at(row, path)


def _as_text(row: Row) -> None:
    row["price"] = None if row["price"] is None else str(row["price"])


_CHANGES: dict[str, Callable[[Row], None]] = {
    "rename column name to title": _renamed("name", "title"),
    "add columns (extra string after id)": _added("extra"),
    "drop column old": lambda row: row.pop("old"),
    "add columns (old string)": _added("old"),
    "alter column qty type bigint": lambda row: None,
    "rename column s.b to c": _in(("s",), _renamed("b", "c")),
    "add columns (s.d int)": _in(("s",), _added("d")),
    "rename column l.element.x to z": _in(("l", "*"), _renamed("x", "z")),
    "rename column m.value.v to u": _in(("m", "*"), _renamed("v", "u")),
    "alter column price type string": _as_text,
    "alter column title after ts": lambda row: None,
    "rename column title to label": _renamed("title", "label"),
    "rename column new to newer": _renamed("new", "newer"),
    "rename column label to last": _renamed("label", "last"),
}
