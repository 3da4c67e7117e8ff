"""The command ``hudi-py doctor``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from hudi_py.errors import CorruptMetadata
from hudi_py.inspection import complete
from hudi_py.inspection.check_command import examine
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.table_metrics import examined_samples

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.check.findings import Finding


@click.command()
@click.argument("table", required=False, shell_complete=complete.tables)
@click.option("--codes", is_flag=True, help="List all codes with severity, meaning and fix (without TABLE).")
@retention_options
@command
def doctor(common: Common, table: str | None, codes: bool, options: CleanOptions) -> None:
    r"""
    Judge the settings and the health of a table. Changes nothing.

    Finds settings that contradict each other, what blocks cleans and archival, cleans that archival has overtaken,
    stuck actions, clocks that differ, writers without a lock, small files, and space that nothing frees. Exits with
    code 3 if there are problems. Each finding has a stable code and says what to do; --codes lists all.

    \b
    Examples:
      hudi-py doctor s3://lake/trips
      hudi-py doctor TABLE --conf-file job.properties --json
      hudi-py doctor TABLE --commits-retained 10 --conf hoodie.keep.min.commits=8
    """
    from hudi_py.services.doctor.findings import RULES

    look = functools.partial(_findings, options=options)
    examine(common, table, codes, RULES, look, "nothing is wrong with settings and health")


def _findings(common: Common, table: str, options: CleanOptions) -> tuple[Finding, ...]:
    from hudi_py.services.doctor.findings import finding

    try:
        opened = common.open(table).read_only()
    except CorruptMetadata as error:  # without hoodie.properties or its backup nothing else can be examined
        return (finding("table-damaged", ".hoodie/hoodie.properties", str(error)),)
    examined = opened.services.doctor(now=common.planning_time(opened), **options).run()
    common.measure(lambda now: examined_samples(examined, table, now))
    return examined.findings
