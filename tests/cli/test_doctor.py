"""``hudi-py doctor``: quiet about healthy tables, and a stable code for everything that it judges."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.records import ClusteringGroup, ClusteringPlan, ClusteringSlice, RequestedReplaceMetadata
from hudi_py.services.doctor import judge as judging
from hudi_py.services.doctor.findings import RULES
from hudi_py.table import Table
from support import fixtures
from support.tables import SYNC, TableBuilder, at, done, on_disk

HEALTHY = ["cow_partitioned-0.15.0", "cow_cleaned-1.0.2", "mor_compacted-1.2.0", "cow_empty-1.1.1"]
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def codes(builder, *, now=None, **settings):
    """Codes of the findings about a built table, in their order."""
    table = Table(builder.storage, settings=settings, clock=builder.clock)
    return [each.code for each in table.doctor(now=now)]


def grown(layout, commits, groups=1):
    """A table with that number of commits, each of which rewrites all groups of one partition."""
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"p": [f"f{each}" for each in range(groups)]})
    return builder


@LAYOUTS
def test_a_newest_commit_that_no_reader_can_read_is_found(layout):
    """Although cleans and archival go on without it: readers of the latest snapshot fail, and somebody asks why."""
    builder = grown(layout, 4)
    path = next(each for each in builder.storage.files() if at(4) in each and each.endswith(".commit"))
    builder.storage.replace(path, b"broken")
    table = Table(builder.storage, clock=builder.clock)
    with pytest.raises(CorruptMetadata):
        table.rows().to_arrow()
    assert [each.where for each in table.doctor() if each.code == "table-damaged"] == [path]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_tables_have_no_problems(run, table, name):
    """Exit code 0, one JSON list, nothing but information."""
    path = table(name)
    result = run("doctor", path, "--json")
    assert result.code == 0, result
    assert {each["severity"] for each in result.json} <= {"info"}
    assert run("doctor", path).code == 0


@pytest.mark.parametrize("name", fixtures.fixture_names()[::9])
def test_every_table_of_hudi_can_be_examined(run, table, name):
    """The shape of the contract, known codes, the exit code that follows from them; nothing is written."""
    path = table(name)
    before = {each: each.stat().st_mtime_ns for each in path.rglob("*")}
    result = run("doctor", path, "--json")
    for each in result.json:
        assert set(each) == {"severity", "code", "where", "message", "fix"}
        assert each["severity"] == RULES[each["code"]].severity.value
        assert each["fix"]
    assert result.code == (3 if any(each["severity"] != "info" for each in result.json) else 0)
    assert before == {each: each.stat().st_mtime_ns for each in path.rglob("*")}


@LAYOUTS
def test_settings_that_contradict_are_found(layout):
    """Also those with which no service would run at all."""
    builder = grown(layout, 3)
    assert "settings-contradict" in codes(builder, **{"hoodie.keep.min.commits": 8, "hoodie.keep.max.commits": 5})
    assert "settings-contradict" in codes(
        builder, **{"hoodie_py.clean.min.commits": 9, "hoodie_py.clean.max.commits": 3}
    )
    never = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 5}
    assert "settings-never-clean" in codes(builder, **never)
    assert "settings-archive-before-clean" in codes(builder, **{"hoodie.keep.min.commits": 10})
    assert "services-off" in codes(builder, **{"hoodie.table.services.enabled": False})
    assert "clean-automatic-off" in codes(builder, **{"hoodie.clean.automatic": False})
    assert "reader-risk" in codes(builder, **{"hoodie.clean.fileversions.retained": 1})
    assert not [code for code in codes(builder) if code.startswith("settings")]


@LAYOUTS
def test_what_blocks_cleans_and_archival_is_named(layout):
    """A pending write, an unfinished clean, a savepoint; each with the instant in the way."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"p": ["f"]})
    builder.commit(at(2), {"p": ["g"]}, state=State.INFLIGHT)
    for number in range(3, 40):
        builder.commit(at(number), {"p": ["f"]})
    builder.cleaned(at(41), earliest=at(1), last_commit=at(1), completed=False)
    found = codes(builder)
    assert {"instant-stuck", "clean-blocked", "clean-unfinished", "clean-overdue", "archival-blocked"} <= set(found)
    table = Table(builder.storage, clock=builder.clock)
    savepointed = grown(layout, 40)
    savepointed.savepoint(at(1), {"p": [builder.base_name("f0", at(1))]})
    assert "archival-blocked" in codes(savepointed)
    (blocker,) = (each for each in table.doctor() if each.code == "clean-blocked")
    assert at(2) in blocker.message
    assert at(2) in blocker.where


@LAYOUTS
@pytest.mark.parametrize("days", [6, 8])
def test_plans_that_wait_for_a_week_are_told(layout, days):
    """Not sooner: a service may run on Sundays only. A note, for nothing is wrong with the table."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"p": ["f"]}, action="deltacommit")
    builder.compaction(at(2), [("p", "f", at(1), ())])
    now = parse_instant_time(at(2), timezone.utc) + timedelta(days=days)
    table = Table(builder.storage, clock=type(builder.clock)(now))
    found = [each for each in table.doctor() if each.code == "plan-waiting"]
    assert [each.severity.value for each in found] == ["info"] * (days > 7)
    assert all(at(2) in each.message and at(2) in each.where for each in found)


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize(
    ("is_plan", "days", "expected"), [(True, 6, None), (True, 8, "plan-waiting"), (False, 1, "instant-stuck")]
)
def test_a_clustering_that_waits_is_no_write_that_is_stuck(layout, state, is_plan, days, expected):
    """In layout 1 both are replacecommits: the plan tells."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"p": ["f"]})
    group = ClusteringGroup(
        slices=(ClusteringSlice(file_id="f", partition_path="p", data_file_path=builder.base_name("f", at(1))),)
    )
    plan = ClusteringPlan(input_groups=(group,)) if is_plan else None
    requested = RequestedReplaceMetadata(
        operation_type="CLUSTER" if is_plan else "INSERT_OVERWRITE", clustering_plan=plan
    )
    word = "clustering" if is_plan and layout == 2 else "replacecommit"
    builder.instant(at(2), word, State.REQUESTED, codec.encode_requested_replace(requested, sync=SYNC))
    if state is State.INFLIGHT:
        builder.instant(at(2), word, state)
    now = parse_instant_time(at(2), timezone.utc) + timedelta(days=days)
    found = [
        each.code for each in Table(builder.storage, clock=type(builder.clock)(now)).doctor() if at(2) in each.message
    ]
    # A write that is stuck blocks cleans as well.
    assert [code for code in found if code in ("plan-waiting", "instant-stuck")] == (
        [] if expected is None else [expected]
    )


@LAYOUTS
def test_archival_that_outran_the_clean_is_found(layout):
    """The commit where the last clean stopped is archived, so a clean cannot tell what became garbage since."""
    builder = TableBuilder(layout)
    for number in range(5, 20):
        builder.commit(at(number), {"p": ["f"]})
    builder.cleaned(at(20), earliest=at(2), last_commit=at(19))
    assert "clean-overtaken" in codes(builder)
    later = TableBuilder(layout)
    for number in range(5, 20):
        later.commit(at(number), {"p": ["f"]})
    later.cleaned(at(20), earliest=at(9), last_commit=at(19))
    assert "clean-overtaken" not in codes(later)


@LAYOUTS
def test_archival_that_nobody_runs_is_found(layout):
    """Far more commits than the settings ask for, and nothing in the way."""
    builder = grown(layout, 40)
    assert "archival-overdue" in codes(builder, **{"hoodie.keep.min.commits": 4, "hoodie.keep.max.commits": 5})


def test_clocks_are_compared():
    """Instants of the future, and completions before their request."""
    builder = grown(2, 2)
    early = builder.clock.now().replace(year=2025)
    assert "clock-ahead" in [e.code for e in Table(builder.storage, clock=type(builder.clock)(early)).doctor()]
    builder.commit(at(5), {"p": ["f"]}, completed_at=done(at(3)))
    assert "clock-backwards" in codes(builder)


def test_writers_at_the_same_time_need_a_lock():
    """In layout 2 the times tell; with a lock in the settings all is well."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]}, completed_at=done(at(2)))
    builder.commit(at(2), {"p": ["g"]})
    assert "writers-overlap" in codes(builder)
    lock = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
    assert "writers-overlap" not in codes(builder, **lock)
    builder.commit(at(4)[:14], {"p": ["g"]}, completed_at=done(at(4)))
    assert "writers-mixed" in codes(builder)


@LAYOUTS
def test_files_that_hurt_are_found(layout, monkeypatch):
    """Many small ones, those of no instant, those that no clean looks at, those that only savepoints keep."""
    builder = grown(layout, 1, groups=judging.SMALL_FILES_MIN)
    assert "files-small" in codes(builder)
    assert "files-small" not in codes(grown(layout, 1, groups=judging.SMALL_FILES_MIN - 1))
    assert "files-small" not in codes(builder, **{"hoodie.parquet.small.file.limit": 0})
    builder.put(f"p/{builder.base_name('stray', at(1)[:-3] + '999')}")
    assert "storage-orphaned" in codes(builder)
    old = grown(layout, 4)
    keep = {"hoodie.clean.commits.retained": 1}
    assert "storage-removable" in codes(old, **keep)
    old.savepoint(at(1), {"p": [old.base_name("f0", at(1))]})
    assert "storage-savepoint" in codes(old, **keep)
    left = grown(layout, 4)
    left.cleaned(at(5), earliest=at(4), last_commit=at(4))
    assert "storage-unexamined" in codes(left, **keep)
    monkeypatch.setattr(judging, "OUTDATED_BYTES_MIN", 1)
    monkeypatch.setattr(judging, "OUTDATED_TIMES", 1)
    assert "storage-outdated" in codes(left)


@LAYOUTS
def test_the_rest_is_told_too(layout, monkeypatch):
    """A long timeline, the window of readers, doubtful settings."""
    builder = grown(layout, 12)
    assert "reader-window" in codes(builder)
    monkeypatch.setattr(judging, "INSTANT_FILES_MAX", 10)
    assert "timeline-long" in codes(builder)
    builder.commit(at(13), {"p": ["g"]}, state=State.INFLIGHT)
    builder.commit(at(100), {"p": ["f0"]})
    hours = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": 1}
    now = parse_instant_time(at(100), builder.clock.now().tzinfo) + timedelta(minutes=30)
    table = Table(builder.storage, settings=hours, clock=type(builder.clock)(now))
    assert "settings-questionable" in [each.code for each in table.doctor()]


@LAYOUTS
def test_damage_is_a_finding(layout, run, tmp_path):
    """Not an error: the rest is judged all the same, and the command exits with 3."""
    builder = grown(layout, 2)
    builder.savepoint(at(2), {"p": []})
    name = next(path for path in builder.storage.files() if path.endswith("savepoint"))
    builder.storage.replace(name, b"no Avro")
    assert "table-damaged" in codes(builder)
    on_disk(builder, tmp_path / "t")
    result = run("doctor", tmp_path / "t", "--json")
    assert result.code == 3
    (tmp_path / "t" / ".hoodie" / "hoodie.properties").write_bytes(b"")
    assert run("doctor", tmp_path / "t", "--json").code == 3


def test_codes_are_listed(run):
    """``--codes`` is the list of all, without a table."""
    listed = run("doctor", "--codes", "--json").json
    assert [each["code"] for each in listed] == list(RULES)
    assert "settings-contradict" in run("doctor", "--codes").out
    assert run("doctor").code == 2
    assert run("doctor", "somewhere", "--codes").code == 2


@LAYOUTS
def test_leases_that_a_clean_did_not_know_or_that_expired_are_named(layout):
    """A plan as Apache Hudi makes it, without looking at leases, is a warning; plans of hudi_py are none."""
    keep = {"hoodie.clean.commits.retained": 1}
    builder = grown(layout, 4)
    builder.clock.move(timedelta(hours=-1))
    builder.table().take_lease(ttl="2h", at=at(1), holder="a job")
    builder.clock.move(timedelta(hours=1))
    table = Table(builder.storage, settings=keep, clock=builder.clock)
    table.clean()
    assert not {"lease-unheeded", "lease-expired"} & set(codes(builder, **keep))
    unaware = Table(builder.storage, settings={**keep, "hoodie_py.leases.ignored": True}, clock=builder.clock)
    builder.commit(at(5), {"p": ["f0"]})
    unaware.clean()
    assert "lease-unheeded" in codes(builder, **keep)
    builder.clock.move(timedelta(hours=2))
    assert "lease-expired" in codes(builder, **keep)
