"""Tables whose columns change between writes, against a model that knows columns by their ids."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_py.errors import RefusedError
from support.altering import added, alter, dropped, renamed, retyped
from support.writes import ALONE, create_table, open_table

FIXED = ("id", "region", "ts")
ARROW = {"string": pa.string(), "long": pa.int64(), "int": pa.int32()}
KEYS = [("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "us")]
SETTINGS = {
    **ALONE,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clustering.plan.strategy.small.file.limit": 1 << 30,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
}


class Model:
    """Rows by key, each id of a column to its value; and the columns of today: name to id and type."""

    def __init__(self):
        self.rows = {}
        self.columns = {"x": (0, "string"), "y": (1, "int")}
        self.ids = itertools.count(2)
        self.savepoint = self.undoable = None  # a time, and the rows and columns of then

    def moment(self):
        """Rows and columns of now; ids go on, so that none of the model is used twice, whatever is undone."""
        return dict(self.rows), dict(self.columns)

    def go_back(self, moment):
        self.rows, self.columns = map(dict, moment)

    def shown(self):
        found = [
            {"id": key[0], "region": key[1], "ts": ts, **{name: self._value(row, name) for name in self.columns}}
            for key, (ts, row) in self.rows.items()
        ]
        return sorted(found, key=str)

    def _value(self, row, name):
        number, kind = self.columns[name]
        value = row.get(number)
        return str(value) if value is not None and kind == "string" else value

    def schema(self):
        fixed = [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64())]
        return pa.schema([*fixed, *((name, ARROW[kind]) for name, (_, kind) in self.columns.items())])


def value_of(kind, number):
    return f"v{number}" if kind == "string" else number


def write(storage, model, data, numbers, operation):
    ts = next(numbers)
    chosen = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True))
    rows = []
    for key in chosen:
        row = {
            number: value_of(kind, next(numbers)) for number, kind in model.columns.values() if data.draw(st.booleans())
        }
        rows.append((key, ts, row))
    if operation == "insert":
        rows = [each for each in rows if each[0] not in model.rows]
        if not rows:
            return
    full = [
        {"id": key[0], "region": key[1], "ts": ts}
        | {name: row.get(number) for name, (number, _) in model.columns.items()}
        for key, ts, row in rows
    ]
    getattr(open_table(storage, **SETTINGS), operation)(pa.Table.from_pylist(full, schema=model.schema()))
    if operation == "insert_overwrite":
        regions = {key[1] for key, _, _ in rows}
        model.rows = {key: row for key, row in model.rows.items() if key[1] not in regions}
    for key, ts, row in rows:
        model.rows[key] = (ts, row)


def delete(storage, model, data, numbers):
    if not model.rows:
        return
    key = data.draw(st.sampled_from(sorted(model.rows)))
    schema = pa.schema([("id", pa.string()), ("region", pa.string())])
    open_table(storage, **SETTINGS).delete(pa.Table.from_pylist([{"id": key[0], "region": key[1]}], schema=schema))
    del model.rows[key]


def update(storage, model, data, numbers):
    texts = [name for name, (_, kind) in model.columns.items() if kind == "string"]
    if not texts or not model.rows:
        return
    name = data.draw(st.sampled_from(texts))
    open_table(storage, **SETTINGS).update({name: "'U'"}, where="region = 'eu'")
    for key, (ts, row) in model.rows.items():
        if key[1] == "eu":
            model.rows[key] = (ts, {**row, model.columns[name][0]: "U"})


def change(storage, model, data, numbers):
    what = data.draw(st.sampled_from(("rename", "drop", "add", "again", "widen", "new")))
    name = data.draw(st.sampled_from(sorted(model.columns)))
    fresh = f"n{next(numbers)}"
    if what == "rename":
        alter(storage, renamed(name, fresh))
        model.columns = {fresh if each == name else each: column for each, column in model.columns.items()}
    elif what == "drop" and len(model.columns) > 1:
        alter(storage, dropped(name))
        del model.columns[name]
    elif what == "again" and len(model.columns) > 1:
        alter(storage, dropped(name))
        alter(storage, added(name))
        del model.columns[name]
        model.columns[name] = (next(model.ids), "string")
    elif what == "add":
        alter(storage, added(fresh))
        model.columns[fresh] = (next(model.ids), "string")
    elif what == "widen" and model.columns[name][1] == "int":
        alter(storage, retyped(name, "string"))
        model.columns[name] = (model.columns[name][0], "string")
    elif what == "new":  # a write brings a column of its own
        model.columns[fresh] = (next(model.ids), "string")
        write(storage, model, data, numbers, "upsert")


def compact(storage, model, data, numbers):
    table = open_table(storage, **SETTINGS)
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()


def planned(storage, model, data, numbers):
    """A compaction or clustering is planned, the columns change, and only then it is carried out."""
    table = open_table(storage, **SETTINGS)
    if table.config.table_type.value == "MERGE_ON_READ" and table.schedule_compaction() is not None:
        change(storage, model, data, numbers)
        open_table(storage, **SETTINGS).compact()


def cluster(storage, model, data, numbers):
    open_table(storage, **SETTINGS).cluster()


def clean(storage, model, data, numbers):
    open_table(storage, **SETTINGS).clean()


def archive(storage, model, data, numbers):
    open_table(storage, **SETTINGS).archive()


def save(storage, model, data, numbers):
    """The newest commit is saved; one savepoint at a time."""
    if model.savepoint is None:
        time = open_table(storage, **SETTINGS).create_savepoint().requested_time
        model.savepoint = time, model.moment()


def restore(storage, model, data, numbers):
    """Back to the savepoint, and to the columns of then; it stays."""
    if model.savepoint is not None:
        time, moment = model.savepoint
        open_table(storage, **SETTINGS).restore(time)
        model.go_back(moment)


def rollback(storage, model, data, numbers):
    """The last commit is undone, a change of columns, too."""
    if model.undoable is not None and (model.savepoint is None or model.savepoint[0] < model.undoable[0]):
        time, moment = model.undoable
        open_table(storage, **SETTINGS).rollback(time)
        model.go_back(moment)


STEPS = {
    "upsert": lambda *given: write(*given, "upsert"),
    "insert": lambda *given: write(*given, "insert"),
    "bulk": lambda *given: write(*given, "insert"),
    "overwrite": lambda *given: write(*given, "insert_overwrite"),
    "delete": delete,
    "update": update,
    "change": change,
    "change2": change,
    "compact": compact,
    "planned": planned,
    "cluster": cluster,
    "clean": clean,
    "archive": archive,
    "save": save,
    "restore": restore,
    "rollback": rollback,
}
NO_WRITES = ("clean", "archive", "compact", "planned", "cluster", "save")


def read(storage, **given):
    rows = open_table(storage).rows(**given).to_arrow().to_pylist()
    return sorted(rows, key=str)


def times_of(storage):
    """Commits that are on the active timeline."""
    return {each.requested_time for each in open_table(storage).timeline.commits.completed()}


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_any_history_shows_the_rows_of_the_model(version, kind, data):
    """Each column keeps its values under any name; a new one of an old name has none; the past stays as it was."""
    storage = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    model, numbers = Model(), itertools.count(1)
    STEPS["upsert"](storage, model, data, numbers)
    past = {}
    for _ in range(data.draw(st.integers(2, 7))):
        name = data.draw(st.sampled_from(sorted(STEPS)))
        times, moment = times_of(storage), model.moment()
        STEPS[name](storage, model, data, numbers)
        assert read(storage) == model.shown(), name
        new = sorted(times_of(storage) - times)
        model.undoable = (new[0], moment) if len(new) == 1 and name not in NO_WRITES else None
        if name not in ("clean", "archive"):
            past[max(times_of(storage))] = model.shown()
        if name in ("restore", "rollback"):  # what is undone is nobody's past
            past = {time: rows for time, rows in past.items() if time in times_of(storage)}
    active = {each.requested_time for each in open_table(storage).timeline}
    for time, rows in past.items():
        try:
            found = read(storage, as_of=time)
        except RefusedError:  # cleaned since
            continue
        # Archived since: then it is read with the columns of today, because nothing says which it had.
        assert time not in active or found == rows
    codes = {each.code for each in open_table(storage).check()}
    assert codes <= {"leftover-markers"}, codes


@pytest.mark.parametrize("version", [6, 9])
def test_a_rewrite_keeps_its_columns_when_the_writes_before_it_are_archived(version):
    """The columns of today would give its rows a name that they never had at that time."""
    storage = create_table(version)
    schema = Model().schema()
    row = {"id": "a", "region": "eu", "ts": 1, "x": "v", "y": 1}
    open_table(storage, **SETTINGS).upsert(pa.Table.from_pylist([row], schema=schema))
    (rewrite,) = open_table(storage, **SETTINGS).cluster()
    alter(storage, renamed("x", "n2"))
    alter(storage, renamed("n2", "n3"))
    open_table(storage, **SETTINGS).archive()
    times = [each.requested_time for each in open_table(storage).timeline.commits.completed()]
    assert times[0] == rewrite.instant, "the write is archived, the rewrite is not"
    assert read(storage, as_of=rewrite.instant) == [row]
