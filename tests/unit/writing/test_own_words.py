"""Own words on a commit: given with the write, or as settings with the prefix that Hudi copies."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError
from support import writes

ROWS = pa.Table.from_pylist(writes.OLD, schema=writes.SCHEMA)
SETTINGS = {**writes.ALONE, "_job": "nightly", "_source": "of the settings", "other": "no word"}
WORDS = {"_source": "feed é", "run": "7"}
WANTED = {"_job": "nightly", "_source": "feed é", "run": "7"}
OPERATIONS = {
    "upsert": lambda table, **words: table.upsert(ROWS, **words),
    "upsert of nothing": lambda table, **words: table.upsert(ROWS.slice(0, 0), **words),
    "insert": lambda table, **words: table.insert(ROWS, **words),
    "bulk_insert": lambda table, **words: table.bulk_insert(ROWS, **words),
    "delete": lambda table, **words: table.delete(ROWS.slice(0, 1), **words),
    "delete where": lambda table, **words: table.delete(where="id = 'a'", **words),
    "update": lambda table, **words: table.update({"ts": "ts + 1"}, **words),
    "merge": lambda table, **words: table.merge(ROWS, on=["id", "region"]).when_matched_update().execute(**words),
    "insert_overwrite": lambda table, **words: table.insert_overwrite(ROWS, **words),
    "insert_overwrite_table": lambda table, **words: table.insert_overwrite_table(ROWS, **words),
    "drop_partitions": lambda table, **words: table.drop_partitions(["eu"], **words),
}


def words_of(table):
    """What the newest commit says besides what hudi_py and Hudi set."""
    newest = table.timeline.commits.completed()[-1]
    entries = table.contents.commit(newest).extra_metadata
    return {name: text for name, text in entries.items() if name != "schema" and not name.startswith("hudi_py.")}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_each_operation_stores_them(version, kind, operation):
    """What is given with the write counts more than a setting; another prefix leaves the usual one out."""
    storage = writes.create_table(version, **{"hoodie.table.type": kind})
    writes.upsert(storage, writes.OLD)
    unknown = {"hoodie_py.conf.allow.unknown": True}
    table = writes.open_table(storage, **SETTINGS, **unknown)
    OPERATIONS[operation](table, extra_metadata=WORDS, write_key=("loader", 7))
    assert words_of(table.refresh()) == WANTED
    again = OPERATIONS[operation](table, extra_metadata={"run": "8"}, write_key=("loader", 7))
    assert again.is_repeated
    assert words_of(table.refresh()) == WANTED
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "oth"}
    other = writes.open_table(storage, **SETTINGS, **unknown, **prefix)
    other.upsert(ROWS)
    assert words_of(other.refresh()) == {"other": "no word"}


TAKEN = ("schema", "latest_schema", "hudi_py.write.keys", "hudi_py.write.reads", "hudi_py.expiry")


@pytest.mark.parametrize("words", [*({name: "{}"} for name in TAKEN), {"run": 7}, {"": "x"}, ["run"]])
def test_words_that_cannot_stand_are_refused(words):
    """The names that readers rely on stay theirs, and every value is a text."""
    storage = writes.create_table(9)
    with pytest.raises(ConfigError, match="extra_metadata"):
        writes.open_table(storage).upsert(ROWS, extra_metadata=words)
    assert not writes.open_table(storage).timeline.completed()


@pytest.mark.parametrize("name", TAKEN)
def test_settings_do_not_become_words_that_cannot_stand(tmp_path, name):
    """A copied `hudi_py.write.keys` would count as a written key, `latest_schema` make the table unreadable."""
    settings = {
        **SETTINGS,
        "hoodie.datasource.write.commitmeta.key.prefix": name[:3],
        name: '{"loader":[9,"20200101000000000"]}',
        "hoodie_py.conf.allow.unknown": True,
    }
    refused = pytest.raises(ConfigError, match=rf"{name}.*begins with.*commitmeta\.key\.prefix.*another name")
    with refused:
        hudi_py.write(tmp_path / "t", ROWS, settings={**settings, "hoodie.table.name": "t"})
    assert not (tmp_path / "t").exists()
    storage = writes.create_table(9)
    writes.upsert(storage, writes.OLD)
    before = storage.files()
    for change in OPERATIONS.values():
        with refused:
            change(writes.open_table(storage, **settings))
    assert storage.files() == before


def test_checkpoints_of_streams_are_words():
    """Hudi's streamer goes on from what the newest commit says."""
    names = ("deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2", "_hudi_streaming_sink_checkpoint")
    storage = writes.create_table(9)
    words = {name: f"{number}:0" for number, name in enumerate(names)}
    writes.open_table(storage).upsert(ROWS, extra_metadata=words)
    assert words_of(writes.open_table(storage)) == words
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer."}
    writes.open_table(storage, **prefix, **{names[0]: "topic,0:9"}).upsert(ROWS)
    assert words_of(writes.open_table(storage)) == {names[0]: "topic,0:9"}
