"""Savepoints with a name and a time to live: ours alone, so Hudi's record of them stays as it is."""

from __future__ import annotations

from datetime import timedelta

import fastavro
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.records_codec import SAVEPOINT_EXPIRY, SAVEPOINT_NAME, decode_savepoint, encode_restore_plan
from hudi_py.model.instant import Action, State
from hudi_py.model.records import InstantInfo, RestorePlan
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from support.tables import SYNC, TableBuilder, at, data_files, planned


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    """Four commits of one group."""
    builder = TableBuilder(request.param)
    for number in range(1, 5):
        builder.commit(at(number), {"eu": ["a"]})
    return builder


def savepoints(builder: TableBuilder) -> list[str]:
    return [i.requested_time for i in builder.table().timeline.completed(Action.SAVEPOINT)]


def file_of(builder: TableBuilder, number: int) -> str:
    return f"eu/{builder.base_name('a', at(number))}"


def completed_savepoint(builder: TableBuilder) -> str:
    """Path of the completed file of the one savepoint."""
    (instant,) = builder.table().timeline.completed(Action.SAVEPOINT)
    return f"{builder.folder}/{instant.file_name}"


def rewritten(builder: TableBuilder, notes: dict[str, bytes]) -> None:
    """Give the savepoint's file another header."""
    path = completed_savepoint(builder)
    content = decode_content(builder.storage.read(path), path)
    assert content.schema_text is not None
    assert content.sync is not None
    builder.storage.replace(path, encode_avro_file(content.schema_text, content.value, content.sync, notes))


# --- where name and time to live are kept ---
def test_another_avro_reader_reads_the_record_of_hudi(builder, tmp_path):
    """The record has Hudi's fields and nothing else; what is ours stands in the header, which readers pass over."""
    builder.table().create_savepoint(at(2), user="ann", comment="why", name="before import", ttl="2d")
    plain = TableBuilder(builder.layout.version)
    plain.storage = MemoryStorage.from_files(builder.storage.files(), "/lake/trips")
    plain.table().delete_savepoint(at(2))
    plain.table().create_savepoint(at(2), user="ann", comment="why")
    records = []
    for each in (builder, plain):
        path = tmp_path / "savepoint"
        path.write_bytes(each.storage.read(completed_savepoint(each)))
        with path.open("rb") as stream:
            records.append(list(fastavro.reader(stream)))
    assert records[0] == records[1]


def test_a_copy_of_the_table_has_them_too(builder):
    """They come and go with the savepoint's own file: without our folder nothing is lost."""
    builder.table().create_savepoint(at(2), name="before import", ttl=timedelta(hours=36))
    copied = {path: data for path, data in builder.storage.files().items() if ".aux" not in path}
    table = Table(MemoryStorage.from_files(copied, "/other/place"), clock=builder.clock)
    ((_, content),) = table.services.savepoint().savepoints()
    assert content.name == "before import"
    assert content.expires_at_ms == content.savepointed_at_ms + 36 * 3_600_000


def test_a_savepoint_created_anew_inherits_nothing(builder):
    """Deleted and made again without a name, by whomever, it has none and never expires."""
    builder.table().create_savepoint(at(2), name="short", ttl="1h")
    builder.table().delete_savepoint("short")
    builder.table().create_savepoint(at(2))
    builder.clock.move(timedelta(days=400))
    builder.table().clean(commits_retained=1)
    assert savepoints(builder) == [at(2)]


@pytest.mark.parametrize("expiry", [b"", b"soon", b"-5", b"1e3", b"\xff\xfe", b"9" * 40], ids=repr)
def test_a_damaged_expiry_is_none(builder, expiry):
    """Nobody guesses: the savepoint stays until somebody deletes it."""
    builder.table().create_savepoint(at(2))
    rewritten(builder, {SAVEPOINT_NAME: b"\xff", SAVEPOINT_EXPIRY: expiry})
    builder.clock.move(timedelta(days=400))
    builder.table().clean(commits_retained=1)
    assert savepoints(builder) == [at(2)]
    assert file_of(builder, 2) in data_files(builder.storage)


# --- names ---
def test_restore_and_delete_take_the_name(builder):
    """Of two named savepoints each is found by its own."""
    builder.table().create_savepoint(at(2), name="second")
    builder.table().create_savepoint(at(3), name="third")
    builder.table().restore("third")
    assert builder.table().timeline.writes.completed()[-1].requested_time == at(3)
    assert builder.table().delete_savepoint("third")
    assert savepoints(builder) == [at(2)]
    builder.table().restore("second")
    assert builder.table().timeline.writes.completed()[-1].requested_time == at(2)


def test_a_read_takes_the_name(builder):
    """As it takes the time of its commit, from Python as from the command line."""
    builder.table().create_savepoint(at(2), name="before import")
    table = builder.table()
    named, timed = (table.snapshot(savepoint=each) for each in ("before import", at(2)))
    assert named.base_files() == timed.base_files() == table.base_files(savepoint="before import")
    assert at(2) == named.requested_time
    with pytest.raises(ConfigError, match="no savepoint 'before export'"):
        table.snapshot(savepoint="before export")
    with pytest.raises(ConfigError, match=f"no savepoint {at(3)}"):
        table.snapshot(savepoint=at(3))


def test_unknown_name_is_refused(builder):
    """Neither restore nor delete guess what was meant; nothing is written."""
    builder.table().create_savepoint(at(2), name="second")
    before = builder.storage.files()
    for ask in (builder.table().restore, builder.table().delete_savepoint):
        with pytest.raises(ConfigError, match="secnd"):
            ask("secnd")
    assert before == builder.storage.files()


def test_names_are_unique_until_deleted(builder):
    """A second savepoint of that name is refused, one after the deletion is not."""
    builder.table().create_savepoint(at(2), name="second")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=f"{at(2)} is called 'second'"):
        builder.table().create_savepoint(at(3), name="second")
    assert before == builder.storage.files()
    builder.table().delete_savepoint("second")
    builder.table().create_savepoint(at(3), name="second")


def test_one_name_twice_is_never_chosen_from(builder):
    """Two processes can make it so at the same moment: then only the instant tells."""
    builder.table().create_savepoint(at(2), name="twice")
    path = completed_savepoint(builder)
    builder.table().create_savepoint(at(3))
    third = next(i for i in builder.table().timeline.completed(Action.SAVEPOINT) if i.requested_time == at(3))
    builder.storage.replace(f"{builder.folder}/{third.file_name}", builder.storage.read(path))
    with pytest.raises(RefusedError, match="give the instant instead"):
        builder.table().delete_savepoint("twice")
    assert builder.table().delete_savepoint(at(3))
    assert builder.table().delete_savepoint("twice")


@pytest.mark.parametrize(
    "name", ["7d", "36h", "20260101", at(2), "2026-01-01", "2026-01-01T06:30", "12", " x", "x\n", "a\x07b", "n" * 129]
)
def test_a_name_is_no_time_and_can_be_read(builder, name):
    """What a user types stands for one thing only."""
    with pytest.raises(ConfigError):
        builder.table().create_savepoint(at(2), name=name)
    assert savepoints(builder) == []


@pytest.mark.parametrize("ttl", ["", "0h", "tomorrow", "-1d", timedelta(0), timedelta(hours=-1), timedelta.max])
def test_time_to_live_is_a_span(builder, ttl):
    """No span, none that passes, none that never ends."""
    with pytest.raises(ConfigError, match="time to live"):
        builder.table().create_savepoint(at(2), ttl=ttl)
    assert savepoints(builder) == []


# --- the end of its life ---
def test_clean_lets_go_of_it_once_it_is_over_and_not_before(builder):
    """To the millisecond; the run that lets go of it says so, and takes its files."""
    builder.table().create_savepoint(at(1), ttl="1d")
    builder.clock.move(timedelta(days=1) - timedelta(milliseconds=1))
    (result,) = builder.table().clean(commits_retained=1)
    assert result.expired_savepoints == ()
    assert file_of(builder, 1) in data_files(builder.storage)
    builder.clock.move(timedelta(milliseconds=1))
    builder.commit(at(5), {"eu": ["a"]})
    (result,) = builder.table().clean(commits_retained=1)
    assert result.expired_savepoints == (at(1),)
    assert savepoints(builder) == []
    assert not [path for path in builder.storage.files() if "savepoint" in path]
    assert file_of(builder, 1) not in data_files(builder.storage)


@pytest.mark.parametrize("call", ["schedule", "clean"])
def test_a_clean_that_is_refused_lets_go_of_none(builder, call):
    """Of what it would do nothing is done: the savepoint goes with the clean that no longer needs it."""
    builder.table().create_savepoint(at(1), ttl="1d")
    builder.clock.move(timedelta(days=2))
    builder.commit("20270601093000000", {"eu": ["a"]})  # of a writer whose clock is ahead, as the breaker sees
    before = builder.storage.files()
    table, options = builder.table(), {"hours_retained": 1, "now": builder.clock.moment - timedelta(days=1)}
    with pytest.raises(RefusedError, match="nothing was planned and nothing was deleted"):
        if call == "clean":
            table.clean(**options)
        else:
            table.services.clean(table.services.clean_config(**options)).schedule()
    assert before == builder.storage.files()
    assert savepoints(builder) == [at(1)]


def test_one_without_time_to_live_stays(builder):
    """However old it is."""
    builder.table().create_savepoint(at(1), name="forever")
    builder.clock.move(timedelta(days=4000))
    builder.table().clean(commits_retained=1)
    assert savepoints(builder) == [at(1)]


def test_dry_run_plans_as_the_clean_will_and_writes_nothing(builder):
    """The plan names the files of the expired savepoint, and a warning names the savepoint."""
    builder.table().create_savepoint(at(1), ttl="1h")
    builder.clock.move(timedelta(hours=1))
    before = builder.storage.files()
    dry = Table(ReadOnlyStorage(builder.storage), clock=builder.clock)
    plan = dry.plan_clean(commits_retained=1)
    assert before == builder.storage.files()
    assert any(at(1) in warning and "time to live" in warning for warning in plan.warnings)
    (result,) = builder.table().clean(commits_retained=1)
    told = {f"{path}/{name}" for path, names in planned(plan).items() for name in names}
    assert file_of(builder, 1) in told
    assert set(result.deleted_files) == told


def test_a_scheduled_clean_respects_what_is_still_there(builder):
    """The plan of a clean is made after the savepoint is gone, never against one that is there."""
    builder.table().create_savepoint(at(1), ttl="1h")
    builder.clock.move(timedelta(hours=2))
    service = builder.table().services.clean(builder.table().services.clean_config(commits_retained=1))
    assert service.schedule() is not None
    assert savepoints(builder) == []


def test_restore_works_until_a_clean_has_let_go_of_it(builder):
    """The time to live takes nothing by itself."""
    builder.table().create_savepoint(at(2), name="short", ttl="1h")
    builder.clock.move(timedelta(hours=2))
    builder.table().restore("short")
    assert builder.table().timeline.writes.completed()[-1].requested_time == at(2)


def test_one_that_a_pending_restore_may_go_to_stays(builder):
    """B-33: until the restore is finished its files are needed, whatever the clock says."""
    builder.table().create_savepoint(at(1), ttl="1h")
    later = tuple(InstantInfo(at(number), "commit") for number in (4, 3, 2))
    plan = RestorePlan(instants_to_rollback=later, savepoint_to_restore_timestamp=at(1))
    builder.instant(at(5), "restore", State.REQUESTED, encode_restore_plan(plan, SYNC))
    builder.clock.move(timedelta(hours=2))
    assert builder.table().remove_expired_savepoints() == ()
    assert savepoints(builder) == [at(1)]
    builder.table().restore(at(1))
    assert [each.requested_time for each in builder.table().remove_expired_savepoints()] == [at(1)]


def test_explain_tells_name_and_end(builder):
    """Whoever asks why a file is still there learns which savepoint holds it, and for how long."""
    builder.table().create_savepoint(at(1), name="before import", user="ann", ttl="1d")
    (file,) = builder.table().explain(file_of(builder, 1), commits_retained=1).files
    assert f"held by savepoint {at(1)} (before import, ann, until 2026-06-02T00:00:00.000Z)" in file.also


def test_services_that_are_off_leave_it(builder):
    """Where table services are switched off, nothing is removed."""
    builder.table().create_savepoint(at(1), ttl="1h")
    builder.clock.move(timedelta(hours=2))
    assert builder.table(table_services_enabled=False).clean(commits_retained=1) == []
    assert savepoints(builder) == [at(1)]


def test_one_that_archival_has_passed_stays_and_is_told(builder):
    """D-7: without it archived commits would look uncommitted; the clean goes on beside it."""
    builder.table().create_savepoint(at(1), ttl="1h")
    for number in (5, 6):
        builder.commit(at(number), {"eu": ["a"]})
    builder.table().archive(keep_min_commits=3, keep_max_commits=4, archive_beyond_savepoint=True)
    builder.clock.move(timedelta(hours=2))
    plan = builder.table().plan_clean(commits_retained=1)
    assert any("archival has gone beyond" in warning for warning in plan.warnings)
    assert builder.table().remove_expired_savepoints() == ()
    builder.table().clean(commits_retained=1)
    assert savepoints(builder) == [at(1)]
    assert file_of(builder, 1) in data_files(builder.storage)


def test_record_without_notes_has_neither_name_nor_end():
    """As every savepoint of Hudi."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"eu": ["a"]})
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    content = decode_savepoint(builder.storage.read(completed_savepoint(builder)), "savepoint")
    assert (content.name, content.expires_at_ms, content.is_expired(1 << 60)) == ("", None, False)
