"""A window that ends earlier when its older versions are too large, and changes that are kept apart from it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.clean_options import clean_config_with
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import parse_instant_time
from support.clean_histories import make, paths, steps
from support.laws import examples
from support.tables import NOW, TableBuilder, at, data_files

FULL = {"clean_incremental_enabled": False}
LIMIT = "hoodie_py.clean.max.old.bytes"
CHANGES = "hoodie_py.clean.changes.retained"
FLOOR = "hoodie_py.clean.floor"
tables = st.builds(make, st.sampled_from((1, 2)), steps)


def planned(made, age, **settings):
    """The files that a clean right after the last step deletes, by both planners."""
    table = made.builder.table(**FULL)
    table.settings = table.settings.merged({"hoodie_py.clean.verify": True, **settings})
    now = parse_instant_time(at(made.length + 1), NOW.tzinfo)
    plan = table.plan_clean(age_retained=age, now=now, details=True)
    return paths(plan), plan


def windows(made, age):
    """What each shorter window deletes, from the one asked for to the shortest; sets that grow."""
    found = [planned(made, age)[0]]
    for number in range(1, made.length + 2):
        table = made.builder.table(**FULL)
        now = parse_instant_time(at(made.length + 1), NOW.tzinfo)
        files = paths(table.plan_clean(older_than=at(number), now=now))
        found.append(files | found[0])
    return sorted(found, key=len)


@examples(60)
@given(tables, st.integers(1, 14).map("{}h".format), st.integers(1, 60))
def test_a_limit_deletes_what_a_shorter_window_deletes_and_no_more_than_it_has_to(made, age, limit):
    """The longest window that fits: whichever is longer keeps more bytes than allowed."""
    steps_of_it = windows(made, age)
    files, plan = planned(made, age, **{LIMIT: limit})
    assert files in steps_of_it
    assert made.savepointed.isdisjoint(files)
    freed = max(steps_of_it, key=len)
    size = {f.path: f.size_bytes or 0 for f in windows_files(made)}

    def left(deleted):
        return sum(size[path] for path in freed - deleted)

    if not any(LIMIT in each or "are allowed" in each for each in plan.warnings):
        assert left(files) <= limit
    # Older versions that no window frees count, too: those that the last commit superseded.
    table = made.builder.table()
    newest = {f"{p}/{name}" for p in table.partitions() for s in table.file_slices(p) for name in s.file_names}
    others = set(data_files(made.builder.storage)) - freed - newest
    stay = sum(len(made.builder.storage.read(path)) for path in others)
    longer = [each for each in steps_of_it if each < files]
    assert all(left(each) + stay > limit for each in longer)


def windows_files(made):
    """Every file that the shortest window deletes, with its size."""
    now = parse_instant_time(at(made.length + 1), NOW.tzinfo)
    found = []
    for number in range(1, made.length + 2):
        plan = made.builder.table(**FULL).plan_clean(older_than=at(number), now=now, details=True)
        found += [file for group in plan.files.values() for file in group]
    return found + [f for g in planned(made, "1h")[1].files.values() for f in g]


@examples(40)
@given(tables, st.integers(1, 6), st.integers(1, 14), st.integers(1, 60))
def test_changes_are_kept_whatever_the_window_and_the_limit_say(made, age, span, limit):
    """No file goes that a window of that span keeps; without them being longer, they change nothing."""
    for settings in ({}, {LIMIT: limit}):
        without, _ = planned(made, f"{age}h", **settings)
        files, _ = planned(made, f"{age}h", **{CHANGES: f"{span}h", **settings})
        assert files <= without
        now = parse_instant_time(at(made.length + 1), NOW.tzinfo)
        cut = made.builder.table(**FULL).plan_clean(older_than=timedelta(hours=span), now=now)
        assert files <= paths(cut) | planned(made, f"{age}h")[0]
        assert files <= paths(cut)
        if span <= age and not settings:
            assert files == without


def history(commits=10):
    builder = TableBuilder()
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["f"]})
    builder.clock.moment = parse_instant_time(at(commits), NOW.tzinfo) + timedelta(minutes=1)
    return builder


def cleaned(builder, **more):
    settings = {"hoodie_py.clean.age.retained": "7d", "hoodie_py.clean.verify": True, **more}
    table = builder.table()
    table.settings = table.settings.merged(settings)
    return table.plan_clean(details=True)


def test_the_oldest_go_first_until_the_rest_fits():
    """Ten versions of four bytes: nine are old, and eight bytes are two of them."""
    plan = cleaned(history(), **{LIMIT: 8})
    assert sorted(path[-25:-8] for path in paths(plan)) == [at(number) for number in range(1, 8)]
    assert plan.earliest_to_retain.requested_time == at(9)
    assert not paths(cleaned(history(), **{LIMIT: 36}))
    assert len(paths(cleaned(history(), **{LIMIT: 35}))) == 1


def test_a_limit_does_not_go_below_floor_changes_and_commits():
    """What other lines promise stays, and a warning says that the limit is exceeded."""
    for more, kept in (({FLOOR: "4h"}, 4), ({CHANGES: "5h"}, 5), ({"hoodie_py.clean.min.commits": 6}, 6)):
        plan = cleaned(history(), **{LIMIT: 1}, **more)
        assert len(paths(plan)) == 9 - kept, more
        assert any("bytes of older versions" in each for each in plan.warnings)


def test_a_table_that_rests_is_still_cleaned():
    """Hours after the last commit the floor and the changes are that commit's, and hold nothing up."""
    builder = history()
    builder.clock.move(timedelta(hours=20))
    assert len(paths(cleaned(builder, **{LIMIT: 1, FLOOR: "1h", CHANGES: "2h"}))) == 8


def test_what_savepoints_and_leases_keep_does_not_count():
    """No shorter window would free it, so it must not make the window shorter."""
    builder = history()
    builder.savepoint(at(2), {"r0": [builder.base_name("f", at(2))]})
    plan = cleaned(builder, **{LIMIT: 32})
    assert not paths(plan)
    assert len(paths(cleaned(builder, **{LIMIT: 31}))) == 1


def test_cleans_one_after_the_other_hold_the_limit():
    """Incremental ones, which look at what changed since the last; the newest rows are never in question."""
    builder = history(3)
    for number in range(4, 14):
        builder.commit(at(number), {"r0": ["f"], f"r{number % 3}": ["g"]})
        builder.clock.moment = parse_instant_time(at(number), NOW.tzinfo) + timedelta(minutes=1)
        table = builder.table()
        table.settings = table.settings.merged({"hoodie_py.clean.age.retained": "7d", LIMIT: 12})
        table.clean()
        old = [path for path in builder.storage.files() if path.endswith(".parquet")]
        newest = sum(len(table.refresh().file_slices(path)) for path in table.partitions())
        assert 4 * (len(old) - newest) <= 12


def test_the_limit_is_one_on_a_window_by_time():
    """Elsewhere it is refused, and a run with another retention goes without it."""
    with pytest.raises(ConfigError, match="limits a window by time"):
        clean_config_with(Settings({LIMIT: 5}), {}, now=NOW, zone=NOW.tzinfo)
    settings = Settings({LIMIT: 5, "hoodie_py.clean.age.retained": "7d"})
    for options in ({"commits_retained": 1}, {"older_than": "1h"}):
        assert clean_config_with(settings, options, now=NOW, zone=NOW.tzinfo).max_old_bytes is None
    assert clean_config_with(settings, {"age_retained": "1d"}, now=NOW, zone=NOW.tzinfo).max_old_bytes == 5


def test_explanations_say_that_it_may_go_sooner():
    """And du and explain show the window that is in force."""
    builder = history()
    table = builder.table()
    table.settings = table.settings.merged({"hoodie_py.clean.age.retained": "7d", LIMIT: 8})
    explained = {file.path: file for file in table.explain("r0").files}
    assert sum(file.removable for file in explained.values()) == 7
    kept = [file for file in explained.values() if not file.removable and file.conditions and file.file_id]
    assert any("8 B are kept at most" in fact for file in kept for fact in file.also)
