"""One test per planning rule of rules/table-services A.2 to A.6; the id stands in the name."""

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.instant import State
from hudi_py.services.clean.planning.stored_plan import to_record
from hudi_py.services.clean.retention.policy import Reason
from support.tables import TableBuilder, at, planned

pytestmark = pytest.mark.parametrize("layout", [1, 2])


def base(*numbers, file_id="f"):
    return [TableBuilder.base_name(file_id, at(number)) for number in numbers]


def history(layout, count, groups=None, **options):
    """Commits 1 to *count*, each writing the same groups."""
    builder = TableBuilder(layout, **options)
    for number in range(1, count + 1):
        builder.commit(at(number), groups or {"r0": ["f"]})
    return builder


def plan_of(builder, settings=None, **retention):
    return builder.table(**(settings or {})).plan_clean(**retention)


def ecr(plan):
    return None if plan.earliest_to_retain is None else plan.earliest_to_retain.requested_time


# --- when ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("required", "due"), [(1, True), (2, True), (3, False)])
def test_a10_commits_since_the_last_clean_trigger(layout, required, due):
    """N counts completed commits after the last commit that the last clean saw; plan iff N >= the setting."""
    builder = history(layout, 5)
    builder.cleaned(at(6), earliest=at(2), last_commit=at(3))
    plan = plan_of(builder, {"clean_trigger_max_commits": required}, commits_retained=1)
    assert plan.needs_cleaning is due
    assert plan.would_schedule is due


def test_a10_without_a_clean_every_commit_counts(layout):
    """No completed clean: N is the number of completed commits."""
    builder = history(layout, 4)
    assert plan_of(builder, {"clean_trigger_max_commits": 4}, commits_retained=1).needs_cleaning
    assert not plan_of(builder, {"clean_trigger_max_commits": 5}, commits_retained=1).needs_cleaning


def test_a11_pending_and_late_commits_do_not_trigger(layout):
    """Neither a pending commit nor one that began before the last clean's last commit counts."""
    builder = history(layout, 5)
    builder.cleaned(at(6), earliest=at(2), last_commit=at(5))
    builder.commit(at(7), {"r0": ["f"]}, state=State.INFLIGHT)
    assert not plan_of(builder, commits_retained=1).needs_cleaning


# --- the window -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("count", "retained", "window"), [(5, 5, None), (5, 9, None), (5, 2, 4), (15, 10, 6)])
def test_a16_a17_window_by_commits(layout, count, retained, window):
    """Not more commits than retained: no window; else the k-th newest: of 15 commits with k = 10 the sixth."""
    plan = plan_of(history(layout, count), commits_retained=retained)
    assert ecr(plan) == (None if window is None else at(window))
    assert plan.file_count == (0 if window is None else window - 2)


@pytest.mark.parametrize(("pending", "window"), [(3.5, 3), (0.5, None), (9, 8)])
def test_a18_window_never_passes_a_pending_instant(layout, pending, window):
    """With a pending instant before the candidate the window starts at the last completed one before it."""
    builder = TableBuilder(layout)
    for number in range(1, 10):
        if number != pending:
            builder.commit(at(number), {"r0": ["f"]})
    half_past = at(int(pending))[:10] + "3000000"
    builder.commit(at(9) if pending == 9 else half_past, {"r1": ["g"]}, state=State.INFLIGHT)
    assert ecr(plan_of(builder, commits_retained=1)) == (None if window is None else at(window))


@pytest.mark.parametrize("action", ["replacecommit", "compaction"])
def test_a18_pending_replace_and_compaction_hold_the_window_too(layout, action):
    """Whatever is pending among commits and compactions counts."""
    builder = history(layout, 6)
    if action == "compaction":
        builder.compaction(at(3)[:10] + "3000000", [])
    else:
        builder.commit(at(3)[:10] + "3000000", {}, replaced={}, state=State.REQUESTED)
    assert ecr(plan_of(builder, commits_retained=1)) == at(3)


def test_a19_archived_commits_are_invisible(layout):
    """Only the active timeline counts, so archival that is too eager stops cleaning."""
    builder = history(layout, 2)
    for archived in ("20251230000000000", "20251231000000000"):
        builder.put("r0/" + TableBuilder.base_name("f", archived))
    assert len(builder.table().file_slices("r0")) == 1
    assert plan_of(builder, commits_retained=2).file_count == 0


def test_a22_file_versions_has_no_window(layout):
    """The plan stores null."""
    plan = plan_of(history(layout, 4), file_versions_retained=1)
    assert plan.earliest_to_retain is None
    assert to_record(plan, "/lake/trips").earliest_instant_to_retain is None


def test_a24_savepoints_do_not_move_the_window(layout):
    """They protect files only."""
    builder = history(layout, 5)
    builder.savepoint(at(2), {"r0": base(2)})
    assert ecr(plan_of(builder, commits_retained=1)) == at(5)


def test_a25_last_completed_commit_is_recorded(layout):
    """The newest completed commit, not a pending one after it."""
    builder = history(layout, 4)
    builder.commit(at(5), {"r0": ["f"]}, state=State.INFLIGHT)
    assert plan_of(builder, commits_retained=1).last_completed_commit == at(4)


# --- which partitions -----------------------------------------------------------------------------------
def two_partitions(layout):
    """Commits 1 to 3 write r0 and r1, 4 to 6 only r1; a clean kept everything from 3 on."""
    builder = history(layout, 3, {"r0": ["a"], "r1": ["b"]})
    for number in (4, 5, 6):
        builder.commit(at(number), {"r1": ["b"]})
    return builder


def test_a26_file_versions_looks_at_everything(layout):
    """Also where a clean says from where to go on."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(5), last_commit=at(5))
    assert set(planned(plan_of(builder, file_versions_retained=1))) == {"r0", "r1"}


def test_a27_no_window_no_partition(layout):
    """The bare plan: nothing examined, nothing stored."""
    plan = plan_of(history(layout, 3), commits_retained=3)
    assert (plan.files, plan.would_schedule, plan.version) == ({}, False, 1)


@pytest.mark.parametrize("settings", [{}, {"clean_incremental_enabled": False}])
def test_a28_full_scan_without_a_clean_or_when_asked(layout, settings):
    """First clean, or incremental mode off: all partitions."""
    builder = two_partitions(layout)
    if settings:
        builder.cleaned(at(7), earliest=at(5), last_commit=at(5))
    assert set(planned(plan_of(builder, settings, commits_retained=1))) == {"r0", "r1"}


@pytest.mark.parametrize("recorded", ["", "  ", "20250101000000000"])
def test_a29_full_scan_when_the_last_window_is_unknown_or_archived(layout, recorded):
    """After a clean by versions, or when archival has passed the last window."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=recorded, last_commit=at(5))
    plan = plan_of(builder, commits_retained=1)
    assert plan.scope.everything
    assert set(planned(plan)) == {"r0", "r1"}


def test_a30_a31_partitions_written_from_the_old_to_the_new_window(layout):
    """From the old window, included, to the new one, excluded; by requested time."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(4), last_commit=at(5))
    plan = plan_of(builder, commits_retained=1)
    assert [i.requested_time for i in plan.scope.instants] == [at(4), at(5)]
    assert set(planned(plan)) == {"r1"}  # r0 has an old slice too, but was written before the old window


def test_a30_replacecommits_count_with_the_partitions_they_replace(layout):
    """A dropped partition has no write stats, only replaced groups."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(5), last_commit=at(6))
    builder.commit(at(8), {}, replaced={"r0": ["a"]})
    builder.commit(at(9), {"r1": ["b"]})
    assert planned(plan_of(builder, commits_retained=1))["r0"] == base(3, 2, 1, file_id="a")


def test_a31_equal_windows_mean_nothing_to_clean(layout):
    """The range is empty."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(6), last_commit=at(5))
    plan = plan_of(builder, commits_retained=1)
    assert (plan.scope.everything, plan.scope.instants, plan.file_count) == (False, (), 0)


def test_a32_switching_between_commits_and_hours_stays_incremental(layout):
    """A window earlier than the recorded one gives nothing; no full scan."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(4), last_commit=at(5))
    now = datetime(2026, 1, 1, 6, 30, tzinfo=timezone.utc)
    assert not plan_of(builder, hours_retained=1, now=now).scope.everything
    backwards = plan_of(builder, hours_retained=5, now=now)
    assert (ecr(backwards), backwards.file_count) == (None, 0)  # the bare plan


def test_a33_removed_savepoint_means_a_full_scan(layout):
    """In every table version: what it held may lie in partitions that nobody writes any more (K-1)."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(5), last_commit=at(5), savepoints=[at(2)])
    plan = plan_of(builder, commits_retained=1)
    assert plan.scope.everything
    assert planned(plan)["r0"] == base(2, 1, file_id="a")


def test_a34_savepoints_of_unpartitioned_tables_are_not_recorded(layout):
    """They never use A-33; the files are spared all the same."""
    builder = history(layout, 5, {"": ["f"]}, partitioned=False)
    builder.savepoint(at(2), {"": base(2)})
    plan = plan_of(builder, commits_retained=1)
    assert dict(plan.extra_metadata) == {}
    assert planned(plan) == {"": base(3, 1)}


# --- which files ----------------------------------------------------------------------------------------
def merge_on_read(layout):
    """Slices 1 and 4 with two logs each, slice 6 with one."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for opening, logs in ((1, (2, 3)), (4, (5,)), (6, (7,))):
        builder.commit(at(opening), {"r0": ["f"]})
        for number in logs:
            builder.log_files(at(number), [("r0", "f", at(opening))])
    return builder


def log(layout, version, opening, number):
    stamp = at(opening) if layout == 1 else at(number)
    return f".f_{stamp}.log.{version if layout == 1 else 1}_0-1-0"


def test_a37_a46_base_file_first_then_logs_newest_first(layout):
    """A slice goes with all its logs, in this order."""
    plan = plan_of(merge_on_read(layout), file_versions_retained=2)
    assert planned(plan) == {"r0": [*base(1), log(layout, 2, 1, 3), log(layout, 1, 1, 2)]}


@pytest.mark.parametrize("held", ["base", "log"])
def test_a39_one_savepointed_file_protects_its_whole_slice(layout, held):
    """Base file or any log."""
    builder = merge_on_read(layout)
    builder.savepoint(at(1), {"r0": base(1) if held == "base" else [log(layout, 1, 1, 2)]})
    assert planned(plan_of(builder, file_versions_retained=1)) == {"r0": [*base(4), log(layout, 1, 4, 5)]}


def test_a40_pending_compaction_keeps_what_it_reads_and_all_after(layout):
    """Slices from the compaction's base instant on."""
    builder = merge_on_read(layout)
    builder.compaction(at(8), [("r0", "f", at(4), [log(layout, 1, 4, 5)])])
    plan = plan_of(builder, file_versions_retained=1)
    assert planned(plan) == {"r0": [*base(1), log(layout, 2, 1, 3), log(layout, 1, 1, 2)]}


def test_a41_not_more_commits_than_retained_nothing_in_the_partition(layout):
    """Delta commits open the window (A-16) but do not count here on a copy-on-write table (K-22)."""
    builder = history(layout, 2, {"r0": ["f"]})
    for number in (3, 4):
        builder.commit(at(number), {"r0": ["f"]}, action="deltacommit")
    plan = plan_of(builder, commits_retained=2)
    assert ecr(plan) == at(3)
    assert plan.file_count == 0


def replaced(layout):
    """Group f written by 1 and 2, replaced by 3; commits 4 and 5 write another."""
    builder = history(layout, 2)
    builder.commit(at(3), {"r0": ["g"]}, replaced={"r0": ["f"]})
    for number in (4, 5):
        builder.commit(at(number), {"r0": ["g"]})
    return builder


def test_a42_replaced_before_the_window_goes_with_its_newest_slice(layout):
    """Strictly before: at the window it stays."""
    assert planned(plan_of(replaced(layout), commits_retained=3)) == {}
    assert planned(plan_of(replaced(layout), commits_retained=2)) == {"r0": base(2, 1)}


def test_a42_savepointed_slices_of_replaced_groups_stay(layout):
    """Only they."""
    builder = replaced(layout)
    builder.savepoint(at(2), {"r0": base(2)})
    assert planned(plan_of(builder, commits_retained=2)) == {"r0": base(1)}


def test_a43_a44_a45_newest_and_bridge_slices_stay(layout):
    """The newest slice, those inside the window, and the newest before it; the verdicts say why."""
    builder = history(layout, 6)
    plan = builder.table().plan_clean(commits_retained=2, details=True)
    assert planned(plan) == {"r0": base(3, 2, 1)}
    assert [v.reason for v in plan.verdicts] == [
        Reason.LATEST,
        Reason.WINDOW,
        Reason.BEFORE_WINDOW,
        Reason.EXPIRED,
        Reason.EXPIRED,
        Reason.EXPIRED,
    ]


def test_a43_group_not_written_for_long_keeps_its_only_slice(layout):
    """However old it is (K-7)."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["old"]})
    for number in range(2, 8):
        builder.commit(at(number), {"r0": ["f"]})
    assert planned(plan_of(builder, commits_retained=1)) == {"r0": base(5, 4, 3, 2)}


def test_a47_replaced_groups_go_at_once_by_versions(layout):
    """No time condition; savepointed slices stay."""
    builder = history(layout, 2)
    builder.commit(at(3), {"r0": ["g"]}, replaced={"r0": ["f"]})
    assert planned(plan_of(builder, file_versions_retained=3)) == {"r0": base(2, 1)}
    builder.savepoint(at(1), {"r0": base(1)})
    assert planned(plan_of(builder, file_versions_retained=3)) == {"r0": base(2)}


@pytest.mark.parametrize(("retained", "kept"), [(1, 1), (2, 2), (4, 4), (9, 5)])
def test_a48_versions_to_keep(layout, retained, kept):
    """The newest v slices of each group."""
    plan = plan_of(history(layout, 5), file_versions_retained=retained)
    assert plan.file_count == 5 - kept


def test_a49_settings_below_one_are_refused(layout):
    """The newest slice could go otherwise."""
    for retention in ("file_versions_retained", "commits_retained", "hours_retained"):
        for count in (0, -1):
            with pytest.raises(ConfigError, match="at least 1"):
                plan_of(history(layout, 2), **{retention: count})


def test_a49_pending_compaction_counts_as_a_version(layout):
    """With v = 1 all older slices that it does not need go, the needed one stays."""
    builder = merge_on_read(layout)
    builder.compaction(at(8), [("r0", "f", at(6), [])])
    plan = plan_of(builder, file_versions_retained=1)
    assert planned(plan)["r0"] == [
        *base(4),
        log(layout, 1, 4, 5),
        *base(1),
        log(layout, 2, 1, 3),
        log(layout, 1, 1, 2),
    ]


# --- whole partitions and the plan ----------------------------------------------------------------------
def dropped(layout):
    """r0 dropped by 3; 4 and 5 write r1."""
    builder = history(layout, 2, {"r0": ["f"], "r1": ["g"]})
    builder.commit(at(3), {}, replaced={"r0": ["f"]})
    for number in (4, 5):
        builder.commit(at(number), {"r1": ["g"]})
    return builder


def test_a50_a53_dropped_partition_goes_with_its_files(layout):
    """By the clean that takes its last files: once the drop is older than the window."""
    assert plan_of(dropped(layout), commits_retained=3).partitions_to_delete == ()
    assert plan_of(dropped(layout), commits_retained=2).partitions_to_delete == ("r0",)


def test_a51_by_versions_the_drop_need_not_be_old(layout):
    """The partition goes at once."""
    assert plan_of(dropped(layout), file_versions_retained=9).partitions_to_delete == ("r0",)


@pytest.mark.parametrize("name", ["h_0-1-0_20260109000000000.parquet", "_SUCCESS"])
@pytest.mark.parametrize("retention", [{"commits_retained": 2}, {"file_versions_retained": 1}])
def test_a50_a_file_of_a_pending_writer_or_of_nobody_keeps_the_partition(layout, name, retention):
    """Its files go, the folder stays."""
    builder = dropped(layout)
    builder.put(f"r0/{name}")
    plan = plan_of(builder, **retention)
    assert planned(plan)["r0"] == base(2, 1)
    assert plan.partitions_to_delete == ()


def test_a50_savepointed_file_keeps_the_partition(layout):
    """Hudi would carry out the folder's deletion with the savepointed file in it."""
    builder = dropped(layout)
    builder.savepoint(at(1), {"r0": base(1)})
    assert plan_of(builder, commits_retained=2).partitions_to_delete == ()


@pytest.mark.parametrize("name", ["notes.txt", "f_0-9-0_20260101000000000.parquet"])
def test_a50_what_the_metadata_table_does_not_list_keeps_the_partition(layout, name):
    """Hudi removes a planned partition with all that is in it, so the folder itself is asked before one is planned."""
    builder = dropped(layout)
    builder.table(metadata_enable=True).services.metadata_table.prepare(writes_data=True)
    assert plan_of(builder, commits_retained=2).partitions_to_delete == ("r0",)
    builder.put(f"r0/{name}")
    if name.endswith(".parquet"):
        builder.savepoint(at(1), {"r0": [name]})
    assert plan_of(builder, commits_retained=2).partitions_to_delete == ()


def test_a54_a55_a68_a_plan_without_files_is_never_stored(layout):
    """Neither for an empty partition that is left, nor at all."""
    builder = dropped(layout)
    for path in [f"r0/{name}" for name in base(1, 2)] + [f"r1/{name}" for name in base(1, 2, file_id="g")]:
        assert builder.storage.delete(path)
    plan = plan_of(builder, commits_retained=2)
    assert plan.partitions_to_delete == ("r0",)
    assert not plan.would_schedule
    assert builder.table().clean(commits_retained=2) == []
    assert not [instant for instant in builder.table().timeline if instant.action.value == "clean"]


def test_a56_a57_fields_of_the_stored_plan(layout):
    """Version 2, absolute paths, no empty lists, the savepoints."""
    builder = two_partitions(layout)
    builder.savepoint(at(1), {"r0": base(1, file_id="a")})
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(commits_retained=2)).schedule()
    plan = table.contents.clean_plan(instant)
    assert plan.version == 2
    assert plan.policy == "KEEP_LATEST_COMMITS"
    assert (plan.earliest_instant_to_retain.requested_time, plan.earliest_instant_to_retain.action) == (
        at(5),
        "commit",
    )
    assert plan.earliest_instant_to_retain.state == "COMPLETED"
    assert {p: [f.path for f in files] for p, files in plan.files_to_delete.items()} == {
        "r0": [f"/lake/trips/r0/{base(2, file_id='a')[0]}"],
        "r1": [f"/lake/trips/r1/{name}" for name in base(3, 2, 1, file_id="b")],
    }
    assert dict(plan.extra_metadata) == {"savepointed_timestamps": at(1)}


def test_k22_uncommitted_slices_are_no_version(layout):
    """Files of a failed write are not counted and not touched."""
    builder = history(layout, 3)
    builder.commit(at(4), {"r0": ["f"]}, state=State.INFLIGHT)
    assert planned(plan_of(builder, file_versions_retained=2)) == {"r0": base(1)}


def test_k15_what_a_pending_compaction_lists_is_never_planned(layout):
    """Also a log whose slice looks older than the compaction's base instant."""
    builder = merge_on_read(layout)
    builder.compaction(at(8), [("r0", "f", at(6), [log(layout, 1, 4, 5)])])
    names = planned(plan_of(builder, file_versions_retained=1))["r0"]
    assert log(layout, 1, 4, 5) not in names


def test_k23_the_later_of_two_replacements_counts(layout):
    """A group replaced twice is as old as its last replacement."""
    builder = history(layout, 2)
    builder.commit(at(3), {"r0": ["g"]}, replaced={"r0": ["f"]})
    builder.commit(at(4), {"r0": ["h"]}, replaced={"r0": ["f"]})
    builder.commit(at(5), {"r0": ["h"]})
    assert planned(plan_of(builder, commits_retained=2)) == {}
    assert planned(plan_of(builder, commits_retained=1)) == {"r0": base(2, 1)}


# --- beyond the rules -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("hours", [1, 24, 10**6, 10**9, 10**15])
def test_hours_as_many_as_anyone_types(layout, hours):
    """More hours than the calendar has keep everything, and are no error."""
    plan = plan_of(history(layout, 5), hours_retained=hours)
    assert plan.file_count == 0
    if hours > 10**6:
        assert plan.scope.everything is True


def test_hours_follow_the_zone_of_the_table_not_of_the_process(layout, monkeypatch):
    """K-8: a table in UTC keeps the same files wherever the process runs."""
    import time

    now = datetime(2026, 1, 1, 6, 10, tzinfo=timezone.utc)
    expected = planned(plan_of(history(layout, 5), hours_retained=2, now=now))
    assert expected == {"r0": base(3, 2, 1)}
    for zone in ("Asia/Tokyo", "America/Los_Angeles"):
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            assert planned(plan_of(history(layout, 5), hours_retained=2, now=now)) == expected
    time.tzset()
    assert plan_of(history(layout, 5), hours_retained=2, now=now + timedelta(days=9)).file_count == 0


def test_damaged_last_clean_stops_incremental_planning_only(layout):
    """The error names the file and the way out; a full scan does not need it."""
    builder = two_partitions(layout)
    builder.cleaned(at(7), earliest=at(5), last_commit=at(5))
    path = builder.instant(at(7), "clean", State.COMPLETED, b"garbage")
    with pytest.raises(CorruptMetadata, match=r"incremental\.enabled=false") as caught:
        plan_of(builder, commits_retained=1)
    assert path in str(caught.value)
    plan = plan_of(builder, {"clean_incremental_enabled": False}, commits_retained=1)
    assert set(planned(plan)) == {"r0", "r1"}
