"""The commands that change a table's history: ``hudi-py rollback``, ``savepoint``, ``restore``, ``archive``."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.fsview.listing import sizes_of
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.lease_command import force_option, forced
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.inspection.sentences import Sentences
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant
    from hudi_py.model.records import InstantInfo
    from hudi_py.table import Table


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("instant", shell_complete=complete.instants)
@force_option
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; nothing is written.")
@command
def rollback(common: Common, table: str, instant: str, force: bool, dry_run: bool) -> None:
    """Undo a write, failed or completed. Deletes its rows and files."""
    opened = (forced(common) if force else common).open(table)
    time = opened.resolve_time(instant, exact=True)
    if dry_run:
        opened = opened.rehearsal()
        plan, withdrawn = opened.services.rollback().preview(time)
        # Plans have full paths; people know their table by the paths below it.
        root = opened.storage.root + "/"
        files = [path.removeprefix(root) for request in plan.rollback_requests for path in request.files_to_be_deleted]
        found = sizes_of(opened.storage, files)
        sizes = {path: found.get(path) for path in sorted(files)}
        if common.as_json:
            preview = {"instant_to_rollback": time, "files_to_delete": sorted(files), "sizes": sizes}
            print_json({**preview, "plans_to_withdraw": _entries(withdrawn)})
            return
        rows = [(path, render.human_bytes(size)) for path, size in sizes.items()]
        if rows:
            render.table("would be deleted (nothing was written)", ("file", "size"), rows, right=(1,))
        say(
            f"total      {counted(len(sizes), 'file')}, {render.human_bytes(sum(size or 0 for size in sizes.values()))}"
        )
        _show_withdrawn(withdrawn)
        return
    metadata = opened.rollback(time)
    done = opened.timeline.find(metadata.start_rollback_time)
    if common.as_json:
        print_json(_content(opened, done))
        return
    say(
        f"rollback {metadata.start_rollback_time} completed: {time} undone, "
        f"{counted(metadata.total_files_deleted, 'file')} deleted"
    )


def _written_bytes(opened: Table, instant: InstantInfo) -> int | None:
    """Return the bytes of the data files that a commit wrote; None if it wrote none, or cannot be decoded."""
    from hudi_py.errors import CorruptMetadata, NotFound

    found = opened.timeline.commits.find(instant.requested_time)
    if found is None or not found.is_completed:
        return None
    try:
        written = opened.contents.commit(found).partition_to_write_stats
        return sum(stat.file_size_in_bytes for stats in written.values() for stat in stats)
    except (CorruptMetadata, NotFound):  # a restore can undo it all the same
        return None


def _entries(withdrawn: tuple[Instant, ...]) -> list[dict[str, str]]:
    return [{"requested_time": instant.requested_time, "action": instant.action.value} for instant in withdrawn]


def _show_withdrawn(withdrawn: tuple[Instant, ...]) -> None:
    for instant in withdrawn:
        say(f"the plan of {instant} would be deleted first, because it will not be valid any more")


def _kind() -> str:
    """The word for what the running command is about: both groups have the same commands."""
    group = click.get_current_context().parent
    return "tag" if group is not None and group.command is tag else "savepoint"


def _for_tags(command: click.Command) -> click.Command:
    """Return the command for tags: the same, and the name of a new one is required."""
    same = copy.copy(command)
    # Copies, for the command of savepoints keeps its own: there a name is optional.
    same.params = [copy.copy(param) for param in command.params]
    for each in same.params:
        each.required = each.required or each.name == "name"
    same.help = (command.help or "").replace("a savepoint", "a tag").replace("savepoints", "tags")
    return same


@click.group(cls=Sentences)
def savepoint() -> None:
    """Keep the files of a commit. Cleans do not delete them, and a restore can go back to the commit."""


@savepoint.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("instant", required=False, shell_complete=complete.instants)
@click.option("--user", default="", help="Who creates it; stored in the savepoint.")
@click.option("--comment", default="", help="What it is for; stored in the savepoint.")
@click.option("--name", help="Name to use in delete, restore and read; unique in the table.")
@click.option(
    "--ttl", metavar="SPAN", help="Time to live (36h, 30d); the first clean after that deletes the savepoint."
)
@click.option("--dry-run", is_flag=True, help="Show what would be kept; write nothing.")
@command
def create(
    common: Common,
    table: str,
    instant: str | None,
    user: str,
    comment: str,
    name: str | None,
    ttl: str | None,
    dry_run: bool,
) -> None:
    """Create a savepoint of a completed commit. Default: the last one."""
    from hudi_py.inspection.report import savepoint_entry

    # An empty name from an unset variable would make a savepoint without a name, and nobody would notice.
    if name is not None and not name.strip():
        raise ConfigError("--name is empty; give the savepoint a name, or leave the option out")
    opened = common.open(table)
    time = None if instant is None else opened.resolve_time(instant, exact=True)
    if dry_run:
        opened = opened.rehearsal()
        time, metadata = opened.services.savepoint().plan(time, user=user, comment=comment, name=name, ttl=ttl)
        if common.as_json:
            files = {path: list(names) for path, names in metadata.files.items()}
            print_json({"instant": time, "files": files, **savepoint_entry(metadata)})
            return
        say(f"would keep {counted(sum(map(len, metadata.files.values())), 'file')} of {time} (nothing was written)")
        return
    done = opened.create_savepoint(time, user=user, comment=comment, name=name, ttl=ttl)
    metadata = opened.contents.savepoint(done)
    if common.as_json:
        # Read back from the table, so that what is printed is what is stored.
        content = _content(opened, opened.timeline.find(done.requested_time, done.action))
        print_json({"instant": done.requested_time, **content, **savepoint_entry(metadata)})
        return
    until = "" if metadata.expires_at_ms is None else f", until {savepoint_entry(metadata)['expires_at']}"
    say(f"{_kind()} {done.requested_time} keeps {counted(sum(map(len, metadata.files.values())), 'file')}{until}")


@savepoint.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("savepoint", shell_complete=complete.savepoints)
@click.option("--archive-commit", is_flag=True, help="Archive its commit first if later commits are archived already.")
@click.option("--dry-run", is_flag=True, help="Only show whether the savepoint exists.")
@command
def delete(common: Common, table: str, savepoint: str, archive_commit: bool, dry_run: bool) -> None:
    """
    Delete a savepoint, given by instant or name.

    Its files stay until the next clean, which deletes those that nothing else keeps.
    """
    opened = common.open(table)
    time = opened.resolve_time(savepoint, exact=True)
    # An inflight one counts, too: it is what an interrupted creation leaves.
    there = opened.timeline.find(time, _savepoint_action()) is not None
    if dry_run:
        # For its check of the settings alone: a real run would refuse an unknown lock provider.
        opened.rehearsal()
    found = there if dry_run else opened.delete_savepoint(time, archive_commit=archive_commit)
    if common.as_json:
        print_json({"instant": time, "deleted": found and not dry_run, "found": found})
        return
    word = "would be deleted" if dry_run else "deleted"
    say(f"{_kind()} {time} {word}" if found else f"there is no {_kind()} {time}")


@savepoint.command("list")
@click.argument("table", shell_complete=complete.tables)
@command
def list_savepoints(common: Common, table: str) -> None:
    """List savepoints, oldest first."""
    from hudi_py.inspection.instant_entry import instant_entry
    from hudi_py.inspection.report import savepoint_entry

    opened = common.open(table)
    service = opened.services.savepoint()
    found = service.savepoints()
    expired = {savepoint.instant.requested_time for savepoint in service.expired(opened.timeline)}
    if common.as_json:
        print_json(
            [
                {
                    **instant_entry(instant),
                    **savepoint_entry(content),
                    "is_expired": instant.requested_time in expired,
                    "content": opened.contents.plain(instant),
                }
                for instant, content in found
            ]
        )
        return
    rows = [
        (
            instant.requested_time,
            content.name,
            content.savepointed_by,
            content.comments,
            str(sum(map(len, content.files.values()))),
            (savepoint_entry(content)["expires_at"] or "never")
            + (", expired" if instant.requested_time in expired else ""),
        )
        for instant, content in found
    ]
    columns = ("instant", "name", "by", "comment", "files", "expires")
    kind = _kind()
    render.table(f"{kind}s of {opened.config.name}, {counted(len(rows), kind)}", columns, rows)


@click.group(cls=Sentences)
def tag() -> None:
    """
    Keep the files of a commit under a name: a tag is a savepoint with a name.

    The savepoints of Apache Hudi are listed and deleted as tags, too. Read one with hudi-py read --savepoint NAME.
    """


for _of_savepoints in (create, delete, list_savepoints):  # commands of their own, so that each gets its options once
    tag.add_command(_for_tags(_of_savepoints))


@tag.command("schedule")
@click.argument("table", shell_complete=complete.tables)
@click.option("--hourly", type=click.IntRange(min=0), help="Tag the last commit of each of the newest N hours.")
@click.option("--daily", type=click.IntRange(min=0), help="The same for days.")
@click.option("--weekly", type=click.IntRange(min=0), help="The same for weeks, which begin on Monday.")
@click.option("--monthly", type=click.IntRange(min=0), help="The same for months.")
@click.option("--dry-run", is_flag=True, help="Show what would be created; write nothing.")
@command
def schedule_tags(common: Common, table: str, dry_run: bool, **counts: int | None) -> None:
    r"""
    Create the tags that are due: of the last commit of each hour, day, week or month that has ended.

    A tag expires when its period is older than the number given; cleans delete expired ones. Commits of hudi-py create
    due tags by themselves with the settings hoodie_py.tags.hourly, daily, weekly and monthly.

    \b
    Example:
      hudi-py tag schedule s3://lake/trips --daily 30 --monthly 12
    """
    opened = common.open(table)
    given = {f"hoodie_py.tags.{unit}": count for unit, count in counts.items()}
    opened.settings = opened.settings.merged(given)
    if not opened.services.tag_schedule:
        raise ConfigError("no tag is asked for; give --hourly, --daily, --weekly or --monthly")
    opened = common.looks_then(opened, dry_run=dry_run)
    if dry_run:
        due = opened.services.savepoint().creatable_tags(opened.services.tag_schedule)
        found = [(each.requested_time, each.name) for each in due]
    else:
        done = opened.create_due_tags()
        found = [(each.requested_time, opened.contents.savepoint(each).name) for each in done]
    if common.as_json:
        print_json([{"instant": time, "name": name} for time, name in found])
        return
    word = "would be created (nothing was written)" if dry_run else "created"
    render.table(f"tags {word}, {counted(len(found), 'tag')}", ("instant", "name"), found)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("savepoint", shell_complete=complete.savepoints)
@force_option
@click.option("--dry-run", is_flag=True, help="Show what would be undone; write nothing.")
@command
def restore(common: Common, table: str, savepoint: str, force: bool, dry_run: bool) -> None:
    """
    Go back to a savepoint, given by instant or name. Undoes all later writes.

    Run it again to continue a restore that was interrupted.
    """
    opened = (forced(common) if force else common).open(table)
    time = opened.resolve_time(savepoint, exact=True)
    if dry_run:
        plan, withdrawn = opened.rehearsal().services.restore().preview(time)
        sizes = {instant.requested_time: _written_bytes(opened, instant) for instant in plan.instants_to_rollback}
        if common.as_json:
            preview = {"savepoint": time, "instants_to_rollback": list(sizes), "sizes": sizes}
            print_json({**preview, "plans_to_withdraw": _entries(withdrawn)})
            return
        rows = [
            (instant.requested_time, instant.action, render.human_bytes(sizes[instant.requested_time], unknown="-"))
            for instant in plan.instants_to_rollback
        ]
        columns = ("requested time", "action", "files of it")
        render.table("would be undone (nothing was written)", columns, rows, right=(2,))
        _show_withdrawn(withdrawn)
        return
    metadata = opened.restore(time)
    if common.as_json:
        print_json(_content(opened, opened.timeline.find(metadata.start_restore_time)))
        return
    say(f"restored to {time}: {counted(len(metadata.instants_to_rollback), 'write')} undone")


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--keep-min", type=click.IntRange(min=1), help="Completed commits to leave active. Default: the setting.")
@click.option("--keep-max", type=click.IntRange(min=2), help="Archive only if more completed commits are active.")
@click.option("--dry-run", is_flag=True, help="Show what would be archived; write nothing.")
@command
def archive(common: Common, table: str, keep_min: int | None, keep_max: int | None, dry_run: bool) -> None:
    """Archive old instants. Moves those out of the active timeline that are not needed there."""
    from hudi_py.inspection.instant_entry import instant_entry

    opened = common.open(table)
    given = {"keep_min_commits": keep_min, "keep_max_commits": keep_max}
    chosen = {name: value for name, value in given.items() if value is not None}
    if dry_run:
        plan = opened.rehearsal().services.archive(**chosen).plan()
        instants, bound, merges = plan.instants, plan.bound, 0
    else:
        done = opened.archive(**chosen)
        instants, bound, merges = done.instants, done.bound, done.merges
    if common.as_json:
        reason = None if bound is None else bound.value
        archived = [instant_entry(instant) for instant in instants]
        print_json({"archived": archived, "kept_because": reason, "merges": merges})
        return
    word = "would be archived (nothing was written)" if dry_run else "archived"
    rows = [(instant.requested_time, instant.action.value) for instant in instants]
    render.table(f"{word}, {counted(len(rows), 'instant')}", ("requested time", "action"), rows)
    if bound is not None:
        say(f"no more {'would be' if dry_run else 'was'} archived: {bound.value}")


def _savepoint_action() -> Any:
    from hudi_py.model.instant import Action

    return Action.SAVEPOINT


def _content(opened: Table, instant: Instant | None) -> Any:
    """Return the decoded content of a completed instant, as the commands print it with ``--json``."""
    return None if instant is None else opened.contents.plain(instant)
