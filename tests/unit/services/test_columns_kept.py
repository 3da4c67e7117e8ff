"""Tables with schema on read: their columns survive every service, and `check` names what is lost of them."""

import json

import attrs
import pyarrow as pa
import pytest

from hudi_py.config.archive import ArchiveConfig
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.formats.column_history import HISTORY_FOLDER, history_time
from hudi_py.model.instant import Action, Instant, State
from hudi_py.services.archive.plan import ArchiveFacts, Bound, NewestClean, bound_of_one, plan_archive
from hudi_py.timeline.row_schema import IDS_ENTRY
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import ArchiveForm
from hudi_py.writing.transaction import begin_write
from support.altering import added, alter, dropped, renamed, retyped
from support.tables import at, done
from support.writes import ALONE, create_table, open_table

SETTINGS = {
    **ALONE,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clustering.plan.strategy.small.file.limit": 1 << 30,
    "hoodie.clustering.plan.strategy.partition.regex.pattern": "eu",
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
VERSIONS = (6, 8, 9)


def opened(storage, **more):
    return open_table(storage, **SETTINGS, **more)


def write(storage, key, region, **columns):
    row = {"id": key, "region": region, "ts": 1, **columns}
    opened(storage).upsert(pa.Table.from_pylist([row]))


def rows_of(storage):
    rows = open_table(storage).rows().to_arrow().to_pylist()
    return {row["id"]: {name: row[name] for name in row if name not in ("id", "region", "ts")} for row in rows}


def codes(storage):
    return {each.code for each in open_table(storage).check()}


def commit_without_ids(storage, operation, schema):
    """An empty commit as Apache Hudi leaves it, which has the columns and not their ids; its requested time."""
    table = open_table(storage)
    keeper = table.services.metadata_table
    with begin_write(table.contents, table.config, Settings({}), keeper) as transaction:
        transaction.commit([], operation=operation, extra_metadata={"schema": schema})
        return transaction.instant_time


def evolved(version, kind):
    """Two rows in two partitions; their column ``x`` is called ``z`` since."""
    storage = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    write(storage, "a", "eu", x="xa")
    write(storage, "u", "us", x="xu")
    alter(storage, renamed("x", "z"))
    return storage


@pytest.mark.parametrize("undo", ["rollback", "restore"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_write_before_rewrites_is_not_archived(version, kind, undo):
    """
    A clustering leaves no history: once the write behind it is undone, only the one before it knows the columns' ids.

    Without it the values of renamed columns became null, and nobody was told.
    """
    storage = evolved(version, kind)
    for _ in range(3):
        (rewrite,) = opened(storage).cluster()
    if undo == "restore":
        opened(storage).create_savepoint(rewrite.instant)
    write(storage, "b", "eu", z="zb")
    opened(storage, **{"hoodie.archive.beyond.savepoint": True}).archive()
    before = {"a": {"z": "xa"}, "u": {"z": "xu"}}
    assert rows_of(storage) == {**before, "b": {"z": "zb"}}
    if undo == "restore":
        opened(storage).restore(rewrite.instant)
    else:
        opened(storage).rollback(open_table(storage).timeline.commits.completed()[-1].requested_time)
    assert rows_of(storage) == before
    write(storage, "c", "eu", z="zc")
    assert rows_of(storage) == {**before, "c": {"z": "zc"}}
    assert codes(storage) <= {"leftover-markers"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_follow_savepoint_restore_rollback_clean_and_archive(version, kind):
    """A restore brings the names of that time back, a rollback of a change too; what was dropped has new ids then."""
    storage = evolved(version, kind)
    write(storage, "a", "eu", z="za")
    savepoint = open_table(storage).timeline.commits.completed()[-1].requested_time
    opened(storage).create_savepoint(savepoint)
    then = {"a": {"z": "za"}, "u": {"z": "xu"}}
    opened(storage).rollback(alter(storage, renamed("z", "w")))
    assert rows_of(storage) == then
    alter(storage, dropped("z"))
    alter(storage, added("z"))
    write(storage, "b", "us", z="zb")
    assert rows_of(storage) == {"a": {"z": None}, "u": {"z": None}, "b": {"z": "zb"}}
    opened(storage).restore(savepoint)
    assert rows_of(storage) == then
    opened(storage).delete_savepoint(savepoint)
    alter(storage, renamed("z", "v"))
    for number in range(5):
        write(storage, f"n{number}", "eu", v="n")
        opened(storage).clean()
        opened(storage).archive()
    expected = {"a": {"v": "za"}, "u": {"v": "xu"}, **{f"n{number}": {"v": "n"} for number in range(5)}}
    assert rows_of(storage) == expected
    # Of the files in the folder only those of active commits, as Hudi keeps them: a write deletes the others.
    write(storage, "last", "eu", v="l")
    active = {each.requested_time for each in open_table(storage).timeline.commits.completed()}
    there = {history_time(path.rpartition("/")[2]) for path in storage.files() if path.startswith(HISTORY_FOLDER)}
    assert max(active) in there
    assert there <= active
    assert codes(storage) <= {"leftover-markers"}


def history_files(storage):
    return sorted(path for path in storage.files() if path.startswith(HISTORY_FOLDER) and path.endswith("commit"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("damage", ["gone", "torn", "empty", "older"])
def test_a_history_that_is_gone_or_damaged_is_found(version, damage):
    """Writes are refused and change nothing; with the file back, all is well."""
    storage = evolved(version, "COPY_ON_WRITE")
    assert codes(storage) <= {"leftover-markers"}
    (path,) = history_files(storage)
    whole = storage.read(path)
    versions = json.loads(whole)["schemas"]
    content = {"torn": whole[:-9], "empty": b"", "older": json.dumps({"schemas": versions[1:]}).encode()}.get(damage)
    storage.delete(path)
    if content is not None:
        storage.create_new(path, content)
    code = "columns-history-missing" if damage == "gone" else "columns-history-damaged"
    (found,) = [each for each in open_table(storage).check() if each.severity.value == "error"]
    assert found.code == code
    assert found.fix
    before = storage.files()
    with pytest.raises(HudiError):
        write(storage, "b", "eu", z="zb")
    assert storage.files() == before
    storage.replace(path, whole)
    assert codes(storage) <= {"leftover-markers"}
    write(storage, "b", "eu", z="zb")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_that_lost_the_ids_is_found(version):
    """Apache Hudi 1.0.2 writes such commits after a rollback: to readers the renamed columns are null since."""
    storage = evolved(version, "COPY_ON_WRITE")
    table = open_table(storage)
    newest = table.timeline.commits.completed()[-1]
    entries = table.contents.commit(newest).extra_metadata
    assert entries[IDS_ENTRY]
    commit_without_ids(storage, "UPSERT", entries["schema"])
    assert "columns-ids-lost" in codes(storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_reads_refuse_columns_whose_ids_are_gone(version):
    """Where only a clustering of Apache Hudi is active, which has no ids: by their names the values would be null."""
    storage = evolved(version, "COPY_ON_WRITE")
    schema = open_table(storage).snapshot().schema_text()
    time = commit_without_ids(storage, "CLUSTER", schema)
    for path in [each for each in storage.files() if each.startswith(".hoodie/") and "/.schema/" not in each]:
        name = path.rpartition("/")[2]
        if name[:1].isdigit() and not name.startswith(time) and "/.temp/" not in path:
            storage.delete(path)
    with pytest.raises(CorruptMetadata, match="schema on read"):
        rows_of(storage)


def test_no_rewrite_becomes_the_oldest_commit_without_the_columns_of_its_time():
    """
    The rule alone: with schema on read the last write before a rewrite stays, and nothing else stays any longer.

    So does a savepointed commit that archival has passed, once its savepoint is deleted.
    """
    actions = ["commit", "commit", "replacecommit", "replacecommit", "replacecommit", "commit"]
    made = [Instant(at(n), Action(word), State.COMPLETED, done(at(n))) for n, word in enumerate(actions, 1)]
    facts = ArchiveFacts(
        table_type=TableType.COPY_ON_WRITE,
        form=ArchiveForm.HISTORY,
        last_clean=NewestClean(requested_time=at(7)),
        columns_in=frozenset(map(at, (1, 2, 6))),
    )
    config = ArchiveConfig(keep_min=2, keep_max=3)

    def archived(instants, columns_in):
        found = plan_archive(Timeline(tuple(instants)), attrs.evolve(facts, columns_in=columns_in), config)
        return [made.index(each) + 1 for each in found.instants], found.bound

    assert archived(made, facts.columns_in) == ([1], Bound.COLUMNS)
    assert archived(made, frozenset()) == ([1, 2, 3, 4], None)
    # Of a write that is archived already nothing is left to keep; and writes need no write before them.
    assert archived(made[1:], frozenset([at(1), at(6)])) == ([2, 3, 4], None)
    savepoint = Instant(at(2), Action.SAVEPOINT, State.COMPLETED, done(at(2)))
    passed = Timeline((made[1], savepoint, *made[2:]))
    assert bound_of_one(passed, facts, made[1]) is Bound.COLUMNS
    assert bound_of_one(passed, attrs.evolve(facts, columns_in=frozenset()), made[1]) is None


@pytest.mark.parametrize(("version", "shown"), [(6, 0.1), (8, 0.10000000149011612), (9, 0.1)])
def test_floats_of_log_files_become_the_doubles_that_hudi_reads(version, shown):
    """Seen in Hudi 0.15, 1.0 and 1.1 (tests/interop/test_schema_on_read.py); a compaction stores the same."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    schema = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("x", pa.float32())])
    for ts, x in ((1, 5.0), (2, 0.1)):  # the second one is in a log file
        row = {"id": "a", "region": "eu", "ts": ts, "x": x}
        opened(storage).upsert(pa.Table.from_pylist([row], schema=schema))
    alter(storage, retyped("x", "double"))
    assert rows_of(storage) == {"a": {"x": shown}}
    assert opened(storage).compact()
    assert rows_of(storage) == {"a": {"x": shown}}
