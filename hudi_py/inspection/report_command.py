"""The command ``hudi-py report``: a table as one HTML file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.output_file import check_outside, whole_file
from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.page_file import page_html
from hudi_py.inspection.say import say
from hudi_py.model.words import human_bytes

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("-o", "--output", required=True, metavar="FILE.html", help="File to write; - for standard output.")
@retention_options
@command
def report(common: Common, table: str, output: str, options: CleanOptions) -> None:
    r"""
    Write a page about a table as one HTML file, to read or to send to a colleague.

    Shows findings, the timeline, what each action did, what keeps the bytes, the size under other retentions,
    partitions and files. The file loads nothing from anywhere, and nothing in the table is changed.

    \b
    Examples:
      hudi-py report s3://lake/trips -o trips.html
      hudi-py report TABLE --commits-retained 5 -o page.html
    """
    if output == "-" and common.as_json:
        raise ConfigError("-o - and --json both want standard output; give a file")
    opened = common.open(table).read_only()
    if output != "-":
        # A page among the data files would be a file that no instant knows.
        check_outside(output, opened.storage.root)
    document = page_document(opened, now=common.planning_time(opened), options=options, with_contents=True)
    data = page_html(document, f"{opened.config.name}: hudi-py report").encode()
    if output == "-":
        sys.stdout.write(data.decode())
        return
    # Renamed when it is complete, so that a page which is open is never half a file.
    with whole_file(output) as file:
        file.write(data)
    if common.as_json:
        print_json({"file": output, "bytes": len(data), "findings": len(document["findings"])})
    else:
        say(f"wrote {output}, {human_bytes(len(data))}; open it in a browser")
