"""Global indexes: a key has one row in all partitions together, and it stays or moves as the settings say."""

import itertools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError
from support import writes

FILES = {"hoodie.index.type": "GLOBAL_SIMPLE"}
STAYING = FILES | {"hoodie.simple.index.update.partition.path": False}
RECORDS = {"hoodie.index.type": "RECORD_INDEX"}
MOVING_RECORDS = RECORDS | {"hoodie.record.index.update.partition.path": True}
BLOOM = {"hoodie.index.type": "GLOBAL_BLOOM"}
REGIONS = ("eu", "us", "ap")


def row(key, region, ts):
    return {"id": key, "region": region, "ts": ts}


def table_of(version=9, **more):
    storage = writes.create_table(version, **more)
    writes.upsert(storage, [row("a", "eu", 1), row("b", "us", 5), row("c", "eu", 1)])
    return storage


def shown(storage):
    """Key to the partition that holds it and its values."""
    found = writes.open_table(storage).rows(with_meta=True).to_arrow().to_pylist()
    by_key = {each["id"]: (each["_hoodie_partition_path"], each["region"], each["ts"]) for each in found}
    assert len(by_key) == len(found)
    return by_key


def stored_regions(storage):
    """Key to what its base file holds in the partition column."""
    files = writes.open_table(storage).snapshot().base_files()
    found = [pq.read_table(pa.BufferReader(storage.read(f"{path}/{file.name}"))) for path, file in files]
    return {each["id"]: each["region"] for rows in found for each in rows.to_pylist()}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("settings", [FILES, BLOOM, MOVING_RECORDS], ids=["simple", "bloom", "record"])
def test_a_row_moves_to_the_partition_that_its_values_say(settings, version):
    """Its old row goes in the same commit; a row that loses against the stored one moves nothing."""
    storage = table_of(version)
    writes.upsert(storage, [row("a", "us", 2), row("b", "eu", 2), row("d", "ap", 2)], **settings)
    wins = version == 6  # its payload lets the commit win
    expected = {"a": ("us", "us", 2), "b": ("eu", "eu", 2) if wins else ("us", "us", 5), "c": ("eu", "eu", 1)}
    assert shown(storage) == expected | {"d": ("ap", "ap", 2)}
    assert len(writes.open_table(storage).timeline.completed("commit")) == 2


@pytest.mark.parametrize("settings", [STAYING, RECORDS], ids=["simple", "record"])
def test_a_row_stays_where_its_key_lies(settings):
    """With its new values, as Apache Hudi does, which shows the path's value of the partition column then."""
    storage = table_of()
    writes.upsert(storage, [row("a", "us", 2), row("b", "eu", 6)], **settings)
    assert shown(storage) == {"a": ("eu", "eu", 2), "b": ("us", "us", 6), "c": ("eu", "eu", 1)}
    assert stored_regions(storage) == {"a": "us", "b": "eu", "c": "eu"}


@pytest.mark.parametrize("settings", [FILES, STAYING, RECORDS], ids=["moving", "staying", "record"])
def test_a_delete_finds_its_key_in_every_partition(settings):
    """Whatever partition the row to delete names; an unknown key deletes nothing."""
    storage = table_of()
    writes.upsert(storage, [row("a", "ap", 9), row("z", "eu", 9)], operation="DELETE", **settings)
    assert shown(storage).keys() == {"b", "c"}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_drops_the_record_index_looks_keys_up_in_the_files(version, table_type):
    """Its settings leave the metadata table out, so that the index that its table names is gone when it asks."""
    kept = {"hoodie.metadata.enable": True, "hoodie.metadata.record.index.enable": True}
    storage = writes.create_table(version, **{"hoodie.table.type": table_type})
    writes.upsert(storage, [row("a", "eu", 1), row("b", "us", 1)], **kept)
    assert "record_index" in writes.open_table(storage).config.metadata_partitions
    writes.upsert(storage, [row("a", "us", 2)], **MOVING_RECORDS, **{"hoodie.metadata.enable": False})
    assert shown(storage) == {"a": ("us", "us", 2), "b": ("us", "us", 1)}


def test_of_one_key_in_two_partitions_one_row_is_written():
    """The one with the greater ordering value, whatever partition it names."""
    storage = table_of()
    writes.upsert(storage, [row("n", "eu", 3), row("n", "us", 4), row("n", "ap", 2)], **FILES)
    assert shown(storage)["n"] == ("us", "us", 4)


@pytest.mark.parametrize(
    ("version", "settings", "home"),
    [(6, STAYING, "eu"), (8, STAYING, "eu"), (9, STAYING, "us"), (6, FILES, "us"), (8, FILES, "us"), (9, FILES, "us")],
)
def test_a_key_that_log_files_have_deleted_comes_back_where_that_release_puts_it(version, settings, home):
    """
    Tried with Apache Hudi 0.15.0 (version 6), 1.0.2 (8), 1.1.1 and 1.2.0 (9): where rows do not move, only 1.1 forgets
    where the key was. 1.0.2 was asked with `_hoodie_is_deleted`, because it fails after a delete by key.
    """
    more = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    storage = table_of(version, **more)
    writes.upsert(storage, [row("a", "eu", 3)], operation="DELETE", **settings)
    writes.upsert(storage, [row("a", "us", 5)], **settings)
    assert shown(storage)["a"] == (home, "us" if version == 6 else home, 5)  # 0.15 shows what log files hold


def test_another_index_is_refused_by_name():
    """Apache Hudi would look for the keys elsewhere."""
    with pytest.raises(ConfigError, match="RECORD_INDEX"):
        writes.upsert(table_of(), [row("a", "eu", 2)], **{"hoodie.index.type": "RECORD_LEVEL_INDEX"})


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("settings", [FILES, STAYING], ids=["moving", "staying"])
def test_any_sequence_of_writes_is_a_dictionary(settings, table_type):
    """Keys that wander between partitions, deletes among them; by commit time, so that every write wins."""
    chance, model, homes = random.Random(11), {}, {}
    more = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.datasource.write.table.type": table_type}
    storage = writes.create_table(9, **more)
    for ts in itertools.count(1):
        names = chance.sample("abcdefgh", 3)
        rows = [row(name, chance.choice(REGIONS), ts) for name in names]
        operation = "DELETE" if ts % 4 == 0 else "UPSERT"
        writes.upsert(storage, rows, operation=operation, **settings)
        for each in rows:
            model.pop(each["id"], None)
            if operation == "UPSERT":
                home = homes.setdefault(each["id"], each["region"])
                partition = home if settings is STAYING else each["region"]
                model[each["id"]] = (partition, partition, ts)
            else:
                homes.pop(each["id"], None)
        assert shown(storage) == model
        if ts == 9:
            break


@pytest.mark.parametrize("version", [8, 9])
def test_a_row_moves_away_from_log_files_if_it_wins_against_them(version):
    """Log files hold the newest version of the stored row: what the base file says of it does not count."""
    more = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}
    storage = writes.create_table(version, **more)
    writes.upsert(storage, [row("a", "eu", 1), row("b", "eu", 1)])
    writes.upsert(storage, [row("a", "eu", 9)])
    assert any(".log." in each for each in storage.files())
    writes.upsert(storage, [row("a", "us", 5), row("b", "us", 5)], **FILES)
    assert shown(storage) == {"a": ("eu", "eu", 9), "b": ("us", "us", 5)}
    writes.upsert(storage, [row("a", "us", 12)], **FILES)
    assert shown(storage) == {"a": ("us", "us", 12), "b": ("us", "us", 5)}
    chance, model = random.Random(version), shown(storage)
    for _ in range(8):
        rows = [row(name, chance.choice(REGIONS), chance.randrange(20)) for name in chance.sample("abcdef", 3)]
        writes.upsert(storage, rows, **FILES)
        for each in rows:
            if each["ts"] >= model.get(each["id"], ("", "", 0))[2]:
                model[each["id"]] = (each["region"], each["region"], each["ts"])
        assert shown(storage) == model
