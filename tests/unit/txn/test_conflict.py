"""What is a conflict between two writers: the table of rules, and which actions are looked at."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hudi_py.config.concurrency import Isolation, Strategy, concurrency_of, require_checked_by_writers
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.conflict import RULES, Kind, Reads, Relation, Rule, Scope, Touched
from hudi_py.txn.touched import LOOKED_UP, kind_of, touched_by

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/decisions/many-writers.md"
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
ROWS = (Kind.APPEND, Kind.WRITE)


def at(number: int) -> str:
    return f"202601010000{number:02}000"


def instant(number: int, action: Action = Action.COMMIT, state: State = State.COMPLETED) -> Instant:
    done = at(number + 50) if state is State.COMPLETED else None
    return Instant(at(number), action, state, done)


OURS = instant(5, state=State.INFLIGHT)


def scope(before: tuple[Instant, ...], now: tuple[Instant, ...], strategy=Strategy.FILES, layout: int = 2) -> Scope:
    return Scope(
        before=Timeline((*before, OURS)),
        now=Timeline(tuple(sorted((*now, OURS), key=lambda each: each.requested_time))),
        strategy=strategy,
        slices_by_completion=layout == 2,
    )


def touched(who: Instant, kind: Kind, **more) -> Touched:
    groups = frozenset(more.pop("groups", ()))
    return Touched(instant=who, kind=kind, groups=groups, with_base=more.pop("with_base", groups), **more)


def is_conflict(ours: Touched, other: Touched, isolation=Isolation.SNAPSHOT, **more) -> bool:
    by_bucket = more.pop("by_bucket", False)
    found = scope((), (other.instant,), **more).first_conflict(ours, [other], isolation, by_bucket=by_bucket)
    return found is not None


def deciding_test(rule: Rule) -> str:
    """The test of this module that fails if the rule says something else."""
    if rule.relation is Relation.REMOVED:
        return test_removed_rows_count_where_they_kept_others_out.__name__
    if rule.relation is Relation.SEEN:
        return test_an_insert_counts_as_later_unless_its_rows_were_seen.__name__
    if rule.relation is not Relation.GROUP:
        return test_what_was_read_decides_by_level.__name__
    if rule.ours[0].is_rewrite:
        return test_a_rewrite_beside_another_action_on_its_file_groups.__name__
    if Kind.COMPACTION in rule.theirs:
        return test_log_files_beside_a_compaction.__name__
    return test_one_file_group_is_never_written_by_two.__name__


def rendered() -> str:
    lines = ["| this write | the other | in common | conflict at | why | test |", "|---|---|---|---|---|---|"]
    for rule in RULES:
        ours, theirs = ("; ".join(kind.value for kind in kinds) for kinds in (rule.ours, rule.theirs))
        levels = ", ".join(level.name for level in Isolation if level in rule.levels)
        shown = "every level" if len(rule.levels) == len(Isolation) else levels or "no level"
        lines.append(
            f"| {ours} | {theirs} | {rule.relation.value} | {shown} | {rule.reason} | `{deciding_test(rule)}` |"
        )
    return "\n".join(lines)


def test_document_shows_the_rules():
    """docs/decisions/many-writers.md is what is judged."""
    assert rendered() in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.product(ROWS, Kind)))
def test_one_file_group_is_never_written_by_two(ours, theirs):
    """F-7: at every level; and nothing in common is never a conflict."""
    other = touched(instant(7), theirs, groups=[("eu", "g")])
    for level in Isolation:
        assert is_conflict(touched(OURS, ours, groups=[("eu", "g")]), other, level)
        assert not is_conflict(touched(OURS, ours, groups=[("us", "g"), ("eu", "h")]), other, level)


@pytest.mark.parametrize("theirs", Kind)
@pytest.mark.parametrize("level", Isolation)
def test_a_rewrite_beside_another_action_on_its_file_groups(theirs, level):
    """F-11: what a clustering has not read would be dropped; what comes after the plan of a compaction stays."""
    other = touched(instant(7), theirs, groups=[("eu", "g")])
    for ours in Kind:
        if ours.is_rewrite:
            beside = touched(OURS, ours, groups=[("eu", "g")])
            assert is_conflict(beside, other, level) == (ours is Kind.CLUSTERING)
            assert not is_conflict(touched(OURS, ours, groups=[("us", "g")]), other, level)


@pytest.mark.parametrize("number", range(len(RULES)))
def test_every_rule_decides_something(number):
    """None repeats or contradicts those before it, and without it there would be no rule for its pairs."""
    rule = RULES[number]
    covered = {(ours, theirs, each.relation) for each in RULES[:number] for ours in each.ours for theirs in each.theirs}
    assert not covered & {(ours, theirs, rule.relation) for ours in rule.ours for theirs in rule.theirs}


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.product(Kind, Kind)))
def test_every_pair_on_one_file_group_has_a_row(ours, theirs):
    """Whether it is a conflict or not: no pair is left to chance."""
    assert any(each.relation is Relation.GROUP and ours in each.ours and theirs in each.theirs for each in RULES)


@pytest.mark.parametrize("theirs", ROWS)
@pytest.mark.parametrize("level", Isolation)
def test_appends_conflict_with_nobody(theirs, level):
    """E21: they have read nothing, and their file groups are new."""
    ours = touched(OURS, Kind.APPEND, groups=[("eu", "new")])
    assert not is_conflict(ours, touched(instant(7), theirs, groups=[("eu", "g")], added={"eu"}, changed={"eu"}), level)


@pytest.mark.parametrize("relation", [Relation.ADDED, Relation.CHANGED])
@pytest.mark.parametrize("theirs", ROWS)
@pytest.mark.parametrize("level", Isolation)
def test_what_was_read_decides_by_level(relation, theirs, level):
    """New rows count against every read, changed ones against conditions; appends only where the order counts."""
    partitions = {"added" if relation is Relation.ADDED else "changed": frozenset({"eu"})}
    other = touched(instant(7), theirs, **partitions)
    for reads, is_read in (
        (Reads(partitions=None, by_condition=True), True),
        (Reads(partitions=frozenset({"eu"}), by_condition=True), True),
        (Reads(partitions=frozenset({"eu"})), relation is Relation.ADDED),
        (Reads(partitions=frozenset({"us"}), by_condition=True), False),
        (Reads(), False),
    ):
        allowed = theirs is Kind.APPEND and (level is not Isolation.SERIALIZABLE or relation is Relation.CHANGED)
        expected = is_read and level is not Isolation.SNAPSHOT and not allowed
        assert is_conflict(touched(OURS, Kind.WRITE, reads=reads), other, level) == expected


@pytest.mark.parametrize("theirs", ROWS)
@pytest.mark.parametrize("level", Isolation)
def test_removed_rows_count_where_they_kept_others_out(theirs, level):
    """A merge that inserts, or an insert that drops known keys, would have written more without them."""
    other = touched(instant(7), theirs, removed=frozenset({"eu"}))
    for reads, is_found in (
        (Reads(found_in=None), True),
        (Reads(found_in=frozenset({"eu"})), True),
        (Reads(found_in=frozenset({"us"})), False),
        (Reads(partitions=None, by_condition=True), False),
    ):
        expected = is_found and theirs is Kind.WRITE and level is not Isolation.SNAPSHOT
        assert is_conflict(touched(OURS, Kind.WRITE, reads=reads), other, level) == expected


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("began", [6, 8])
@pytest.mark.parametrize("level", Isolation)
def test_an_insert_counts_as_later_unless_its_rows_were_seen(level, began, wide):
    """Who has seen them is later than the insert, and may have missed our rows: then ours is no earlier than that."""
    insert = touched(instant(7), Kind.APPEND, added=frozenset({"eu"}))
    seer = touched(instant(began), Kind.WRITE, added=frozenset({"ap"}), reads_widely=wide)
    others = sorted([insert, seer], key=lambda each: each.instant.requested_time)
    judged = scope((), tuple(each.instant for each in others))
    is_seen = wide and began > 7
    for partition in ("eu", "us"):
        ours = touched(OURS, Kind.WRITE, reads=Reads(partitions=frozenset({partition})))
        expected = partition == "eu" and (
            level is Isolation.SERIALIZABLE or (is_seen and level is Isolation.WRITE_SERIALIZABLE)
        )
        assert (judged.first_conflict(ours, others, level) is not None) == expected


@pytest.mark.parametrize("kind", [Kind.COMPACTION, Kind.CLUSTERING])
def test_rewrites_add_no_rows(kind):
    """What they write was there before, so only common file groups matter."""
    ours = touched(OURS, Kind.WRITE, reads=Reads(partitions=None, by_condition=True))
    other = touched(instant(7), kind, groups=[("eu", "g")], added=frozenset({"eu"}), changed=frozenset({"eu"}))
    assert not is_conflict(ours, other, Isolation.SERIALIZABLE)


def test_buckets_are_compared_by_number():
    """Two writers that create the file of one bucket give it different ids."""
    ours = touched(OURS, Kind.WRITE, groups=[("eu", "00000003-aaaa-0")])
    other = touched(instant(7), Kind.WRITE, groups=[("eu", "00000003-bbbb-0")])
    assert is_conflict(ours, other, by_bucket=True)
    assert not is_conflict(ours, other)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("was_seen", [True, False])
@pytest.mark.parametrize("has_base", [True, False])
def test_log_files_beside_a_compaction(layout, was_seen, has_base):
    """F-8: they belong to the slice that it opened, if its plan was seen, or by their completion (layout 2)."""
    plan = instant(3, Action.COMPACTION, State.REQUESTED)
    done = instant(3, Action.COMMIT)
    group = frozenset({("eu", "g")})
    ours = touched(OURS, Kind.WRITE, groups=group, with_base=group if has_base else frozenset())
    judged = scope((plan,) if was_seen else (), (done,), layout=layout)
    found = judged.first_conflict(ours, [touched(done, Kind.COMPACTION, groups=group)], Isolation.SNAPSHOT)
    assert (found is not None) == (has_base if layout == 2 else not was_seen)


def test_candidates_are_what_completed_since_and_planned_rewrites():
    """F-4, F-6: by the timelines and not by clocks; with a larger time also if it was completed before."""
    old, later = instant(1), instant(8)
    pending, done = instant(2, state=State.INFLIGHT), instant(2)
    clustering = instant(4, Action.CLUSTERING, State.REQUESTED)
    judged = scope((old, pending, later), (old, done, later, clustering))
    assert judged.candidates(OURS, Kind.WRITE) == (done, clustering, later)
    prefers = scope((old, pending, later), (old, done, later, clustering), Strategy.PREFER_WRITER)
    assert prefers.candidates(OURS, Kind.WRITE) == (done, later)
    running = instant(6, state=State.INFLIGHT)
    assert running in scope((old,), (old, running), Strategy.PREFER_WRITER).candidates(OURS, Kind.CLUSTERING)


def test_a_write_based_on_an_undone_commit_is_found():
    """Rolled back or reopened; not one that was archived."""
    assert scope((instant(1), instant(2)), (instant(1), instant(2))).undone() is None
    assert scope((instant(1), instant(2)), (instant(1),)).undone() == instant(2)
    assert scope((instant(2),), (instant(2, state=State.INFLIGHT),)).undone() == instant(2)
    assert scope((instant(1), instant(2)), (instant(2),)).undone() is None


def test_a_write_that_was_pending_and_is_archived_is_untold():
    """It may have completed since, and changed anything."""
    pending = instant(1, state=State.INFLIGHT)
    assert scope((pending,), (instant(2),)).archived_meanwhile() == pending
    assert scope((instant(1), instant(2, state=State.INFLIGHT)), (instant(1),)).archived_meanwhile() is None


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK, Action.SAVEPOINT])
def test_an_older_instant_that_is_no_commit_does_not_hide_that_a_write_is_archived(action):
    """Archival takes commits first; a clustering that was missed so left its old and its new file group visible."""
    pending = instant(2, Action.REPLACE_COMMIT, State.INFLIGHT)
    old = instant(1, action)
    assert scope((old, pending), (old, instant(3))).archived_meanwhile() == pending


def test_a_compaction_that_completed_as_a_commit_is_there():
    """In layout 1 its action has another name then; who looks for conflicts finds it among the commits."""
    pending = instant(2, Action.COMPACTION, State.INFLIGHT)
    assert scope((pending,), (instant(2), instant(3))).archived_meanwhile() is None


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("INSERT", Kind.APPEND), ("BULK_INSERT", Kind.APPEND), ("UPSERT", Kind.WRITE), ("CLUSTER", Kind.CLUSTERING),
     ("COMPACT", Kind.COMPACTION), ("UNKNOWN", Kind.WRITE), ("DELETE_PARTITION", Kind.WRITE)],
)  # fmt: skip
def test_a_commit_tells_what_it_touched(operation, kind):
    """Its files and what it replaced; rows that were only copied count for nothing."""
    stats = (
        WriteStat(file_id="copied", num_writes=9, num_deletes=1),
        WriteStat(file_id="changed", num_writes=9, num_update_writes=1),
        WriteStat(file_id="logged", num_writes=9, log_version=1),
    )
    metadata = CommitMetadata(
        partition_to_write_stats={"eu": stats[:1], "us": stats[1:2], "ap": stats[2:]},
        operation_type=operation,
        partition_to_replace_file_ids={"eu": ("old",)},
    )
    found = touched_by(instant(1), metadata)
    assert found.kind is kind
    assert found.groups == {("eu", "copied"), ("us", "changed"), ("ap", "logged"), ("eu", "old")}
    assert found.with_base == found.groups - {("ap", "logged")}
    assert found.changed == (frozenset() if kind.is_rewrite else {"us", "ap"})
    assert found.added == (frozenset() if kind.is_rewrite else {"ap"})
    assert found.removed == (frozenset() if kind.is_rewrite else {"eu", "ap"})


@pytest.mark.parametrize("operation", ["INSERT", "UPSERT"])
def test_an_insert_that_looked_its_keys_up_is_no_append(operation):
    """Its commit says so, because whoever completes after it has to know."""
    found = CommitMetadata(operation_type=operation, extra_metadata={LOOKED_UP: "DROP"})
    assert kind_of(found) is Kind.WRITE


@pytest.mark.parametrize(
    "contradiction",
    [
        {"hoodie.write.lock.provider": None},
        {"hoodie.clean.failed.writes.policy": "EAGER"},
        {"hoodie.write.lock.conflict.resolution.strategy": "org.example.Mine"},
        {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"},
        {"hoodie_py.write.isolation": "READ_COMMITTED"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(contradiction):
    """No lock that all share, a policy that rolls back running writes, and what hudi_py does not know."""
    given = {name: value for name, value in {**SEVERAL, **contradiction}.items() if value is not None}
    with pytest.raises(ConfigError):
        concurrency_of(Settings(given))


def test_a_clustering_does_not_give_way():
    """With PreferWriter it would have to: writers do not look for its plan (F-11)."""
    require_checked_by_writers(Settings(SEVERAL))
    prefers = {"hoodie.write.lock.conflict.resolution.strategy": Strategy.PREFER_WRITER.value}
    with pytest.raises(ConfigError, match="gives way"):
        require_checked_by_writers(Settings({**SEVERAL, **prefers}))


def test_one_writer_asks_nothing():
    """F-5: no check, no repetition."""
    assert not concurrency_of(Settings({})).is_shared
    assert concurrency_of(Settings(SEVERAL)).is_shared
