"""No listing of folders shows older files as the latest: each file of the newest snapshot is lost in turn."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, HudiError, RefusedError, UnsupportedTable
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.fsview.named import base_paths
from hudi_py.inspection.report import files_report
from hudi_py.model.instant import Action
from hudi_py.model.records import InstantInfo, RollbackPlan
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.fixtures import fixture_names, metadata_files
from support.tables import TableBuilder, at

DROP = {"hoodie.metadata.enable": "false"}


def generated(layout: int) -> TableBuilder:
    """Upserts, a replaced group, a clean that ran, and a failed write on top."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a", "b"], "us": ["c"]})
    builder.commit(at(2), {"eu": ["a"]})
    builder.commit(at(3), {"us": ["d"]}, replaced={"us": ["c"]})
    builder.commit(at(4), {"eu": ["b"]})
    builder.cleaned(at(5), earliest=at(2), last_commit=at(4))
    return builder


def answers(storage: MemoryStorage) -> list[object]:
    table = Table(storage)
    views = [table.partition(path) for path in table.partitions()]
    return [files_report(table.view_context, views), table.base_files(), table.plan_clean(commits_retained=1).files]


@pytest.mark.parametrize("layout", [1, 2])
def test_each_lost_file_is_missed_or_makes_no_difference(layout):
    """Files, rows and plan are those of the whole table, or there is an error; never those of an older version."""
    whole = answers(generated(layout).storage)
    missed = []
    for path in [path for path in generated(layout).storage.files() if not path.startswith(".hoodie/")]:
        storage = generated(layout).storage
        storage.delete(path)
        try:
            found = answers(storage)
        except HudiError as error:
            assert path in str(error)
            missed.append(path)
        else:
            assert found[1] == whole[1], path
    assert {f"eu/a_0-1-0_{at(2)}.parquet", f"us/d_0-1-0_{at(3)}.parquet", f"eu/b_0-1-0_{at(4)}.parquet"} <= set(missed)
    assert "eu/.hoodie_partition_metadata" in missed


@pytest.mark.parametrize("layout", [1, 2])
def test_a_partition_metafile_in_the_wrong_place_hides_no_rows(layout):
    """In a folder without data files it would end the listing above them; a folder of that name means nothing."""
    storage = generated(layout).storage
    whole = answers(storage)
    storage.replace(".hoodie_partition_metadata/x", b"")
    assert answers(storage) == whole
    storage.delete(".hoodie_partition_metadata/x")
    storage.replace(".hoodie_partition_metadata", storage.read("eu/.hoodie_partition_metadata"))
    with pytest.raises(CorruptMetadata, match=r"holds no data files.*remove that file"):
        Table(storage).base_files()


def test_the_error_names_the_commit_that_wrote_the_file():
    """What is lost, who wrote it, and what to do."""
    builder = generated(2)
    builder.storage.delete(f"eu/a_0-1-0_{at(2)}.parquet")
    with pytest.raises(CorruptMetadata, match=rf"eu/a_.*is missing.*commit {at(2)} wrote.*hudi-py check"):
        builder.table().file_slices("eu")


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("action", [Action.RESTORE, Action.ROLLBACK])
def test_what_is_half_undone_is_not_called_damaged(layout, action):
    """Its files go one after the other; whoever meets that is told what to finish."""
    builder = generated(layout)
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(2), "commit"), rollback_requests=())
    store = builder.table().contents.store
    pending = store.request(action, at(6), plan if action is Action.ROLLBACK else b"")
    builder.storage.delete(f"eu/a_0-1-0_{at(2)}.parquet")
    with pytest.raises(RefusedError, match=rf"{action.value} {at(6)}.*eu/a_.*is missing") as raised:
        builder.table().file_slices("eu")
    assert raised.value.fix == "finish it first: hudi-py recover"
    store.remove(pending)
    with pytest.raises(CorruptMetadata):
        builder.table().file_slices("eu")


def test_a_lost_log_file_is_missed():
    """A slice without its newest log file would show rows as they were before the last delta commit."""
    for layout in (1, 2):
        builder = TableBuilder(layout, table_type="MERGE_ON_READ")
        builder.commit(at(1), {"eu": ["a"]})
        builder.log_files(at(2), [("eu", "a", at(1))])
        log = next(path for path in builder.storage.files() if ".log." in path)
        assert builder.table().file_slices("eu")[0].log_files
        builder.storage.delete(log)
        with pytest.raises(CorruptMetadata, match="is missing"):
            builder.table().file_slices("eu")


def test_what_was_lost_later_does_not_matter_to_an_earlier_time():
    """A snapshot in the past needs the files of its time only; it has no verbs that change, and stays where it is."""
    builder = generated(2)
    builder.storage.delete(f"eu/b_0-1-0_{at(4)}.parquet")
    past = builder.table().as_of(at(3))
    assert [base.instant_time for _, base in past.base_files()] == [at(2), at(1), at(3)]
    assert [each.base_instant_time for each in past.file_slices("eu")] == [at(2), at(1)]
    changing = {"clean", "rollback", "restore", "refresh", "create_savepoint", "archive", "recover", "plan_clean"}
    assert changing.isdisjoint(dir(past))
    builder.storage.delete(f"eu/b_0-1-0_{at(1)}.parquet")
    with pytest.raises(CorruptMetadata, match=at(1)):
        builder.table().as_of(at(3)).base_files()


@pytest.mark.parametrize("layout", [1, 2])
def test_earlier_times_of_a_partition_that_a_clean_removed_are_refused(layout):
    """Nothing of the partition is there that its missing metafile could hide: the clean is the reason, no damage."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"us": ["b"]}, replaced={"eu": ["a"]})
    builder.table().clean(file_versions_retained=1)
    assert builder.table().partitions() == ("us",)
    with pytest.raises(RefusedError, match="clean"):
        builder.table().as_of(at(1)).base_files()


def test_one_time_is_asked_for():
    """A time and a savepoint contradict each other."""
    table = generated(2).table()
    for question in (table.rows, table.base_files):
        with pytest.raises(ConfigError, match="give only one of them"):
            question(as_of=at(2), savepoint=at(2))


@pytest.mark.parametrize("extension", ["orc", "lance", "hfile"])
def test_base_files_of_other_formats_are_listed_and_not_read(extension):
    """Their names are understood, so nothing is judged wrongly; rows are refused by name."""
    builder = generated(2)
    table = builder.table()
    name = f"e_0-1-0_{at(4)}.{extension}"
    builder.put(f"eu/{name}")
    assert [each.base_file.name for each in table.file_slices("eu") if each.file_id == "e"] == [name]
    with pytest.raises(UnsupportedTable, match=name):
        table.base_files()


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1"])
def test_paths_found_in_the_bytes_are_those_that_decoding_gives(version):
    """On the commits of Hudi, the quick look and the decoder agree, or the quick look leaves it to the decoder."""
    quick = 0
    for name in [name for name in fixture_names() if name.endswith(version) and name.startswith("cow")]:
        for path, data in metadata_files(name).items():
            file = path.rpartition("/")[2]
            if "metadata/" in path or not file.endswith((".commit", ".replacecommit")) or not data:
                continue
            time = file[:17]
            found = base_paths(data, time)
            if found is None:
                continue
            quick += 1
            stats = decode_commit(data, path).partition_to_write_stats.values()
            named = [stat.path for each in stats for stat in each if stat.path]
            assert sorted(f"{each.decode()}_{time}.parquet" for each in found) == sorted(named)
            assert base_paths(data[:-1], time) is None
    assert quick > 50
