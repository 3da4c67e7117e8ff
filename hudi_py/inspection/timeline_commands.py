"""``hudi-py timeline``, ``instant`` and ``files``: what the table says, as it stands there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.instant_entry import find_content, instant_entry
from hudi_py.inspection.options import Common, action_named, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant
    from hudi_py.table import Table


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--action", help="Show only instants of this action (commit, clean, ...).")
@click.option("--state", help="Show only instants in this state (requested, inflight, completed).")
@click.option("--limit", type=click.IntRange(min=0), help="Show only the newest N instants.")
@click.option("--archived", is_flag=True, help="Show archived instants too.")
@click.option("--contents", is_flag=True, help="Include the decoded content of each instant.")
@click.option("--all-states", is_flag=True, help="Show every state of an instant, not only the latest.")
@command
def timeline(
    common: Common,
    table: str,
    action: str | None,
    state: str | None,
    limit: int | None,
    archived: bool,
    contents: bool,
    all_states: bool,
) -> None:
    """List the instants of a table, oldest first."""
    # Without the listing, which would ask the metadata table.
    opened = common.open(table).refresh_timeline()
    # Chosen before they are counted: --limit 5 with --action clean means five cleans.
    instants = _selected(opened.timeline.all_states if all_states else opened.timeline.instants, action, state)
    old = _selected(_archived(opened, all_states or common.as_json), action, state) if archived else ()
    if limit is not None:
        # Archived ones are older, so they get what active ones leave.
        instants, left = _newest(instants, limit)
        old, _ = _newest(old, left)
    if contents:
        archived_entries, entries = _archived_with_contents(opened, old), _with_contents(opened, instants)
    else:
        archived_entries, entries = map(instant_entry, old), map(instant_entry, instants)
    if common.as_json:
        layout = opened.config.layout_version
        print_json({"layout_version": layout, "instants": list(entries), "archived": list(archived_entries)})
        return
    _print_timeline(opened, instants, old)
    if contents:
        # One after the other: the contents of a long timeline need not fit into memory.
        for instant, entry in zip((*old, *instants), itertools.chain(archived_entries, entries), strict=True):
            say()
            say(instant)
            print_json(entry["content"])


def _newest(instants: tuple[Instant, ...], limit: int) -> tuple[tuple[Instant, ...], int]:
    """The newest of the instants, at most *limit* with all states of each, and how many more there could be."""
    # With the action, because a savepoint has the time of its commit.
    found = list(dict.fromkeys((each.requested_time, each.action) for each in instants))
    # Not `[-limit:]`: a limit of 0 would show all.
    wanted = set(found[len(found) - min(limit, len(found)) :])
    return tuple(each for each in instants if (each.requested_time, each.action) in wanted), limit - len(wanted)


def _archived(opened: Table, all_states: bool) -> tuple[Instant, ...]:
    from hudi_py.timeline.archive import highest_states

    # All states in JSON: that is the list of Apache Hudi, with which the document is compared.
    found = opened.archived_timeline().instants
    return found if all_states else highest_states(found)


def _with_contents(opened: Table, instants: tuple[Instant, ...]) -> Iterator[dict[str, Any]]:
    return ({**instant_entry(each), "content": _content(opened, each)} for each in instants)


def _archived_with_contents(opened: Table, instants: tuple[Instant, ...]) -> Iterator[dict[str, Any]]:
    from hudi_py.timeline.archive import load_archived_contents

    # All at once: the archive can only be read whole, so one look for each instant would read it that often.
    content_of = load_archived_contents(opened.storage, opened.config) if instants else {}
    return ({**instant_entry(each), "content": content_of.get(each)} for each in instants)


def _selected(instants: tuple[Instant, ...], action: str | None, state: str | None) -> tuple[Instant, ...]:
    from hudi_py.model.instant import State

    if action is not None:
        wanted = action_named(action)
        instants = tuple(i for i in instants if i.action is wanted)
    if state is not None:
        if state.upper() not in State.__members__:
            raise ConfigError(f"--state {state}: unknown state; use one of requested, inflight, completed")
        instants = tuple(i for i in instants if i.state is State[state.upper()])
    return instants


def _print_timeline(opened: Table, instants: tuple[Instant, ...], archived: tuple[Instant, ...]) -> None:
    columns = ("requested time", "action", "state", "completion time")
    for title, listed in (("archived", archived), ("active", instants)):
        if listed or title == "active":
            rows = [(i.requested_time, i.action.value, i.state.name, i.completion_time or "-") for i in listed]
            render.table(f"{title} timeline of {opened.config.name}, {counted(len(rows), 'instant')}", columns, rows)


def _content(opened: Table, instant: Instant) -> Any:
    from hudi_py.errors import CorruptMetadata, NotFound

    try:
        return opened.contents.plain(instant)
    except (CorruptMetadata, NotFound) as error:  # one damaged or deleted instant must not hide the others
        return {"error": str(error)}


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("instant", shell_complete=complete.instants)
@click.option("--state", help="State to show: requested, inflight or completed. Default: the latest.")
@command
def instant(common: Common, table: str, instant: str, state: str | None) -> None:
    """Show the decoded content of an instant."""
    opened = common.open(table)
    time = opened.resolve_time(instant, exact=True)
    _selected((), None, state)  # refuses a state that there is not
    wanted = None if state is None else state.upper()
    found = find_content(opened, time, state=wanted)
    # Nobody types milliseconds: a time in whole seconds stands for the instant of that second, if there is only one.
    within = sorted({each.requested_time for each in opened.timeline if each.requested_time.startswith(time[:14])})
    if found is None and time.endswith("000") and len(within) == 1:
        found = find_content(opened, within[0], state=wanted)
    if found is None:
        others = f"; of that second are {' and '.join(within)}" if len(within) > 1 else ""
        said = f" in state {state}" if state else ""
        raise ConfigError(f"{table} has no instant {time}{said}{others}; see hudi-py timeline")
    chosen, content = found
    if common.as_json:
        print_json({**instant_entry(chosen), "content": content})
        return
    say(chosen)
    print_json(content)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--partition", shell_complete=complete.partitions, help="Show only this partition.")
@click.option("--as-of", metavar="TIME", help="Show the files of the table as of this time, or name of a savepoint.")
@click.option("--sizes", is_flag=True, help="With --json: add the size of each file.")
@command
def files(common: Common, table: str, partition: str | None, as_of: str | None, sizes: bool) -> None:
    """List file groups and their file slices."""
    from hudi_py.fsview.as_of import readable_slices
    from hudi_py.inspection.report import file_sizes, files_report

    present = common.open(table)
    opened = present if as_of is None else present.as_of(as_of)
    paths = opened.partitions() if partition is None else (partition.rstrip("/"),)
    if partition is not None and paths[0] not in opened.partitions():
        # A misspelled partition must not look like one without files.
        raise ConfigError(f"{table} has no partition {partition!r}; see hudi-py files")
    views = [opened.partition(path) for path in paths]
    if common.as_json:
        document = files_report(opened.view_context, views)
        # Not in every document: it has the shape in which the answers of Apache Hudi are compared.
        print_json({**document, "sizes": {v.partition_path: file_sizes(v) for v in views}} if sizes else document)
        return
    rows = []
    for view in views:
        # As it is read, so with what was logged behind a pending compaction.
        latest = {each.file_id: each for each in readable_slices(opened.view_context, view, opened.timeline.compacting)}
        for group in view.groups:
            newest = latest.get(group.file_id)
            shown = () if newest is None else (newest,)
            older = (each for each in group.slices if not shown or each.base_instant_time < shown[0].base_instant_time)
            for file_slice in (*shown, *older):
                rows.append(
                    (
                        view.partition_path or "(none)",
                        group.file_id,
                        file_slice.base_instant_time,
                        str(len(file_slice.log_files)),
                        render.human_bytes(file_slice.size_bytes),
                        "latest" if file_slice is newest else "",
                    )
                )
    columns = ("partition", "file group", "base instant", "logs", "size", "")
    render.table(f"file slices of {opened.config.name}, {counted(len(rows), 'slice')}", columns, rows, right=(3, 4))
