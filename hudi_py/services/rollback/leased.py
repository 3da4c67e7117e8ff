"""Refuses to undo commits that readers hold leases on."""

from __future__ import annotations

from collections.abc import Collection

from hudi_py.config import keys
from hudi_py.errors import RefusedError
from hudi_py.timeline.contents import Contents


def refuse_leased(contents: Contents, what: str, undone: Collection[str]) -> None:
    """
    Refuse to undo completed writes whose rows are read under a lease.

    Args:
        contents: The table's timeline, and its leases.
        what: What is to be done, for the message.
        undone: Requested times of the completed writes to undo.

    Raises:
        RefusedError: A lease shows one of them; nothing was changed.
        CorruptMetadata: A lease does not decode, so it is unknown what its reader needs.
    """
    if not undone:
        return
    for lease in contents.store.leases.in_force():
        shown = [time for time in undone if lease.shows(time)]
        if shown:
            raise RefusedError(
                f"{what} refused, nothing was changed: {lease}, reads rows of {max(shown)}; wait until it is released, "
                f"or go on in spite of it with {keys.LEASES_IGNORED.name}=true (--force)"
            )
