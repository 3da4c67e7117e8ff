"""What a table that killed processes worked on has to show, see `victim`."""

from __future__ import annotations

from pathlib import Path

from hudi_py.model.files import parse_base_file
from support.tables import rows_of
from support.victim import batch, opened


def visible(path):
    rows = rows_of(opened(path))
    return {row["id"]: row["ts"] for row in rows}, len(rows)


def expected(last):
    return {row["id"]: row["ts"] for number in range(last + 1) for row in batch(number)}


def assert_nothing_leaks(path):
    """No pending instant, no marker; each data file belongs to a completed commit and is named by it."""
    table = opened(path)
    assert not table.timeline.pending()
    archived = {each.requested_time for each in table.archived_timeline() if each.is_completed}
    named = {}
    for each in table.timeline.completed("commit"):
        stats = table.contents.commit(each).partition_to_write_stats.values()
        named[each.requested_time] = {stat.path for group in stats for stat in group}
    for file in Path(path).rglob("*.parquet"):
        relative = file.relative_to(path)
        if relative.parts[0] == ".hoodie":
            continue
        time_of = parse_base_file(file.name).instant_time
        assert time_of in archived or str(relative) in named[time_of], relative
    assert not list(Path(path, ".hoodie", ".temp").rglob("*.marker.*"))
