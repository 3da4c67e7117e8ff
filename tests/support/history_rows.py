"""
Tables that are written and read as users do it: through `Table`, of both types, log files included.

The rows of a merge-on-read table are those that `Table.rows` merges, for which the laws of `history_world` apply as for
copy-on-write tables; besides, conditions and ranges of time must agree with the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

from hudi_py.config.table import TableType
from hudi_py.errors import HudiError, RefusedError, UnsupportedTable
from hudi_py.model.instant import Action, Instant
from hudi_py.rows.precedence import merge_rules_of
from hudi_py.table import Table
from support import indexes
from support.history_laws import Kind, Rows, Violation, compare
from support.history_world import START, World
from support.history_writer import SCHEMA, Row, pending_clusterings

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.index.partition.stats.enable": True,
}
INDEXES = {
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
    "hoodie.metadata.index.bloom.filter.enable": True,
}
SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
APPLICATION = "player"
REWRITING = (Action.COMPACTION, Action.LOG_COMPACTION)
NEWEST = "9" * 20


class RowsWorld(World):
    """
    See `World`.

    Attributes:
        keys: Version of the write key of each commit that had one, by requested time.
        is_ordered: Whether of two rows with the same key the one with the larger ordering value wins.
        is_mixed: Whether that holds among log files alone, while any log file wins over a base file: then no step
            writes a smaller ordering value, because the model does not know where the older row is.
    """

    def __init__(self, kind: Kind, root: str, templates: Mapping[str, Row], start: datetime = START) -> None:
        super().__init__(kind, root, templates, start)
        self.keys: dict[str, int] = {}
        self.is_ordered = self.is_mixed = self._is_beside = False
        self._ended: dict[str, str] = {}
        self._key: int | None = None
        self._effects: dict[str, Callable[[Rows], Rows]] = {}

    @classmethod
    def empty(cls, kind: Kind) -> World:
        """A new table."""
        world = super().empty(kind)
        assert isinstance(world, RowsWorld)
        world.is_mor = False  # that asks the model of files
        world._learn_order(world.open())
        return world

    @classmethod
    def of_fixture(cls, kind: Kind, files: Mapping[str, bytes]) -> World:
        """A table of Apache Hudi: what it holds at each time is asked before the first step, and checked elsewhere."""
        world, table = cls.with_files(kind, files)
        world._learn_order(table)
        changeless = [*table.timeline.pending(*REWRITING)]
        changeless += pending_clusterings(table)
        world.ask_rows(table, changeless)
        for rows in world.rows.values():
            world.next_ts = max(
                [world.next_ts, *(row["ts"] for row in rows.values() if isinstance(row.get("ts"), int))]
            )
        return world

    def _learn_order(self, table: Table) -> None:
        properties = table.config.properties
        is_told = bool(merge_rules_of(properties).stored_fields)
        # Log files of Hudi 0.x are merged by the ordering field also where the newest row of all should win.
        has_logs = table.config.table_type is TableType.MERGE_ON_READ
        self.is_mixed = has_logs and not is_told and bool(properties.get("hoodie.table.precombine.field"))
        self.is_ordered = is_told or self.is_mixed

    def new_ordering_value(self) -> int:
        """
        See `World`.

        Of two writes at once it would decide which one wins, where the model takes the one that completes last
        (`is_mixed`): then both have the same value.
        """
        return self.next_ts if self.is_mixed and self._is_beside else super().new_ordering_value()

    # ------------------------------------------------------------------ looking
    def open(self, storage: Any = None, *, metadata: bool | str | None = "kind", **settings: Any) -> Table:
        """See `World`."""
        kept = {
            **(STATISTICS if self.kind.statistics else {}),
            **(INDEXES if self.kind.indexes else {}),
            **(SEVERAL if self.kind.several else {}),
        }
        return super().open(storage, metadata=metadata, **{**kept, **settings})

    @property
    def write_settings(self) -> Mapping[str, Any]:
        """What a writer needs besides."""
        if self.kind.buckets:
            return BUCKETS
        if not self.kind.global_index:
            return {}
        # By default rows stay in their old partition with this index, and with the others they move.
        return {"hoodie.index.type": self.kind.global_index, "hoodie.record.index.update.partition.path": True}

    def rows_at(self, table: Table, **when: str) -> Rows:
        """See `World`."""
        return _by_key(table.rows(with_meta=True, **when).to_arrow())

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Rows of the model as data for a write."""
        return pa.Table.from_pylist(self.projected(rows), schema=self._schema())

    def projected(self, rows: Iterable[Row]) -> list[Row]:
        """Rows with the columns that the table has now: a rollback may have taken some."""
        names = self._schema().names
        return [{name: row.get(name) for name in names} for row in rows]

    def _schema(self) -> pa.Schema:
        text = self.open().schema_text()
        return SCHEMA if text is None else pa.schema(f for f in self.open().schema if f.name[:8] != "_hoodie_")

    def means(self, after: Callable[[Rows], Rows], key: int | None = None) -> None:
        """A write begins: *after* gives the rows after it; *key* is the version of its write key."""
        self.settle()
        self.intent, self._key = after, key

    @property
    def has_ranges(self) -> bool:
        """See `World`."""
        return True

    @property
    def newest_key(self) -> int:
        """Version of the write key of the commits that count, -1 for none."""
        return max((self.keys[time] for time in self.chain if time in self.keys), default=-1)

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Another process writes while the one that has announced its rows is stopped."""
        mine, self.intent, self._key, self._is_beside = (self.intent, self._key), None, None, True
        try:
            yield
            self.settle()
        finally:
            self.intent, self._key = mine
            self._is_beside = False

    def moved(self, row: Row, partition: str) -> Row:
        """The row with the values of another partition."""
        columns = self.open().config.partition_fields
        return {**row, **{name: self.templates[partition][name] for name in columns}}

    # ------------------------------------------------------------------ the laws
    def settle(self) -> None:
        """See `World`."""
        known = set(self.rows)
        table = self.open()
        changeless = [*table.timeline.pending(*REWRITING), *pending_clusterings(table)]
        for instant in (*changeless, *table.timeline.writes.completed()):
            if instant.requested_time not in known and (instant.is_pending or _is_rewriting(table, instant)):
                self.rows[instant.requested_time] = {}
                self.clusterings.add(instant.requested_time)
        effect = self.intent
        super().settle()
        for time in self.rows.keys() - known - self.clusterings:
            if effect is not None:
                self._effects[time] = effect
                self._overtaken(time)
        if self._key is not None:
            self.keys |= dict.fromkeys(self.rows.keys() - known - self.clusterings, self._key)
        timeline = self.open().timeline
        for instant in timeline.writes.completed():
            self._ended[instant.requested_time] = instant.completion_time or instant.requested_time

    def _overtaken(self, time: str) -> None:
        """
        A write completed after one that began later: both count, as if one had run before the other.

        Which of them came first, only the rows tell (`WRITE_SERIALIZABLE`); both orders are right.
        """
        later = [each for each in self.chain if each > time and each not in self.clusterings]
        if not later:
            return
        rows, orders = self.rows[time], []
        mine = self._effects[time]
        for each in later:
            rows = self._effects.get(each, mine)(rows)
        orders = [rows, mine(self.rows[later[-1]])]
        found = self.rows_at(self.open())
        if found not in orders:
            compare("two writers", orders[0], found, f"rows after {time}, which completed after {later}")
        for each in later:
            self.rows[each] = mine(self.rows[each])
        self.rows[later[-1]] = found
        self.counts["two writers: one overtook the other"] += 1

    def check(self, *, times: Iterable[str] | None = None) -> None:
        """See `World`."""
        chance = random.Random(len(self.told))
        if self.kind.changes:
            self._check_changes(self.open())
        super().check(times=times if times is None else [each for each in times if chance.random() < 0.5])
        if chance.random() < 0.5:
            self._check_condition(self.open(), chance)
        else:
            self._check_range(self.open(), chance)

    def _check_changes(self, table: Table) -> None:
        """Single changes, one after the other, make the latest rows; documented exception in docs/changes.md."""
        overtakes = self.kind.several and table.config.format.log_naming.tells_slice
        if overtakes or table.timeline.pending(Action.RESTORE):
            return
        try:
            batches = list(table.change_log("0"))
        except RefusedError:  # files of changes are cleaned, or commits are archived
            self.counts["changes: refused"] += 1
            return
        found: dict[tuple[str, str], Row] = {}
        for change in (change for batch in batches for change in batch.to_pylist()):
            before, after = change["before"], change["after"]
            key = ((before or after)["region"], (before or after)["id"])
            if found.pop(key, None) != before:
                raise Violation("changes: another row before", f"{change['op']} of {key} at {change['ts']}: {before}")
            if after is not None:
                found[key] = after
        compare("changes", self.latest, found, "all changes, one after the other")
        self.counts["changes: compared"] += 1

    def _check_latest(self, table: Table) -> None:
        try:
            found = self.rows_at(table)
        except HudiError as error:
            if table.timeline.pending(Action.RESTORE) and "finish it first" in str(error):
                self.counts["latest: refused halfway of a restore"] += 1
                return
            raise Violation("latest: cannot be read", f"the latest rows cannot be read: {error}") from error
        decisive = self.decisive(NEWEST)
        if decisive in self.unknown:
            self.rows[str(decisive)] = found
            self.unknown.discard(str(decisive))
            self.counts["rows taken for granted"] += 1
        compare("latest", self.latest, found, f"latest rows, of commit {(self.chain or ['none'])[-1]}")
        if table.timeline.writes.pending() or table.timeline.pending(Action.ROLLBACK):
            return  # on layout 1 the folders show log files of what is pending, whose blocks do not count
        by_folders = _slices(self.open(metadata=False))
        if _slices(table) != by_folders:
            raise Violation("listing: metadata table and folders differ", f"by the folders: {by_folders}")

    def _check_condition(self, table: Table, chance: random.Random) -> None:
        """What statistics skip holds no row that meets the condition."""
        if table.timeline.pending(Action.RESTORE) or not self.latest:
            return
        if chance.random() < 0.5:
            self._check_key(table, chance)
            return
        bound = chance.choice(sorted(row["ts"] for row in self.latest.values()))
        found = _by_key(table.rows(where=("ts", ">=", bound), with_meta=True).to_arrow())
        expected = {key: row for key, row in self.latest.items() if row["ts"] >= bound}
        compare("condition", expected, found, f"rows with ts >= {bound}")

    def _check_key(self, table: Table, chance: random.Random) -> None:
        """What the indexes say of a key is where its rows are."""
        wanted = chance.choice(sorted({key for _, key in self.rows_ever() if key is not None}))
        expected = {key: row for key, row in self.latest.items() if key[1] == wanted}
        if len(expected) > 1 and self.kind.indexes:
            return  # a record index knows one row of each key; documented in docs/conditions.md
        found = _by_key(table.rows(where=("id", "=", wanted), with_meta=True).to_arrow())
        compare("key", expected, found, f"rows with id = {wanted}")
        if self.kind.indexes and len({key for _, key in self.latest}) == len(self.latest) and not self.is_dirty:
            try:
                indexes.assert_true(self.storage)
            except AssertionError as error:
                raise Violation("indexes: differ from the rows", str(error)[:1500]) from error

    def rows_ever(self) -> set[tuple[str, str]]:
        """Keys of the latest rows and of those of a commit before, which may be deleted."""
        return {key for rows in (self.latest, *self.rows.values()) for key in rows}

    def _is_cut(self, time: str) -> bool:
        """Whether the same writes lie before a commit by the times of their requests and of their completions."""
        ended = {each: self._ended.get(each, "") for each in self.chain}
        return {each for each in ended if each <= time} == {each for each in ended if ended[each] <= ended[time]}

    def told_at(self, table: Table, time: str, rows: Rows) -> Rows:
        """Of an archived time the columns of today are shown, which its rows may lack."""
        return _told(rows, ()) if table.timeline.is_before_start(time) else rows

    def _check_range(self, table: Table, chance: random.Random) -> None:
        """What changed in a range, put into the rows of its begin, gives those of its end."""
        known = [
            each
            for each in self.chain
            if each not in self.clusterings | self.unknown | self.cut and each in self._ended
        ]
        known = [each for each in known if not self.kind.several or self._is_cut(each)]
        if not known or "partial_update" in (self.kind.fixture or ""):
            return  # no range may begin behind the rows that later ones update in part
        end = chance.choice(known)
        start = chance.choice([None, *(each for each in known if each < end)])
        times, with_deletes = (None if start is None else self._ended[start], self._ended[end]), chance.random() < 0.5
        try:
            found = table.changes(*times, with_deletes=with_deletes, with_meta=True).to_arrow().to_pylist()
        except (RefusedError, UnsupportedTable):
            self.counts["range: refused"] += 1
            return
        self.counts["range: answered"] += 1
        after = self.rows[end]
        deleted = {_key(row) for row in found if row.pop("_hoodie_is_deleted", False)}
        changed = {_key(row): _plain(row) for row in found if _key(row) not in deleted}
        lost = {  # against a greater ordering value from before the range; documented in docs/changes.md
            key for key, row in changed.items() if self.is_ordered and row["ts"] < after.get(key, {}).get("ts", 0)
        }
        # Lost even against a row from before its deletion in between: the log files of the range do not have that row.
        between = [self.rows[each] for each in known if (start or "") <= each < end]
        revived = {key for key in lost if any(key not in rows for rows in between)}
        # Or the row of the range lost, and the one from before the deletion is shown, which nothing in the range wrote.
        old = [self.rows[each] for each in known if start is not None and each < start]
        before = {} if start is None else self.rows[start]
        gone = after.keys() - before.keys() - changed.keys() if self.is_ordered else set()
        revived |= {key for key in gone if any(rows.get(key) == after[key] for rows in old)}
        after = {key: row for key, row in after.items() if key not in revived}
        before = {key: row for key, row in before.items() if key not in revived}
        before = {key: row for key, row in before.items() if key not in deleted and (with_deletes or key in after)}
        # Or it lost against the deletion itself, which has the greater ordering value and is from before the range; in
        # tables of Apache Hudi also from before the row, which then was never there.
        ever = {key for rows in self.rows.values() for key in rows}
        lost |= {
            key
            for key in changed.keys() - after.keys() - before.keys()
            if self.is_ordered and (key not in ever or any(key in rows for rows in old))
        }
        changed = {key: row for key, row in changed.items() if key not in lost}
        # A range shows the columns of today, which rows of an earlier time may lack.
        # A snapshot takes partition columns of some key generators from the paths, as Hudi; a range the stored ones.
        by_path = self.open().config.partition_fields if self.kind.fixture else ()
        expected, shown = _told(after, by_path), _told({**before, **changed}, by_path)
        compare("range", expected, shown, f"rows of {times}, changes put into those of the begin")


def _told(rows: Rows, passed_over: Collection[str]) -> Rows:
    """Without nulls and some columns; the entries of a map have no order."""
    return {
        key: {
            name: sorted(value) if isinstance(value, list) and all(isinstance(each, tuple) for each in value) else value
            for name, value in row.items()
            if value is not None and name not in passed_over
        }
        for key, row in rows.items()
    }


def _is_rewriting(table: Table, instant: Instant) -> bool:
    """Whether a commit changes no rows; the laws of the latest rows hold it to that."""
    return table.contents.commit(instant).operation_type in ("COMPACT", "LOG_COMPACT", "CLUSTER")


def _slices(table: Table) -> dict[str, list[tuple[str, ...]]]:
    return {
        path: sorted(tuple(each.file_names) for each in table.file_slices(path))
        for path in table.partitions()
        if table.file_slices(path)
    }


def _key(row: Row) -> tuple[str, str]:
    return row["_hoodie_partition_path"], row["id"]


def _plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}


def _by_key(table: pa.Table) -> Rows:
    found: dict[tuple[str, str], Row] = {}
    for row in table.to_pylist():
        if _key(row) in found:
            raise Violation("read: a row twice", f"{_key(row)} is shown twice")
        found[_key(row)] = _plain(row)
    return found
