"""The protocol of rows that are to be written: all that a write needs from an engine such as Spark or Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.job import WriteJob
from hudi_py.writing.required import Required


class IncomingRows(Protocol):
    """Rows of the user, in the hands of an engine that can write them."""

    @property
    def schema(self) -> pa.Schema:
        """
        Schema of the rows as tasks receive them.

        Raises:
            ConfigError: A column has a type that cannot be written.
        """

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> IncomingRows:
        """
        Return the rows with the columns that are written, under their names in the table; see `written_columns`.

        Raises:
            ConfigError: A needed column is missing, or two columns have the same name.
        """

    def checked(self, required: Required, keys: KeyGenerator) -> IncomingRows:
        """
        Return the rows, of which those that are in this process are known to have what is required, and partitions.

        Called before anything is written, so that a refusal leaves nothing behind. Others are checked by `write`.

        Raises:
            ConfigError, WriteError: See `Required.check` and `KeyGenerator.partition_paths`.
        """

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """
        Write the rows into data files, with markers. Nothing is visible before the commit.

        Raises:
            HudiError: The first error of a task; other tasks may have written files, which markers name.
        """
