"""Which bucket a key belongs to: as each release of Apache Hudi computes it, and as its tables have it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.formats.java_hash import java_hashes
from hudi_py.rows.bucket_index import bucket_index_of, bucket_number
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind
from hudi_py.versions.served import FORMATS
from support import fixtures

INT_MAX = 0x7FFFFFFF
SIMPLE = KeyGenerator(kind=KeyGeneratorKind.SIMPLE, record_key_fields=("id",), partition_fields=("region",))
COMPLEX = KeyGenerator(kind=KeyGeneratorKind.COMPLEX, record_key_fields=("id", "day"))
PREFIXED = KeyGenerator(kind=KeyGeneratorKind.COMPLEX, record_key_fields=("id",), single_field_prefixed=True)


def index(generator=SIMPLE, version=9, properties=None, **settings):
    given_settings = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": INT_MAX} | {
        name.replace("_", "."): value for name, value in settings.items()
    }
    return bucket_index_of(Settings(given_settings), properties or {}, generator, FORMATS[version])


def java_hash(text):
    value, units = 0, text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=9)), st.integers(0, 4))
def test_texts_hash_as_in_java(texts, start):
    """By their UTF-16 units, whatever their length, also in a slice of a column."""
    column = pa.array(texts, pa.string()).slice(start)
    assert java_hashes(column).tolist() == [java_hash(text) for text in texts[start:]]


# Computed by `BucketIdentifier.getBucketId` of Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0, which agree on these.
OF_HUDI = [
    (SIMPLE, "id", "abc", 96385),
    (SIMPLE, "id", "a,b", 94710),
    (SIMPLE, "id", "\u00e9\U0001f600x", 61901323),
    (COMPLEX, "id", "id:1,day:2024-01-02", 80),
    (COMPLEX, "day", "id:1,day:2024-01-02", 1534142048),
    (COMPLEX, "id,day", "id:1,day:2024-01-02", 1534144497),
    (COMPLEX, "day,id", "id:1,day:2024-01-02", 1534144497),
    (COMPLEX, "id", "id:__null__,day:x", 31),
    (COMPLEX, "id,day", "id:__null__,day:x", 1081),
    (COMPLEX, "id,day", "id:__empty__,day:x", 1081),
]


@pytest.mark.parametrize(("generator", "hashed", "key", "wanted"), OF_HUDI)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_buckets_are_those_of_apache_hudi(generator, hashed, key, wanted, version):
    """Single and composite keys, hashed as a whole or in part; null and empty parts."""
    buckets = index(generator, version, hoodie_bucket_index_hash_field=hashed)
    assert buckets.numbers(pa.array([key, key])).tolist() == [wanted, wanted]


@pytest.mark.parametrize(
    ("generator", "version", "key", "wanted"),
    [
        (SIMPLE, 8, "a:b", 95144),
        (SIMPLE, 9, "https://a/b", 2026414372),
        (SIMPLE, 6, "a:b", None),
        (SIMPLE, 9, "a,b:c", None),
        (PREFIXED, 9, "id:abc", 952753570),
        (PREFIXED, 6, "id:abc", 952753570),
        (PREFIXED, 9, "id:a,b", None),
        (COMPLEX, 9, "id:a:b,day:x", None),
        (COMPLEX, 9, "id:a,c,day:x", None),
    ],
)
def test_keys_that_releases_take_apart_differently_are_refused(generator, version, key, wanted):
    """No number is guessed; 1.x never ends for some of them."""
    buckets = index(generator, version)
    if wanted is not None:
        assert buckets.numbers(pa.array([key])).tolist() == [wanted]
        return
    with pytest.raises(WriteError, match="1 record key with"):
        buckets.numbers(pa.array([key]))


@pytest.mark.parametrize("name", [*fixtures.row_fixture_names("cow_bucket"), *fixtures.row_fixture_names("mor_bucket")])
def test_every_row_of_their_tables_is_in_its_bucket(name, tmp_path):
    """Three releases, every base file; a wrong number of buckets disagrees somewhere."""
    files = sorted(fixtures.unpack_rows(name, tmp_path).rglob("[0-9]*.parquet"))
    keys = {file: pq.read_table(file, columns=["_hoodie_record_key"]).column(0).combine_chunks() for file in files}
    count = 1 + max(bucket_number(file.name) for file in files)
    right = {
        of: all(
            (index(hoodie_bucket_index_num_buckets=of).numbers(keys[f]) == bucket_number(f.name)).all() for f in files
        )
        for of in range(count - 1, count + 3)
    }
    assert right == {of: of == count for of in right}


def test_settings_and_properties_of_the_table_have_to_agree():
    """What the properties say counts where the settings are silent; consistent hashing is refused by name."""
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    found = bucket_index_of(Settings(), properties, SIMPLE, FORMATS[9])
    assert (found.count, found.hashed) == (4, (0,))
    assert np.unique(found.numbers(pa.array([f"k{at}" for at in range(50)]))).tolist() == [0, 1, 2, 3]
    assert bucket_index_of(Settings(), {}, SIMPLE, FORMATS[9]) is None
    with pytest.raises(ConfigError, match="the table's properties say 4"):
        index(properties=properties)
    with pytest.raises(ConfigError, match="names name, but the record key has id"):
        index(hoodie_bucket_index_hash_field="name")
    with pytest.raises(UnsupportedTable, match="CONSISTENT_HASHING: only the engine SIMPLE"):
        index(hoodie_index_bucket_engine="CONSISTENT_HASHING")
