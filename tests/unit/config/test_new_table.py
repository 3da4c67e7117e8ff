"""What a new table is made with: as asked for, or refused; nothing that was asked for is passed over."""

import pytest

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.rows.keys import KeyGeneratorKind, key_generator_of
from hudi_py.rows.precedence import MergeMode, merge_rules_of

BASE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
}
CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
VERSIONS = pytest.mark.parametrize("version", ["6", "8", "9"])


def made(version, settings):
    return new_table_properties(Settings({**BASE, "hoodie.write.table.version": version, **settings}))


@VERSIONS
@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({}, KeyGeneratorKind.SIMPLE),
        ({CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator"}, KeyGeneratorKind.COMPLEX),
        ({TYPE: "complex_avro"}, KeyGeneratorKind.COMPLEX),
        ({TYPE: "SIMPLE", CLASS: "SimpleAvroKeyGenerator"}, KeyGeneratorKind.SIMPLE),
    ],
)
def test_the_key_generator_is_the_one_asked_for(version, asked, kind):
    """By type or by class, in every table version."""
    assert kind is key_generator_of(made(version, asked), single_field_prefixed=True).kind


@VERSIONS
@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({CLASS: "com.example.MyKeyGenerator"}, UnsupportedTable),
        ({TYPE: "USER_PROVIDED"}, UnsupportedTable),
        ({TYPE: "SIMPLE", CLASS: "ComplexKeyGenerator"}, ConfigError),
        ({PAYLOAD: "com.example.Mine"}, UnsupportedTable),
        ({PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"}, UnsupportedTable),
        (
            {PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
            ConfigError,
        ),
    ],
)
def test_what_is_not_served_is_refused(version, asked, error):
    """Rows would get other keys, other partitions, or be merged by another rule than the user's."""
    with pytest.raises(error):
        made(version, asked)


@VERSIONS
def test_the_payload_decides_how_rows_are_merged(version):
    """As in Hudi, where it is the older word for the merge mode."""
    default = merge_rules_of(made(version, {PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload"}))
    assert default.mode is MergeMode.EVENT_TIME_ORDERING
    latest = merge_rules_of(made(version, {PAYLOAD: f"{MODEL}OverwriteWithLatestAvroPayload"}))
    assert latest.mode is (MergeMode.OVERWRITE_WITH_LATEST if version == "6" else MergeMode.COMMIT_TIME_ORDERING)
