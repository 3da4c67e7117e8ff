import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.commit_json import decode_json, encode_json, format_double
from support.laws import examples

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=3)


@examples(30)
@given(objects)
def test_decoding_gives_back_what_was_encoded(value):
    """Decoding is the inverse of encoding."""
    assert value == decode_json(encode_json(value), "x")


@examples(30)
@given(objects)
def test_encoding_is_stable_and_any_parser_reads_it(value):
    """Writing again what was read changes nothing."""
    data = encode_json(value)
    assert value == json.loads(data)
    assert data == encode_json(decode_json(data, "x"))
    assert not data.endswith(b"\n")


def test_layout_is_that_of_jacksons_pretty_printer():
    """rules/timeline 4.5: objects by lines, arrays on one, blanks inside empty ones, null written, UTF-8 unescaped."""
    value = {
        "a": {},
        "b": [],
        "c": [{"d": None}, {"e": True}],
        "f": [1, -2],
        "g": "é😀/\u2028",
        "h": 9_007_199_254_740_993,
    }
    expected = (
        '{\n  "a" : { },\n  "b" : [ ],\n  "c" : [ {\n    "d" : null\n  }, {\n    "e" : true\n  } ],\n'
        '  "f" : [ 1, -2 ],\n  "g" : "é😀/\u2028",\n  "h" : 9007199254740993\n}'
    )
    assert expected == encode_json(value).decode()


def test_control_characters_are_escaped_in_upper_case_and_a_written_backslash_stays():
    """Jackson's hex digits, and no mix-up with the text backslash-u."""
    assert '{\n  "\\u001F" : "\\n\\t\\"\\\\u001f\\u0001"\n}' == encode_json({"\x1f": '\n\t"\\u001f\x01'}).decode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.5e10, "-1.5E10"),
        (1e-5, "1.0E-5"),
        (123456789.125, "1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_are_written_as_java_does(value, text):
    """``Double.toString``: an exponent below 1e-3 and from 1e7 on."""
    assert text == format_double(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_double_loses_a_bit(value):
    """The shortest digits still mean the same number."""
    assert value == float(format_double(value))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a":}',
        b'{"a":NaN}',
        b'{"a":"\xff"}',
        b'{"a":"\\ud800"}',
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_json_object_is_corrupt(data):
    """Source and place stand in the message; depth and length of numbers do no harm."""
    with pytest.raises(CorruptMetadata, match=r"^t/T\.commit: .*\d"):
        decode_json(data, "t/T.commit")


def test_errors_count_bytes_and_not_characters():
    """The offset is one into the file."""
    with pytest.raises(CorruptMetadata, match=r"byte 10 of 12"):
        decode_json('{"éé" : x}'.encode(), "x")


@examples(30)
@given(objects, st.data())
def test_a_torn_object_is_corrupt(value, data):
    """No proper prefix of an object is one."""
    whole = encode_json(value)
    with pytest.raises(CorruptMetadata):
        decode_json(whole[: data.draw(st.integers(0, len(whole) - 1))], "x")
