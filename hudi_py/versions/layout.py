"""
Names of instant files in the two timeline layouts. Pure.

Source: rules/timeline 2.1; Hudi ``InstantFileNameGeneratorV1/V2``, ``InstantFileNameParserV2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.errors import TimelineStateError
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State

_COMPLETING: Final = (
    Action.COMMIT,
    Action.DELTA_COMMIT,
    Action.REPLACE_COMMIT,
    Action.CLEAN,
    Action.ROLLBACK,
    Action.RESTORE,
    Action.SAVEPOINT,
    Action.INDEXING,
)
_PLANNED: Final = (
    Action.DELTA_COMMIT,
    Action.REPLACE_COMMIT,
    Action.COMPACTION,
    Action.LOG_COMPACTION,
    Action.CLEAN,
    Action.ROLLBACK,
    Action.RESTORE,
    Action.INDEXING,
)


def _extensions(*, clustering: bool) -> dict[str, tuple[Action, State]]:
    table = {action.value: (action, State.COMPLETED) for action in _COMPLETING}
    for action in (*_PLANNED, Action.CLUSTERING) if clustering else _PLANNED:
        table[f"{action.value}.requested"] = (action, State.REQUESTED)
        table[f"{action.value}.inflight"] = (action, State.INFLIGHT)
    # A commit has no planned inflight file: `_PLANNED` leaves it out, and the line below gives it its bare name.
    table["commit.requested"] = (Action.COMMIT, State.REQUESTED)
    table["inflight"] = (Action.COMMIT, State.INFLIGHT)  # the bare word always means a commit
    table["savepoint.inflight"] = (Action.SAVEPOINT, State.INFLIGHT)
    return table


@attrs.frozen(eq=False)  # there is one value of each, which is so a key of what is kept
class Layout:
    """A timeline layout: which instant a file name means, and which file name an instant has."""

    version: int
    extensions: Mapping[str, tuple[Action, State]] = attrs.field(repr=False)
    sort_kinds: Mapping[str, tuple[State, str, Action]] = attrs.field(repr=False)
    """By extension: state, ``.`` + comparable action (the sort key of instants with equal times), action."""
    _words: Mapping[tuple[Action, State], str] = attrs.field(repr=False)

    @property
    def has_completion_times(self) -> bool:
        """Whether names of completed instant files contain the completion time."""
        return self.version == 2

    @property
    def clustering(self) -> Action:
        """The action of a pending clustering; it completes as a replacecommit in either case."""
        return Action.CLUSTERING if Action.CLUSTERING.value + ".requested" in self.extensions else Action.REPLACE_COMMIT

    def parse(self, name: str) -> Instant | None:
        """
        Return the instant that a file name stands for, or None if the file is not an instant.

        Only known extensions are accepted, as in Hudi: properties, temporary files, ``.crc`` files and folders are
        not instants.
        """
        head, _, extension = name.partition(".")
        kind = self.extensions.get(extension)
        if kind is None:
            return None
        action, state = kind
        # `isdigit` alone accepts digits of other scripts, which Hudi would not, and which do not sort as times.
        if head.isdigit() and head.isascii():
            return Instant(head, action, state, None, name)
        requested, _, completion = head.partition("_")
        # Only completed instants of layout 2 have a second time in their names.
        if self.version == 1 or state is not State.COMPLETED or not head.isascii():
            return None
        if not (requested.isdigit() and completion.isdigit()):
            return None
        return Instant(requested, action, state, completion, name)

    def file_name(self, instant: Instant) -> str:
        """
        Return the file name of *instant*.

        Raises:
            TimelineStateError: The layout has no such file (a requested savepoint, a completed compaction, ...).
        """
        word = self._words.get((instant.action, instant.state))
        if word is None:
            raise TimelineStateError(f"timeline layout {self.version} has no file for {instant}")
        if instant.is_completed and self.has_completion_times:
            if instant.completion_time is None:
                raise TimelineStateError(f"{instant} needs a completion time in timeline layout 2")
            return f"{instant.requested_time}_{instant.completion_time}.{word}"
        return f"{instant.requested_time}.{word}"


def _layout(version: int, *, clustering: bool) -> Layout:
    extensions = _extensions(clustering=clustering)
    sort_kinds = {
        word: (state, "." + COMPARABLE_ACTION[action].value, action) for word, (action, state) in extensions.items()
    }
    return Layout(version, extensions, sort_kinds, {kind: word for word, kind in extensions.items()})


LAYOUT_V1: Final = _layout(1, clustering=False)
LAYOUT_V2: Final = _layout(2, clustering=True)
