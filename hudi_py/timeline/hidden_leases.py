"""Which leases would become unreadable by the undo of a clean."""

from __future__ import annotations

from hudi_py.config import keys
from hudi_py.errors import RefusedError
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action
from hudi_py.model.lease import Lease
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def hidden_by_undo(contents: Contents, timeline: Timeline, clean_time: str, lease: Lease) -> str:
    """
    The time from which on everything is readable once a clean is undone, if a lease is on an earlier one; else ``""``.

    The clean before it counts again then. Its window may be a later one: a clean by file versions names none, and
    under it every time is readable whose files are there.
    """
    before = [each for each in timeline.completed(Action.CLEAN) if each.requested_time != clean_time]
    if not before:
        return ""
    metadata = contents.clean(before[-1])
    holes = holes_of(metadata)
    if lease.floor < metadata.earliest_commit_to_retain:
        return metadata.earliest_commit_to_retain
    return holes.window if holes.holds(lease.instant) else ""


def refuse_hiding_leased(contents: Contents, timeline: Timeline, clean_time: str) -> None:
    """
    Refuse the undo of a clean that would make a lease unreadable.

    Raises:
        RefusedError: A lease is on an earlier time; the caller has put no file back yet.
        CorruptMetadata: A lease or the clean before does not decode.
    """
    for lease in contents.store.leases.in_force():
        start = hidden_by_undo(contents, timeline, clean_time, lease)
        if start:
            raise RefusedError(
                f"{contents.store.storage.root}: clean {clean_time} cannot be undone, nothing was put back: {lease}, "
                f"reads a time before {start}, and the clean that counts afterwards promises only what is later; wait "
                f"until it is released, or go on in spite of it with {keys.LEASES_IGNORED.name}=true"
            )
