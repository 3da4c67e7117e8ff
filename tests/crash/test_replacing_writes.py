"""Writes that replace file groups or find their rows by a condition, interrupted at every call; and write keys."""

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, RefusedError, WriteError
from hudi_py.writing.commit_words import KEYS_ENTRY
from support.crash_points import interruptions
from support.writes import OLD, SCHEMA, create_table, open_table, rows_of, upsert

NEW = {"id": "n", "region": "eu", "ts": 3}
ALONE = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
KEY = ("loader", 7)
STATEMENTS = {
    "overwrite": (lambda table, **words: table.insert_overwrite(arrow(NEW), **words), [OLD[1], NEW]),
    "drop": (lambda table, **words: table.drop_partitions(["us"], **words), [OLD[0]]),
    "where": (lambda table, **words: table.delete(where="id = 'a'", **words), [OLD[1]]),
    "update": (
        lambda table, **words: table.update({"ts": "ts + 8"}, where="id = 'b'", **words),
        [OLD[0], {**OLD[1], "ts": 9}],
    ),
}


def arrow(*rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("version", [6, 9])
def test_interrupted_anywhere_it_is_done_once(version, name):
    """Invisible or whole; repeated with its write key it is done exactly once, wherever it was interrupted."""
    original = create_table(version)
    upsert(original, OLD)
    run, after = STATEMENTS[name]
    for case in interruptions(original.copy):
        case.run(lambda storage: run(open_table(storage, **ALONE), write_key=KEY))
        before = rows_of(case.storage)
        assert before in (OLD, after), case
        again = run(open_table(case.storage, **ALONE), write_key=KEY)
        assert again.is_repeated == (before == after), case
        assert rows_of(case.storage) == after, case
        table = open_table(case.storage)
        assert len(table.timeline.commits.completed()) == 2, case
        assert not table.timeline.pending(), case
        assert {finding.code for finding in table.check()} <= {"leftover-markers"}, case


@pytest.mark.parametrize("version", [6, 9])
def test_write_key_is_remembered_beyond_the_archive(version):
    """An application that writes rarely finds its version when the commit that told it is archived."""
    storage = create_table(version)
    settings = {"hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    table = open_table(storage, **settings, **{"hoodie.commits.archival.batch": 1, "_job": "nightly"})
    first = table.upsert(arrow(*OLD), write_key=KEY, extra_metadata={"who": "me"})
    said = first.metadata.extra_metadata
    assert (said["who"], said["_job"], set(said) - {"who", "_job"}) == ("me", "nightly", {"schema", KEYS_ENTRY})
    for ts in range(6):
        table.upsert(arrow({"id": "z", "region": "eu", "ts": ts}))
    assert first.instant not in {each.requested_time for each in table.timeline.instants}
    again = table.upsert(arrow({"id": "never", "region": "eu", "ts": 1}), write_key=KEY)
    assert (again.instant, again.is_repeated) == (first.instant, True)
    assert not table.upsert(arrow({"id": "z", "region": "eu", "ts": 9}), write_key=("other", 1)).is_repeated
    assert table.upsert(arrow(), write_key=("loader", 6)).is_repeated
    assert not table.upsert(arrow(), write_key=("loader", 8)).is_repeated


@pytest.mark.parametrize("has_metadata_table", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_drop_of_a_partition_is_known_after_a_clean_has_deleted_it(version, has_metadata_table):
    """Given again with its key it is a repeated write, not an error about a partition that is not there."""
    storage = create_table(version)
    table = open_table(storage, **{"hoodie.clean.commits.retained": 1, "hoodie.metadata.enable": has_metadata_table})
    table.upsert(arrow(*OLD))
    done = table.drop_partitions(["us"], write_key=KEY)
    table.upsert(arrow({**OLD[0], "ts": 2}))
    table.upsert(arrow({**OLD[0], "ts": 3}))
    assert table.refresh().partitions() == ("eu",)
    again = table.drop_partitions(["us"], write_key=KEY)
    assert (again.instant, again.is_repeated) == (done.instant, True)
    for words in ({}, {"write_key": ("loader", 8)}):
        with pytest.raises(ConfigError, match="has no partition 'us'"):
            table.drop_partitions(["us"], **words)


def test_write_key_of_a_write_that_was_rolled_back_counts_as_not_given():
    """The key lives and dies with the rows."""
    storage = create_table(9)
    table = open_table(storage, **ALONE)
    done = table.upsert(arrow(*OLD), write_key=KEY)
    table.rollback(done.instant)
    assert not table.upsert(arrow(*OLD), write_key=KEY).is_repeated
    assert rows_of(storage) == OLD


@pytest.mark.parametrize("ts", [1, 5])
@pytest.mark.parametrize("kind", ["delete", "update"])
def test_rows_with_one_key_are_told_apart_or_left_alone(ts, kind):
    """A condition that one of two rows meets changes this row or none: never the other one, which has the same key."""
    storage = create_table(9)
    table = open_table(storage, **ALONE)
    table.insert(arrow(OLD[0]))
    table.bulk_insert(arrow({**OLD[0], "ts": 5}))
    right = [6 - ts] if kind == "delete" else sorted([6 - ts, 7])
    try:
        table.delete(where=f"ts = {ts}") if kind == "delete" else table.update({"ts": 7}, where=f"ts = {ts}")
    except RefusedError as error:
        assert "same key" in str(error)
        right = [1, 5]
    assert sorted(row["ts"] for row in rows_of(storage)) == right
    if len(right) > 1:
        with pytest.raises(WriteError, match="several rows with the key"):
            table.update({"ts": 7})
