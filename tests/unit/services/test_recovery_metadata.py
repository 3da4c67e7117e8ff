"""When recovery drops a metadata table, and when it must not (rules/data-files 10)."""

from __future__ import annotations

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from support.history_tables import fixture_in_memory

FIXTURES = pytest.mark.parametrize("name", ["cow_cleaned-0.15.0", "cow_cleaned-1.0.2", "cow_cleaned-1.1.1"])


def latest_files(storage: MemoryStorage, table: Table | None = None) -> list[str]:
    table = Table(storage) if table is None else table
    return sorted(
        f"{path}/{name}" for path in table.partitions() for each in table.file_slices(path) for name in each.file_names
    )


@FIXTURES
@pytest.mark.parametrize("loss", ["file", "partition metafile", "partition"])
def test_metadata_table_that_alone_knows_lost_rows_stays(name, loss):
    """No step hides a loss: through the metadata table readers fail on what is gone, without it they pass over it."""
    storage = fixture_in_memory(name)
    before = latest_files(storage)
    partition = before[0].partition("/")[0]
    for path in list(storage.files()):
        if (
            (loss == "file" and path == before[0])
            or (loss == "partition" and path.startswith(partition + "/"))
            or (loss == "partition metafile" and path.startswith(f"{partition}/.hoodie_partition_metadata"))
        ):
            storage.delete(path)
    files = storage.files()
    outcomes = Table(storage).recover()
    assert [(o.finding.problem, o.finding.step, o.done) for o in outcomes] == [(Problem.LOST_FILES, Step.DECIDE, False)]
    assert before[0] in outcomes[0].finding.paths
    assert storage.files() == files
    assert latest_files(storage) == before


@FIXTURES
def test_metadata_table_with_ghosts_of_a_clean_goes(name):
    """rules/data-files 10: a clean that bypassed it took the files, so nothing is lost with it."""
    storage = fixture_in_memory(name)
    table = Table(storage, settings={"hoodie.metadata.enable": "false"})
    properties = storage.read(".hoodie/hoodie.properties")
    metadata = {path: data for path, data in storage.files().items() if path.startswith(".hoodie/metadata/")}
    assert table.clean(commits_retained=1)[0].deleted_files
    for path, data in {**metadata, ".hoodie/hoodie.properties": properties}.items():
        storage.replace(path, data)
    with pytest.raises(CorruptMetadata, match="lacks the completed clean"):
        latest_files(storage)
    latest = latest_files(storage, table.refresh())
    outcomes = Table(storage).recover()
    assert [(o.finding.problem, o.done) for o in outcomes] == [(Problem.METADATA_TABLE, True)]
    assert not Table(storage).config.has_metadata_table
    assert latest_files(storage) == latest


class Moving(ReadOnlyStorage):
    """Another process cleans while a partition is listed."""

    listings = 0

    def list(self, folder, *, details=False):
        self.listings += folder == "r0"
        if self.listings == 2 and folder == "r0":  # the first is for files of no write
            Table(self.inner).clean(commits_retained=1)
        return super().list(folder, details=details)


@FIXTURES
def test_metadata_table_is_not_judged_while_a_writer_goes_on(name):
    """A clean that completes between the two listings makes them differ, and nothing is wrong."""
    storage = fixture_in_memory(name)
    cleans = len(Table(storage).timeline.completed("clean"))
    assert Table(Moving(storage)).recover(dry_run=True) == ()
    assert len(Table(storage).timeline.completed("clean")) > cleans


@pytest.mark.parametrize("name", ["cow_mixed-0.15.0", "cow_mixed-1.1.1"])
def test_partitions_inside_of_others_are_known_to_the_metadata_table(name):
    """rules/data-files 2: a walk ends at the outer one, as Hudi's does; what is inside is neither lost nor a ghost."""
    storage = fixture_in_memory(name)
    inner = Table(storage).partitions()
    wrong = {each.code for each in Table(storage).check()}
    problems = [each.finding.problem for each in Table(storage).recover(dry_run=True)]
    for path in inner:
        metafile = storage.read(f"{path}/.hoodie_partition_metadata").replace(b"Depth=2", b"Depth=1")
        outer = f"{path.partition('/')[0]}/.hoodie_partition_metadata"
        if outer not in storage.files():
            storage.create_new(outer, metafile)
    assert Table(storage).partitions() == inner
    assert {each.code for each in Table(storage).check()} == wrong | {"partition-in-partition"}
    told = [each.finding.problem for each in Table(storage).recover(dry_run=True)]
    assert told == [*problems, Problem.CONTRADICTION]  # what the check has found, which nothing here mends
    for path in inner:
        explained = Table(storage).explain(path).files
        assert {each.path.rpartition("/")[0] for each in explained} == {path}
    verified = Table(storage, settings={"hoodie_py.clean.verify": "true"}).plan_clean(file_versions_retained=1)
    assert set(verified.files) <= set(inner)
    assert verified.files
