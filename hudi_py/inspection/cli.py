"""The command line ``hudi-py``."""

from __future__ import annotations

import click

from hudi_py.inspection.commands import Commands
from hudi_py.inspection.program import Program
from hudi_py.inspection.say import say


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


@click.group(cls=Program, commands=Commands(), context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main() -> None:
    """
    Inspect, clean, repair and restore Apache Hudi tables. TABLE is a local path or a URL (s3://...).

    --conf and --conf-file take settings of Apache Hudi. docs/settings.md lists which are supported, ignored or refused,
    and why. An unknown setting is an error, unless --allow-unknown-conf is given.

    Exit codes: 0 done; 1 failed; 2 wrong usage or settings; 3 problems were found; 4 another process interferes, try
    again; 5 no table, or an unsupported one; 6 some of many tables failed; 7 more to do, with --exit-code;
    124 stopped by --timeout; 130 Ctrl-C; 143 SIGTERM. See docs/exit-codes.md.
    """
