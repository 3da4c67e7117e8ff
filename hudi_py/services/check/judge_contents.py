"""
Whether files hold what their names and commits say: base files by their footers, log files by their blocks. Pure.

A file that was swapped for another one of the same size is not seen in a listing. Every writer gives each row of a base
file its name, in the column ``_hoodie_file_name``, and the time of the commit that changed it last. A block of a log
file names its delta commit; its rows have the file id in that column, and its deletes name their partition. Of two log
files of one commit and one partition that hold nothing but deletes, nobody knows whether they were swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from hudi_py.model.files import BaseFile, LogFile
from hudi_py.services.check.findings import Finding, finding
from hudi_py.versions.format import LogNaming

_EMPTY: Final = ("", "")


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
    # Rows of tables with ``hoodie.populate.meta.fields=false`` name neither file nor commit: the columns are empty.
    says_nothing = footer.file_names == footer.commit_times == _EMPTY
    if footer.file_names is not None and not says_nothing and footer.file_names != (base.name, base.name):
        first, last = footer.file_names
        wrong.append(f"its rows are of {first}" if first == last else f"its rows are of {first} to {last}")
    if rows is not None and footer.rows != rows:
        wrong.append(f"it has {footer.rows} rows, {base.instant_time} wrote {rows}")
    # Copied rows keep older times; a later one cannot be in this file (rules/data-files 3).
    if footer.commit_times is not None and footer.commit_times[1] > base.instant_time:
        wrong.append(f"it has rows of the later commit {footer.commit_times[1]}")
    if wrong:
        yield finding("file-content-differs", path, "; ".join(wrong))


@attrs.frozen
class Block:
    """
    What a data or delete block of a log file says.

    Args:
        time: Requested time of its delta commit; ``""`` if it names none.
        rows: Number of rows, 0 of deletes; None if it is not known.
        file_ids: What rows have in ``_hoodie_file_name``.
        partitions: Partition paths that its deletes name.
        is_merged: Whether a log compaction merged it from older blocks, with their rows as they were.
    """

    time: str
    rows: int | None
    file_ids: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    is_merged: bool = False


def judge_log(
    path: str, log: LogFile, blocks: Sequence[Block] | str, written: Mapping[str, int], log_naming: LogNaming
) -> Iterator[Finding]:
    """
    Findings about one log file.

    Args:
        path: In the table.
        log: By its name.
        blocks: As read, or why they cannot be read.
        written: Requested time of each completed commit that wrote to it to the number of rows; other commits, archived
            or rolled back, may have written to it, too.
        log_naming: How log files find their slice.
    """
    if isinstance(blocks, str):
        yield finding("file-unreadable", path, blocks)
        return
    wrong = []
    others = frozenset[str]().union(*(block.file_ids for block in blocks if not block.is_merged)) - {log.file_id}
    if others:
        wrong.append(f"its rows are of file group {min(others)}")
    strays = frozenset[str]().union(*(each.partitions for each in blocks)) - {path.rpartition("/")[0]}
    if strays:
        wrong.append(f"its deletes are of partition {min(strays)}")
    # The name tells of the commit that wrote it, or in layout 1 of the one that began the slice, before all blocks.
    is_own = not log_naming.tells_slice
    strange = {
        each.time for each in blocks if each.time < log.instant_time or (is_own and each.time != log.instant_time)
    }
    if strange:
        wrong.append(f"it has a block of commit {min(strange)}")
    for time, rows in sorted(written.items()):
        of_commit = [each for each in blocks if each.time == time]
        counts = [each.rows for each in of_commit if each.rows is not None and not each.is_merged]
        if not of_commit:
            wrong.append(f"it has no block of {time}, which wrote to it")
        # A task that ran twice may append its blocks twice in layout 1, so more rows prove nothing there.
        elif len(counts) == len(of_commit) and (sum(counts) < rows or (is_own and sum(counts) > rows)):
            wrong.append(f"it has {sum(counts)} rows of {time}, which wrote {rows}")
    if wrong:
        yield finding("file-content-differs", path, "; ".join(wrong))
