"""
Runs one command on many tables, in several processes, and reports one line a table.

Each table is a run of its own: with its own errors and its own exit code. Processes, because the work on one table is
mostly computation; a table that fails does not stop the others.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any, Final

import attrs

from hudi_py.inspection.failure import failure_of
from hudi_py.inspection.fleet_budget import Budget
from hudi_py.inspection.metrics_file import collected
from hudi_py.inspection.open_metrics import Sample
from hudi_py.inspection.options import MORE_TO_DO, ONE_OF_MANY
from hudi_py.inspection.run_journal import RunJournal
from hudi_py.inspection.say import say, visible
from hudi_py.inspection.still_running import is_beat
from hudi_py.inspection.termination import EXIT_CODE as TERMINATED
from hudi_py.inspection.termination import INTERRUPTED, Terminated
from hudi_py.inspection.worker_pool import Submit, workers
from hudi_py.model.words import counted
from hudi_py.txn.turns import place_of

SOME_FAILED: Final = 6
"""Exit code of a run in which at least one table failed."""
_DONE: Final = frozenset({0, 3})
"""Exit codes of tables that were done: a finding about a table is not a failure of the command."""
_NOT_FAILED: Final = _DONE | {MORE_TO_DO}
_SIGNALS: Final = {INTERRUPTED: KeyboardInterrupt, TERMINATED: Terminated}
_SKIPPED_KIND: Final = "NotStarted"


@attrs.frozen
class Outcome:
    """
    Result of the command on one table.

    Args:
        table: Its location, as given.
        exit_code: That the command alone would have had.
        document: What it would have printed with ``--json``; None if that was nothing.
        samples: What a metrics file would have of it, if that was asked for.
        notes: What it printed on standard error beside its result: warnings, log events that were asked for, and the
            traceback of an error, which is one text.
    """

    table: str
    exit_code: int
    document: Any
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the command could not do what it was asked for."""
        return self.exit_code not in _NOT_FAILED

    @property
    def is_done(self) -> bool:
        """Whether nothing of the command is left to do on the table, as far as it was asked to tell."""
        return self.exit_code in _DONE

    def tell_notes(self, told: set[str]) -> None:
        """Print the notes that are not among those *told* before, to standard error, and add them there."""
        for note in self.notes:
            if note in told:
                continue
            told.add(note)
            for line in note.splitlines():
                # Objects of --log-format json stay whole.
                say(line if line.startswith("{") else f"{self.table}: {line}", file=sys.stderr)

    @property
    def entry(self) -> dict[str, Any]:
        """The JSON line of the table."""
        document = self.document
        if isinstance(document, dict) and set(document) == {"error"}:
            return {"table": self.table, "exit_code": self.exit_code, **document}
        return {"table": self.table, "exit_code": self.exit_code, "result": document}


@attrs.frozen(kw_only=True)
class Plan:
    """
    A run over many tables.

    Args:
        command: Names of the command and, before it, of its groups: ``("savepoint", "list")``.
        arguments: Everything behind the table.
        tables: Locations.
        parallel: Number of tables at once.
        kinds: Options that make another kind of run: a table that was only looked at has not been cleaned.
        journal: File to which the tables that are done are written; those that it names already are left out.
        is_over: Asked before each table: whether no further one is to be started.
        measures: Whether outcomes have samples.
        budgets: Limits over all tables.
    """

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    tables: tuple[str, ...]
    parallel: int = 1
    kinds: tuple[str, ...] = ()
    journal: str | None = None
    is_over: Callable[[], bool] = bool
    measures: bool = False
    budgets: tuple[Budget, ...] = ()

    def argv(self, table: str, shares: Sequence[int] = ()) -> list[str]:
        """The command line for one table, with its share of each budget."""
        as_json = () if "--json" in self.arguments else ("--json",)
        # A location is never an option, whatever it begins with.
        plain = f"./{table}" if table.startswith("-") else table
        limits = [word for each, share in zip(self.budgets, shares, strict=True) for word in (each.flag, str(share))]
        return [*self.command, plain, *self.arguments, *limits, *as_json]

    @property
    def work(self) -> str:
        """What is done to each table, as its journal names it: ``savepoint create --dry-run``."""
        return " ".join((*self.command, *self.kinds))

    def run(self, tell: Callable[[Outcome], None]) -> None:
        """
        Run the command on each table.

        Args:
            tell: Gets outcomes in the order in which they come, also those of tables that were finished after Ctrl-C.

        Raises:
            ConfigError: The journal cannot be read or written, or is of a run of another command.
            ConflictError: Another run has the journal.
            KeyboardInterrupt: Ctrl-C or SIGTERM came; no further table was started.
        """
        if self.journal is None:
            self._run(self.tables, tell)
            return
        with RunJournal(self.journal, self.work).held() as (done, note):

            def noted(outcome: Outcome) -> None:
                if outcome.is_done:
                    note(outcome.table, outcome.exit_code)
                tell(outcome)

            self._run([table for table in self.tables if place_of(table) not in done], noted)

    def _run(self, tables: Sequence[str], tell: Callable[[Outcome], None]) -> None:
        if self.parallel == 1 or len(tables) <= 1:
            self._one_by_one(tables, tell)
        else:
            self._at_once(tables, tell)

    @property
    def _run_one(self) -> Callable[[str, Sequence[str]], Outcome]:
        return partial(run_one, measures=True) if self.measures else run_one

    def _shares(self, waiting: int) -> list[int] | str:
        """The shares of the next table, or why it is not started."""
        if self.is_over():
            return "the time limit of the run was reached"
        spent = next((each for each in self.budgets if each.left == 0), None)
        if spent is not None:
            return f"--{spent.name} is used up by the tables before it; what failed counts, because it may have begun"
        return [each.share(min(self.parallel, waiting)) for each in self.budgets]

    def _settle(self, shares: Sequence[int], outcome: Outcome) -> Outcome:
        for each, share in zip(self.budgets, shares, strict=True):
            each.settle(share, outcome.document, has_failed=outcome.has_failed)
        return outcome

    def _one_by_one(self, tables: Sequence[str], tell: Callable[[Outcome], None]) -> None:
        for table in tables:
            shares = self._shares(1)
            if isinstance(shares, str):
                tell(_not_started(table, shares))
                continue
            outcome = self._settle(shares, self._run_one(table, self.argv(table, shares)))
            tell(outcome)
            # In this process the signal reached the command on the table, and is meant for the whole run.
            if outcome.exit_code in _SIGNALS:
                raise _SIGNALS[outcome.exit_code]

    def _at_once(self, tables: Sequence[str], tell: Callable[[Outcome], None]) -> None:
        """In several processes. If one is killed, each table that was running then gets a process of its own."""
        # Taken from the end, which is the first table.
        waiting = list(reversed(tables))
        while waiting:
            running: dict[Future[Outcome], tuple[str, list[int]]] = {}
            broken: list[tuple[str, list[int]]] = []
            try:
                with workers(min(self.parallel, len(waiting))) as submit:
                    try:
                        self._through(submit, waiting, running, broken, tell)
                    except KeyboardInterrupt:
                        begun = counted(sum(not each.done() for each in running), "table")
                        say(f"hudi-py: finishing {begun} in progress first; a second signal ends that", file=sys.stderr)
                        raise
            finally:
                # After Ctrl-C the pool has finished what was begun, unless it came twice; no later run need do it.
                over = [each for each in running if each.done() and not each.cancelled()]
                self._tell_finished(over, running, broken, tell)
            for table, shares in broken:
                # Which of the running tables killed the process is unknown, so each gets one that it can only kill
                # alone.
                tell(self._settle(shares, self._alone(table, shares)))

    def _through(
        self,
        submit: Submit,
        waiting: list[str],
        running: dict[Future[Outcome], tuple[str, list[int]]],
        broken: list[tuple[str, list[int]]],
        tell: Callable[[Outcome], None],
    ) -> None:
        """Take tables from the end of *waiting*; those whose process may have been killed end up in *broken*."""
        while running or (waiting and not broken):
            # Few at a time, not all at once: after a kill only the tables that were running are in doubt.
            while waiting and not broken and len(running) < self.parallel:
                shares = self._shares(len(waiting))
                if isinstance(shares, str) and running and not self.is_over():
                    break  # those that run may give something back
                table = waiting.pop()
                if isinstance(shares, str):
                    tell(_not_started(table, shares))
                    continue
                try:
                    running[submit(self._run_one, table, self.argv(table, shares))] = table, shares
                except BrokenProcessPool:
                    broken.append((table, shares))
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            self._tell_finished(finished, running, broken, tell)

    def _tell_finished(
        self,
        finished: Iterable[Future[Outcome]],
        running: dict[Future[Outcome], tuple[str, list[int]]],
        broken: list[tuple[str, list[int]]],
        tell: Callable[[Outcome], None],
    ) -> None:
        """Tell what came of tables that are *running* no more."""
        for future in finished:
            table, shares = running.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool:
                broken.append((table, shares))
            else:
                tell(self._settle(shares, outcome))

    def _alone(self, table: str, shares: Sequence[int]) -> Outcome:
        with workers(1) as submit:
            try:
                outcome: Outcome = submit(self._run_one, table, self.argv(table, shares)).result()
            except BrokenProcessPool:
                message = f"{table}: the process that worked on it was killed"
                fix = "run the command on this table alone; it may need more memory than is available"
                return Outcome(table, 1, _error("ProcessKilled", message, fix, 1))
        return outcome


def run_one(table: str, argv: Sequence[str], *, measures: bool = False) -> Outcome:
    """
    Run a command with its output caught, and measured if asked; never raises an error of the command.

    With ``--debug``, which lets errors through, their tracebacks are among what it printed.
    """
    from hudi_py.inspection.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    samples: list[Sample] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if measures:
            samples = stack.enter_context(collected()).samples
        mark = ONE_OF_MANY.set(True)
        try:
            main(list(argv))
        except SystemExit as stopped:
            code = stopped.code
        except Exception as error:  # noqa: BLE001 - one table must not end the others
            failure, trace = failure_of(error), traceback.format_exc()
            notes = (*_notes(err.getvalue()), trace)
            return Outcome(table, failure.exit_code, {"error": attrs.asdict(failure)}, tuple(samples), notes)
        finally:
            ONE_OF_MANY.reset(mark)
    # A text in SystemExit is a message, which Python prints and turns into code 1.
    exit_code = code if isinstance(code, int) else (0 if code is None else 1)
    text, told = out.getvalue(), err.getvalue()
    try:
        document = json.loads(text) if text.strip() else None
    except ValueError:
        document = text
    # Wrong usage ends before anything can be printed as JSON.
    if document is None and exit_code not in _NOT_FAILED:
        document, told = _error("Failed", told.strip() or "the command failed", "run it on this table", exit_code), ""
    return Outcome(table, exit_code, document, tuple(samples), _notes(told, document))


def _notes(told: str, document: Any = None) -> tuple[str, ...]:
    """What a command printed on standard error, but for the error that its document has."""
    is_error = isinstance(document, dict) and set(document) == {"error"}
    known = f"hudi-py: {visible(document['error']['message'])}" if is_error else None
    lines = [line for line in told.splitlines() if line and not is_beat(line)]
    return tuple(line for line in lines if known is None or not line.startswith(known))


def _not_started(table: str, why: str) -> Outcome:
    message = f"{table} was not started: {why}"
    return Outcome(table, 4, _error(_SKIPPED_KIND, message, "run it again with the same --resume file", 4))


def _error(kind: str, message: str, fix: str, exit_code: int) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, "fix": fix, "exit_code": exit_code}}
