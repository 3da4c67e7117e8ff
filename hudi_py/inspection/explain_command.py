"""The command ``hudi-py explain``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.clean_options import examine_everything, full_option, retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.files import join_path
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.explain.explain import Awaited
    from hudi_py.services.explain.files import Explanation, FileExplanation
    from hudi_py.services.rewriting.explain import GroupExplanation


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("target", shell_complete=complete.partitions, metavar="FILE_OR_FILE_ID_OR_PARTITION")
@click.option(
    "--service",
    type=click.Choice(("clean", "compaction", "log-compaction", "clustering")),
    default="clean",
    show_default=True,
    help="Whose next plan to explain.",
)
@retention_options
@full_option
@command
def explain(
    common: Common,
    table: str,
    target: str,
    service: str,
    options: CleanOptions,
    full: bool,
) -> None:
    """
    Explain why a file is kept: the rules that keep it, and when a clean may delete it.

    Of a deleted file, or a partition that is gone: which clean, rollback or restore deleted it, when, and by which
    policy; from the archived timeline, too.

    With --service compaction, log-compaction or clustering: why a file group is in the next plan of it, or is not.
    """
    opened = common.open(table).read_only()
    if service != "clean":
        # Silently ignored, they would look as if they had been taken into account.
        if any(options.values()) or full:
            raise ConfigError(f"--service {service} has no retention; leave the options of a clean out")
        now = common.planning_time(opened)
        if service == "clustering":
            groups = opened.explain_clustering(target)
        else:
            explains = opened.explain_compaction if service == "compaction" else opened.explain_log_compaction
            groups = explains(target, now=now)
        if common.as_json:
            print_json({"target": target, "service": service, "file_groups": [_group_entry(each) for each in groups]})
        else:
            _print_groups(groups)
        return
    if full:
        examine_everything(opened)
    explanation = opened.explain(target, now=common.planning_time(opened), **options)
    if common.as_json:
        print_json(explanation_report(explanation))
    else:
        _print(explanation)


def explanation_report(explanation: Explanation) -> dict[str, Any]:
    """Return the document that ``hudi-py explain --json`` prints."""
    return {
        "target": explanation.target,
        "retention": explanation.retention,
        "earliest_instant_to_retain": explanation.earliest,
        "scope": explanation.scope,
        "files": [_entry(file) for file in explanation.files],
    }


def _group_entry(group: GroupExplanation) -> dict[str, Any]:
    return {
        "partition": group.partition_path,
        "file_id": group.file_id,
        "planned": group.is_planned,
        "reason": group.reason,
        "base_bytes": group.base_bytes,
        "log_files": group.log_files,
        "log_bytes": group.log_bytes,
    }


def _print_groups(groups: Sequence[GroupExplanation]) -> None:
    for group in groups:
        logs = (
            f" and {counted(group.log_files, 'log file')}, {render.human_bytes(group.log_bytes)}"
            if group.log_files
            else ""
        )
        say(f"{join_path(group.partition_path, group.file_id)}  {render.human_bytes(group.base_bytes)}{logs}")
        say(f"  {'planned' if group.is_planned else 'left out'}".ljust(14) + group.reason)
    say(f"{counted(len(groups), 'file group')}; planned: {sum(each.is_planned for each in groups)}")


def _entry(file: FileExplanation) -> dict[str, Any]:
    written_by = file.written_by
    return {
        "path": file.path,
        "kind": file.kind,
        "bytes": file.size_bytes,
        "file_id": file.file_id,
        "base_instant": file.base_instant_time,
        "verdict": "deleted" if file.is_gone else "removable" if file.removable else "kept",
        "deleted_by": file.quarantine if file.deleted_by is None else file.deleted_by.requested_time,
        "rule": file.rule,
        "also": list(file.also),
        "written_by": None
        if written_by is None
        else {
            "requested_time": written_by.requested_time,
            "action": written_by.action.value,
            "state": written_by.state.name,
        },
        "origin": file.origin,
        "replaced_by": file.replaced_by,
        "removable_when": [
            {"need": awaited.need.name.lower(), "value": awaited.value, "text": str(awaited)}
            for awaited in file.conditions
        ],
    }


def _print(explanation: Explanation) -> None:
    say(f"policy     {explanation.retention}")
    say(f"window     from {explanation.earliest or 'the first commit'} on")
    say(f"next clean {explanation.scope}")
    for file in explanation.files:
        say()
        say(f"{file.path}  {render.human_bytes(file.size_bytes)}, {file.kind}")
        if file.is_gone:
            say(f"  deleted     {file.rule}")
            for fact in file.also:
                say(f"  also        {fact}")
            continue
        say(f"  written by  {file.written_by or file.origin}" + (" (archived)" if file.origin == "archived" else ""))
        say(f"  {'removable' if file.removable else 'kept'}".ljust(14) + file.rule)
        for fact in file.also:
            say(f"  also        {fact}")
        say(f"  deleted     {_when(file.conditions)}")
    total = sum(file.size_bytes or 0 for file in explanation.files)
    removable = [file for file in explanation.files if file.removable]
    size = sum(file.size_bytes or 0 for file in removable)
    say()
    say(
        f"{counted(len(explanation.files), 'file')}, {render.human_bytes(total)}; removable: {len(removable)}, "
        f"{render.human_bytes(size)}"
    )


def _when(conditions: tuple[Awaited, ...]) -> str:
    # Without a condition there is nothing left to wait for.
    return ", and ".join(map(str, conditions)) or "by the next clean"
