"""Maps that have a key twice."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import WriteError
from hudi_py.formats.map_keys import refuse_repeated_keys

MAP = pa.map_(pa.string(), pa.int32())
PAIRS = st.none() | st.lists(st.tuples(st.sampled_from("kl"), st.none() | st.integers(0, 1)), max_size=3)
AROUND = {
    "map": (MAP, lambda pairs: pairs),
    "struct": (pa.struct([("n", pa.int32()), ("m", MAP)]), lambda pairs: {"n": 1, "m": pairs}),
    "list": (pa.list_(pa.struct([("m", MAP)])), lambda pairs: [{"m": []}, {"m": pairs}]),
    "map of maps": (pa.map_(pa.string(), MAP), lambda pairs: [("one", []), ("two", pairs)]),
}


def has_repeated(pairs):
    names = [name for name, _ in pairs or ()]
    return len(names) != len(set(names))


@pytest.mark.parametrize("around", AROUND)
@given(drawn=st.lists(PAIRS, min_size=1, max_size=5), start=st.integers(0, 4))
def test_exactly_maps_with_a_key_twice_are_refused(around, drawn, start):
    """At any depth, in slices and chunks; the same key may be in several maps."""
    arrow, wrapped = AROUND[around]
    array = pa.array([wrapped(pairs) for pairs in drawn], arrow).slice(start)
    column = pa.chunked_array([array, array.slice(1)])
    if any(map(has_repeated, drawn[start:])):
        with pytest.raises(WriteError, match=r"column 'm.*' has a map with the key '[kl]' twice"):
            refuse_repeated_keys(column, "m")
    else:
        refuse_repeated_keys(column, "m")


def test_what_lies_below_a_null_map_does_not_count():
    """Other libraries leave entries there."""
    keys, values = pa.array(["k", "k", "l"]), pa.array([1, 2, 3], pa.int32())
    hidden = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, values, mask=pa.array([True, False]))
    refuse_repeated_keys(hidden, "m")


def test_nulls_in_values_that_must_have_one_are_left_to_others():
    """They are refused with their number, so this look must not end in an error of Arrow."""
    required = pa.struct([pa.field("q", pa.int32(), nullable=False)])
    without = pa.StructArray.from_arrays([pa.array([None, 1, 2], pa.int32())], fields=list(required))
    for names, is_refused in ((["k", "l", "k"], False), (["k", "k", "l"], True)):
        column = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array(names), without)
        if is_refused:
            with pytest.raises(WriteError, match="twice"):
                refuse_repeated_keys(column, "m")
        else:
            refuse_repeated_keys(column, "m")
