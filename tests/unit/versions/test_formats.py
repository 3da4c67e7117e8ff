"""Table versions as values: each is complete, and one that is added there is served everywhere."""

import attrs
import pytest

from hudi_py.config import new_table, table
from hudi_py.config.new_table import new_table_properties, table_folders
from hudi_py.config.settings import Settings
from hudi_py.config.table import table_config
from hudi_py.errors import UnsupportedTable
from hudi_py.model.instant import Action
from hudi_py.model.records import CommitMetadata
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.commit import not_recorded, prepared
from hudi_py.versions import served
from hudi_py.versions.served import FORMATS, NEWEST, format_of

VERSIONS = pytest.mark.parametrize("version", sorted(FORMATS))


def properties_of(version):
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.write.table.version": version,
    }
    return new_table_properties(Settings(settings))


def round_trip(version):
    """A commit written to a new table of that version, and read back."""
    config = table_config(properties_of(version), "a new table")
    store = TimelineStore(MemoryStorage(), config)
    metadata = CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": "{}"})
    begun = prepared(store, Action.COMMIT).request().begin(config.format.inflight_commit)
    with begun.ready() as ready:
        done = ready.record(not_recorded).publish(metadata)
    assert tuple(store.load()) == (done,)
    assert Contents(store).commit(done).extra_metadata == metadata.extra_metadata
    assert tuple(load_archived(store.storage, config)) == ()
    return config


@VERSIONS
def test_a_new_table_is_of_the_version_that_was_asked_for(version):
    """Its properties lead back to the same value, and its folders are where that looks for them."""
    config = round_trip(version)
    assert config.format is FORMATS[version] is format_of(config.properties)
    assert config.history_folder == table_folders(config.properties)[0]
    assert config.format.properties.items() <= config.properties.items()


@VERSIONS
def test_a_version_with_another_layout_is_refused(version):
    """Nobody writes such tables: the properties were changed by hand, or belong to a release to come."""
    other = {**properties_of(version), "hoodie.timeline.layout.version": "3"}
    with pytest.raises(UnsupportedTable, match="timeline layout 3"):
        table_config(other, "a table")


@pytest.mark.parametrize(("version", "way_out"), [(7, "upgrade the table"), (NEWEST + 1, "upgrade hudi_py")])
def test_other_versions_are_refused_with_the_way_out(version, way_out):
    """The message names those that are served."""
    with pytest.raises(UnsupportedTable, match=f"supported: 6, 8, 9.*{way_out}"):
        table_config({**properties_of(NEWEST), "hoodie.table.version": str(version)}, "a table")


def test_a_version_is_added_by_its_value_alone(monkeypatch):
    """One that differs from the newest in its archive and its commits only is created, written and read."""
    added = attrs.evolve(
        FORMATS[NEWEST], version=NEWEST + 1, history_folder=".hoodie/old", commits_are_json=True, inflight_commit=None
    )
    known = {**FORMATS, added.version: added}
    for module in (served, table, new_table):
        monkeypatch.setattr(module, "FORMATS", known)
    config = round_trip(added.version)
    assert (config.version, config.history_folder) == (added.version, ".hoodie/old")
