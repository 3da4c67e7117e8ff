"""
Whether data may be deleted from a table: the one question that everything asks that deletes files with committed rows.

The switch is ``hoodie_py.gc.enabled``. As a property of the table it is in force for every process of hudi_py, as a
setting for one process; either of them forbids, and none overrules the other. Apache Hudi does not know it.

The property is read at every question, because it may be set while a service is running. A `Permit` is needed by
whatever deletes, and only `DeletionSwitch.permit` makes one, so that no deleter can pass this place by. What no reader
was ever shown needs none: files of failed writes, and hudi_py's own notes (docs/decisions/no-deletion.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from hudi_py.config.keys import GC_ENABLED
from hudi_py.errors import CorruptMetadata, RefusedError, TableNotFound
from hudi_py.storage.base import Storage
from hudi_py.timeline.policy_file import PROPERTY, load_policy
from hudi_py.timeline.properties_file import PROPERTIES_FILE, read_properties

SWITCH: Final = GC_ENABLED.name
PART_FILES: Final = 1000
"""How many files are deleted at most between two questions, where nothing else makes parts: as many as object stores
delete with one request.
"""
T = TypeVar("T")


@attrs.frozen
class DeletionSwitch:
    """
    Args:
        storage: The table's storage.
        is_off_by_settings: Whether the settings of this process forbid deletion.
        policy: Mark of the retention policy that this process works by; empty for none.
    """

    storage: Storage
    is_off_by_settings: bool = False
    policy: str = ""

    def why_off(self, known: Mapping[str, str] | None = None) -> str | None:
        """
        Why nothing may be deleted, as part of a sentence; None if it may.

        Args:
            known: The properties of the table if they were read just now.

        Raises:
            CorruptMetadata: The properties of the table are damaged, so it is unknown whether data may be deleted.
        """
        if self.is_off_by_settings:
            return f"{SWITCH}=false in the settings"
        try:
            properties = read_properties(self.storage) if known is None else known
        except TableNotFound:  # a metadata table that is being made; a table of rows is never opened without properties
            return None
        given = properties.get(SWITCH, "").strip()
        # Any other text was meant to say something about deletion: in doubt, nothing is deleted.
        if given.lower() not in ("", "true"):
            return f"{SWITCH}={given} in {PROPERTIES_FILE}"
        return None if properties.get(PROPERTY, "") == self.policy else self._why_policy_differs(properties)

    def _why_policy_differs(self, properties: Mapping[str, str]) -> str:
        try:
            load_policy(self.storage, properties)
        except CorruptMetadata as error:
            return str(error)
        return "its retention policy was changed after this process had read it; run it again"

    def permit(self, what: str, known: Mapping[str, str] | None = None) -> Permit:
        """
        Return what a deletion needs.

        Args:
            what: What is to be done, for the message.
            known: As `why_off`.

        Raises:
            RefusedError: Deletion is forbidden in this table.
            CorruptMetadata: As `why_off`.
        """
        permit = Permit(self, what)
        permit.check(known)
        return permit


@attrs.frozen
class Permit:
    """
    The permission to delete files with committed rows; from `DeletionSwitch.permit`.

    Args:
        what: What is to be done, for the message.
    """

    _switch: DeletionSwitch
    what: str

    def check(self, known: Mapping[str, str] | None = None, *, done: int = 0, total: int = 0) -> None:
        """
        Ask again, before each part of a long deletion.

        Args:
            known: As `DeletionSwitch.why_off`.
            done, total: Of how many files, or folders, so many are deleted.

        Raises:
            RefusedError: Deletion has been forbidden since; nothing more is deleted.
        """
        why = self._switch.why_off(known)
        if why is not None:
            stopped = f"is stopped after {done} of {total}, no more" if done else "is refused, no"
            raise RefusedError(
                f"{self._switch.storage.root}: {self.what} {stopped} data is deleted from this table: "
                f"{why}{_way_out(why)}"
            )

    def in_parts(self, items: Sequence[T], size: int | None = None, *, before: int = 0) -> Iterator[Sequence[T]]:
        """
        Yield in parts what is to be deleted, and ask before each of them.

        Args:
            items: Paths or names.
            size: Of a part; None for `PART_FILES`.
            before: How many others were deleted before.

        Raises:
            RefusedError: As `check`; the parts before were deleted.
        """
        size = size or PART_FILES
        for start in range(0, len(items), size):
            self.check(done=before + start, total=before + len(items))
            yield items[start : start + size]


def _way_out(why: str) -> str:
    """Return how the switch is set back; for anything else the reason says itself what to do."""
    if not why.startswith(f"{SWITCH}="):
        return ""
    return (
        "; allow it with hudi-py deletion allow TABLE" if why.endswith(PROPERTIES_FILE) else "; leave the setting out"
    )
