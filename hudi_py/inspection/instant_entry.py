"""The JSON document of an instant; apart from others, so that a timeline is shown without what they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant
    from hudi_py.table import Table


def instant_entry(instant: Instant) -> dict[str, Any]:
    """Return an instant, as in ``hudi-py timeline``."""
    return {
        "requested_time": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.name,
        "completion_time": instant.completion_time,
    }


def find_content(
    opened: Table, time: str, *, action: str | None = None, state: str | None = None
) -> tuple[Instant, Any] | None:
    """
    Return an instant and its decoded content; None if there is none.

    Args:
        opened: The table; its archive is read only if the active timeline does not know the time.
        time: Requested time, exactly.
        action: Only an instant of this action; else that of the commit, if there is one.
        state: Only an instant in this state; else the highest.
    """

    def is_wanted(instant: Instant) -> bool:
        return (
            instant.requested_time == time
            and (action is None or instant.action.value == action)
            and (state is None or instant.state.name == state)
        )

    # Of all states: an earlier one may be asked for, and its file is another.
    active = [each for each in opened.timeline.all_states if is_wanted(each)]
    if active:
        chosen = _meant(active)
        return chosen, opened.contents.plain(chosen)
    from hudi_py.timeline.archive import load_archived_contents

    # The archive only if the active timeline does not know the time: it may be large.
    content_of = load_archived_contents(opened.storage, opened.config, time)
    archived = [each for each in content_of if is_wanted(each)]
    if not archived:
        return None
    chosen = _meant(archived)
    return chosen, content_of[chosen]


def _meant(instants: Iterable[Instant]) -> Instant:
    # A savepoint has the requested time of its commit; the commit is what is usually meant.
    return max(instants, key=lambda each: (each.state, each.action.value != "savepoint"))
