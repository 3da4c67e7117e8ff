"""Tables that were downgraded to layout 1: which slices show the rows of a time from before."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.fsview.as_of import context_as_of, readable_slices
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.model.files import format_base_file
from hudi_py.versions.format import LogNaming

TIMES = [f"2026010100000{n}000" for n in range(9)]


@given(kinds=st.lists(st.sampled_from(["base", "log", "other"]), min_size=1, max_size=len(TIMES)))
def test_earlier_times_show_the_files_that_they_showed_before(kinds):
    """Files of a group that writes and compactions made one after the other, with other commits between them."""
    writes = list(zip(TIMES, ["base", *kinds[1:]], strict=False))
    files = [
        (format_base_file("f-0", "0-1-2", time) if kind == "base" else f".f-0_{time}.log.1_0-1-2", 1)
        for time, kind in writes
        if kind != "other"
    ]
    times = frozenset(time for time, _ in writes)
    before = ViewContext(
        log_naming=LogNaming.BY_WRITE,
        visible_times=times,
        first_time=min(times),
        last_time=max(times),
        completed_times=times,
        completion_times={time: time for time in times},
    )
    logged = {time for time, kind in writes if kind == "log"}
    after = attrs.evolve(before, log_naming=LogNaming.BY_SLICE, completion_times={}, has_logged=logged.__contains__)
    for time in sorted(times):
        shown = [
            [each.file_names for each in readable_slices(seen, build_partition(seen, "p", files), ())]
            for seen in (context_as_of(before, time), context_as_of(after, time))
        ]
        assert shown[1] == shown[0] != []
