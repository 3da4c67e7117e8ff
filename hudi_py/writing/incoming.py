"""Rows on their way into a table, whatever engine holds them: the one thing that a write asks of Spark or Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from hudi_py.rows.written import WrittenFile
from hudi_py.writing.job import WriteJob


class IncomingRows(Protocol):
    """What the user gave, held by an engine that can write it."""

    @property
    def schema(self) -> pa.Schema:
        """
        Of the rows as they come to the tasks.

        Raises:
            ConfigError: A column has a type that cannot be written.
        """

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> IncomingRows:
        """
        The same rows with the columns that are written, spelled as in the table; see `written_columns`.

        Raises:
            ConfigError: A needed column is missing, or two columns have one name.
        """

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """
        Write the rows into data files, under markers; nothing is visible before the commit.

        Raises:
            HudiError: The first error of a task; other tasks may have written files, which markers name.
        """
