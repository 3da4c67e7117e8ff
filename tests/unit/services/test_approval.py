"""Files that a person approved: exactly these go, as far as they may, and nothing is lost or kept for ever."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta

import attrs
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.removal_list import RemovalList
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopAfter
from hudi_py.timeline.quarantine import removals
from support.tables import NOW, TableBuilder, at, data_files

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def history(layout=2, commits=4, **options):
    builder = TableBuilder(layout, **options)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def approved(asked, keep=lambda path: False, by="ann"):
    """The list as a person gives it back: through its text, without some lines."""
    files = tuple(each for each in asked.files if not keep(each.path))
    return RemovalList.parse(attrs.evolve(asked, approved_by=by, files=files).text(), "list.jsonl")


@LAYOUTS
def test_making_a_list_writes_nothing_and_names_what_a_clean_would_delete(layout):
    """A plan on the timeline would be carried out by the next writer, Apache Hudi too."""
    builder = history(layout)
    asked = Table(ReadOnlyStorage(builder.storage), clock=builder.clock).list_for_approval(commits_retained=1)
    (usual,) = history(layout).table().clean(commits_retained=1)
    assert {each.path for each in asked.files} == set(usual.deleted_files)
    assert asked.options == {"commits_retained": 1}


@LAYOUTS
def test_approved_as_a_whole_it_is_the_clean_that_was_asked_about(layout):
    """With its options, and the name of who approved it in the extra metadata; the default would keep these files."""
    builder, plain = history(layout), history(layout)
    (usual,) = plain.table().clean(commits_retained=1)
    report = builder.table().remove_approved(approved(builder.table().list_for_approval(commits_retained=1)))
    assert set(report.removed) == set(usual.deleted_files)
    assert report.kept == {}
    metadata = report.cleans[0].metadata
    assert metadata.extra_metadata.pop("hudi_py.approved_by") == "ann"
    assert attrs.evolve(metadata, time_taken_ms=0) == attrs.evolve(usual.metadata, time_taken_ms=0)


@LAYOUTS
@pytest.mark.parametrize("seed", range(8))
def test_only_approved_files_go_and_later_cleans_find_the_rest(layout, seed):
    """Random parts of the list: no other file is touched, each time reads whole or is refused, nothing stays."""
    draw = random.Random(seed)
    builder, plain = history(layout, 6), history(layout, 7)
    plain.table().clean(commits_retained=1)
    asked = builder.table().list_for_approval(commits_retained=2)
    chosen = {each.path for each in asked.files if draw.random() < 0.5}
    before = {*data_files(builder.storage)}
    report = builder.table().remove_approved(approved(asked, lambda path: path not in chosen))
    assert set(report.removed) == chosen
    assert {*data_files(builder.storage)} == before - chosen
    table = builder.table()
    for number in range(1, 7):
        with suppress(RefusedError):
            for each in table.snapshot(at(number)).slices_with_rows():
                assert builder.storage.size(f"{each.partition_path}/{each.base_file.name}") is not None
    builder.commit(at(7), {"r0": ["f"], "r1": ["g"]})
    builder.clock.move(timedelta(seconds=5))
    builder.table().clean(commits_retained=1)
    assert data_files(builder.storage) == data_files(plain.storage)


def test_a_list_that_nobody_approved_or_of_another_table_is_refused():
    """Nothing is removed."""
    builder = history()
    asked = builder.table().list_for_approval(commits_retained=1)
    before = builder.storage.files()
    for wrong, why in (
        (approved(asked, by=" "), "nobody has approved"),
        (attrs.evolve(approved(asked), table="/lake/other"), "/lake/other"),
    ):
        with pytest.raises(RefusedError, match=why):
            builder.table().remove_approved(wrong)
    assert builder.storage.files() == before


@pytest.mark.parametrize("kind", ["clean", "orphans"])
@pytest.mark.parametrize(
    "change",
    [
        *(
            {"options": {name: value}}
            for name in ("now", "approved", "delete", "approve", "older_than", "max_deletes", "inventory", "instants")
            for value in (5.5, {}, None)
        ),
        {"options": {"policy": 3}},
        {"approved_by": "ann\x1b[2K"},
        {"approved_by": "ann\nben"},
    ],
)
def test_a_first_line_that_no_list_has_is_refused(kind, change):
    """A hand that slipped gets a message about the list; an unexpected error said nothing about it."""
    builder = history()
    asked = attrs.evolve(approved(builder.table().list_for_approval(commits_retained=1)), kind=kind, **change)
    before = builder.storage.files()
    with pytest.raises(ConfigError, match="nothing was removed"):
        builder.table().remove_approved(asked)
    assert builder.storage.files() == before


@pytest.mark.parametrize(
    "line",
    [
        '{"path": "../x.parquet", "size_bytes": 1}',
        '{"path": "r0/notes.txt", "size_bytes": 1}',
        "{",
        "[]",
        '{"path": 1}',
    ],
)
def test_a_line_that_names_no_data_file_is_refused(line):
    """A hand that slipped must not reach another file; the message names the line."""
    asked = history().table().list_for_approval(commits_retained=1)
    with pytest.raises(ConfigError, match=r"list\.jsonl, line 6: "):
        RemovalList.parse(attrs.evolve(asked, approved_by="ann").text() + line, "list.jsonl")
    with pytest.raises(ConfigError, match="line 1"):
        RemovalList.parse("", "list.jsonl")


def test_what_something_needs_since_stays_and_is_named():
    """A lease that was taken after the list, a file that was changed, one that is gone."""
    builder = history()
    asked = builder.table().list_for_approval(commits_retained=1)
    leased = {f"r{n}/{builder.base_name(file, at(2))}" for n, file in enumerate("fg")}
    changed, gone = (f"r{n}/{builder.base_name(file, at(1))}" for n, file in enumerate("fg"))
    builder.table().take_lease(ttl="3h", at=at(2))
    builder.storage.replace(changed, b"another")
    builder.storage.delete(gone)
    trial = builder.table().remove_approved(approved(asked), dry_run=True)
    report = builder.table().remove_approved(approved(asked))
    assert trial.kept == report.kept
    assert set(report.kept) == leased | {changed, gone}
    assert "lease" in report.kept[min(leased)]
    assert "7 bytes" in report.kept[changed]
    assert report.kept[gone] == "it is not there any more"
    assert set(report.removed) == {each.path for each in asked.files} - set(report.kept)


def test_a_clean_that_is_pending_is_not_carried_out_on_the_way():
    """It would delete files that nobody approved."""
    builder = history()
    asked = builder.table().list_for_approval(commits_retained=3)
    table = builder.table()
    table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match="finish it with hudi-py clean first"):
        builder.table().remove_approved(approved(asked))
    assert data_files(builder.storage) == before


def test_replaced_groups_cannot_be_left_by_a_clean_of_versions():
    """Archival, of Apache Hudi too, takes them for deleted: their rows would come back."""
    builder = history()
    builder.commit(at(5), {"r0": ["h"]}, action="replacecommit", replaced={"r0": ["f"]})
    builder.commit(at(6), {"r0": ["h"], "r1": ["g"]})
    asked = builder.table().list_for_approval(file_versions_retained=1)
    replaced = f"r0/{builder.base_name('f', at(4))}"
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="was replaced"):
        builder.table().remove_approved(approved(asked, lambda path: path == replaced))
    assert builder.storage.files() == before
    assert builder.table().remove_approved(approved(asked)).kept == {}


@LAYOUTS
def test_at_every_call_only_approved_files_are_gone(layout):
    """Whoever finishes it, a clean with any retention, deletes no other file by it."""
    number, is_cut = 0, True
    while is_cut:
        builder = history(layout)
        asked = builder.table().list_for_approval(commits_retained=1)
        chosen = {each.path for each in asked.files if "r0" in each.path}
        part = approved(asked, lambda path: "r0" not in path)
        before = {*data_files(builder.storage)}
        faulty = StopAfter(builder.storage, number)
        with suppress(Crash):
            Table(faulty, clock=builder.clock).remove_approved(part)
        is_cut = faulty.fired is not None
        assert before - chosen <= {*data_files(builder.storage)}
        builder.clock.move(timedelta(seconds=5))
        builder.table().clean(commits_retained=100)
        assert before - chosen <= {*data_files(builder.storage)}
        builder.clock.move(timedelta(seconds=5))
        builder.table().clean(commits_retained=1)
        assert len(data_files(builder.storage)) == 4
        number += 1
    assert number > 5


def test_orphans_are_removed_as_they_were_approved():
    """Into quarantine; the one that was taken out of the list stays, and the next search finds it."""
    builder = history()
    strangers = [f"r{n}/{builder.base_name('x', at(2)[:-7] + '1500000')}" for n in (0, 1)]
    for path in strangers:
        builder.put(path)
    table = Table(builder.storage, clock=FixedClock(NOW + timedelta(days=400)))
    asked = table.list_for_approval("orphans", older_than="1d")
    assert [each.path for each in asked.files] == strangers
    report = table.remove_approved(approved(asked, lambda path: path == strangers[1]))
    assert report.removed == (strangers[0],)
    assert builder.storage.size(strangers[1]) is not None
    assert builder.storage.size(f"{report.orphans.quarantine}/files/{strangers[0]}") is not None
    assert table.orphans(older_than="1d").done == (strangers[1],)


@LAYOUTS
def test_a_list_holds_under_the_settings_that_it_was_made_under(layout):
    """Retention and quarantine of the one who asked, though the one who approves gives neither; secrets stay out."""
    builder = history(layout)
    made = {"hoodie.cleaner.commits.retained": 1, "hoodie_py.clean.quarantine": True, "hoodie.write.lock.x": "secret"}
    asked = builder.table().list_for_approval(commits_retained=1)
    under = Table(
        builder.storage, settings={**made, "hoodie_py.conf.allow.unknown": True}, clock=builder.clock
    ).list_for_approval()
    assert under.files == asked.files
    assert under.settings == {"hoodie.cleaner.commits.retained": "1", "hoodie_py.clean.quarantine": "true"}
    report = builder.table().remove_approved(approved(under))
    assert set(report.removed) == {each.path for each in asked.files}
    assert removals(builder.storage) == (report.cleans[0].instant,)


def test_other_settings_than_those_of_the_list_are_refused():
    """Nobody can tell which were meant; under another name of the setting, too. The same value contradicts nothing."""
    builder = history()
    asked = approved(builder.table(cleaner_commits_retained=1).list_for_approval())
    before = builder.storage.files()
    with pytest.raises(ConfigError, match=r"commits\.retained=2, but the list was made under .*=1"):
        builder.table(clean_commits_retained=2).remove_approved(asked)
    with pytest.raises(ConfigError, match="lists do not have"):
        builder.table().remove_approved(attrs.evolve(asked, settings={"hoodie.table.name": "x"}))
    assert builder.storage.files() == before
    assert builder.table(clean_commits_retained=1).remove_approved(asked).removed
