"""Random histories, drawn from a seed: the kind of the table, and the steps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_py.testing import FAILING_READS
from support.fixtures import fixture_names, row_fixture_names
from support.history_laws import Kind
from support.history_steps import MODES, Step
from support.history_windows import POLICIES, TAG

CLEANS = (
    {"commits_retained": 1},
    {"commits_retained": 2},
    {"commits_retained": 3},
    {"file_versions_retained": 1},
    {"file_versions_retained": 2},
    {"hours_retained": 1},
    {"age_retained": "30m"},
    {"commits_retained": 1, "min_file_versions": 2},
    {"hours_retained": 1, "max_commits": 2},
    {"commits_retained": 1, "keep_daily": 3},
    {"hours_retained": 1, "keep_weekly": 2, "keep_daily": 2},
    {"older_than": "1h"},
    {"commits_retained": 1, "max_files": 2},
    {"commits_retained": 1, "max_partitions": 1},
    {"file_versions_retained": 1, "keep_daily": 3},
    {"file_versions_retained": 1, "min_commits": 2},
    {"file_versions_retained": 2, "age_retained": "1h"},
    {"file_versions_retained": 1, "max_files": 2},
    {"older_than": "1h", "min_file_versions": 2},
)
CLEAN_SETTINGS = (
    {},
    {},
    {"hoodie.clean.incremental.enabled": False},
    {"hoodie_py.clean.verify": True},
    {"hoodie.clean.multiple.enabled": True},
    {"hoodie_py.clean.quarantine": True},
    {"hoodie_py.clean.quarantine": True},
    {"hoodie_py.clean.quarantine": True, "hoodie_py.quarantine.tag": TAG},
)
QUARANTINE = {"hoodie_py.clean.quarantine": True}
TAGGED = {**QUARANTINE, "hoodie_py.quarantine.tag": TAG}
GLOBAL_INDEXES = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")
STEPS_MIN, STEPS_MAX = 6, 16
ROWS_SHARE = 0.5


def kinds(seed: int, *, rows_share: float = ROWS_SHARE) -> Kind:
    """
    Every second history begins with a table of Apache Hudi.

    Args:
        rows_share: Share of the histories in which rows are written and read as users do it, which takes longer.
    """
    chance = random.Random(f"kind {seed}")
    if chance.random() < rows_share:
        return _kind_with_rows(chance)
    fixtures = [name for name in fixture_names() if name.startswith(chance.choice(("cow_", "cow_", "mor_")))]
    return Kind(
        version=chance.choice((6, 8, 9)),
        fixture=chance.choice(fixtures) if chance.random() < 0.4 else None,
        metadata=chance.choice((None, True, True, False)),
        lock=chance.random() < 0.5,
        lazy=chance.random() < 0.25,
        deltas=chance.random() < 0.25,
    )


def _kind_with_rows(chance: random.Random) -> Kind:
    """A table that is written and read as users do it."""
    fixtures = [*(f"rows/{name}" for name in row_fixture_names()), *fixture_names()]
    wanted = chance.choice(("cow_", "mor_", "mor_"))
    of_hudi = [name for name in fixtures if name.rpartition("/")[2].startswith(wanted)]
    fixture = chance.choice(of_hudi) if chance.random() < 0.35 else None
    if fixture is not None and ("timestamp_keygen" in fixture or "custom_keygen" in fixture):
        fixture = None  # readers get partition columns from the paths, and such rows cannot be written back
    several, keeps = chance.random() < 0.25, chance.random() < 0.25
    index = chance.choice(GLOBAL_INDEXES) if fixture is None and chance.random() < 0.25 else ""
    return Kind(
        version=chance.choice((6, 8, 9)),
        fixture=fixture,
        metadata=True if keeps or index == "RECORD_INDEX" else chance.choice((None, True, True, False)),
        lock=several or chance.random() < 0.5,
        lazy=several or chance.random() < 0.25,
        deltas=chance.random() < 0.6,
        rows=True,
        buckets=fixture is None and not index and chance.random() < 0.25,
        statistics=chance.random() < 0.3,
        indexes=keeps,
        global_index=index,
        several=several,
        changes=fixture is None and chance.random() < 0.25,
    )


def make_steps(seed: int, kind: Kind, *, steps_max: int = STEPS_MAX) -> tuple[Step, ...]:
    """
    A random sequence; tables of ours begin with two writes.

    Args:
        steps_max: Random steps at most; those of a motif come on top.
    """
    chance = random.Random(f"steps {seed}")
    steps = [_write(chance, "UPSERT") for _ in range(2)] if kind.fixture is None else []
    steps += [_step(chance, kind) for _ in range(chance.randint(min(STEPS_MIN, steps_max), steps_max))]
    for _ in range(chance.choice((0, 1, 1, 2))):
        _weave(chance, steps, [_named(chance, kind, name) for name in chance.choice(_MOTIFS)])
    return tuple(steps)


_MOTIFS: tuple[tuple[str, ...], ...] = (
    ("plan_clean", "rollback", "clean"),
    ("plan_clean", "hudi rollback", "hudi rollback", "clean"),
    ("plan_clean", "hudi rollback", "write", "clean"),
    ("crash clean", "rollback", "clean"),
    ("crash clean", "hudi rollback", "crash clean", "recover"),
    ("replace", "plan_clean", "hudi rollback", "write", "clean"),
    ("replace", "clean", "rollback"),
    ("plan_clustering", "write", "cluster", "rollback", "clean"),
    ("savepoint", "write", "write", "clean", "rollback", "rollback"),
    ("savepoint", "write", "savepoint", "restore", "clean"),
    ("savepoint", "write", "crash restore", "clean", "restore"),
    ("savepoint", "write", "archive", "release", "rollback"),
    ("savepoint", "write", "plan_clean", "hudi restore", "clean"),
    ("plan_clean", "hudi rollback", "write", "hudi savepoint", "archive", "clean"),
    ("crash rollback", "write", "crash rollback", "clean"),
    ("crash write", "plan_clean", "write", "clean"),
    ("crash restore", "crash restore", "recover", "write"),
    ("write", "crash archive", "rollback", "archive"),
    ("archive", "rollback", "rollback", "write"),
    ("plan_clean", "clock", "clean", "write", "clean"),
    ("clean", "clock", "write", "clean", "rollback"),
    ("crash replace", "write", "crash cluster", "recover"),
    ("write", "upkeep", "rollback", "upkeep", "write"),
    ("write", "crash upkeep", "write", "clean"),
    ("savepoint", "clock", "clean", "restore"),
    ("release", "savepoint", "plan_clean", "release", "clean"),
    ("write", "plan_compaction", "write", "compact", "rollback", "clean"),
    ("write", "plan_compaction", "plan_clean", "rollback", "clean"),
    ("write", "plan_compaction", "crash compact", "write", "clean", "recover"),
    ("write", "plan_compaction", "compact", "plan_clean", "hudi rollback", "write", "clean"),
    ("write", "plan_compaction", "write", "savepoint", "compact", "write", "clean", "restore"),
    ("write", "plan_compaction", "write", "cancel", "write", "compact", "clean"),
    ("write", "plan_compaction", "crash compact", "clock", "recover", "cancel", "write"),
    ("write", "plan_clustering", "crash cluster", "recover", "write", "cancel", "cluster"),
    ("plan_clustering", "crash cancel", "write", "cluster", "rollback", "cancel"),
    ("crash compact", "crash cancel", "write", "compact"),
    ("write", "write", "compact_logs", "write", "compact_logs", "rollback", "compact"),
    ("write", "write", "plan_log_compaction", "write", "compact_logs", "clean", "rollback"),
    ("write", "write", "plan_log_compaction", "rollback", "compact_logs", "write"),
    ("write", "write", "crash compact_logs", "write", "recover", "compact_logs"),
    ("write", "write", "plan_log_compaction", "compact", "clean", "compact_logs"),
    ("write", "plan_compaction", "write", "write", "compact_logs", "compact", "clean"),
    ("write", "savepoint", "write", "compact_logs", "clean", "archive", "restore"),
    ("write", "write", "compact_logs", "lease", "compact", "clean", "rollback"),
    ("write", "write", "plan_log_compaction", "replace", "compact_logs", "cancel"),
    ("statement", "statement", "compact_logs", "cluster", "crash compact_logs", "clean"),
    ("write", "write", "cluster", "savepoint", "rollback", "cluster", "archive", "clean"),
    ("write", "write", "cluster", "lease", "rollback", "clean", "cluster", "rollback"),
    ("write", "write", "cluster", "clean", "rollback", "write"),
    ("crash write", "write", "clean", "rollback_failed"),
    ("crash statement", "plan_clean", "statement", "clean"),
    ("statement", "clean", "rollback", "statement"),
    ("savepoint", "statement", "replace", "clean", "archive", "restore", "statement"),
    ("write", "replace", "plan_clean", "hudi rollback", "statement", "clean"),
    ("write", "write", "archive", "clean", "write", "crash archive", "rollback"),
    ("lease", "write", "write", "clean", "archive", "rollback", "let_go", "clean"),
    ("lease", "write", "plan_clean", "hudi rollback", "write", "clean"),
    ("write", "plan_clean", "lease", "crash clean", "lease", "clean"),
    ("savepoint", "write", "lease", "write", "restore", "let_go", "restore"),
    ("consume", "write", "statement", "clean", "archive", "consume", "clean"),
    ("write", "plan_clean", "consume", "write", "clean", "archive"),
    ("consume", "replace", "write", "keep clean", "archive", "undo", "clean"),
    ("consume", "savepoint", "write", "restore", "write", "clean", "archive"),
    ("consume", "write", "compact", "cluster", "crash clean", "recover", "archive"),
    ("consume", "clock", "expire", "write", "clean", "archive", "clean"),
    ("lease", "clock", "write", "clean", "clock", "lease"),
    ("keep clean", "undo", "clean"),
    ("write", "keep clean", "crash undo", "recover", "keep clean", "undo"),
    ("write", "keep clean", "crash undo", "clean", "undo"),
    ("write", "keep clean", "rollback", "undo", "write", "clean"),
    ("write", "keep clean", "upkeep", "write", "archive", "undo", "upkeep"),
    ("crash keep clean", "keep clean", "undo", "undo"),
    ("replace", "keep clean", "hudi rollback", "undo", "clean"),
    ("write", "ask", "approve", "clean"),
    ("write", "ask", "write", "lease", "approve", "write", "clean"),
    ("replace", "ask", "savepoint", "crash approve", "recover", "clean"),
    ("write", "ask", "rollback", "approve", "undo", "clean"),
    ("write", "ask", "archive", "approve", "archive", "clean", "restore"),
    ("crash write", "orphans", "undo", "orphans", "recover"),
    ("crash rollback", "orphans", "rollback", "orphans"),
    ("clock", "tags", "write", "clean", "clock", "maintain"),
    ("lease", "maintain", "write", "maintain", "undo"),
    ("clock", "write", "expire", "clean", "rollback"),
    ("clock", "lease", "crash expire", "clean", "recover", "restore"),
    ("savepoint", "clock", "expire", "write", "clean", "archive", "restore"),
    ("policy", "write", "write", "clean", "maintain", "write", "clean"),
    ("write", "plan_clean", "policy", "clean", "write", "crash clean", "policy", "maintain"),
    ("policy", "crash maintain", "write", "clean", "rollback", "policy", "clean"),
    ("policy", "write", "replace", "crash clean", "undo", "archive", "clean"),
    ("write", "tag clean", "store", "undo", "clean"),
    ("tag clean", "undo", "write", "tag clean", "store", "maintain"),
    ("write", "crash tag clean", "store", "recover", "undo", "store"),
    ("lease", "write", "tag clean", "store", "let_go", "crash undo", "store", "recover"),
    ("write", "forbid", "clean", "rollback", "restore", "maintain", "allow"),
    ("plan_clean", "forbid", "recover", "write", "upkeep", "allow", "clean"),
    ("crash clean", "crash forbid", "orphans", "expire", "archive", "allow", "recover"),
)
"""What is known, or feared, to go wrong together; other steps may come in between."""


def _weave(chance: random.Random, steps: list[Step], motif: Sequence[Step]) -> None:
    """Put the steps of a motif into a history, in their order, mostly close together."""
    place = chance.randint(min(2, len(steps)), len(steps))
    for step in motif:
        steps.insert(place, step)
        place = min(place + 1 + (chance.random() < 0.2), len(steps))


def _named(chance: random.Random, kind: Kind, name: str) -> Step:
    wrapper, _, inner = name.rpartition(" ")
    step = _one(chance, (inner,))
    for word, settings in (("keep", QUARANTINE), ("tag", TAGGED)):
        if wrapper.endswith(word):
            wrapper, step = wrapper[: -len(word)].rstrip(), (step[0], {**step[1], "settings": settings})
    if wrapper == "crash":
        return ("crash", _interruption(chance), step)
    return ("hudi", {}, step) if wrapper else step


def _step(chance: random.Random, kind: Kind) -> Step:
    wrapped = chance.random()
    if wrapped > 0.98:
        return ("damaged lease", {}, _one(chance, ("clean", "rollback", "restore", "archive", "maintain", "undo")))
    if wrapped < 0.17:
        return ("crash", _interruption(chance), _plain(chance))
    if wrapped < 0.22:
        return ("hudi", {}, _one(chance, ("rollback", "rollback", "restore", "savepoint")))
    if wrapped < 0.30 and kind.lock:
        first, second = chance.choice(_PAIRS)
        return ("meanwhile", {"n": _early(chance)}, _one(chance, (first,)), _one(chance, (second,)))
    if wrapped < 0.45 and kind.several:
        outer, inner = _one(chance, RIVALS), _without_key(_one(chance, RIVALS))
        return ("meanwhile", {"n": _early(chance)}, _without_key(outer), inner)
    return _plain(chance)


def _without_key(step: Step) -> Step:
    """Which of two writes of one application at once counts, the order of their completion tells."""
    return (step[0], {name: value for name, value in step[1].items() if name != "key"}, *step[2:])


_PAIRS = tuple(
    pair
    for pair in itertools.product(
        (
            "clean",
            "plan_clean",
            "rollback",
            "savepoint",
            "release",
            "archive",
            "upkeep",
            "write",
            "restore",
            "statement",
            "lease",
            "undo",
            "orphans",
            "approve",
            "expire",
            "forbid",
            "policy",
            "maintain",
        ),
        repeat=2,
    )
    if not {"write", "restore", "rollback", "statement"} >= {*pair} and pair != ("restore", "restore")
)
RIVALS = ("write", "write", "write", "replace", "statement", "cluster", "compact", "plan_compaction", "clean", "cancel",
          "compact_logs", "plan_log_compaction")  # fmt: skip
_WEIGHTS: Mapping[str, int] = {
    "write": 26,
    "replace": 5,
    "statement": 6,
    "plan_clustering": 3,
    "cluster": 4,
    "plan_compaction": 3,
    "compact": 3,
    "plan_log_compaction": 2,
    "compact_logs": 4,
    "clean": 12,
    "plan_clean": 10,
    "rollback": 12,
    "rollback_failed": 3,
    "savepoint": 7,
    "release": 3,
    "restore": 5,
    "archive": 5,
    "upkeep": 2,
    "cancel": 3,
    "recover": 5,
    "clock": 5,
    "lease": 6,
    "renew": 1,
    "let_go": 2,
    "consume": 3,
    "tags": 2,
    "undo": 5,
    "orphans": 3,
    "ask": 3,
    "approve": 3,
    "maintain": 3,
    "expire": 3,
    "forbid": 1,
    "allow": 2,
    "policy": 3,
    "store": 2,
}


def _interruption(chance: random.Random) -> dict[str, Any]:
    mode = chance.choice(list(MODES))
    # Of calls that read there are about four times as many as of those that change something.
    return {"mode": mode, "n": _early(chance) * (4 if MODES[mode] in FAILING_READS else 1)}


def _early(chance: random.Random) -> int:
    return min(int(chance.expovariate(0.12)), 60)


def _plain(chance: random.Random) -> Step:
    return _one(chance, chance.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values())))


def _one(chance: random.Random, names: Sequence[str]) -> Step:
    name = chance.choice(names)
    if name == "write":
        return _write(chance, chance.choice(("UPSERT", "UPSERT", "UPSERT", "INSERT", "BULK_INSERT", "DELETE")))
    if name == "statement":
        return (name, {"what": chance.choice(("update", "delete", "merge", "merge")), "seed": chance.randrange(1000)})
    if name == "replace":
        kind = chance.choice(("INSERT_OVERWRITE", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"))
        return (name, {"kind": kind, "seed": chance.randrange(1000)})
    if name in ("clean", "plan_clean", "ask"):
        return (name, {"options": chance.choice(CLEANS), "settings": chance.choice(CLEAN_SETTINGS)})
    arguments = {
        "plan_clustering": lambda: {"seed": chance.randrange(1000)} | _own(chance),
        "cluster": lambda: _own(chance),
        "plan_compaction": lambda: {"seed": chance.randrange(1000)},
        "plan_log_compaction": lambda: {"blocks": chance.choice((1, 1, 1, 2, 3))},
        "compact_logs": lambda: {"blocks": chance.choice((1, 1, 1, 2, 3))},
        "rollback": lambda: {"back": chance.choice((0, 0, 0, 0, 0, 1, 2))},
        "savepoint": lambda: {
            "back": chance.choice((0, 0, 1, 2, 3)),
            "ttl": chance.choice((None, None, None, 2)),
            "name": chance.choice((None, None, "month-end", "before the move")),
        },
        "release": lambda: {"back": chance.choice((0, 0, 1)), "archive_commit": chance.random() < 0.3},
        "restore": lambda: {"back": chance.choice((0, 0, 1))},
        "archive": lambda: {"keep": chance.choice((1, 2, 3, 4)), "beyond": chance.random() < 0.3},
        "cancel": lambda: {"back": chance.randrange(3)},
        "upkeep": lambda: {"delta_commits": chance.choice((1, 3))},
        "lease": lambda: {
            "back": chance.choice((0, 0, 0, 1, 2, 3)),
            "ttl": chance.choice((1, 5, 50, 50)),
            "savepoint": chance.random() < 0.2,
        },
        "renew": lambda: {"ttl": chance.choice((1, 50))},
        "consume": lambda: {"ttl": chance.choice((5, 500)), "back": chance.choice((0, 0, 0, 1, 2))},
        "tags": lambda: (
            {"hourly": chance.choice((0, 2, 9)), "daily": chance.choice((0, 1, 3))}
            | {"weekly": chance.choice((0, 0, 2)), "monthly": chance.choice((0, 0, 1))}
        ),
        "policy": lambda: {"number": chance.choice(POLICIES)},
        "store": lambda: {"seed": chance.randrange(1000), "share": chance.choice((0.5, 1))},
        "undo": lambda: {"back": chance.choice((0, 0, 0, 1))},
        "orphans": lambda: {
            "seed": chance.randrange(1000),
            "delete": chance.random() < 0.3,
            "asks": chance.random() < 0.3,
            "inventory": chance.random() < 0.3,
        },
        "approve": lambda: {"seed": chance.randrange(1000), "share": chance.choice((0.5, 1, 1))},
        "maintain": lambda: {
            "retained": chance.choice((1, 2, 3)),
            "quarantine": chance.random() < 0.4,
            "max": chance.choice((None, None, 2)),
            "rewrites": chance.random() < 0.4,
            "hourly": chance.choice((0, 0, 2)),
        },
        "expire": lambda: {
            "days": chance.choice((1, 1, 2, 10)),
            "by": chance.choice(("last-change", "last-change", "creation")),
            "max": chance.choice((1, 50)),
        },
        "clock": lambda: {"hours": chance.choice((1, 3, 30, 400, -1, -30))},
    }
    return (name, arguments[name]() if name in arguments else {})


def _own(chance: random.Random) -> dict[str, int]:
    """Clusterings that hudi_py plans, beside those as Apache Hudi plans them."""
    return {"own": chance.randrange(4)} if chance.random() < 0.7 else {}


def _write(chance: random.Random, operation: str) -> Step:
    arguments = {"operation": operation, "seed": chance.randrange(1000), "small_files": chance.random() < 0.7}
    if chance.random() < 0.15:
        arguments["services"] = chance.choice(CLEANS)
    elif chance.random() < 0.1:
        arguments["beside"] = chance.choice((1, 2, 3))
    if chance.random() < 0.1:
        arguments["stale"] = True
    if chance.random() < 0.15:
        arguments["key"] = chance.randrange(6)
    if chance.random() < 0.08:
        arguments["metadata"] = chance.choice((True, False))  # another process, with other settings
    return ("write", arguments)
