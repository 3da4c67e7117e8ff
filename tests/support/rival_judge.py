"""
What must be true of a table that several processes have changed, by their notes (`support.rival_worker`).

Rows that were acknowledged are there exactly once, what failed is not there at all, and what was cut off is there as a
whole or not at all. Each increment of the counter counts once, so a lost update is seen. How often a lock was taken
away from its holder is told, too: beside Apache Hudi and its lock file a lost row may be the fault of that.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hudi_py.model.instant import Action
from hudi_py.model.records import RestoreMetadata
from hudi_py.storage.factory import open_storage
from hudi_py.table import Table
from hudi_py.timeline.archive import archived_commits
from hudi_py.timeline.completions import contents_of
from support.rival_readers import missed
from support.rival_worker import BATCH, COUNTER, Arena

Notes = list[dict[str, Any]]
_WHOLE_OR_NOT = frozenset({0, BATCH})


def read_notes(path: Path) -> Notes:
    """Return what a process noted."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = []
    for number, line in enumerate(lines):
        try:
            found.append(json.loads(line))
        except ValueError:
            assert number == len(lines) - 1, "only the last note of a killed process may be torn"
    return found


def judge(arena: Arena, all_notes: list[Notes]) -> tuple[list[str], Counter[str]]:
    """
    Compare the table with what the processes noted; all of them have ended.

    Returns:
        What is wrong, and how often each thing was done.
    """
    wrong = [note["violation"] for notes in all_notes for note in notes if "violation" in note]
    steps = [step for notes in all_notes for step in _steps(notes)]
    counts = Counter(f"{step['what']} {step['end']} {step['detail']}".strip() for step in steps)
    taken = sum("lock" in note for notes in all_notes for note in notes)
    if taken:
        counts["lock taken away from its holder"] = taken
    finished = _finished(arena)
    rows = finished.rows().to_arrow().to_pylist()
    for step in _undone(finished, steps):
        step["end"] = "failed"  # a restore has taken it back
    twice = [key for key, count in Counter(row["id"] for row in rows).items() if count > 1]
    if twice:
        wrong.append(f"keys are there twice: {twice}")
    found = Counter(row["batch"] for row in rows)
    for batch, allowed in _allowed(steps).items():
        if found[batch] not in allowed:
            told = [step for step in steps if step["batch"] == batch]
            wrong.append(f"{batch}: {found[batch]} rows, not one of {sorted(allowed)}, after {told}")
    increments = Counter(step["end"] for step in steps if step["what"] == "increment")
    counted = [row["n"] for row in rows if row["id"] == COUNTER]
    if len(counted) != 1 or not increments["done"] <= counted[0] <= increments["done"] + increments["unknown"]:
        wrong.append(f"the counter is {counted} after {dict(increments)}")
    for notes in all_notes:
        wrong += missed(finished, [note["shown"] for note in notes if "shown" in note])
    errors = [each for each in arena.table().check() if each.severity.name == "ERROR"]
    overlooked = [each for each in errors if each.code in ("file-overlooked", "log-overlooked")]
    # It writes back the properties that it has read, with the policy from before (docs/decisions/many-writers.md).
    put_back = [each for each in errors if each.code == "policy-unreadable" and arena.lease_savepoints]
    wrong += [str(each) for each in errors if each not in (*overlooked, *put_back)]
    if arena.lease_savepoints and (overlooked or _hidden(finished)):  # a fault of Apache Hudi, also without us
        return [], counts + Counter({"Apache Hudi hid rows": 1})
    if wrong and taken:
        wrong.append(f"holders found their lock taken away {taken} times: look whether its provider excludes others")
    return wrong, counts


def _steps(notes: Notes) -> Iterator[dict[str, Any]]:
    """What was begun, and how it ended."""
    begun: dict[str, Any] | None = None
    for note in [*notes, {"end": "unknown"}]:
        if "what" in note:
            begun = {**note, "error": "", "also": ""}
        elif "also" in note and begun is not None:
            begun["also"] = note["also"]
        elif set(note) == {"instant"} and begun is not None:
            begun["instant"] = note["instant"]
        elif "end" in note and begun is not None:
            detail = note.get("kind", "without its services" if "error" in note else "")
            yield {**begun, **note, "detail": detail}
            begun = None


def _allowed(steps: list[dict[str, Any]]) -> dict[str, frozenset[int]]:
    """How many rows of each batch may be there."""
    allowed: dict[str, frozenset[int]] = {}
    for step in steps:
        if step["what"] in ("insert", "upsert"):
            allowed[step["batch"]] = {"done": frozenset({BATCH}), "failed": frozenset({0})}.get(
                step["end"], _WHOLE_OR_NOT
            )
        elif step["what"] == "undone":
            is_gone = (step["end"] == "done" and not step["error"]) or (step["end"] == "failed" and not step["also"])
            allowed[step["batch"]] = frozenset({0}) if is_gone else _WHOLE_OR_NOT
    for step in steps:
        if step["what"] == "delete" and step["batch"]:
            if step["end"] == "done":
                allowed[step["batch"]] = frozenset({0})
            elif step["end"] == "unknown":
                allowed[step["batch"]] |= {0}
    return allowed


def _undone(table: Table, steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What was done by commits that a restore has undone."""
    restores = contents_of(table.contents, table.timeline.completed(Action.RESTORE))
    undone = {time for _, each in restores if isinstance(each, RestoreMetadata) for time in each.instants_to_rollback}
    yield from (step for step in steps if step.get("instant") in undone)


def _hidden(table: Table) -> bool:
    """
    Whether a write has built on a commit that is later by its name, so that readers passed its file over.

    Apache Hudi takes its time before anybody can see that it begins (docs/decisions/many-writers.md). `check` finds it
    until the commits are archived.
    """
    for each in archived_commits(table.contents.store.storage, table.config):
        stats = each.fields().get("partitionToWriteStats") or {}
        if any((stat["prevCommit"] or "") > each.time for of in stats.values() for stat in of if _has_prior(stat)):
            return True
    return False


def _has_prior(stat: dict[str, Any]) -> bool:
    return stat.get("prevCommit") not in (None, "null")


def _finished(arena: Arena) -> Table:
    """The table after what was cut off has been finished or rolled back; nobody is at work any more."""
    storage = open_storage(arena.location, arena.storage_options)
    for each in storage.list(".hoodie/.heartbeat"):
        storage.delete(f".hoodie/.heartbeat/{each.name}")
    if arena.lease_savepoints:  # beside Apache Hudi, which now and then leaves a lock behind that names no owner
        storage.delete(".hoodie/lock")
    arena.table().allow_deletion()  # whoever had forbidden it for a moment was killed
    arena.table().recover()
    arena.table().rollback_failed_writes()
    return arena.table()
