"""What ``hudi-py compact`` and ``cluster`` print about the runs that they carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hudi_py.inspection import render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import MORE_TO_DO, Common
from hudi_py.inspection.report import rewrite_report
from hudi_py.inspection.say import say
from hudi_py.inspection.still_running import doing
from hudi_py.model.words import counted, human_bytes, human_span

if TYPE_CHECKING:
    from hudi_py.services.rewriting.expected import Expected
    from hudi_py.services.rewriting.left_pending import LeftPending
    from hudi_py.services.rewriting.result import RewriteResult


def show_rewrites(
    common: Common,
    results: Sequence[RewriteResult],
    word: str,
    nothing: Callable[[], str],
    left: Sequence[LeftPending],
) -> None:
    """
    Print the results of a run.

    Args:
        common: The shared options.
        results: What was carried out, oldest first.
        word: ``compaction``, ``log compaction`` or ``clustering``.
        nothing: Returns the line for a run without results. Only then is it called: to find the reason costs a plan.
        left: Pending plans that are not carried out.
    """
    if common.as_json:
        print_json(rewrite_report(results, f"{word.removeprefix('log ')}s", left))
        return
    for result in results:
        say(
            f"{word} {result.instant} completed: {counted(result.file_groups, 'file group')}, "
            f"{counted(result.rows, 'row')}; "
            f"{render.human_bytes(result.bytes_before)} became {render.human_bytes(result.bytes_after)}, "
            f"{result.seconds:.2f} s"
        )
    if not results:
        say(nothing())
    show_left_pending(left)


def show_left_pending(left: Sequence[LeftPending]) -> None:
    """Print which pending plans are not carried out, and why."""
    for each in left:
        say(f"stays pending: {each.reason}")


def show_expected(expected: Expected, word: str) -> None:
    """Print what a plan is expected to write and to take; *word* as for `show_rewrites`."""
    if not expected.measured:
        say(f"expected   time unknown: the timeline has no completed {word} that tells it")
        return
    size = "size unknown" if expected.bytes_written is None else f"about {human_bytes(expected.bytes_written)}"
    time = "time unknown" if expected.seconds is None else f"about {human_span(expected.seconds)}"
    say(f"expected   {size}, {time}: as measured of the last {counted(len(expected.measured), word)}")


def exit_if_left(results: Sequence[RewriteResult], *, exit_code: bool) -> None:
    """End with the exit code for more to do, if that is asked for and a plan was full."""
    if exit_code and any(result.left for result in results):
        click.get_current_context().exit(MORE_TO_DO)


def show_cancelled(common: Common, time: str, word: str) -> None:
    """Print that the plan with this requested time was withdrawn; *word* as for `show_rewrites`."""
    if common.as_json:
        print_json({"instant": time, "cancelled": True})
    else:
        say(f"{word} {time} cancelled")


def told(verb: str) -> Callable[[int, int], None]:
    """Return what tells the progress of a run to the line a minute (`still_running`)."""
    return lambda done, total: doing(f"{verb} {done:,}/{total:,} groups")
