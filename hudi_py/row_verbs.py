"""
The operations that write whole rows, as methods: the same for rows of this process and for DataFrames of Spark.

How rows reach the table is up to the class that has these methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.write_service import WriteService
    from hudi_py.writing.result import WriteResult

__all__ = ["RowVerbs", "Words"]

R = TypeVar("R")


class Words(TypedDict, total=False):
    """
    Entries of a commit in addition to its files, and the number of retries; see `write`.

    Args:
        write_key: Application and version of the write, which is done once.
        extra_metadata: Entries for ``extraMetadata`` of the commit.
        retries: How often the write is begun again, on the current state, when another writer was faster; only where
            the settings allow several writers. Default: ``hoodie.write.num.retries.on.conflict.failures``, or 4.
    """

    write_key: tuple[str, int] | None
    extra_metadata: Mapping[str, str] | None
    retries: int | None


class RowVerbs(Generic[R]):
    """Writes rows of type *R*. Each call is one commit, and cleans and archives as the settings say."""

    def upsert(self, data: R, **words: Unpack[Words]) -> WriteResult:
        """
        Update rows whose key is in the table, insert all others.

        Of several rows with the same key, the one with the largest ordering value is written. Rows whose boolean column
        ``_hoodie_is_deleted`` is true are deleted.

        Raises:
            ConfigError, WriteError: The rows do not fit the table; nothing was committed.
            UnsupportedTable: hudi_py does not write this kind of table.
            RefusedError: Writing could lose rows; the message says what to do.
            ConflictError: Another process is writing to the table.
            StorageError: The storage failed; nothing was committed, and the next write cleans up.
            ServiceFailed: The rows are committed, but the clean or the archival after the commit failed.
        """
        return self._write(data, "UPSERT", words)

    def insert(self, data: R, **words: Unpack[Words]) -> WriteResult:
        """Add rows without looking up their keys. Raises as `upsert`."""
        return self._write(data, "INSERT", words)

    def bulk_insert(self, data: R, **words: Unpack[Words]) -> WriteResult:
        """Add rows in new file groups only; use it to load many rows at once. Raises as `upsert`."""
        return self._write(data, "BULK_INSERT", words)

    def insert_overwrite(self, data: R, **words: Unpack[Words]) -> WriteResult:
        """Replace all rows of the partitions that *data* has rows of. Raises as `upsert`."""
        return self._write(data, "INSERT_OVERWRITE", words)

    def insert_overwrite_table(self, data: R, **words: Unpack[Words]) -> WriteResult:
        """Replace all rows of the table; no rows replace nothing, as in Apache Hudi. Raises as `upsert`."""
        return self._write(data, "INSERT_OVERWRITE_TABLE", words)

    def drop_partitions(self, paths: Sequence[str], **words: Unpack[Words]) -> WriteResult:
        """
        Delete all rows of partitions; the clean deletes the files later.

        Args:
            paths: Relative paths of the partitions, as `partitions` returns them.

        Raises:
            ConfigError: The table has no such partition.
            TableNotFound: There is no table.
            As `upsert`.
        """
        from hudi_py.config.arguments import texts_of
        from hudi_py.writing.commit_words import commit_words

        names = texts_of("paths", paths)
        return self._changed_by(lambda service: service.drop_partitions(names, commit_words(**words)))

    def _write(self, data: R, operation: str, words: Words) -> WriteResult:
        """Write rows with an operation, named as in Hudi's commits."""
        raise NotImplementedError

    def _changed_by(self, write_with: Callable[[WriteService], WriteResult]) -> WriteResult:
        """Have the table's write service do something."""
        raise NotImplementedError
