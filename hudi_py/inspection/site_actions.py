"""
What the server of pages may change, once it was started with ``--allow-actions``: each action, tried or taken.

Only actions that undo no commit, and that go on by themselves after an interruption. What undoes something that is
named (rollback, restore, undo) stays in a shell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from threading import Condition
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.model.words import counted, shell_word
from hudi_py.runtime.log import log

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.clean.executing.outlook import PendingOutlook
    from hudi_py.table import Table

BODY_BYTES_MAX: Final = 16 * 1024
"""Of the body of a request; those of actions are some tens of bytes."""
_LINES_MAX: Final = 50


@attrs.frozen
class Told:
    """
    What an action did, or would do.

    Args:
        lines: For people, one fact each.
        is_due: Whether there is, or was, anything to do.
        document: The document of the command of the same name, with ``--json``.
    """

    lines: Sequence[str]
    is_due: bool
    document: Any


@attrs.frozen
class Action:
    """
    Something that the server may do to a table.

    Args:
        name: Last part of its address, and the name of its command.
        summary: What it does, as the page says it.
        take: Does it, or with the second argument only tells what it would do.
    """

    name: str
    summary: str
    take: Callable[[Table, bool, CleanOptions], Told]


class Busy(Exception):
    """Another request has an action running on the table, or no further one may begin."""


class Actions:
    """
    Runs actions on tables, one at a time on each.

    Args:
        open_table: Opens a location, for changes.
        options: Settings of cleaning, given at the start.
    """

    def __init__(self, open_table: Callable[[str], Table], options: CleanOptions) -> None:
        self._open, self._options = open_table, options
        self._changed = Condition()
        self._running: set[str] = set()
        self._is_over = False

    def run(self, location: str, action: Action, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        """
        Take an action, or try it.

        Args:
            location: Of the table.
            action: One of `ACTIONS`.
            body: JSON, ``{"dry_run": true}`` or ``{"dry_run": false}``.

        Returns:
            Status and answer.

        Raises:
            ConfigError: The body is something else.
            Busy: Another action runs on the table, or the server is being stopped.
            HudiError: The action failed, as its command would.
        """
        dry_run = _dry_run(body)
        with self._changed:
            if self._is_over:
                raise Busy("the server is being stopped; start it again for further actions")
            if location in self._running:
                raise Busy(f"another action runs on {location}; wait until it has ended")
            self._running.add(location)
        try:
            log.info("serve.action", action=action.name, table=location, dry_run=dry_run)
            told = action.take(self._open(location), dry_run, self._options)
        except (RefusedError, ConflictError) as error:
            return HTTPStatus.CONFLICT, {"error": {"kind": type(error).__name__, "message": str(error)}}
        finally:
            with self._changed:
                self._running.discard(location)
                self._changed.notify_all()
        lines = [*told.lines[:_LINES_MAX]]
        if len(told.lines) > len(lines):
            lines.append(
                f"and {len(told.lines) - len(lines)} more; hudi-py {action.name} {shell_word(location)} tells all"
            )
        return HTTPStatus.OK, {
            "action": action.name, "dry_run": dry_run, "is_due": told.is_due, "lines": lines, "result": told.document,
        }  # fmt: skip

    def end(self) -> None:
        """Let no further action begin, and return when none runs."""
        with self._changed:
            self._is_over = True
            self._changed.wait_for(lambda: not self._running)

    @property
    def is_running(self) -> bool:
        """Whether any action runs."""
        return bool(self._running)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of two, readers of JSON take the first or the last: whether an action is carried out must not depend on that.
    if len({name for name, _ in pairs}) < len(pairs):
        raise ConfigError("the body has a name twice")
    return dict(pairs)


def _dry_run(body: bytes) -> bool:
    try:
        given = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON ({type(error).__name__})") from error
    if not isinstance(given, dict) or set(given) != {"dry_run"} or not isinstance(given["dry_run"], bool):
        raise ConfigError('the body has to be {"dry_run": true}, or {"dry_run": false} to carry the action out')
    return given["dry_run"]


# ------------------------------------------------------------------ the actions
def _maintain(opened: Table, dry_run: bool, _options: CleanOptions) -> Told:
    from hudi_py.config import keys
    from hudi_py.inspection.maintain_command import maintenance_entry
    from hudi_py.services.maintenance.service import Chore

    # As `hudi-py maintain`: the setting tells writers to leave the services to us.
    opened.settings = opened.settings.without(keys.TABLE_SERVICES_ENABLED)
    report = (opened.read_only() if dry_run else opened).maintain(dry_run=dry_run)
    lines, is_due = [], False
    for step in report.steps:
        is_step_due = step.is_done or (step.found is not None and step.found.is_due)
        # What fails when it is looked at is not nothing to do; of orphans maintain only tells.
        is_due = is_due or (is_step_due and step.step is not Chore.ORPHANS) or step.error is not None
        word = "failed" if step.error else "done" if step.is_done else "due" if is_step_due else "nothing to do"
        why = str(step.error) if step.found is None else step.found.why
        lines.append(f"{step.step.value}: {word}{why and f' ({why})'}")
    return Told(lines, is_due, maintenance_entry(report))


def _clean(opened: Table, dry_run: bool, options: CleanOptions) -> Told:
    from hudi_py.inspection.report import clean_contents, clean_report, plan_report, readable_by

    if dry_run:
        from hudi_py.services.clean.executing.outlook import outlook, plans_too

        tried = opened.rehearsal()
        service = tried.services.clean(tried.services.clean_config(**options))
        service.permit()  # where deletion is forbidden, the trial is refused as the action would be
        plan = service.plan(sizes=True)
        pending = [outlook(service.contents, instant, service.policy) for instant in tried.timeline.pending("clean")]
        is_on = service.config.services_enabled
        failed = sorted(tried.services.failed_writes().due_with_clean() or ())
        lines = [f"{counted(len(failed), 'failed write')} would be rolled back: {', '.join(failed)}"] if failed else []
        lines += [_pending_clean(each) for each in pending if is_on]
        due = plan.would_schedule and is_on and plans_too(pending, service.config)
        if due:
            lines.append(f"{_files(plan.file_count, plan.size_bytes)} would be deleted")
            lines += [*plan.warnings, *(f"refused: {reason}" for reason in plan.breakers)]
        is_due = (due and not plan.breakers) or (bool(pending) and is_on) or bool(failed)
        document = plan_report(plan, pending, readable_by(plan, tried), is_switched_off=not is_on)
        return Told(lines or ["nothing would be deleted"], is_due, {**document, "failed_writes": failed})
    results = opened.clean(**options)
    lines = [
        f"clean {each.instant}: withdrawn, nothing was deleted ({each.why_spared})"
        if each.withdrawn
        else f"clean {each.instant}: {_files(len(each.deleted_files), each.bytes_freed)} deleted"
        + (f", {counted(len(each.failed_files), 'file')} could not be" if each.failed_files else "")
        + ("; more is left for the next clean" if each.has_more_to_do else "")
        for each in results
    ]
    return Told(lines or ["nothing to clean"], bool(results), clean_report(results, clean_contents(opened, results)))


def _pending_clean(found: PendingOutlook) -> str:
    head = f"clean {found.instant.requested_time} is pending"
    if found.is_withdrawn:
        return f"{head}; its plan would be withdrawn, because it has deleted nothing: {found.why_spared}"
    return f"{head} and would be finished: {_files(len(found.files), found.size_bytes)} would be deleted"


def _compact(opened: Table, dry_run: bool, _options: CleanOptions) -> Told:
    from hudi_py.inspection.report import compaction_report, rewrite_report

    if dry_run:
        tried = opened.rehearsal()
        service = tried.services.compaction()
        found = service.plan()
        left = service.left_pending(tried.timeline)
        stay = {each.instant for each in left}
        pending = [each.requested_time for each in tried.timeline.pending("compaction") if each not in stay]
        lines = [f"compaction {time} is pending and would be carried out first" for time in pending]
        lines += [f"stays pending: {each.reason}" for each in left]
        groups = counted(len(found.plan.operations), "file group")
        lines.append(f"{groups} would be compacted" if found.would_schedule else f"nothing is due: {found.reason}")
        is_due = found.would_schedule or bool(pending)
        return Told(lines, is_due, compaction_report(found, pending, service.expected(found), left))
    results = opened.compact()
    left = opened.services.compaction().left_pending(opened.timeline)
    lines = [f"compaction {each.instant}: {counted(each.file_groups, 'file group')}" for each in results]
    lines += [f"stays pending: {each.reason}" for each in left]
    return Told(lines or ["nothing was due"], bool(results), rewrite_report(results, "compactions", left))


def _archive(opened: Table, dry_run: bool, _options: CleanOptions) -> Told:
    from hudi_py.inspection.instant_entry import instant_entry

    if dry_run:
        plan = opened.rehearsal().services.archive().plan()
        instants, bound, merges = plan.instants, plan.bound, 0
    else:
        done = opened.archive()
        instants, bound, merges = done.instants, done.bound, done.merges
    lines = [f"{counted(len(instants), 'instant')} {'would be ' if dry_run else ''}archived"]
    reason = None if bound is None else bound.value
    if reason is not None:
        lines.append(f"no more, because of: {reason}")
    document = {"archived": [instant_entry(each) for each in instants], "kept_because": reason, "merges": merges}
    return Told(lines, bool(instants), document)


def _recover(opened: Table, dry_run: bool, _options: CleanOptions) -> Told:
    from hudi_py.inspection.report import recovery_entry

    outcomes = opened.recover(dry_run=dry_run)
    lines = []
    for each in outcomes:
        finding = each.finding
        line = f"{finding.instant or finding.problem.value}: {finding.problem.value}, {finding.step.value}"
        # Of what is left as it is, or needs a person, the step says all.
        if finding.is_settled_by_us:
            line += f": failed: {each.error}" if each.error else ": done" if each.done else ": to do"
        lines.append(line)
    is_due = any(each.finding.is_settled_by_us and each.error is None for each in outcomes)
    return Told(lines or ["nothing to recover"], is_due, [recovery_entry(each) for each in outcomes])


def _files(count: int, size_bytes: int | None) -> str:
    from hudi_py.inspection.render import human_bytes

    return f"{counted(count, 'file')} ({human_bytes(size_bytes)})"


ACTIONS: Final[Iterable[Action]] = (
    Action(
        "maintain", "Everything that is due: failed writes, tags, clean, archival and what the policy asks", _maintain
    ),
    Action("clean", "Delete file slices that the retention does not keep; finishes pending cleans first", _clean),
    Action("compact", "Write log files into new base files; carries out pending compactions first", _compact),
    Action("archive", "Move instants that nobody needs any more out of the active timeline", _archive),
    Action("recover", "Repair the table after a crash; stop writers that have no heartbeat before", _recover),
)


def find_action(name: str) -> Action | None:
    """Return the action of this name."""
    return next((each for each in ACTIONS if each.name == name), None)
