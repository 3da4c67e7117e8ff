"""The command ``hudi-py cluster``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.clean_options import size
from hudi_py.inspection.engine_options import chosen_engine, engine_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, at_most_one, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.services.clustering.plan import PlannedClustering
    from hudi_py.services.clustering.service import ClusteringService
    from hudi_py.table import Table


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--sort-by", multiple=True, metavar="COLUMN", help="Sort rows by these columns. Repeatable, or a,b.")
@click.option("--layout", type=click.Choice(("linear", "z-order", "hilbert")), help="Order of rows by several columns.")
@click.option(
    "--partition",
    "partitions",
    shell_complete=complete.partitions,
    multiple=True,
    metavar="P",
    help="Cluster only this partition. Repeatable.",
)
@click.option(
    "--max-bytes", metavar="SIZE", type=size, help="Rewrite at most this much in a new plan: bytes, or 500MB, 1.5GB."
)
@click.option("--dry-run", is_flag=True, help="Show what would be rewritten; nothing is written.")
@click.option("--schedule-only", is_flag=True, help="Store the plan; carry nothing out.")
@click.option("--execute", metavar="INSTANT", help="Carry out this pending clustering only.")
@click.option("--cancel", metavar="INSTANT", help="Withdraw the plan of this pending clustering.")
@click.option("--exit-code", is_flag=True, help="Exit with 7 if a limit of the plan left file groups for the next one.")
@engine_options("Rewrite groups of files on threads (local), or on Spark executors; auto: on Spark under spark-submit.")
@command
def cluster(
    common: Common,
    table: str,
    sort_by: tuple[str, ...],
    layout: str | None,
    partitions: tuple[str, ...],
    max_bytes: int | None,
    dry_run: bool,
    schedule_only: bool,
    execute: str | None,
    cancel: str | None,
    exit_code: bool,
    engine: str,
    master: str | None,
) -> None:
    """
    Rewrite the rows of small files into larger ones in one commit, sorted if asked for.

    Pending clusterings are carried out first. The clean deletes the old files later.
    """
    given = {"--dry-run": dry_run, "--schedule-only": schedule_only, "--execute": execute, "--cancel": cancel}
    at_most_one(given | {"--exit-code": exit_code})
    _refuse_beside_stored_plan(
        {"--execute": execute, "--cancel": cancel},
        {"--sort-by": sort_by, "--layout": layout, "--partition": partitions, "--max-bytes": max_bytes},
    )
    opened = common.open(table)
    # Both ways of giving several: --sort-by a,b and --sort-by a --sort-by b.
    columns = [name.strip() for each in sort_by for name in each.split(",")]
    paths = [path.rstrip("/") for path in partitions]
    config = opened.services.clustering_config(sort_by=columns, layout=layout, partitions=paths or None)
    if max_bytes is not None:
        config = attrs.evolve(config, bytes_max=max_bytes)
    if dry_run:
        # Changes go to memory, so that a mistake in a dry run cannot change the table.
        opened = opened.rehearsal()
        service = opened.services.clustering(config)
        _show_plan(common, opened, service, service.plan())
    elif cancel is not None:
        from hudi_py.inspection.rewrite_output import show_cancelled

        # So that a prefix or a date works here as everywhere else.
        time = opened.resolve_time(cancel, exact=True)
        opened.cancel_clustering(time)
        show_cancelled(common, time, "clustering")
    elif schedule_only:
        _show_scheduled(common, opened, opened.services.clustering(config))
    else:
        from hudi_py.inspection.rewrite_output import exit_if_left, show_rewrites, told

        chosen = chosen_engine(engine, master, "hudi-py cluster")
        service = opened.services.clustering(config, engine=chosen, on_group=told("clustering"))
        results = opened.run_clustering(service, None if execute is None else opened.resolve_time(execute, exact=True))
        left = service.left_pending(opened.timeline)
        show_rewrites(common, results, "clustering", lambda: "nothing to cluster", left)
        exit_if_left(results, exit_code=exit_code)


def _refuse_beside_stored_plan(named: Mapping[str, str | None], planning: Mapping[str, object]) -> None:
    """
    Refuse options of planning where a stored plan is named: rows would not be sorted, and all would look well.

    Raises:
        ConfigError: There are some.
    """
    by = next((option for option, value in named.items() if value is not None), None)
    given = [option for option, value in planning.items() if value]
    if by is not None and given:
        raise ConfigError(
            f"{' and '.join(given)} with {by}: a stored plan stays as it was made; give {by} alone, "
            "or withdraw the plan with --cancel and plan anew"
        )


def _show_plan(common: Common, opened: Table, service: ClusteringService, planned: PlannedClustering) -> None:
    from hudi_py.inspection.clustering_report import plan_report
    from hudi_py.inspection.rewrite_output import show_expected, show_left_pending

    left = service.left_pending(opened.timeline)
    stay = {each.instant for each in left}
    pending = [instant for instant in service.pending(opened.timeline) if instant not in stay]
    if common.as_json:
        print_json(plan_report(planned, pending, service.action, service.expected(planned), left))
        return
    rows = [
        (
            group.partition_path or "(none)",
            str(len(group.slices)),
            render.human_bytes(group.size_bytes),
            str(group.outputs),
        )
        for group in planned.groups
    ]
    columns = ("partition", "file groups", "size", "files after")
    render.table(
        f"would be rewritten (nothing was written), {counted(len(rows), 'group')}", columns, rows, right=(1, 2, 3)
    )
    if planned.groups:
        before, after = sum(len(each.slices) for each in planned.groups), sum(each.outputs for each in planned.groups)
        say(
            f"total      {counted(before, 'file group')}, {render.human_bytes(planned.size_bytes)} "
            f"become {counted(after, 'file')}"
        )
        show_expected(service.expected(planned), "clustering")
    for instant in pending:
        say(f"{instant} would be carried out first")
    show_left_pending(left)
    # Counted by reason: a large table leaves thousands of groups as they are.
    reasons: dict[str, int] = {}
    for reason in planned.left_out.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        said = "stays as it is" if count == 1 else "stay as they are"
        say(f"{counted(count, 'file group')} {said}: {reason if count == 1 else _of_several(reason)}")


def _of_several(reason: str) -> str:
    """What is said of one file group, of several: ``it is in the pending …`` becomes ``they are in …``."""
    return reason.replace("it is", "they are", 1) if reason.startswith("it is") else reason


def _show_scheduled(common: Common, opened: Table, service: ClusteringService) -> None:
    from hudi_py.inspection.clustering_report import stored_report

    instant = service.schedule()
    plan = None if instant is None else opened.contents.requested_replace(instant).clustering_plan
    if common.as_json:
        print_json(stored_report(instant, plan))
    elif instant is None or plan is None:
        say("nothing to cluster")
    else:
        time = instant.requested_time
        say(
            f"clustering {time} scheduled: {counted(len(plan.file_groups), 'file group')} in "
            f"{counted(len(plan.input_groups), 'group')}; "
            f"hudi-py cluster --execute {time} carries it out"
        )
