"""
Whether base files hold what their names and commits say, by their footers. Pure.

A file that was swapped for another one of the same size is not seen in a listing. Every writer gives each row the name
of its file, in the column ``_hoodie_file_name``, and the time of the commit that changed it last.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hudi_py.model.files import BaseFile
from hudi_py.services.check.findings import Finding, finding


@attrs.frozen
class Footer:
    """
    What the footer of a base file says.

    Args:
        rows: Number of rows.
        file_names: Smallest and largest ``_hoodie_file_name``; None where the footer has no bounds of it.
        commit_times: Smallest and largest ``_hoodie_commit_time``, as *file_names*.
    """

    rows: int
    file_names: tuple[str, str] | None = None
    commit_times: tuple[str, str] | None = None


def judge_footer(path: str, base: BaseFile, footer: Footer | str, rows: int | None) -> Iterator[Finding]:
    """
    Findings about one base file.

    Args:
        path: In the table.
        base: By its name.
        footer: As read, or why it cannot be read.
        rows: Number of rows by its commit; None where the commit is archived.
    """
    if isinstance(footer, str):
        yield finding("file-unreadable", path, footer)
        return
    wrong = []
    if footer.file_names is not None and footer.file_names != (base.name, base.name):
        first, last = footer.file_names
        wrong.append(f"its rows are of {first}" if first == last else f"its rows are of {first} to {last}")
    if rows is not None and footer.rows != rows:
        wrong.append(f"it has {footer.rows} rows, {base.instant_time} wrote {rows}")
    # Copied rows keep older times; a later one cannot be in this file (rules/data-files 3).
    if footer.commit_times is not None and footer.commit_times[1] > base.instant_time:
        wrong.append(f"it has rows of the later commit {footer.commit_times[1]}")
    if wrong:
        yield finding("file-content-differs", path, "; ".join(wrong))
