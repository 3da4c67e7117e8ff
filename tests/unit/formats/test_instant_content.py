import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.instant_content import Content, decode_content, encode_content

SCHEMA = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'


@pytest.mark.parametrize(
    "content",
    [
        Content("empty"),
        Content("json", {"a": None}),
        Content("avro", {"a": "b"}, "R", SCHEMA, bytes(16)),
    ],
)
def test_each_kind_round_trips(content):
    """rules/timeline 4.1: the kind is told by the bytes, not by the name of the file."""
    assert content == decode_content(encode_content(content), "x")


def test_an_instant_is_one_record():
    """Two records in one file could mean anything."""
    sync = bytes(range(16))
    twice = encode_avro_file(SCHEMA, {"a": ""}, sync)
    start = twice.index(sync) + 16
    with pytest.raises(CorruptMetadata, match="2 Avro records"):
        decode_content(twice + twice[start:], "x")


@given(st.binary(min_size=1, max_size=100))
@example(b"Obj")
@example(b"\x00")
@example(b"{}")
def test_anything_else_is_corrupt(data):
    """Only JSON objects come through by chance."""
    with contextlib.suppress(CorruptMetadata):
        assert "json" == decode_content(data, "x").kind
