"""Java's order of strings."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.formats.key_order import from_java_order, java_order, key_range

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=30)
NEAR_THE_GAP = st.lists(st.text("aé\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=3), max_size=30)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


@given(texts=TEXTS | NEAR_THE_GAP, skipped=st.integers(0, 5))
def test_order_is_that_of_utf16_code_units(texts, skipped):
    """Sorting the mapped bytes sorts the strings as Java does, slices included, and the way back is exact."""
    mapped = java_order(pa.array(texts, pa.string()).slice(skipped)).to_pylist()
    texts = texts[skipped:]
    assert texts == [from_java_order(key) for key in mapped]
    assert sorted(texts, key=utf16) == [from_java_order(key) for key in sorted(mapped)]


@given(texts=TEXTS | NEAR_THE_GAP)
def test_range_is_smallest_and_largest(texts):
    """The range in a footer prunes by Java's comparison."""
    expected = (min(texts, key=utf16), max(texts, key=utf16)) if texts else None
    actual = key_range(pa.array(texts, pa.string()))
    assert expected == (actual and tuple(from_java_order(key) for key in actual))


def test_nulls_stay_nulls():
    """A null ordering value is not an empty string."""
    assert [None, b"", b"a"] == java_order(pa.array([None, "", "a"])).to_pylist()
    assert [None, "\U00010000"] == [
        key and from_java_order(key) for key in java_order(pa.array([None, "\U00010000"])).to_pylist()
    ]
