"""``hudi-py explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_py.inspection import render
from hudi_py.inspection.options import Common, command, keep_options, print_json

if TYPE_CHECKING:
    from hudi_py.config.keeps import CleanKeeps
    from hudi_py.services.clean.explain import Condition
    from hudi_py.services.clean.explain_files import Explanation, FileExplanation


@click.command()
@click.argument("table")
@click.argument("target", metavar="FILE_OR_FILE_ID_OR_PARTITION")
@click.option("--policy", help="KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS.")
@click.option("--commits-retained", type=click.IntRange(min=1))
@click.option("--file-versions-retained", type=click.IntRange(min=1))
@click.option("--hours-retained", type=click.IntRange(min=1))
@keep_options
@click.option("--full", is_flag=True, help="As if the next clean looked at every partition.")
@command
def explain(
    common: Common,
    table: str,
    target: str,
    policy: str | None,
    commits_retained: int | None,
    file_versions_retained: int | None,
    hours_retained: int | None,
    keeps: CleanKeeps,
    full: bool,
) -> None:
    """Why a file is still there: the rule that decides, what else holds it, and when a clean may remove it."""
    opened = common.open(table).read_only()
    if full:
        opened.settings = opened.settings.merged({"hoodie.clean.incremental.enabled": False})
    explanation = opened.explain(
        target,
        policy=policy,
        commits_retained=commits_retained,
        file_versions_retained=file_versions_retained,
        hours_retained=hours_retained,
        now=common.planning_time(opened),
        **keeps,
    )
    if common.as_json:
        print_json(explanation_report(explanation))
    else:
        _print(explanation)


def explanation_report(explanation: Explanation) -> dict[str, Any]:
    """``hudi-py explain --json``."""
    return {
        "target": explanation.target,
        "retention": explanation.retention,
        "earliest_instant_to_retain": explanation.earliest,
        "scope": explanation.scope,
        "files": [_entry(each) for each in explanation.files],
    }


def _entry(file: FileExplanation) -> dict[str, Any]:
    written_by = file.written_by
    return {
        "path": file.path,
        "kind": file.kind,
        "bytes": file.size_bytes,
        "file_id": file.file_id,
        "base_instant": file.base_instant_time,
        "verdict": "removable" if file.removable else "kept",
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
            {"need": each.need.name.lower(), "value": each.value, "text": str(each)} for each in file.conditions
        ],
    }


def _print(explanation: Explanation) -> None:
    print(f"policy     {explanation.retention}")
    print(f"window     from {explanation.earliest or '(none)'} on")
    print(f"next clean {explanation.scope}")
    for file in explanation.files:
        print()
        print(f"{file.path}  {render.human_bytes(file.size_bytes)}, {file.kind}")
        print(f"  written by  {file.written_by or file.origin}" + (" (archived)" if file.origin == "archived" else ""))
        print(f"  {'removable' if file.removable else 'kept'}".ljust(14) + file.rule)
        for fact in file.also:
            print(f"  also        {fact}")
        print(f"  goes        {_when(file.conditions)}")
    total = sum(file.size_bytes or 0 for file in explanation.files)
    removable = [file for file in explanation.files if file.removable]
    size = sum(file.size_bytes or 0 for file in removable)
    print()
    print(
        f"{len(explanation.files)} files, {render.human_bytes(total)}; removable: {len(removable)}, "
        f"{render.human_bytes(size)}"
    )


def _when(conditions: tuple[Condition, ...]) -> str:
    return " and ".join(map(str, conditions)) or "with the next clean"
