"""What a reader has read, as a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError
from hudi_py.model.progress import Progress, begin_after, decoded

TIMES = st.integers(min_value=1, max_value=10**17 - 1).map("{:017d}".format)


@given(st.dictionaries(TIMES, TIMES | st.just("")), TIMES | st.just(""))
def test_a_text_holds_all_of_it(writes, until):
    """A stream is started again from it."""
    progress = Progress(until=until, writes=writes)
    assert decoded(until, progress.encoded()) == progress


@pytest.mark.parametrize("text", ["x", "YQ==", "eJwrTi0GAAJnAU0="])
def test_another_text_is_refused(text):
    """Taken for an empty list, it would hide what was undone."""
    with pytest.raises(ConfigError, match="begin with a new one"):
        decoded("20260101000000000", text)


@given(st.sets(TIMES, min_size=1), st.data())
def test_what_is_missing_is_neither_active_nor_archived(read, data):
    """Whatever is active or archived beside it."""
    some = st.sets(st.sampled_from(sorted(read)))
    active, archived = data.draw(some), data.draw(some) | data.draw(st.sets(TIMES))
    found = Progress(until=max(read), writes=dict.fromkeys(read, "")).missing(
        dict.fromkeys(active, "1"), lambda after, before: {time for time in archived if after < time < before}
    )
    assert found == read - active - archived


def test_another_run_under_the_same_time_is_not_what_was_read():
    """A service that is repeated keeps its requested time."""
    progress = Progress(until="5", writes={"1": "3"})
    assert progress.missing({"1": "7"}, lambda *_: ()) == {"1"}
    assert not progress.missing({"1": "3"}, lambda *_: ())
    assert not progress.missing({"1": ""}, lambda *_: ())


@given(st.dictionaries(st.integers(10, 49), st.integers(10, 49), min_size=2), st.data())
def test_a_reader_of_an_upgraded_table_reads_each_commit_once(pairs, data):
    """Its end was a requested time, and the table compares completion times now."""
    done = {str(time): str(time + more) for time, more in pairs.items()}
    until = data.draw(st.sampled_from(sorted(done)))
    read = {time for time in done if time <= until}
    archived = {time for time in done if time < data.draw(st.sampled_from(sorted(done)))}
    progress = Progress(until=until, writes=dict.fromkeys(read, ""))
    begin = begin_after(
        progress,
        {time: end for time, end in done.items() if time not in archived},
        {time: end for time, end in done.items() if time in archived},
    )
    if begin is None:
        assert max(done[time] for time in read) >= min(end for time, end in done.items() if time not in read)
    else:
        assert read == {time for time, end in done.items() if end <= begin}
