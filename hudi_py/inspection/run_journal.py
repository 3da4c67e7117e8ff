"""``--resume FILE``: the journal of a run over many tables, by which the next run leaves out what is done."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from hudi_py.errors import ConfigError
from hudi_py.inspection.output_file import table_around
from hudi_py.txn.turns import place_of

_LINE_BEGINS: Final = '{"table": '
"""How each line of a journal begins."""


@attrs.frozen
class RunJournal:
    """
    File with a line for each table that is done.

    Args:
        path: Of the file, which need not exist.
        work: What is done to each table: ``savepoint create --dry-run``.
    """

    path: str
    work: str

    def places(self) -> frozenset[str]:
        """
        Places of the tables that it names; a line that a killed run left half written is ignored.

        Raises:
            ConfigError: It cannot be read, or is no journal: a list of tables, say, to which nothing must be added. Or
                it is of a run that did other *work*: its tables would be passed over, and nothing would be done for
                them.
        """
        if table_around(self.path) is not None:
            raise ConfigError(
                f"--resume {self.path}: this is inside a table, where no instant would know it; use another place"
            )
        if not os.path.exists(self.path):
            return frozenset()
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                # A crash of the machine may leave zeros at the end.
                return frozenset(self._places(line.strip().strip("\0") for line in file))
        except OSError as error:
            raise ConfigError(f"--resume {self.path}: {error.strerror}") from error

    def _places(self, lines: Iterator[str]) -> Iterator[str]:
        for number, text in enumerate(lines, 1):
            try:
                entry = json.loads(text)
            except ValueError:
                if text.startswith(_LINE_BEGINS) or _LINE_BEGINS.startswith(text):
                    continue
                entry = None
            if not isinstance(entry, dict) or not isinstance(entry.get("table"), str):
                raise ConfigError(
                    f"--resume {self.path}: line {number} was not written by a run over many tables, and nothing is "
                    "added to a file of another kind; give a new file, or that of the run to go on with"
                )
            # Earlier versions did not note it.
            if entry.get("command", self.work) != self.work:
                raise ConfigError(
                    f"--resume {self.path}: line {number} is of hudi-py {entry['command']}, not of hudi-py "
                    f"{self.work}, and its tables would be left out; give a new file, or that of the run to go on with"
                )
            place = entry.get("location")
            yield place if isinstance(place, str) else place_of(entry["table"])

    @contextlib.contextmanager
    def appended(self) -> Iterator[Callable[[str, int], None]]:
        """
        Give a function that adds a line: of a table, and of the exit code that it ended with.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 - closed below
            if file.tell() > 0:
                file.write("\n")  # so that a half-written line of a killed run ends
        except OSError as error:
            raise ConfigError(f"--resume {self.path}: {error.strerror}") from error

        def note(table: str, exit_code: int) -> None:
            # Whole, because the next run may be in another folder, where the same words are another table.
            line = {"table": table, "exit_code": exit_code, "command": self.work, "location": place_of(table)}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            # At once: whatever kills the run, what is done stays noted.
            file.flush()

        with file:
            yield note
