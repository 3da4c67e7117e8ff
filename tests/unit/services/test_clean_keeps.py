"""Retention as a union of keeps: floors, ceiling, age, versions, the calendar ladder, a cut-off for one run."""

import contextlib
from datetime import timedelta, timezone

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hudi_py.config.clean import CleanPolicy, clean_config
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.inspection.report import readable_after
from hudi_py.model.holes import WINDOW
from hudi_py.model.instant import Action, State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.clean.planning import past
from hudi_py.services.clean.retention.ladder import climb
from hudi_py.services.clean.retention.policy import Reason
from hudi_py.snapshot.retained import earliest_retained, holes_left
from hudi_py.timeline.cleaned import whole_from
from support.clean_histories import make, paths, policies, retained, steps
from support.laws import examples
from support.tables import SYNC, TableBuilder, at, data_files

FULL = {"clean_incremental_enabled": False}
DAY = 24

# --- laws ------------------------------------------------------------------------------------------------------------
keeps = st.fixed_dictionaries(
    {},
    optional={
        "age_retained": st.integers(1, 14).map("{}h".format),
        "min_commits": st.integers(1, 6),
        "min_file_versions": st.integers(1, 4),
        "keep_daily": st.integers(0, 3),
        "keep_weekly": st.integers(0, 2),
        "keep_monthly": st.integers(0, 2),
    },
)
tables = st.builds(make, st.sampled_from((1, 2)), steps)


def by_policy(policy, count, more):
    """Keywords with the policy named, so that an age is a keep besides; two spellings of an age contradict."""
    word = {"commits_retained": "KEEP_LATEST_COMMITS", "file_versions_retained": "KEEP_LATEST_FILE_VERSIONS"}
    if policy == "hours_retained":
        more = {name: value for name, value in more.items() if name != "age_retained"}
    return {policy: count, "policy": word.get(policy, "KEEP_LATEST_BY_HOURS"), **more}


@examples(60)
@given(tables, policies, retained, keeps, keeps)
def test_one_more_keep_never_deletes_more(made, policy, count, some, more):
    """The union is monotonic, looking at all partitions."""
    table = made.builder.table(**FULL)
    few = table.plan_clean(**by_policy(policy, count, some))
    many = table.plan_clean(**by_policy(policy, count, {**more, **some}))
    assert paths(many) <= paths(few)


@examples(50)
@given(tables, policies, retained, keeps)
def test_what_any_single_keep_protects_stays(made, policy, count, more):
    """A plan of several keeps is part of the plan of each of them alone."""
    table = made.builder.table(**FULL)
    union = paths(table.plan_clean(**by_policy(policy, count, more)))
    assert union <= paths(table.plan_clean(**{policy: count}))
    if "min_commits" in more:
        assert union <= paths(table.plan_clean(commits_retained=more["min_commits"]))
    if "min_file_versions" in more:
        live = {p for p in union if not any(v.reason is Reason.REPLACED for v in verdicts_of(table, p, policy, count))}
        assert live <= paths(table.plan_clean(file_versions_retained=more["min_file_versions"]))


def verdicts_of(table, path, policy, count):
    """Verdicts of the plain policy on the slice that holds *path*."""
    return [
        verdict
        for verdict in table.plan_clean(details=True, **{policy: count}).verdicts
        if path in {f"{verdict.file_slice.partition_path}/{name}" for name in verdict.file_slice.file_names}
    ]


@examples(60)
@given(tables, policies, retained, keeps, st.booleans())
def test_the_second_planner_agrees_with_every_union(made, policy, count, more, incremental):
    """`--verify` knows the same keeps, written once more."""
    table = made.builder.table(clean_incremental_enabled=incremental)
    table.settings = table.settings.merged({"hoodie_py.clean.verify": True})
    table.plan_clean(**by_policy(policy, count, more))


@examples(40)
@given(tables, policies, retained, keeps)
def test_a_clean_of_a_union_leaves_nothing_to_do(made, policy, count, more):
    """Idempotent: after the clean neither an incremental nor a full plan finds anything."""
    asked = by_policy(policy, count, more)
    assume(made.builder.table().plan_clean(**asked).needs_cleaning)  # a commit came since the last clean of the story
    made.builder.table().clean(**asked)
    first = made.builder.table(**FULL).plan_clean(**asked)
    if first.file_count and made.builder.table().plan_clean(**asked).needs_cleaning:
        return  # an earlier clean of the story looked at fewer partitions
    assert made.builder.table().plan_clean(**asked).file_count == 0


@examples(60)
@given(st.lists(st.integers(1, 24 * 70), min_size=1, max_size=30, unique=True), keeps)
def test_rungs_hold_the_newest_snapshot_of_the_last_periods(hours, more):
    """Each rung: one snapshot per period, the newest there is, of as many periods as asked for."""
    moments = [parse_instant_time(at(1), timezone.utc) + timedelta(hours=hour) for hour in hours]
    times = [f"{moment:%Y%m%d%H%M%S}000" for moment in moments]
    config = clean_config(Settings({f"hoodie_py.clean.{k.replace('_', '.')}": v for k, v in more.items()}))
    kept = climb(times, config)
    for reason, count, period in (
        (Reason.DAILY, config.keep_daily, lambda m: m.date()),
        (Reason.WEEKLY, config.keep_weekly, lambda m: m.date() - timedelta(days=m.weekday())),
        (Reason.MONTHLY, config.keep_monthly, lambda m: (m.year, m.month)),
    ):
        rung = [parse_instant_time(each.time, timezone.utc) for each in kept if each.reason is reason]
        periods = sorted({period(moment) for moment in moments}, reverse=True)[:count]
        assert sorted((period(moment) for moment in rung), reverse=True) == periods
        assert all(moment == max(m for m in moments if period(m) == period(moment)) for moment in rung)


# --- the ladder over time --------------------------------------------------------------------------------------------
def hourly(builder, first, last, step=6):
    """One file group, rewritten every *step* hours; r1 is written once a day only."""
    for number in range(first, last, step):
        groups = {"r0": ["f"], "r1": ["g"]} if number % DAY == 0 else {"r0": ["f"]}
        builder.commit(at(number), groups)
    builder.clock.moment = parse_instant_time(at(last), timezone.utc)


def readable(builder, time):
    """What a snapshot read at *time* finds."""
    return {path for path, _ in builder.table().base_files(time)}, {
        base.instant_time for _, base in builder.table().base_files(time)
    }


@pytest.mark.slow
@pytest.mark.parametrize("layout", [1, 2])
def test_ladder_snapshots_stay_readable_and_leave_nothing_behind(layout):
    """Day after day, incremental cleans keep the rungs whole, and what falls off goes, as by a full plan."""
    builder = TableBuilder(layout)
    asked = {"commits_retained": 2, "keep_daily": 3, "keep_weekly": 2}
    for day in range(1, 16):
        hourly(builder, day * DAY, (day + 1) * DAY)
        result = builder.table().clean(**asked)
        if day < 3:
            continue
        assert builder.table(**FULL).plan_clean(**asked).file_count == 0
        extra = result[-1].metadata.extra_metadata
        snapshots = extra["hudi_py.snapshots"].split(",")
        assert result[-1].metadata.earliest_commit_to_retain == snapshots[0]
        assert at(day * DAY - 6) in snapshots  # yesterday's last
        for time in snapshots:
            found, _ = readable(builder, time)
            assert found == {"r0", "r1"}
            assert time in readable(builder, time)[1]
    assert not builder.table().plan_clean(**asked).scope.everything


def test_times_in_a_hole_are_refused_and_no_neighbour_answers():
    """Between two snapshots nothing is read and nothing is savepointed; the error names what can be (A11)."""
    builder = TableBuilder(2)
    hourly(builder, 1, 6 * DAY)
    [clean] = builder.table().clean(commits_retained=2, keep_daily=3)
    window = clean.metadata.extra_metadata["hudi_py.window"]
    snapshot = clean.metadata.extra_metadata["hudi_py.snapshots"].split(",")[-1]
    hole = f"{snapshot[:8]}{int(snapshot[8:10]) - 6:02d}{snapshot[10:]}"
    table = builder.table()
    assert table.base_files(snapshot) and table.base_files(window)
    with pytest.raises(RefusedError, match=f"single snapshots.*{snapshot}.*from {window} on"):
        table.base_files(hole)
    with pytest.raises(RefusedError, match=f"single snapshots.*{snapshot}"):
        table.create_savepoint(hole)
    assert table.create_savepoint(snapshot).requested_time == snapshot


@pytest.mark.parametrize("more", [{}, {"keep_daily": 3}, {"keep_daily": 2, "keep_weekly": 2}])
def test_what_a_dry_run_says_is_readable_afterwards_is_what_is(more):
    """From the window on, and at the single snapshots before it: each commit is answered or refused as was said."""
    builder = TableBuilder(2)
    hourly(builder, 1, 6 * DAY)
    builder.table().clean(commits_retained=9, keep_daily=4)
    for day, commits_retained in ((6, 7), (7, 2)):
        hourly(builder, day * DAY, (day + 1) * DAY)
        table = builder.table()
        plan = table.plan_clean(commits_retained=commits_retained, **more)
        said = readable_after(plan, *(ask(table.contents, table.timeline) for ask in (earliest_retained, holes_left)))
        table.clean(commits_retained=commits_retained, **more)
        for instant in table.refresh().timeline.completed("commit"):
            time = instant.requested_time
            if said.holds(time):
                with pytest.raises(RefusedError):
                    table.base_files(time)
            else:
                assert time in {base.instant_time for _, base in table.base_files(time)}
        assert said.window


def test_a_later_clean_without_the_ladder_finds_what_it_held():
    """The plan's earliest instant is the oldest rung, so Hudi's next incremental range covers every rung (A-30)."""
    builder = TableBuilder(2)
    hourly(builder, 1, 6 * DAY)
    builder.commit(at(6 * DAY), {"r1": ["g"]})
    builder.table().clean(commits_retained=2, keep_daily=4)
    builder.commit(at(6 * DAY + 1), {"r2": ["h"]})
    incremental = builder.table().plan_clean(commits_retained=2)
    assert not incremental.scope.everything
    assert paths(incremental) == paths(builder.table(**FULL).plan_clean(commits_retained=2)) != set()


def test_a_replaced_group_on_the_ladder_keeps_its_replacecommit_active():
    """Archived, the replacecommit would bring the group back to life (D-9, K-5): the plan's bound lies before it."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"r0": ["old"]})
    builder.commit(at(DAY), {"r0": ["new"]}, replaced={"r0": ["old"]})
    for number in range(DAY + 1, DAY + 9):
        builder.commit(at(number), {"r0": ["new"]})
    table = builder.table(keep_min_commits=2, keep_max_commits=3, clean_commits_retained=1)
    table.settings = table.settings.merged({"hoodie_py.clean.keep.daily": 5})
    [clean] = table.clean()
    assert clean.metadata.earliest_commit_to_retain == at(1)
    assert f"r0/{TableBuilder.base_name('old', at(1))}" in data_files(builder.storage)
    table.archive()
    assert table.refresh().timeline.find(at(DAY)) is not None
    assert {base.file_id for _, base in table.base_files()} == {"new"}


def test_archived_snapshots_stay_on_the_ladder(monkeypatch):
    """What the last clean recorded is enough; only without it the archive is asked, and a torn one deletes nothing."""
    builder = TableBuilder(2)
    hourly(builder, 1, 6 * DAY)
    asked = {"commits_retained": 2, "keep_daily": 3}

    def torn(*_):
        raise CorruptMetadata("torn")

    monkeypatch.setattr(past, "load_archived", torn)
    with pytest.raises(CorruptMetadata, match=r"calendar ladder.*nothing was deleted"):
        builder.table().plan_clean(**asked)
    monkeypatch.undo()
    [clean] = builder.table().clean(**asked)
    snapshots = clean.metadata.extra_metadata["hudi_py.snapshots"].split(",")
    for path in builder.storage.files():  # everything before the window is archived
        name = path.rpartition("/")[2]
        if path.startswith(".hoodie/timeline/") and name[:17] < clean.metadata.extra_metadata["hudi_py.window"]:
            builder.storage.delete(path)
    hourly(builder, 6 * DAY, 6 * DAY + 12)
    again = builder.table().plan_clean(**asked)
    kept = again.extra_metadata["hudi_py.snapshots"].split(",")
    assert kept[0] == snapshots[1]
    assert builder.table().timeline.find(kept[0]) is None


# --- floors, ceiling, age --------------------------------------------------------------------------------------------
def story(layout=2, count=8):
    builder = TableBuilder(layout)
    for number in range(1, count + 1):
        builder.commit(at(number), {"r0": ["f"]})
    builder.clock.moment = parse_instant_time(at(count), timezone.utc) + timedelta(minutes=30)
    return builder


def earliest(builder, **asked):
    found = builder.table(**FULL).plan_clean(**asked).earliest_to_retain
    return None if found is None else found.requested_time


def test_age_counts_in_any_unit():
    """A span is what the hours policy takes, not only in whole hours; an instant as old as the span stays (A-20)."""
    builder = story()
    assert earliest(builder, age_retained="90m") == at(7)
    assert earliest(builder, age_retained=timedelta(minutes=150)) == at(6)
    assert earliest(builder, age_retained="2h") == earliest(builder, hours_retained=2) == at(7)
    assert builder.table().plan_clean(age_retained="90m").policy == CleanPolicy.KEEP_LATEST_BY_HOURS.value


def test_floor_and_ceiling_bound_the_window_by_time():
    """The floor reaches back farther than the span; the ceiling cuts it short, also where everything is young (B7)."""
    builder = story()
    assert earliest(builder, age_retained="90m", min_commits=5) == at(4)
    assert earliest(builder, age_retained="90m", min_commits=1) == at(7)
    assert earliest(builder, age_retained="7d", max_commits=3) == at(6)
    assert earliest(builder, age_retained="90m", max_commits=3) == at(7)
    assert earliest(builder, age_retained="90m", max_commits=3, min_commits=3) == at(6)
    assert earliest(builder, age_retained="90m", min_commits=8) is None  # no more commits than that


def test_age_waits_for_a_pending_write_where_hours_do_not():
    """The stricter option of K-9; by hours the plan is Hudi's, and warns (A-21)."""
    builder = TableBuilder(2)
    for number in (1, 2, 3, 5, 6, 7, 8):
        builder.commit(at(number), {"r0": ["f"]})
    builder.commit(at(4), {"r0": ["f"]}, state=State.INFLIGHT)
    builder.clock.moment = parse_instant_time(at(8), timezone.utc) + timedelta(minutes=30)
    assert earliest(builder, age_retained="90m") == at(3)
    plan = builder.table().plan_clean(hours_retained=2)
    assert plan.earliest_to_retain.requested_time == at(7)
    assert [at(4) in warning and "hoodie_py.clean.age.retained=2h" in warning for warning in plan.warnings] == [True]
    assert builder.table().plan_clean(age_retained="90m").warnings == ()


def test_file_versions_as_a_floor():
    """So many slices of each group stay whatever the window; every plan then looks everywhere."""
    builder = story()
    plan = builder.table().plan_clean(commits_retained=1, min_file_versions=4, details=True)
    assert plan.scope.everything
    kept = [v.file_slice.base_instant_time for v in plan.verdicts if v.keep]
    assert kept == [at(8), at(7), at(6), at(5)]
    assert [v.reason for v in plan.verdicts if v.keep][2:] == [Reason.VERSIONS] * 2
    builder.table().clean(commits_retained=1, min_file_versions=4)
    builder.commit(at(9), {"r1": ["g"]})
    after = builder.table().plan_clean(commits_retained=1)  # without the floor what it held is found
    assert after.scope.everything
    assert len(paths(after)) == 3


def test_older_than_is_a_cut_off_for_one_run():
    """What was superseded before it goes, floors stay, and the newest slices whatever it says."""
    builder = story()
    assert earliest(builder, older_than=at(5)) == at(5)
    assert earliest(builder, older_than="150m") == at(6)
    assert earliest(builder, older_than=timedelta(minutes=150)) == at(6)
    assert earliest(builder, older_than=builder.clock.moment) == at(8)
    assert earliest(builder, older_than=at(5), min_commits=6) == at(3)
    plan = builder.table(**FULL).plan_clean(older_than=at(5))
    assert paths(plan) == {f"r0/{TableBuilder.base_name('f', at(number))}" for number in (1, 2, 3)}


def test_an_explicit_instant_falls_off_the_ladder_in_one_run():
    """At once, without a new commit; the others stay, and it does not come back (A2)."""
    builder = TableBuilder(2)
    hourly(builder, 1, 6 * DAY)
    asked = {"commits_retained": 2, "keep_daily": 4}
    [clean] = builder.table().clean(**asked)
    snapshots = clean.metadata.extra_metadata["hudi_py.snapshots"].split(",")
    [again] = builder.table().clean(**asked, instants=[snapshots[1]])
    left = [snapshots[0], *snapshots[2:]]
    assert again.metadata.extra_metadata["hudi_py.snapshots"].split(",") == left
    assert again.deleted_files == (f"r0/{TableBuilder.base_name('f', snapshots[1])}",)
    assert all(builder.table().base_files(time) for time in left)
    assert builder.table(**FULL).plan_clean(**asked).file_count == 0
    table = builder.table()
    for time, message in (
        (again.metadata.extra_metadata["hudi_py.window"], "inside the retention window.*retain less"),
        (snapshots[1], "not a snapshot that is kept"),
    ):
        with pytest.raises(ConfigError, match=message):
            table.plan_clean(**asked, instants=[time])
    table.create_savepoint(left[0])
    with pytest.raises(ConfigError, match="delete the savepoint first"):
        builder.table().plan_clean(**asked, instants=[left[0]])


# --- contradictions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"age_retained": "7d", "min_commits": 5, "max_commits": 3}, "min.commits=5 is above .*max.commits=3.*correct"),
        ({"commits_retained": 5, "max_commits": 3}, "commits.retained=5 is above .*max.commits=3.*correct"),
        ({"file_versions_retained": 5, "max_commits": 3}, "limits a window by time, but no window.*leave it out"),
        ({"age_retained": "7d", "hours_retained": 3}, "say the same thing twice; keep one"),
        ({"age_retained": "soon"}, "a duration such as 90m, 36h or 7d"),
        ({"age_retained": "0h"}, "a duration such as 90m, 36h or 7d"),
        ({"older_than": at(30)}, "is in the future.*Give a time that has passed"),
        ({"older_than": "yesterday"}, "older_than: 'yesterday' is not a time"),
        ({"older_than": "7d", "commits_retained": 3}, "replaces the policy's retention"),
        ({"keep_daily": -1}, "at least 0"),
    ],
)
def test_contradictions_are_refused_and_the_error_says_what_to_do(asked, message):
    """Nothing is guessed where two settings cannot both be meant."""
    with pytest.raises(ConfigError, match=message):
        story().table().plan_clean(**asked)


def test_an_unknown_keyword_is_a_type_error():
    """As for any function."""
    with pytest.raises(TypeError, match="keep_yearly"):
        story().table().plan_clean(keep_yearly=1)


def test_archival_tighter_than_cleaning_is_warned_about():
    """All releases then never clean, and say nothing (K-17)."""
    table = story().table(keep_max_commits=3, keep_min_commits=2)
    [warning] = table.plan_clean(commits_retained=6).warnings
    assert "nothing will ever be cleaned: set hoodie.keep.max.commits above 6" in warning
    assert table.plan_clean(commits_retained=3).warnings == ()


def test_explain_names_every_keep_that_protects():
    """The rule that decides, and all others by name; the rung by the snapshot that has to go first."""
    builder = TableBuilder(2)
    hourly(builder, 1, 4 * DAY)
    asked = {"commits_retained": 2, "min_commits": 3, "keep_daily": 3, "keep_weekly": 1}
    table = builder.table(**FULL)
    by_time = {f.base_instant_time: f for f in table.explain("f", **asked).files}
    newest = by_time[max(by_time)]
    assert newest.rule == Reason.LATEST.value
    assert {Reason.WINDOW.value, Reason.FLOOR.value, Reason.DAILY.value, Reason.WEEKLY.value} <= set(newest.also)
    held = by_time[min(t for t in by_time if by_time[t].rule == Reason.DAILY.value)]
    assert [str(each) for each in held.conditions] == [
        f"when newer snapshots push {held.base_instant_time} off the ladder"
    ]
    removable = {f.path for f in table.explain("f", **asked).files if f.removable}
    assert removable == {p for p in paths(table.plan_clean(**asked)) if p.startswith("r0/")}
    assert "the newest snapshot of each of the last 3 days" in table.explain("f", **asked).retention


@examples(40)
@given(tables, policies, retained, keeps)
def test_explain_and_plan_agree_on_every_union(made, policy, count, more):
    """Removable is what the plan deletes; everything else waits for something."""
    table = made.builder.table(**FULL)
    asked = by_policy(policy, count, more)
    files = [file for each in table.partitions() for file in table.explain(each, **asked).files]
    assert {file.path for file in files if file.removable} == paths(table.plan_clean(**asked))
    assert all(file.conditions or file.removable for file in files)


@examples(30)
@given(tables, policies, retained, keeps)
def test_a_budget_cuts_a_union_without_breaking_it(made, policy, count, more):
    """Cleaning in small steps ends where one clean ends, rungs included."""
    asked = by_policy(policy, count, more)
    whole = paths(made.builder.table(**FULL).plan_clean(**asked))
    config = made.builder.table(**FULL).services.clean_config(**asked)
    for _ in range(40):
        small = attrs.evolve(config, max_files=2)
        before = set(data_files(made.builder.storage))
        made.builder.table(**FULL).services.clean(small).run()
        assert before - set(data_files(made.builder.storage)) <= whole
        if before == set(data_files(made.builder.storage)):
            break
    assert not made.builder.table(**FULL).plan_clean(**asked).would_schedule


@pytest.mark.parametrize(
    "keywords",
    [
        {"commits_retained": 2, "hours_retained": 720},
        {"commits_retained": 2, "file_versions_retained": 3},
        *({"policy": policy, "hours_retained": 720} for policy in ("KEEP_LATEST_COMMITS", "keep_latest_commits")),
    ],
    ids=" ".join,
)
def test_a_retention_that_would_not_count_is_refused(keywords):
    """Deleting by two commits where 720 hours were asked for as well would be a guess."""
    table = TableBuilder().table()
    with pytest.raises(ConfigError, match=r"exclude each other|ignores"):
        table.plan_clean(**keywords)


def test_settings_may_name_several_retentions_as_hudi_does():
    """Rule A-1: with several and no policy the commits count; what is asked for in one run outdoes them."""
    table = TableBuilder().table(clean_commits_retained=2, clean_hours_retained=720)
    assert table.services.clean_config().policy is CleanPolicy.KEEP_LATEST_COMMITS
    assert table.services.clean_config(hours_retained=3).policy is CleanPolicy.KEEP_LATEST_BY_HOURS
    assert table.services.clean_config(policy="KEEP_LATEST_COMMITS", commits_retained=1).commits_retained == 1


@pytest.mark.parametrize("layout", [1, 2])
def test_the_empty_window_of_an_older_ladder_by_versions_leaves_the_same_holes(layout):
    """Our first releases recorded none beside file versions: everything before the newest commit is off the ladder."""
    builder = TableBuilder(layout)
    hourly(builder, 1, 3 * DAY)
    [clean] = builder.table().clean(file_versions_retained=1, keep_daily=2)
    commits = [each.requested_time for each in builder.table().timeline.commits.completed()]

    def answered():
        table, times = builder.table(), []
        for time in commits:
            with contextlib.suppress(RefusedError):
                builder.table().base_files(time)
                table.create_savepoint(time)
                table.delete_savepoint(time)
                times.append(time)
        return (
            times,
            holes_left(table.contents, table.timeline),
            [each.code for each in table.check()],
            whole_from(table.contents.clean(instant)),
        )

    instant = builder.table().timeline.completed(Action.CLEAN)[-1]
    recorded = answered()
    assert recorded[1].window == commits[-1]
    assert set(recorded[0]) < set(commits)
    extra = {**clean.metadata.extra_metadata, WINDOW: ""}
    metadata = attrs.evolve(clean.metadata, extra_metadata=extra)
    path = f"{builder.folder}/{instant.file_name}"
    builder.storage.replace(path, codec.encode_clean_metadata(metadata, sync=SYNC))
    assert answered() == recorded
