"""
Which files single changes need and no longer have: deleted by cleans, lost, or cut off.

Without them an older version of a file would stand for the state before a change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from hudi_py.fsview.group_files import GroupFiles
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant
from hudi_py.snapshot.change_plan import Source, Step, lost_before
from hudi_py.snapshot.select import with_recorded_sizes
from hudi_py.timeline.archive import load_archived_cleans
from hudi_py.timeline.cleaned import deleted_since
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class Losses:
    """
    Finds what is missing of the file groups that commits replaced.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        times: Requested time of each completed write to the time that ranges compare.
    """

    def __init__(self, contents: Contents, timeline: Timeline, times: Mapping[str, str]) -> None:
        self._contents = contents
        self._timeline = timeline
        self._times = times

    def noted(self, instant: Instant, steps: Sequence[Step], names: Mapping[str, frozenset[str]]) -> list[Step]:
        """
        The steps of a commit, with the names of files that are missing.

        Args:
            names: Partition path to names of the existing files.
        """
        groups: dict[str, set[str]] = {}
        for step in steps:
            before = _before(step)
            if before is not None:
                groups.setdefault(step.partition_path, set()).add(before)
        if not groups:
            return list(steps)
        until = self._times[instant.requested_time]
        earlier = frozenset(time for time, compared in self._times.items() if compared < until)
        expected = GroupFiles(self._contents, self._timeline, earlier).newest_of(groups)
        found = []
        for step in steps:
            path, before = step.partition_path, _before(step)
            if before is not None:
                there = names.get(path, frozenset())
                wrote = expected.get((path, before))
                lost = {each.name for each in wrote.files} - there if wrote is not None else set()
                lost.update(lost_before(step, self._deleted.get(path, ()), there))
                step = attrs.evolve(step, missing=(*step.missing, *sorted(lost)))
            found.append(step)
        return found

    @cached_property
    def _deleted(self) -> Mapping[str, Iterable[str]]:
        """Partition path to names of all files that cleans deleted, active and archived ones."""
        store = self._contents.store
        archived = load_archived_cleans(store.storage, store.config, "")
        active = deleted_since(self._contents, self._timeline, "", with_pending=True)
        return {path: {*archived.get(path, ()), *active.get(path, ())} for path in {*archived, *active}}


def _before(step: Step) -> str | None:
    """The file id of a group whose rows a commit deleted, if there is anything left of it."""
    before = step.before if step.merge is None else step.merge.before
    return None if step.source is not Source.DELETED or before is None else before.file_id


def with_sizes(
    steps: Iterable[Step], recorded: Callable[[Mapping[str, Collection[str]]], Mapping[str, Mapping[str, int]]]
) -> tuple[Step, ...]:
    """
    The same steps; where log files are merged, with the sizes that commits recorded: readers notice what was cut off.

    Args:
        recorded: As for `with_recorded_sizes`.
    """
    steps = tuple(steps)
    slices = [each for step in steps for each in _slices(step) if each is not None]
    sized = iter(with_recorded_sizes(slices, recorded))
    found = []
    for step in steps:
        if step.merge is None:
            found.append(step)
            continue
        own, before, after = (None if each is None else next(sized) for each in _slices(step))
        assert own is not None, step
        found.append(attrs.evolve(step, merge=attrs.evolve(step.merge, own=own, before=before, after=after)))
    return tuple(found)


def _slices(step: Step) -> tuple[FileSlice | None, ...]:
    return () if step.merge is None else (step.merge.own, step.merge.before, step.merge.after)
