import hashlib
import json

import pytest

from hudi_py.formats.avro_registry import NAMESPACE, schema_files, schema_text

# rules/timeline 4.2: record, table versions, length, first 16 hex digits of SHA-256
FINGERPRINTS = [
    ("HoodieCleanerPlan", (6, 8, 9), 1642, "744b54da7af51340"),
    ("HoodieCleanMetadata", (6, 8, 9), 1542, "41f41ba914b08b2f"),
    ("HoodieCompactionPlan", (6,), 2052, "2553a2e746ca0282"),
    ("HoodieCompactionPlan", (8, 9), 2191, "8b25e6cc9f4d3013"),
    ("HoodieRequestedReplaceMetadata", (6,), 2464, "ffbc3fe6e197428e"),
    ("HoodieRequestedReplaceMetadata", (8, 9), 2603, "2b07d21bbc5d5bba"),
    ("HoodieRollbackPlan", (6, 8, 9), 1141, "db176cd73b6c2a78"),
    ("HoodieRollbackMetadata", (6, 8, 9), 1409, "82c7840ece2f8b3e"),
    ("HoodieRestorePlan", (6, 8, 9), 557, "1a1624a7f29fa189"),
    ("HoodieRestoreMetadata", (6, 8, 9), 2005, "db536b57da3f7cf9"),
    ("HoodieSavepointMetadata", (6, 8, 9), 689, "465fe1cf2c6d1f85"),
    ("HoodieCommitMetadata", (8, 9), 3293, "138d2a7342c160e0"),
    ("HoodieReplaceCommitMetadata", (8, 9), 3476, "db733c7aa73f03f6"),
    ("HoodieMergeArchiveFilePlan", (6,), 391, "ee61ce5da5c3b38a"),
    ("HoodieIndexPlan", (8, 9), 719, "e49ee6c7b70c5250"),
]


@pytest.mark.parametrize(("record", "versions", "length", "digest"), FINGERPRINTS)
def test_schema_text_has_the_fingerprint_of_what_hudi_writes(record, versions, length, digest):
    """rules/timeline 4.2: length and hash of the ``avro.schema`` text, per generation."""
    for version in versions:
        text = schema_text(record, version)
        assert (length, digest) == (len(text), hashlib.sha256(text.encode()).hexdigest()[:16])


@pytest.mark.parametrize("version", [6, 8, 9])
def test_each_table_version_has_its_own_metadata_record(version):
    """The metadata table's schema grew with every release, and only the newest knows arrays."""
    text = schema_text("HoodieMetadataRecord", version)
    assert (version == 9, version >= 8) == ("ArrayWrapper" in text, "LocalDateWrapper" in text)


def test_every_shipped_file_is_a_record_of_its_name_in_compact_json():
    """rules/timeline 4.2: no blanks, order kept, file named after the record."""
    for file_name in schema_files():
        record, _, generation = file_name.removesuffix(".avsc").partition(".v")
        text = schema_text(record, int(generation or 9))
        schema = json.loads(text)
        assert (record, NAMESPACE) == (schema["name"], schema["namespace"])
        assert text == json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def test_unknown_record_is_our_mistake():
    """No file on storage can ask for a schema by a wrong name."""
    with pytest.raises(KeyError):
        schema_text("HoodieNonsense")
