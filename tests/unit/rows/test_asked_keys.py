"""Which record keys conditions leave possible."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_py.rows.asked_keys import KEYS_MAX, asked_keys, key_fields_of
from hudi_py.rows.predicate import filters_of
from hudi_py.rows.where import conditions_of

SCHEMA = pa.schema([
    ("_hoodie_record_key", pa.string()), ("a", pa.string()), ("b", pa.int64()), ("d", pa.date32()),
    ("f", pa.float64()), ("n", pa.struct([("k", pa.string())])),
    ("m", pa.decimal128(10, 2)), ("t", pa.timestamp("us", "UTC")),
])  # fmt: skip


def keys(where, *fields):
    found = asked_keys(filters_of(conditions_of(where), SCHEMA, SCHEMA.names), fields)
    return None if found is None else sorted(found)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("_hoodie_record_key = 'x'", ["x"]),
        ("_hoodie_record_key = 7", ["7"]),
        ("_hoodie_record_key in ('x', 'y', null)", ["x", "y"]),
        ("_hoodie_record_key = 'x' and f > 1", ["x"]),
        ("_hoodie_record_key = 'x' or _hoodie_record_key in ('y', 'z')", ["x", "y", "z"]),
        ("_hoodie_record_key in ('x', 'y') and _hoodie_record_key in ('y', 'z')", ["y"]),
        ("(_hoodie_record_key = 'x' or _hoodie_record_key = 'y') and (a = 'q' or f = 1)", ["x", "y"]),
        ("_hoodie_record_key = null", []),
        ("_hoodie_record_key = ''", []),
        ("_hoodie_record_key = 'x' or f > 1", None),
        ("not _hoodie_record_key = 'x'", None),
        ("not (_hoodie_record_key != 'x')", None),
        ("_hoodie_record_key > 'x'", None),
        ("_hoodie_record_key like 'x'", None),
        ("a = 'x'", None),
    ],
)
def test_keys_that_are_asked_for_by_their_column(where, expected):
    """Equality and ``in``, joined by and / or; everything else leaves any key possible."""
    assert expected == keys(where)


@pytest.mark.parametrize(
    ("where", "fields", "expected"),
    [
        ("a = 'x'", "a", ["a:x", "x"]),
        ("b in (1, 2)", "b", ["1", "2", "b:1", "b:2"]),
        ("a = 'x' and b = 1", "ab", ["a:x,b:1"]),
        ("b = 1 and a in ('x', 'y')", "ab", ["a:x,b:1", "a:y,b:1"]),
        ("(a = 'x' and b = 1) or (a = 'y' and b = 2)", "ab", ["a:x,b:1", "a:x,b:2", "a:y,b:1", "a:y,b:2"]),
        ("a = '' and b = 1", "ab", ["a:__empty__,b:1"]),
        ("a = 'x'", "ab", None),
        ("a = 'x' or b = 1", "ab", None),
        ("b = 1.5", "b", None),
        ("d = date '1970-01-03'", "d", ["1970-01-03", "2", "d:1970-01-03", "d:2"]),
        ("m = 5", "m", ["5", "5.0", "5.00", "m:5", "m:5.0", "m:5.00"]),
        ("m = 5.001", "m", None),
        ("d = '1970-01-01' and b = 1", "db", ["d:0,b:1", "d:1970-01-01,b:1"]),
        ("t = timestamp '1979-12-31T23:59:59'", "t", None),  # on what clocks showed then, see the texts of keys
        ("f = 1", "f", None),
    ],
)
def test_keys_that_follow_from_their_fields(where, fields, expected):
    """Of all types whose texts in keys are known, whichever writer of Hudi it was."""
    assert expected == keys(where, *fields)


def test_a_field_of_a_struct_can_be_the_key():
    """Under its name with dots, as Hudi writes it."""
    assert ["n.k:x", "x"] == keys("n.k = 'x'", "n.k")


def test_two_forms_of_one_key_stand_for_the_same():
    """So that one of them is enough to have found it."""
    found = asked_keys(filters_of(conditions_of("a = 'x'"), SCHEMA, SCHEMA.names), ["a"])
    assert {"a:x": "a:x", "x": "a:x"} == found


def test_too_many_keys_are_not_listed():
    """They lie everywhere; a product of two lists is not even computed."""
    many = ", ".join(f"'{number}'" for number in range(101))
    numbers = ", ".join(map(str, range(101)))
    assert KEYS_MAX < 101 * 101
    assert keys(f"a in ({many}) and b in ({numbers})", "a", "b") is None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hoodie.table.keygenerator.type": "COMPLEX"}, ("a", "b")),
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, ("a", "b")),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}, ("a", "b")),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator"}, ("a", "b")),
        ({"hoodie.table.keygenerator.class": "com.acme.KeyGenerator"}, ()),
        ({"hoodie.table.keygenerator.type": "USER_PROVIDED",
          "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}, ()),
        ({}, ()),
    ],
)  # fmt: skip
def test_only_the_key_generators_of_hudi_are_known(properties, expected):
    """What another class makes of the fields cannot be told."""
    assert expected == key_fields_of({"hoodie.table.recordkey.fields": "a, b", **properties})


def test_forms_of_a_value_stand_for_one_key():
    """Whichever of them an index has, the key is known; small decimals are written with an exponent, too."""
    schema = pa.schema([("m", pa.decimal128(20, 10)), ("d", pa.date32())])
    where = [("m", "=", Decimal("0.0000000001")), ("d", "=", date(2024, 1, 2))]
    found = asked_keys(filters_of(conditions_of(where), schema, schema.names), ("d", "m"))
    assert found == dict.fromkeys(
        (f"d:{day},m:{number}" for day in ("2024-01-02", "19724") for number in ("1E-10", "0.0000000001")),
        "d:2024-01-02,m:1E-10",
    )
