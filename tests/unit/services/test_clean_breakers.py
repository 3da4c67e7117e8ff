"""Circuit breakers: a plan that looks wrong is shown, never stored, unless somebody says that it is meant."""

from datetime import datetime, timedelta, timezone

import attrs
import pytest

from hudi_py.errors import RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, State
from hudi_py.model.records import ActionInstant, CleanerPlan, CleanFileInfo
from hudi_py.services.clean.planning.quick import QuickJudge
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.retention.policy import Reason
from support.tables import SYNC, TableBuilder, at, data_files

pytestmark = pytest.mark.parametrize("layout", [1, 2])


def history(layout, count=4):
    builder = TableBuilder(layout)
    for number in range(1, count + 1):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def refused(builder, match, *, settings=None, **arguments):
    """The clean is refused and writes nothing; the dry run says why."""
    before = builder.storage.files()
    table = builder.table()
    table.settings = table.settings.merged(settings or {})
    (reason,) = table.plan_clean(**arguments).breakers
    with pytest.raises(RefusedError, match=match) as raised:
        table.clean(**arguments)
    assert reason in str(raised.value)
    assert builder.storage.files() == before


def allowed(builder, *, settings=None, **arguments):
    """Overridden, the same clean is carried out."""
    table = builder.table()
    table.settings = table.settings.merged({**(settings or {}), "hoodie_py.clean.breakers": False})
    assert table.clean(**arguments)[0].deleted_files


def test_share_of_the_files_above_the_limit(layout):
    """6 of 8 files are more than 70 %, and not more than 75 %."""
    builder = history(layout)
    low = {"hoodie_py.clean.breaker.max.share": 0.7}
    refused(builder, "6 of 8 examined files", settings=low, file_versions_retained=1)
    table = builder.table()
    table.settings = table.settings.merged({"hoodie_py.clean.breaker.max.share": 0.75})
    assert table.plan_clean(file_versions_retained=1).breakers == ()
    allowed(builder, settings=low, file_versions_retained=1)


def test_live_group_that_would_lose_its_last_version(layout, monkeypatch):
    """Whatever the reason, the newest version of a live group going is a mistake of ours."""
    builder = history(layout)
    real = Situation.judge

    def judge(self, partition_path, entries, config):
        judged = real(self, partition_path, entries, config)
        if partition_path != "r1":
            return judged
        verdicts = tuple(v._replace(keep=False, reason=Reason.EXPIRED) for v in judged.verdicts)
        return attrs.evolve(judged, verdicts=verdicts)

    monkeypatch.setattr(QuickJudge, "of", lambda *_, **__: None)  # verdicts on every slice
    monkeypatch.setattr(Situation, "judge", judge)
    refused(builder, "1 live file groups would lose their last version .r1/g.", commits_retained=1)


def test_empty_live_set(layout, monkeypatch):
    """Everything going, and no replacecommit that says so: the view is wrong."""
    builder = history(layout)
    real = Situation.judge

    def judge(self, partition_path, entries, config):
        judged = real(self, partition_path, entries, config)
        verdicts = tuple(v._replace(keep=False, reason=Reason.EXPIRED) for v in judged.verdicts)
        return attrs.evolve(judged, verdicts=verdicts)

    monkeypatch.setattr(QuickJudge, "of", lambda *_, **__: None)  # verdicts on every slice
    monkeypatch.setattr(Situation, "judge", judge)
    assert [reason.partition(",")[0] for reason in builder.table().plan_clean(commits_retained=1).breakers] == [
        "2 live file groups would lose their last version (r0/f",
        "no examined file would be left",
    ]
    with pytest.raises(RefusedError, match="no examined file would be left"):
        builder.table().clean(commits_retained=1)


def test_a_table_that_was_emptied_on_purpose_is_cleaned(layout):
    """All partitions dropped: the replacecommits explain it, so nothing trips."""
    builder = history(layout)
    builder.commit(at(5), {}, replaced={"r0": ["f"], "r1": ["g"]})
    builder.commit(at(6), {})
    assert builder.table().clean(commits_retained=1)[0].deleted_files
    assert data_files(builder.storage) == []


def test_clock_that_went_back_behind_the_timeline(layout):
    """By hours the clock decides; a day behind the last instant it is wrong, hours behind it is another zone."""
    builder = history(layout, count=30)  # the last one on the second day, 06:00
    last = datetime(2026, 1, 2, 6, tzinfo=timezone.utc)
    refused(builder, "the clock went back", hours_retained=1, now=last - timedelta(hours=20))
    assert builder.table().plan_clean(hours_retained=1, now=last - timedelta(hours=14)).breakers == ()
    assert builder.table().plan_clean(commits_retained=1, now=last - timedelta(hours=20)).breakers == ()
    allowed(builder, hours_retained=1, now=last - timedelta(hours=20))


def test_window_that_begins_in_the_future(layout):
    """Planned for a moment so far ahead that the window has not begun yet."""
    builder = history(layout)
    builder.commit("20260601093000000", {"r0": ["f"]})  # of a writer whose clock is ahead
    ahead = builder.clock.moment + timedelta(hours=10)
    refused(builder, "in the future", hours_retained=1, now=ahead)
    assert builder.table().plan_clean(hours_retained=11, now=ahead).breakers == ()
    allowed(builder, hours_retained=1, now=ahead)


@pytest.mark.parametrize(
    ("partition", "path"),
    [
        ("r0", "/lake/other/r0/../../x_0_1.parquet"),
        ("r0", "/etc/passwd"),
        ("r0", "/lake/trips/r1/f_0-1-0_20260101010000000.parquet"),
        ("..", "/lake/f_0-1-0_20260101010000000.parquet"),
        ("r0/../..", "/lake/f_0-1-0_20260101010000000.parquet"),
        (".hoodie", "/lake/trips/.hoodie/f_0-1-0_20260101010000000.parquet"),
        ("/lake", "/lake/f_0-1-0_20260101010000000.parquet"),
        ("r0", "/lake/trips/r0/.hoodie_partition_metadata"),
        ("r0", "/lake/trips/r0/"),
    ],
)
@pytest.mark.parametrize("is_partition", [False, True])
def test_nothing_outside_the_table_is_ever_deleted(layout, partition, path, is_partition):
    """A stored plan that points elsewhere, by a file or by a partition to drop, deletes nothing at all."""
    builder = history(layout)
    fine = f"/lake/trips/r0/{TableBuilder.base_name('f', at(1))}"
    plan = CleanerPlan(
        policy="KEEP_LATEST_COMMITS",
        earliest_instant_to_retain=ActionInstant(at(3), "commit"),
        last_completed_commit_timestamp=at(4),
        files_to_delete={"r0": (CleanFileInfo(fine),)}
        | ({} if is_partition else {partition: (CleanFileInfo(fine), CleanFileInfo(path))}),
        partitions_to_delete=(f"{partition}/..",) if is_partition else (),
    )
    builder.instant(at(9), "clean", State.REQUESTED, codec.encode_cleaner_plan(plan, sync=SYNC))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=r"nothing was deleted|not a partition of a table"):
        builder.table().clean(commits_retained=1)
    assert builder.storage.files() == before
    assert builder.table().timeline.pending(Action.CLEAN)
