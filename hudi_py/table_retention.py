"""What an opened table keeps, and for how long: the switch against deletion."""

from __future__ import annotations

from hudi_py.table_rewriting import TableRewriting

__all__ = ["TableRetention"]


class TableRetention(TableRewriting):
    """A table that says what is kept of it."""

    @property
    def deletion_forbidden(self) -> str | None:
        """Why no data may be deleted from this table, read from its properties now; None if it may."""
        return self._store.deletion.why_off()

    def forbid_deletion(self) -> bool:
        """
        Forbid hudi_py to delete data from this table, until `allow_deletion`: a property, in force for every process.

        Cleans, searches for orphans, rollbacks of completed commits and restores are refused; commits leave out their
        clean. What failed writes left is still deleted. Apache Hudi does not know this switch: switch off its cleans
        (``hoodie.clean.automatic=false`` in its writers).

        Returns:
            False if it was forbidden already.

        Raises:
            RefusedError: A restore or the rollback of a completed commit has begun, and has to be finished first.
            ConflictError: Another process holds the table's lock, or rewrites the properties; nothing was changed.
        """
        return self._changed(self.services.deletion().forbid)

    def allow_deletion(self) -> bool:
        """
        Allow the deletion of data again; return False if it was allowed.

        Raises:
            ConflictError: As `forbid_deletion`.
        """
        return self._changed(self.services.deletion().allow)
