"""What the change logs of a table tell."""

from support.writes import open_table


def rows_by_changes(storage):
    """The rows that all single changes make, and every change log is told by a commit."""
    table, rows = open_table(storage), {}
    for change in table.change_log("0").to_arrow().to_pylist():
        for row in filter(None, (change["before"], change["after"])):
            rows[row["id"]] = change["after"]
    stats = (stat for each in table.timeline.writes.completed() for stat in _stats_of(table, each))
    told = {path for stat in stats for path in stat.cdc_stats or ()}
    assert {path for path in storage.files() if path.endswith(".cdc")} == told
    return sorted(filter(None, rows.values()), key=lambda row: row["id"])


def _stats_of(table, instant):
    return [stat for stats in table.contents.commit(instant).partition_to_write_stats.values() for stat in stats]
