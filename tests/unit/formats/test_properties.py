import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.properties import checksum, format_properties, parse_properties
from support.laws import examples

entries = st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=4)


@examples(30)
@given(entries)
def test_parsing_gives_back_what_was_formatted(properties):
    """rules/timeline 1.1: whatever the text, line ends, blanks and characters beyond the BMP included."""
    assert properties == parse_properties(format_properties(properties, ["a", "b"]), "x")


@given(entries)
def test_formatted_text_is_plain_ascii_in_the_given_order(properties):
    """rules/timeline 1.1: one line per entry, everything else escaped."""
    data = format_properties(properties)
    assert data.isascii()
    assert list(properties) == list(parse_properties(data, "x"))
    assert len(properties) == data.count(b"\n")


@given(st.binary())
def test_any_bytes_give_properties_or_corrupt_metadata(data):
    """Java reads nearly everything as properties, and so do we."""
    with contextlib.suppress(CorruptMetadata):
        parse_properties(data, "x")


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a \t= \f b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("#c\n!c\n  # c\n\na=b", {"a": "b"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\r\n#c", {"a": "b#c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n\n#c\na=b", {"a": "b"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00e9\\t\\x", {"a": "é\tx"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=\xe9", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\rc=d\r\n", {"a": "b", "c": "d"}),
    ],
)
def test_text_is_read_as_java_reads_it(text, parsed):
    """rules/timeline 1.1, ``Properties.load``: separators, comments, continuation lines, escapes."""
    assert parsed == parse_properties(text.encode("iso-8859-1"), "x")


def test_text_is_written_as_java_writes_it():
    """rules/timeline 1.1, ``Properties.store``: all blanks of a key, the leading ones of a value, upper-case hex."""
    data = format_properties({"a b": "  c", "d=:#!\\": "\té\x7f😀"}, ["first", "second"])
    assert b"#first\n#second\na\\ b=\\  c\nd\\=\\:\\#\\!\\\\=\\t\\u00E9\\u007F\\uD83D\\uDE00\n" == data


def test_a_broken_escape_is_corrupt():
    """The one thing that Java refuses too."""
    with pytest.raises(CorruptMetadata, match=r"^h\.p: .*byte 4 of"):
        parse_properties(b"a=b\nc=\\u12", "h.p")


@pytest.mark.parametrize(
    ("database", "table", "value"),
    [("", "cow_mdt", "71836708"), (None, "cow_mdt_metadata", "796964735")],
)
def test_checksum_is_the_crc_of_database_and_table(database, table, value):
    """rules/timeline 1.2: the two examples of the document."""
    assert value == checksum(database, table)
