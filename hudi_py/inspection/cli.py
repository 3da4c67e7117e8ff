"""The command line ``hudi-py``."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.examples import add_examples
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, action_named, command
from hudi_py.inspection.program import Program
from hudi_py.inspection.say import say

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant
    from hudi_py.table import Table


def _print_version(context: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
    # A shell that completes words parses without running anything.
    if not is_given or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        say(f"hudi-py, version {version('hudi_py')}")
    except PackageNotFoundError:
        say("hudi-py, from a checkout that is not installed")
    context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main() -> None:
    """
    Inspect, clean, repair and restore Apache Hudi tables. TABLE is a local path or a URL (s3://...).

    --conf and --conf-file take settings of Apache Hudi. docs/settings.md lists which are supported, ignored or refused,
    and why. An unknown setting is an error, unless --allow-unknown-conf is given.

    Exit codes: 0 done; 1 failed; 2 wrong usage or settings; 3 problems were found; 4 another process interferes, try
    again; 5 no table, or an unsupported one; 6 some of many tables failed; 7 more to clean, with --exit-code;
    124 stopped by --timeout; 130 Ctrl-C. See docs/exit-codes.md.
    """


@main.command()
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
    from hudi_py.inspection.report import instant_entry

    opened = common.open(table)
    # Chosen before they are counted: --limit 5 with --action clean means five cleans.
    instants = _selected(opened.timeline.all_states if all_states else opened.timeline.instants, action, state)
    if limit is not None:
        # Not `[-limit:]`: a limit of 0 would show all.
        instants = instants[len(instants) - min(limit, len(instants)) :]
    old = _selected(opened.archived_timeline().instants, action, state) if archived else ()
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


def _with_contents(opened: Table, instants: tuple[Instant, ...]) -> Iterator[dict[str, Any]]:
    from hudi_py.inspection.report import instant_entry

    return ({**instant_entry(each), "content": _content(opened, each)} for each in instants)


def _archived_with_contents(opened: Table, instants: tuple[Instant, ...]) -> Iterator[dict[str, Any]]:
    from hudi_py.inspection.report import instant_entry
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
            render.table(f"{title} timeline of {opened.config.name}, {len(rows)} instants", columns, rows)


def _content(opened: Table, instant: Instant) -> Any:
    from hudi_py.errors import CorruptMetadata, NotFound

    try:
        return opened.contents.plain(instant)
    except (CorruptMetadata, NotFound) as error:  # one damaged or deleted instant must not hide the others
        return {"error": str(error)}


@main.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("instant", shell_complete=complete.instants)
@click.option("--state", help="State to show: requested, inflight or completed. Default: the latest.")
@command
def instant(common: Common, table: str, instant: str, state: str | None) -> None:
    """Show the decoded content of an instant."""
    from hudi_py.inspection.report import instant_entry

    opened = common.open(table)
    time = opened.resolve_time(instant, exact=True)
    # Of all states: an earlier one may be asked for, and its file is another.
    found = {i: None for i in _selected(opened.timeline.all_states, None, state) if i.requested_time == time}
    # The archive only if the active timeline does not know the time: it may be large.
    is_archived = not found
    if is_archived:
        from hudi_py.timeline.archive import load_archived_contents

        content_of = load_archived_contents(opened.storage, opened.config, time)
        found = {i: content_of[i] for i in _selected(tuple(content_of), None, state)}
    if not found:
        raise ConfigError(
            f"{table} has no instant {time}" + (f" in state {state}" if state else "") + "; see hudi-py timeline"
        )
    # A savepoint has the requested time of its commit; the commit is what is usually meant.
    chosen = max(found, key=lambda i: (i.state, i.action.value != "savepoint"))
    document = {**instant_entry(chosen), "content": found[chosen] if is_archived else opened.contents.plain(chosen)}
    if common.as_json:
        print_json(document)
        return
    say(chosen)
    print_json(document["content"])


@main.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--partition", shell_complete=complete.partitions, help="Show only this partition.")
@click.option("--as-of", metavar="TIME", help="Show the files of the table as of this time.")
@click.option("--sizes", is_flag=True, help="With --json: add the size of each file.")
@command
def files(common: Common, table: str, partition: str | None, as_of: str | None, sizes: bool) -> None:
    """List file groups and their file slices."""
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
        for group in view.groups:
            for position, file_slice in enumerate(group.slices):
                size = (file_slice.base_file.size_bytes if file_slice.base_file else 0) or 0
                size += sum(log.size_bytes or 0 for log in file_slice.log_files)
                rows.append(
                    (
                        view.partition_path or "(none)",
                        group.file_id,
                        file_slice.base_instant_time,
                        str(len(file_slice.log_files)),
                        render.human_bytes(size),
                        "latest" if position == 0 else "",
                    )
                )
    columns = ("partition", "file group", "base instant", "logs", "size", "")
    render.table(f"file slices of {opened.config.name}, {len(rows)}", columns, rows, right=(3, 4))


@main.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """
    Print a script that completes commands and options in a shell.

    \b
    Examples:
      eval "$(hudi-py completion bash)"
      hudi-py completion fish > ~/.config/fish/completions/hudi-py.fish
    """  # noqa: D301 - click takes the character for a mark
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    made = found(main, {}, "hudi-py", "_HUDI_PY_COMPLETE")
    # Not `made.source()`: for bash, click would start a bash there to ask for its version.
    sys.stdout.write(made.source_template % made.source_vars())


from hudi_py.inspection import (  # noqa: E402
    check_command,
    clean_command,
    cluster_command,
    compact_command,
    deletion_command,
    doctor_command,
    du_command,
    erased_command,
    expire_command,
    explain_command,
    fleet_command,
    history_commands,
    lease_command,
    life_commands,
    maintain_command,
    orphans_command,
    over_tables,
    overview_command,
    policy_command,
    read_command,
    recover_command,
    report_command,
    serve_command,
    undo_command,
    write_commands,
)

main.add_command(check_command.check)
main.add_command(clean_command.clean)
main.add_command(cluster_command.cluster)
main.add_command(compact_command.compact)
main.add_command(deletion_command.deletion)
main.add_command(doctor_command.doctor)
main.add_command(du_command.du)
main.add_command(expire_command.expire_partitions)
main.add_command(erased_command.erased)
main.add_command(explain_command.explain)
main.add_command(fleet_command.entry)
main.add_command(fleet_command.fleet)
main.add_command(lease_command.consumer)
main.add_command(lease_command.lease)
main.add_command(life_commands.history)
main.add_command(life_commands.diff)
main.add_command(life_commands.simulate)
main.add_command(maintain_command.maintain)
main.add_command(orphans_command.orphans)
main.add_command(overview_command.overview)
main.add_command(policy_command.policy)
main.add_command(read_command.read)
main.add_command(recover_command.recover)
main.add_command(report_command.report)
main.add_command(serve_command.serve)
main.add_command(undo_command.undo)
main.add_command(history_commands.archive)
main.add_command(history_commands.restore)
main.add_command(history_commands.rollback)
main.add_command(history_commands.savepoint)
main.add_command(history_commands.tag)
for written in write_commands.COMMANDS:
    main.add_command(written)
# Last: they add to the commands that the program has by now.
over_tables.add_options(main)
add_examples(main)
