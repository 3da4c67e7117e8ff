"""Streams that are read ahead in threads."""

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.runtime.ahead import Source, in_turn, joined
from support.laws import examples


def alive():
    return [each for each in threading.enumerate() if each.name == "read ahead"]


@examples(40)
@given(
    st.lists(st.tuples(st.lists(st.integers(), max_size=5), st.integers(0, 9)), max_size=6),
    st.integers(1, 4),
    st.integers(0, 20),
)
def test_items_come_in_the_order_of_their_sources(sources, threads, weight_max):
    """Whatever the streams hold, however many threads read them, whatever they weigh."""
    made = [Source((each for each in items).__iter__, weight) for items, weight in sources]
    found = list(in_turn(made, threads=threads, weight_max=weight_max))
    assert found == [item for items, _ in sources for item in items]
    assert not alive()


@examples(40)
@given(st.lists(st.tuples(st.lists(st.integers(), max_size=3), st.integers(0, 9)), max_size=8), st.integers(0, 20))
def test_joined_streams_have_the_items_of_their_sources(sources, weight):
    """In their order; only a single one may weigh more than the limit, and no two neighbours fit together."""
    made = [Source((each for each in items).__iter__, own) for items, own in sources]
    found = list(joined(made, weight))
    assert [item for source in found for item in source.open()] == [item for items, _ in sources for item in items]
    assert sum(source.weight for source in found) == sum(own for _, own in sources)
    assert all(source.weight <= max(weight, *(own for _, own in sources)) for source in found)
    if all(own <= weight for _, own in sources):
        assert len(found) <= 2 * sum(own for _, own in sources) // max(weight, 1) + 1


@examples(10)
@given(st.integers(1, 3), st.integers(0, 30), st.integers(0, 3))
def test_no_more_is_read_ahead_than_was_agreed(threads, weight_max, taken):
    """Streams that are open, their weights and the items that wait are bounded while the caller takes its time."""
    is_full = threading.Event()
    opened, items, allowed = [], [], max(1, min(threads, weight_max // 10))

    def stream(number):
        opened.append(number)
        for item in range(100):
            items.append((number, item))
            if sum(1 for each, _ in items if each == allowed - 1) == 3:
                is_full.set()  # two wait, the third one finds no place
            yield number, item

    def begin(number):
        return lambda: stream(number)

    found = in_turn([Source(begin(number), 10) for number in range(5)], threads=threads, weight_max=weight_max)
    for _ in range(taken + 1):
        next(found)
    if threads > 1:
        assert is_full.wait(10)
    found.close()
    assert not alive()
    assert len(opened) <= allowed
    assert all(sum(1 for each, _ in items if each == number) <= taken + 5 for number in range(5))


@pytest.mark.parametrize(("threads", "weight_max", "begun"), [(2, 90, 4), (3, 90, 5), (3, 20, 2)])
def test_no_thread_waits_for_the_caller_behind_a_short_stream(threads, weight_max, begun):
    """Two streams more are begun than are read at one time, by no more threads, if their weights allow it."""
    opened, is_reached, names = [], threading.Event(), set()

    def stream():
        names.add(threading.get_ident())
        opened.append(1)
        if len(opened) == begun:
            is_reached.set()
        yield len(opened)

    found = in_turn([Source(stream, 10) for _ in range(9)], threads=threads, weight_max=weight_max)
    next(found)
    assert is_reached.wait(10)
    found.close()
    assert (len(opened), len(names) <= threads) == (begun, True)
    assert not alive()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_where_its_item_would_stand(threads):
    """Behind all items before it, of earlier streams too; and nothing runs on."""

    def broken():
        yield 3
        raise ValueError("torn")

    sources = [Source((each for each in (1, 2)).__iter__), Source(broken), Source((each for each in (4,)).__iter__)]
    found, seen = in_turn(sources, threads=threads, weight_max=0), []
    with pytest.raises(ValueError, match="torn"):
        seen.extend(found)
    assert not alive()
    found = in_turn(sources[1:], threads=threads, weight_max=0)
    assert next(found) == 3


def test_a_stream_left_half_way_does_not_keep_the_process_alive():
    """Not even one that a global name holds when the interpreter ends."""
    text = (
        "from itertools import count\n"
        "from hudi_py.runtime.ahead import Source, in_turn, joined\n"
        "def stream():\n    yield from count()\n"
        "found = in_turn([Source(stream), Source(stream)], threads=2, weight_max=0)\n"
        "print(next(found))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
