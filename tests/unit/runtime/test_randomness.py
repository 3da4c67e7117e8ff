"""Chance behind one door: what is made of given bytes is always the same."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.runtime.randomness import fraction, new_uuid


@given(st.binary(min_size=16, max_size=16))
def test_ids_are_uuids_of_the_bytes_given(data):
    """Version 4, as `uuid.uuid4` makes them, 122 bits of the 128."""
    made = new_uuid(lambda count: data[:count])
    assert UUID(made) == UUID(bytes=data, version=4)
    assert made == new_uuid(lambda count: data[:count])


@given(st.binary(min_size=6, max_size=6))
def test_fractions_lie_between_zero_and_one(data):
    """One is never reached."""
    assert 0 <= fraction(lambda count: data[:count]) < 1


def test_the_machine_gives_other_ids_each_time():
    """By default nothing is given."""
    assert len({new_uuid() for _ in range(100)}) == 100
