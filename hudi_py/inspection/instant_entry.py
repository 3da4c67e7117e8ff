"""The JSON document of an instant; apart from others, so that a timeline is shown without what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant


def instant_entry(instant: Instant) -> dict[str, Any]:
    """Return an instant, as in ``hudi-py timeline``."""
    return {
        "requested_time": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.name,
        "completion_time": instant.completion_time,
    }
