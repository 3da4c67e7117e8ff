"""``--resume FILE``: the journal of a run over many tables, by which the next run leaves out what is done."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from hudi_py.errors import ConfigError, ConflictError, StorageError
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

    def _done(self) -> frozenset[str]:
        """Places of the tables that it names; a line that a killed run left half written is ignored."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            # A crash of the machine may leave zeros at the end.
            return frozenset(self._places(line.strip().strip("\0") for line in file))

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
    def held(self) -> Iterator[tuple[frozenset[str], Callable[[str, int], None]]]:
        """
        Take the file for this run, until the block ends or the process does.

        Yields:
            Places of the tables that it names, and a function that adds a line: of a table, and of the exit code that
            it ended with.

        Raises:
            ConfigError: It cannot be read or written, or is no journal: a list of tables, say, to which nothing must be
                added. Or it is of a run that did other *work*: its tables would be passed over, and nothing would be
                done for them.
            ConflictError: Another run has it, and is at work on the tables that it does not name yet.
            StorageError: A line cannot be written, in the middle of the run.
        """
        if table_around(self.path) is not None:
            raise ConfigError(
                f"--resume {self.path}: this is inside a table, where no instant would know it; use another place"
            )
        try:
            # Without a buffer: whatever kills the run, what is done stays noted.
            file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed below
        except OSError as error:
            raise ConfigError(f"--resume {self.path}: {error.strerror}") from error

        def note(table: str, exit_code: int) -> None:
            # Whole, because the next run may be in another folder, where the same words are another table.
            line = {"table": table, "exit_code": exit_code, "command": self.work, "location": place_of(table)}
            try:
                _append(file, (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            except OSError as error:
                raise StorageError(
                    f"--resume {self.path}: {error.strerror}; {table} is done, but not noted, and the run ends here: "
                    "make space, and give the same file to the next run"
                ) from error

        with file:
            self._take(file.fileno())
            try:
                done = self._done()
                if file.tell() > 0:
                    _append(file, b"\n")  # so that a half-written line of a killed run ends
            except OSError as error:
                raise ConfigError(f"--resume {self.path}: {error.strerror}") from error
            yield done, note

    def _take(self, descriptor: int) -> None:
        """Lock the open file; the system lets go of it when the process ends, however that is."""
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConflictError(
                f"--resume {self.path}: another run has this file and is at work on its tables; wait for its end, or "
                "give another file"
            ) from error
        except (ImportError, OSError):  # no such locks here: two runs do the same tables twice, and each is whole
            return


def _append(file: io.FileIO, data: bytes) -> None:
    while data:  # the last bytes that fit are a part of a line
        data = data[file.write(data) :]
