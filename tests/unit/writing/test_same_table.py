"""Settings of a writer that describe another table than the one that is there."""

import re

import pytest

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.config.table import table_config
from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.writing.same_table import require_same_table

MODEL = "org.apache.hudi.common.model."
BASE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
VERSIONS = pytest.mark.parametrize("version", ["6", "8", "9"])


def made(version, **more):
    asked = {**BASE, "hoodie.write.table.version": version, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING", **more}
    return table_config(new_table_properties(Settings(asked)), "t")


@VERSIONS
def test_the_settings_that_made_a_table_write_it(version):
    """With the metadata of their table they agree, and so do no settings at all."""
    for settings in (BASE, {}, {"hoodie.record.merge.mode": "event_time_ordering"}):
        require_same_table(Settings(settings), made(version), "t")


@VERSIONS
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.table.name", "u"),
        ("hoodie.datasource.write.recordkey.field", "key"),
        ("hoodie.datasource.write.partitionpath.field", "q"),
        ("hoodie.table.ordering.fields", "seq"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ"),
        ("hoodie.datasource.write.hive_style_partitioning", "false"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true"),
        ("hoodie.table.timeline.timezone", "UTC"),
        ("hoodie.write.table.version", "7"),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.datasource.write.payload.class", f"{MODEL}OverwriteWithLatestAvroPayload"),
    ],
)
def test_a_setting_that_contradicts_the_table_is_an_error(version, name, value):
    """It would have been passed over, and rows written another way than it says."""
    with pytest.raises(ConfigError, match=f"={re.escape(value)}, but the table at t has"):
        require_same_table(Settings({name: value}), made(version), "t")


@pytest.mark.parametrize("asked", ["6", "8", "9"])
@VERSIONS
def test_a_version_that_is_not_the_tables_is_refused(version, asked):
    """No write upgrades or downgrades a table; passing it over would leave the writer believing that it did."""
    settings = Settings({"hoodie.write.table.version": asked})
    if asked == version:
        return require_same_table(settings, made(version), "t")
    with pytest.raises(ConfigError, match=f"hoodie.write.table.version={asked}, but the table at t has '{version}'"):
        require_same_table(settings, made(version), "t")
    return None


@VERSIONS
def test_a_merger_that_is_not_served_is_refused(version):
    """On a table that is there as for a new one."""
    for settings in ({"hoodie.record.merge.mode": "CUSTOM"}, {"hoodie.datasource.write.payload.class": "com.Mine"}):
        with pytest.raises(UnsupportedTable):
            require_same_table(Settings(settings), made(version), "t")


@VERSIONS
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_a_new_table_merges_as_asked_for(version, mode):
    """By the mode, also in the version that has payload classes in its place."""
    table = made(version, **{"hoodie.record.merge.mode": mode})
    require_same_table(Settings({"hoodie.record.merge.mode": mode}), table, "t")
    other = {"EVENT_TIME_ORDERING": "COMMIT_TIME_ORDERING", "COMMIT_TIME_ORDERING": "EVENT_TIME_ORDERING"}[mode]
    with pytest.raises(ConfigError):
        require_same_table(Settings({"hoodie.record.merge.mode": other}), table, "t")
