"""A data file that is not as long as its commit recorded is an error wherever its size is at hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.fsview.named_logs import group_of_file, sizes_of_groups
from hudi_py.storage.base import Listing
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support import tables
from support.fixtures import fixture_names, metadata_files, unpack

FOLDERS = {"hoodie.metadata.enable": "false"}


class LikeObjectStore(MemoryStorage):
    """A listing tells sizes whether asked for or not, as on S3."""

    def list(self, folder: str, *, details: bool = False) -> Listing:
        return super().list(folder, details=True)


def latest(path: Path) -> list[Path]:
    return [path / partition / base.name for partition, base in Table(LocalStorage(str(path))).base_files()]


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def overwritten(file: Path) -> None:
    """By another Parquet file: readable, and not what was written."""
    other = next(each for each in file.parent.glob("*.parquet") if each.stat().st_size != file.stat().st_size)
    shutil.copy(other, file)


def looked_at(table: Table) -> dict[str, Callable[[], object]]:
    last = table.timeline.commits.completed()[-1].requested_time
    return {
        "files": lambda: [table.partition(path) for path in table.partitions()],
        "overview": table.overview,
        "files as of": lambda: [table.as_of(last).partition(path) for path in table.partitions()],
        "rows": lambda: list(table.rows()),
        "rows as of": lambda: list(table.as_of(last).rows()),
    }


@pytest.mark.parametrize(("version", "damage"), [("0.15.0", cut), ("1.1.1", emptied), ("1.0.2", overwritten)])
def test_each_view_names_a_file_of_another_size(version, damage, tmp_path):
    """Files, overview and rows of the folders, of now and of an earlier time; through the metadata table the rows."""
    path = unpack(f"cow_cleaned-{version}", tmp_path)
    file = latest(path)[-1]
    damage(file)
    views = looked_at(Table(LocalStorage(str(path)), settings=FOLDERS))
    through_metadata = looked_at(Table(LocalStorage(str(path))))
    for name, look in [*views.items(), *((n, v) for n, v in through_metadata.items() if n.startswith("rows"))]:
        with pytest.raises(CorruptMetadata, match=rf"{file.name} has \d+ bytes, and .* wrote \d+: it was cut off"):
            look()
            pytest.fail(name)


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
def test_log_files_may_grow_and_not_shrink(version, tmp_path):
    """Rollbacks append to log files; one that is shorter than its commit says has lost rows."""
    path = unpack(f"mor_cleaned-{version}", tmp_path)
    table = Table(LocalStorage(str(path)), settings=FOLDERS)
    slices = [each for partition in table.partitions() for each in table.file_slices(partition) if each.log_files]
    file = path / slices[0].partition_path / slices[0].log_files[-1].name
    with file.open("ab") as stream:
        stream.write(b"more")
    Table(LocalStorage(str(path)), settings=FOLDERS).overview()
    os.truncate(file, 10)
    with pytest.raises(CorruptMetadata, match=f"{file.name} has 10 bytes"):
        Table(LocalStorage(str(path)), settings=FOLDERS).overview()


def test_a_plan_is_refused_where_the_listing_gives_sizes_for_nothing(tmp_path):
    """Object stores list sizes always: no clean is planned that deletes what would be left of the damaged file."""
    path = unpack("cow_cleaned-1.1.1", tmp_path)
    damaged = latest(path)[0]
    storage = LikeObjectStore("/lake/trips")
    for file in (each for each in path.rglob("*") if each.is_file() and not each.name.endswith(".crc")):
        storage.replace(str(file.relative_to(path)), file.read_bytes())
    settings = {**FOLDERS, "hoodie.clean.incremental.enabled": "false"}
    Table(storage, settings=settings).plan_clean(commits_retained=1)
    storage.replace(str(damaged.relative_to(path)), damaged.read_bytes()[:-1])
    with pytest.raises(CorruptMetadata, match=f"{damaged.name} has"):
        Table(storage, settings=settings).plan_clean(commits_retained=1)


def test_sizes_found_in_the_bytes_are_those_that_decoding_gives():
    """On every commit of Hudi's whose paths are found without decoding, and of ours in both encodings."""
    found = 0
    for name in [each for each in fixture_names() if each.startswith(("cow_many", "cow_nonp", "cow_multi", "cow_ins"))]:
        for path, data in metadata_files(name).items():
            file = path.rpartition("/")[2]
            time = file[:17]
            is_commit = file.endswith((".commit", ".replacecommit", ".deltacommit")) and "metadata/" not in path
            if not is_commit or not data:
                continue
            stats = [each for some in decode_commit(data, path).partition_to_write_stats.values() for each in some]
            recorded = {each.path: each.file_size_in_bytes for each in stats}
            groups = {path: group_of_file(path.encode()) for path in recorded}
            sizes = sizes_of_groups(data, time, set(groups.values()))
            if sizes is None:
                continue
            assert recorded == {path.decode(): size for path, size in sizes.items()}
            for path, group in groups.items():
                assert set(sizes_of_groups(data, time, {group})) == {
                    b.encode() for b in groups if groups[b] == group
                }, path
            found += len(sizes)
    assert found > 200


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("recorded", [0, 4])
def test_a_file_that_was_written_empty_is_as_its_commit_recorded_it(layout, recorded, monkeypatch):
    """It is listed, planned and deleted, and its rows are refused; one that was cut off is refused by each of them."""
    monkeypatch.setattr(tables, "_BASE_FILE", bytes(recorded))
    builder = tables.TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(tables.at(number), {"eu": ["a", "b"]})
    for path in [path for path in builder.storage.files() if path.endswith(".parquet")]:
        builder.put(path, b"")
    looks = [
        lambda table: table.file_slices("eu"),
        lambda table: table.plan_clean(commits_retained=1),
        lambda table: table.plan_clean(commits_retained=1, details=True),
        lambda table: table.clean(commits_retained=1),
    ]
    for look in looks:
        if recorded and look is not looks[1]:  # names are enough to list for a plan
            with pytest.raises(CorruptMetadata, match=r"has 0 bytes, and .* wrote 4"):
                look(builder.table())
        else:
            look(builder.table())
    with pytest.raises(CorruptMetadata, match="wrote 4" if recorded else "is not a readable Parquet file"):
        builder.table().rows(columns=["id"]).to_arrow()
