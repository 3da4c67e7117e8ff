"""Partitions that are links out of the table: what a dry run tells is what the run does, and nothing behind goes."""

import os
import shutil

import pytest

from support.hostile_tables import link_away, timeline


def tree(folder):
    """Names below a folder, what links point to included, with sizes."""
    return {
        os.path.join(where, name): os.stat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder, followlinks=True)
        for name in names
    }


def away(path, outside):
    """Move a partition out of its table, leave a link; where it is now."""
    target = outside / str(len(list(outside.iterdir())))
    target.mkdir()
    link_away(path, target)
    return target / path.name


def all_away(table, outside):
    """The same for each partition that has base files: link to folder."""
    found = {path.parent for path in table.rglob("*.parquet") if ".hoodie" not in path.parts}
    return {path: away(path, outside) for path in sorted(found)}


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("fixture", ["cow_mixed-0.15.0", "cow_mixed-1.1.1", "cow_cleaned-1.0.2"])
def test_a_clean_deletes_what_its_dry_run_names_but_what_that_calls_refused(table, run, outside, fixture, scheduled):
    """A linked partition keeps its files, the rest of the clean goes on; of a plan that is stored already it is told
    too.
    """
    path = table(fixture)
    keep = ("--commits-retained", "1", "--full", "--conf", "hoodie.clean.trigger.max.commits=1")
    planned = run("clean", path, "--dry-run", "--json", *keep).json
    linked = max(planned["plan"]["files_to_delete"])
    away(path / linked, outside)
    before = tree(outside)
    if scheduled:
        run("clean", path, "--schedule-only", *keep)
    told = run("clean", path, "--dry-run", "--json", *keep).json
    done = run("clean", path, "--json", *keep).json["cleans"][0]
    if scheduled:
        (pending,) = told["pending"]
        deleted, refused = set(pending["files_to_delete"]), pending["refused"]
    else:
        assert told["plan"] == planned["plan"]
        files = {each["path"] for each in told["files"]}
        refused = told["refused"]
        deleted = {each for each in files if each.rpartition("/")[0] not in refused}
        assert files - deleted == set(done["failed_files"])
    assert list(refused) == [linked]
    assert f"{path}/{linked} is a symbolic link to" in refused[linked]
    assert deleted == set(done["deleted_files"]) != set()
    assert done["failed_files"]
    assert tree(outside) == before


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["cow_many-0.15.0", "cow_many-1.1.1", "mor_logs-0.15.0", "mor_logs-1.1.1"])
def test_a_commit_behind_a_link_is_not_begun_to_be_undone(table, run, outside, fixture):
    """Rollback and its dry run refuse alike and change nothing; with the folder in its place again it is undone."""
    path = table(fixture)
    last = max(each.name[:17] for each in timeline(path).iterdir() if each.name.endswith("commit"))
    links = all_away(path, outside)
    before = tree(path)
    told, done = run("rollback", path, last, "--dry-run"), run("rollback", path, last)
    assert (told.code, told.err) == (done.code, done.err)
    assert (told.code, "cannot be undone, nothing was changed" in told.err) == (1, True)
    assert any(f"{link} is a symbolic link to {target}; " in told.err for link, target in links.items())
    assert tree(path) == before
    for link, target in links.items():
        link.unlink()
        shutil.move(target, link)
    files = run("rollback", path, last, "--dry-run", "--json").json["files_to_delete"]
    assert run("rollback", path, last).code == 0
    assert not any((path / each).exists() for each in files)


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["cow_savepoints-0.15.0", "cow_savepoints-1.1.1"])
def test_a_restore_that_would_reach_through_a_link_is_refused_before_it_undoes_anything(table, run, outside, fixture):
    """All writes are looked at before the first one is undone; dry run and run refuse alike."""
    path = table(fixture)
    time = run("savepoint", "list", path, "--json").json[-1]["requested_time"]
    assert run("restore", path, time, "--dry-run", "--json").json["instants_to_rollback"]
    all_away(path, outside)
    before = tree(path)
    told, done = run("restore", path, time, "--dry-run"), run("restore", path, time)
    assert (told.code, told.err) == (done.code, done.err)
    assert (told.code, "is a symbolic link to" in told.err) == (1, True)
    assert tree(path) == before


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["cow_failed_write-0.15.0", "cow_failed_write-1.1.1", "mor_failed_write-0.15.0"])
def test_recover_tells_beforehand_which_steps_a_link_bars(table, run, outside, fixture):
    """A dry run names the same failures as the run, which leaves the failed write as it was."""
    path = table(fixture)
    all_away(path, outside)
    before = tree(outside)
    told = run("recover", path, "--dry-run", "--json").json
    done = run("recover", path, "--json")

    def errors(found):
        return [(each["proposal"], each["error"]) for each in found if each["error"]]

    assert errors(told) == errors(done.json) != []
    assert done.code == 1
    assert tree(outside) == before
