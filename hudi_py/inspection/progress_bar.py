"""A progress bar on standard error, if that is a terminal. Elsewhere the line a minute tells the progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hudi_py.inspection.render import human_bytes
from hudi_py.inspection.still_running import can_redraw, doing
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.services.clean.executing.watch import CleanProgress, OnProgress


_NAMES = {"plan": "planning", "delete": "deleting"}


@contextmanager
def clean_bar() -> Iterator[OnProgress]:
    """Show a progress bar and yield the function to call with a clean's progress."""
    if not can_redraw():
        yield lambda progress: doing(f"{_NAMES[progress.phase]}  {figures(progress)}")
        return
    # Imported here: most runs show no bar, and rich takes longer to load than they run.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=14), TextColumn("{task.fields[figures]}"))
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        tasks: dict[tuple[str, str], TaskID] = {}

        def show(progress: CleanProgress) -> None:
            key = (progress.phase, progress.instant)
            # One bar for each clean of a run, as there may be pending ones before.
            if key not in tasks:
                tasks[key] = bar.add_task(_NAMES[progress.phase], total=None, figures="")
            # A run that a limit ended early is full as well: nothing more will happen.
            total = progress.done if progress.is_finished else progress.total
            # A phase that had nothing to do is shown as full: a bar of 0 of 0 would look stuck.
            completed, whole = (1, 1) if progress.is_finished and not total else (progress.done, total)
            bar.update(tasks[key], completed=completed, total=whole, figures=figures(progress), refresh=True)

        yield show


def figures(progress: CleanProgress) -> str:
    """Return counts, bytes, rate and time left as text, as far as they are known."""
    is_plan = progress.phase == "plan"
    unit = "partitions" if is_plan else "files"
    parts = [f"{progress.done:,} {unit}" if progress.total is None else f"{progress.done:,}/{progress.total:,} {unit}"]
    if is_plan:
        parts.append(f"{counted(progress.files_found, 'file')} to delete")
    if progress.bytes_done is not None:
        parts.append(f"{human_bytes(progress.bytes_done)} of {human_bytes(progress.bytes_total)}")
    if progress.files_failed:
        parts.append(f"{progress.files_failed:,} failed")
    if progress.rate is not None:
        parts.append(f"{progress.rate:,.0f}/s")
    if progress.is_finished:
        parts.append(f"{progress.elapsed_seconds:.1f} s")
    elif progress.eta_seconds is not None:
        parts.append(f"{_clock(progress.eta_seconds)} left")
    return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
