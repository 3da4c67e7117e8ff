"""Cleans in quarantine beside archival: what can be undone stays on the timeline."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.table import Table
from support.tables import TableBuilder, at

SETTINGS = {"hoodie_py.clean.quarantine": True, "hoodie.clean.commits.retained": 1}


def opened(builder, storage=None):
    return Table(storage or builder.storage, settings=SETTINGS, clock=builder.clock)


@pytest.mark.parametrize("layout", [1, 2])
def test_archival_leaves_what_can_be_undone(layout):
    """Also the cleans behind it, for the oldest are archived first; commits go. When its time is over, it goes too."""
    builder = TableBuilder(layout)
    for number in range(1, 4):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    (result,) = opened(builder).clean()
    before = set(result.deleted_files)

    def go_on(commits):
        for _ in range(commits):
            commit, clean = (f"{builder.clock.now() + timedelta(hours=each):%Y%m%d%H%M%S}000" for each in (1, 2))
            builder.commit(commit, {"r0": ["f"]})
            builder.cleaned(clean, earliest=at(3), last_commit=commit)
            builder.clock.move(timedelta(hours=3))

    def archived(commits):
        go_on(commits)
        opened(builder).archive(keep_min_commits=2, keep_max_commits=3)
        found = opened(builder).timeline
        return len(found.commits.completed()), [each.requested_time for each in found.completed("clean")]

    commits, cleans = archived(12)
    assert commits < 15
    assert (cleans[0], len(cleans)) == (result.instant, 13)
    assert set(opened(builder, builder.storage.copy()).undo(result.instant).files) == before
    builder.clock.move(timedelta(days=8))
    _, cleans = archived(3)
    assert result.instant not in cleans
