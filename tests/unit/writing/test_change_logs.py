"""Tables with change data capture, written without Spark: each single change is told, as a dictionary would tell it."""

from collections import Counter

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.formats.change_block import decode_change_log
from hudi_py.rows import change_log_file
from hudi_py.rows.read import plain_rows
from hudi_py.writing import files
from support import writes
from support.fixtures import unpack_rows

SCHEMA = pa.schema([*writes.SCHEMA, pa.field("tags", pa.list_(pa.string()))])
SMALL = {"hoodie.index.bloom.num_entries": 100, **writes.ALONE}
SIDES = ("before", "after")
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
VERSIONS = pytest.mark.parametrize(
    ("version", "mode"), [(6, "OP_KEY_ONLY"), (8, "DATA_BEFORE"), (9, "DATA_BEFORE_AFTER")]
)


def cdc_table(version, mode="DATA_BEFORE_AFTER", **more):
    settings = {"hoodie.table.cdc.enabled": True, "hoodie.table.cdc.supplemental.logging.mode": mode, **more}
    return writes.open_table(writes.create_table(version, **settings), **SMALL, **more)


def arrow(rows):
    flat = [{"id": i, "region": r, "ts": ts, "tags": [i, str(ts)]} for (i, r), ts in rows.items()]
    return pa.Table.from_pylist(flat, schema=SCHEMA)


class Model:
    """The rows of a table, and the changes of each commit."""

    def __init__(self, table):
        self.table, self.rows, self.changes = table, {}, Counter()

    def step(self, result, rows, *, replaced=()):
        """A write has made *rows* of the rows before; those of partitions that it replaced go, and others come."""
        kept = {key: ts for key, ts in self.rows.items() if key[1] not in replaced}
        for old, new in ((self.rows, kept), (kept, rows)):
            for key in {*old, *new}:
                if old.get(key) != new.get(key):
                    self.changes[result.instant, key, old.get(key), new.get(key)] += 1
        self.rows = rows

    def check(self):
        table = self.table.refresh()
        shown = table.rows().to_arrow().to_pylist()
        assert {(row["id"], row["region"]): row["ts"] for row in shown} == self.rows
        assert changes_of(table) == self.changes
        assert not [each for each in table.check() if each.code != "instant-pending"]
        assert not table.orphans().to_remove


def changes_of(table, start="0"):
    found = Counter()
    for row in (row for batch in table.change_log(start) for row in plain_rows(batch)):
        before, after = row["before"], row["after"]
        assert row["op"] == {(True, False): "d", (False, True): "i", (True, True): "u"}[bool(before), bool(after)]
        for each in filter(None, (before, after)):
            assert each["tags"] == [each["id"], str(each["ts"])]
        key = ((before or after)["id"], (before or after)["region"])
        found[row["ts"], key, before and before["ts"], after and after["ts"]] += 1
    return found


def change_logs_of(storage):
    return sorted(path for path in storage.files() if path.endswith(".cdc"))


@VERSIONS
@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_tells_its_changes(version, mode, kind):
    """By keys and by conditions, with rows that lose, replaced partitions, clusterings and compactions in between."""
    table = cdc_table(version, mode, **{"hoodie.table.type": kind, "hoodie.compact.inline.max.delta.commits": 1})
    model = Model(table)

    def rewrite():
        table.refresh()
        assert (table.compact if kind == KINDS[1] else table.cluster)()

    rows = {("a", "eu"): 1, ("b", "eu"): 1, ("c", "us"): 1, ("d", "us"): 1, ("e", "ap"): 1}
    model.step(table.insert(arrow(rows)), rows)
    more = {("a", "eu"): 2, ("f", "us"): 2, ("c", "us"): 3}
    model.step(table.upsert(arrow(more)), model.rows | more)
    rewrite()
    if kind == KINDS[0] and version != 6:
        model.step(table.upsert(arrow({("a", "eu"): 0})), model.rows)
    model.step(
        table.delete(where="id in ('b', 'd')"), {key: ts for key, ts in model.rows.items() if key[0] not in "bd"}
    )
    model.step(table.insert(arrow({("g", "eu"): 4})), model.rows | {("g", "eu"): 4})
    us = {key: 5 for key in model.rows if key[1] == "us"}
    model.step(table.upsert(arrow(us)), model.rows | us)
    model.check()
    if kind == KINDS[1]:
        assert table.refresh().schedule_compaction()
    source = {("g", "eu"): 6, ("h", "ap"): 6}
    merge = table.merge(arrow(source), on=["id", "region"]).when_matched_update().when_not_matched_insert()
    model.step(merge.execute(), model.rows | source)
    model.step(table.delete(where="region = 'ap'"), {key: ts for key, ts in model.rows.items() if key[1] != "ap"})
    model.step(table.bulk_insert(arrow({("i", "eu"): 7})), model.rows | {("i", "eu"): 7})
    model.check()
    again = {("i", "eu"): 8, ("a", "eu"): 8, ("j", "ap"): 8}
    model.step(table.upsert(arrow(again)), model.rows | again)
    other = {("a", "eu"): 9, ("k", "eu"): 9}
    kept = {key: ts for key, ts in model.rows.items() if key[1] != "eu"}
    rewrite()
    model.step(table.insert_overwrite(arrow(other)), kept | other, replaced=["eu"])
    model.step(table.drop_partitions(["us"]), {key: ts for key, ts in model.rows.items() if key[1] != "us"})
    last = {("a", "eu"): 10, ("f", "us"): 10}
    model.step(table.upsert(arrow(last)), model.rows | last)
    model.check()


@VERSIONS
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_repeated_keys_lead_from_each_snapshot_to_the_next(version, mode, kind):
    """Several rows of a key, in one file and in two: the rows before go, those after come, and no row is another's."""
    table = cdc_table(version, mode, **{"hoodie.table.type": kind, "hoodie.parquet.small.file.limit": 0})
    before = Counter()
    for operation, times in (
        ("bulk_insert", "a1 k1 k3 k5 z1 m1 m1"),
        ("bulk_insert", "k7 b7"),
        ("upsert", "k4"),
        ("upsert", "a4"),
        ("upsert", "k8 m1"),
        ("upsert", "k9 c9 m9"),
        ("delete", "k20 z20"),
    ):
        rows = [{"id": each[0], "region": "eu", "ts": int(each[1:]), "tags": []} for each in times.split()]
        result = getattr(table, operation)(pa.Table.from_pylist(rows, schema=SCHEMA))
        shown = Counter((row["id"], row["ts"]) for row in table.refresh().rows().to_arrow().to_pylist())
        told = [row for batch in table.change_log() for row in plain_rows(batch) if row["ts"] == result.instant]
        gone, come = (Counter((row[side]["id"], row[side]["ts"]) for row in told if row[side]) for side in SIDES)
        assert Counter({row: count for row, count in gone.items() if count > before[row]}) == Counter()
        assert before - gone + come == shown, operation
        before = shown


@VERSIONS
def test_a_row_that_moves_is_deleted_and_inserted(version, mode):
    """With an index over all partitions, each side in the log of its file group."""
    moves = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": True}
    model = Model(cdc_table(version, mode, **moves))
    model.step(model.table.insert(arrow({("a", "eu"): 1, ("b", "eu"): 1, ("c", "us"): 1})), {
        ("a", "eu"): 1, ("b", "eu"): 1, ("c", "us"): 1
    })  # fmt: skip
    model.step(model.table.upsert(arrow({("a", "us"): 2})), {("b", "eu"): 1, ("c", "us"): 1, ("a", "us"): 2})
    model.check()


def test_changes_of_many_rows_are_in_blocks_of_limited_size(monkeypatch):
    """Encoding takes many times the memory of the rows."""
    monkeypatch.setattr(change_log_file, "_BLOCK_BYTES_MAX", 500)
    model = Model(cdc_table(9))
    rows = {(f"k{number}", "eu"): 1 for number in range(60)}
    model.step(model.table.insert(arrow(rows)), rows)
    changes = {(f"k{number}", "eu"): 2 for number in range(30, 80)}
    model.step(model.table.upsert(arrow(changes)), rows | changes)
    model.check()
    (path,) = change_logs_of(model.table.storage)
    blocks = list(decode_change_log(model.table.storage.read(path), path))
    assert sum(len(block.operations) for block in blocks) == len(changes)
    assert len(blocks) > 3


@VERSIONS
def test_a_change_log_that_was_cut_off_is_an_error(version, mode, monkeypatch):
    """Wherever: a log without its last blocks, or without any, decodes as one of fewer changes."""
    monkeypatch.setattr(change_log_file, "_BLOCK_BYTES_MAX", 100)
    table = cdc_table(version, mode)
    table.insert(arrow({(str(number), "eu"): 1 for number in range(60)}))
    table.upsert(arrow({(str(number), "eu"): 2 for number in range(60)}))
    assert sum(changes_of(table.refresh()).values()) == 120
    (log,) = [path for path in table.storage.files() if path.endswith(".cdc")]
    data = table.storage.read(log)
    assert mode == "OP_KEY_ONLY" or len(list(decode_change_log(data, log))) > 1
    for length in range(0, len(data), len(data) // 40):
        table.storage.replace(log, data[:length])
        with pytest.raises(CorruptMetadata, match="cut off"):
            changes_of(table)


@VERSIONS
def test_logs_of_rolled_back_writes_go(version, mode):
    """Else they would lie beside base files for ever, or be read as changes."""
    model = Model(cdc_table(version, mode))
    table, storage = model.table, model.table.storage
    model.step(table.insert(arrow({("a", "eu"): 1})), {("a", "eu"): 1})
    model.step(table.upsert(arrow({("a", "eu"): 2})), {("a", "eu"): 2})
    (kept,) = change_logs_of(storage)
    failed = table.upsert(arrow({("a", "eu"): 3, ("b", "eu"): 3}))
    assert len(change_logs_of(storage)) == 2
    table.rollback(failed.instant)
    assert change_logs_of(storage) == [kept]
    model.check()


def test_the_log_of_a_task_that_is_repeated_goes_and_no_other(monkeypatch):
    """The first attempt wrote both files, and its result was lost."""
    merge = files.TaskFiles.merge

    def merge_twice(self, *given):
        merge(self, *given)
        self._task.attempt_id += 1
        return merge(self, *given)

    monkeypatch.setattr(files.TaskFiles, "merge", merge_twice)
    model = Model(cdc_table(9))
    for ts in (1, 2, 3):
        model.step(model.table.upsert(arrow({("a", "eu"): ts})), {("a", "eu"): ts})
    assert [path.rpartition("_")[2] for path in change_logs_of(model.table.storage)] == ["0-0-1.cdc"] * 2
    model.check()


def test_a_clean_takes_change_logs_with_their_slices():
    """The range then begins at the earliest commit whose log is there."""
    model = Model(cdc_table(9))
    for ts in range(1, 6):
        model.step(model.table.upsert(arrow({("a", "eu"): ts})), {("a", "eu"): ts})
    assert len(change_logs_of(model.table.storage)) == 4
    model.table.refresh().clean(commits_retained=1)
    assert len(change_logs_of(model.table.storage)) == 2
    with pytest.raises(hudi_py.RefusedError, match="earliest begin"):
        model.table.change_log("0")


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.1.1"])
def test_a_table_is_written_whose_last_commit_was_a_clustering_of_apache_hudi(tmp_path, release):
    """The schema in such a commit of 0.15.0 has the meta columns, which no logged row has."""
    table = hudi_py.open_table(unpack_rows(f"cow_cdc_data_before-{release}", tmp_path))
    row = table.rows().to_arrow().slice(0, 1)
    result = table.upsert(row.set_column(row.schema.get_field_index("name"), "name", pa.array(["new"])))
    (change,) = [each for batch in table.change_log() for each in plain_rows(batch) if each["ts"] == result.instant]
    (before,) = row.to_pylist()
    assert (change["op"], change["after"]["name"]) == ("u", "new")
    assert {name: change["before"][name] for name in ("id", "name", "ts")} == {
        name: before[name] for name in ("id", "name", "ts")
    }


def test_capture_is_chosen_when_the_table_is_made():
    """Later it is a contradiction: rows written before would have no changes."""
    asked = {"hoodie.table.cdc.enabled": True}
    plain = writes.create_table(9)
    with pytest.raises(ConfigError, match=r"cdc\.enabled=true, but the table .* has 'false'"):
        writes.open_table(plain, **SMALL, **asked).upsert(arrow({("a", "eu"): 1}))
    table = cdc_table(9, "data_before")
    other = {**asked, "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"}
    with pytest.raises(ConfigError, match=r"mode=OP_KEY_ONLY, but the table .* has 'DATA_BEFORE'"):
        writes.open_table(table.storage, **SMALL, **other).upsert(arrow({("a", "eu"): 1}))
