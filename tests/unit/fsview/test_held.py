import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.fsview.held import HeldFiles

NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=4)
HELD = st.lists(st.dictionaries(st.sampled_from(["", "p", "q/r", "s"]), NAMES, max_size=3), max_size=4)


@given(HELD, HELD)
def test_every_name_of_every_savepoint_is_held(first, second):
    """Equal to sets made at once, also for holders made of holders, and however often a partition is asked for."""
    expected = {}
    for held in (*first, *second):
        for path, names in held.items():
            expected.setdefault(path, set()).update(names)
    found = HeldFiles(HeldFiles(*first), *second)
    assert expected == found
    assert expected == dict(found)
    assert len(expected) == len(found)
    assert [path in found for path in ("", "p", "t")] == [path in expected for path in ("", "p", "t")]
    assert found.get("t") is None
    with pytest.raises(KeyError):
        found["t"]
