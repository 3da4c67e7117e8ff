"""What must be there is found in the bytes of the commits as decoding finds it, however much of them is passed over."""

from __future__ import annotations

import threading

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview import needed
from hudi_py.fsview.expected import expected_slices
from hudi_py.fsview.needed import NeededFiles
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.versions.format import LogNaming
from tests.fixtures import fixture_names, metadata_files
from tests.tables import TableBuilder, at

REMOTE = "s3://lake/trips"


def decoded(files: NeededFiles, naming: LogNaming) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in expected_slices(files.metadata, naming).values():
        for file in each.files:
            found.setdefault(file.partition_path, {})[file.name] = file.size_bytes
    return found


@pytest.fixture
def looked_through(monkeypatch):
    """Times of the commits whose names are looked for."""
    times = []
    real = needed.base_paths

    def base_paths(data, time):
        times.append(time)
        return real(data, time)

    monkeypatch.setattr(needed, "base_paths", base_paths)
    return times


@pytest.mark.slow  # decodes every commit of some forty tables, time and again
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_needed_files_are_those_that_decoding_gives(version, looked_through):
    """Of each table of Hudi, at each of its commits: names and sizes, on local disk and in an object store."""
    for name in [each for each in fixture_names() if each.endswith(version) and each.startswith("cow")]:
        for root in ("/lake/trips", REMOTE):
            table = Table(MemoryStorage.from_files(metadata_files(name), root), settings={})
            times = [each.requested_time for each in table.timeline.writes.completed()]
            for until in times[-3:]:
                files = NeededFiles(table.contents, table.timeline, until)
                wanted = decoded(files, table.config.format.log_naming)
                assert wanted == files.sizes, name
                names = NeededFiles(table.contents, table.timeline, until).by_partition
                assert {path: frozenset(sizes) for path, sizes in wanted.items()} == names, name
    assert looked_through


def rewritten(layout: int) -> TableBuilder:
    """Each commit but the last one rewrites every group; stats name what they replace, as those of Hudi."""
    builder = TableBuilder(layout)
    groups = {"eu": ["a", "b"], "us/ny": ["c"]}
    for number in (1, 2, 3):
        builder.commit(at(number), groups, previous=at(number - 1) if number > 1 else None)
    builder.commit(at(4), {"eu": ["a"]}, previous=at(3))
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_commits_whose_files_were_all_replaced_are_not_looked_through(layout, looked_through):
    """That they were shows in their number; what is left of the others is found as ever."""
    table = rewritten(layout).table()
    files = NeededFiles(table.contents, table.timeline)
    wanted = {"eu": {f"a_0-1-0_{at(4)}.parquet", f"b_0-1-0_{at(3)}.parquet"}, "us/ny": {f"c_0-1-0_{at(3)}.parquet"}}
    assert wanted == files.by_partition
    assert [at(4), at(3)] == looked_through


@pytest.mark.parametrize("layout", [1, 2])
def test_the_copy_of_a_retried_task_does_not_stand_for_a_missing_file(layout):
    """On a table that was never cleaned too, where the files of each commit are as many as it named."""
    for lost, kept in (("b", "a"), ("c", "b")):
        builder = rewritten(layout)
        partition, other = ("us/ny" if each == "c" else "eu" for each in (lost, kept))
        builder.put(f"{other}/{kept}_7-9-9_{at(3)}.parquet")
        builder.table().plan_clean(commits_retained=1)
        builder.storage.delete(f"{partition}/{lost}_0-1-0_{at(3)}.parquet")
        with pytest.raises(CorruptMetadata, match=f"{lost}_0-1-0_{at(3)}.parquet is missing"):
            builder.table().plan_clean(commits_retained=1)


class Together(MemoryStorage):
    """Two commits are read at the same time, or none is."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.both = threading.Barrier(2)

    def read(self, path: str) -> bytes:
        if path.endswith(".commit"):
            self.both.wait(timeout=10)
        return super().read(path)


@pytest.mark.parametrize("layout", [1, 2])
def test_commits_in_an_object_store_are_read_at_the_same_time(layout):
    """Each is a round trip there; one after the other a long timeline takes seconds. On tables never cleaned too."""
    storage = Together(REMOTE)
    for path, content in rewritten(layout).storage.files().items():
        storage.replace(path, content)
    assert ["eu", "us/ny"] == sorted(path for path, _ in Table(storage).listing.walk())
