"""Explanations are true: what they announce is what cleans then do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError
from hudi_py.inspection.cli import main
from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.explain.explain import Need
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.clean_histories import PARTITIONS, paths, policies, retained, tables
from support.cli_runner import RUNNER
from support.fixtures import fixture_names, unpack
from support.laws import examples
from support.tables import TableBuilder, at

FULL = {"clean_incremental_enabled": False}


def explained(table, target, **retention):
    return {file.path: file for file in table.explain(target, **retention).files}


def everything(table, **retention):
    return {path: file for each in table.partitions() for path, file in explained(table, each, **retention).items()}


def only(file, need):
    """The value of the only condition, if it is of that kind."""
    return file.conditions[0].value if [each.need for each in file.conditions] == [need] else None


# --- laws ------------------------------------------------------------------------------------------------------------
@examples(40)
@given(tables, policies, retained, st.booleans())
def test_removable_is_exactly_what_the_plan_deletes(made, policy, count, incremental):
    """Every file in the folders gets one answer, and those called removable are the plan."""
    table = made.builder.table(clean_incremental_enabled=incremental)
    answers = everything(table, **{policy: count})
    assert {path for path, file in answers.items() if file.removable} == paths(table.plan_clean(**{policy: count}))
    in_folders = {path for path in made.builder.storage.files() if path.partition("/")[0] in PARTITIONS}
    assert set(answers) == in_folders
    assert all(file.conditions or file.removable for file in answers.values())


@examples(30)
@given(tables, retained)
def test_file_goes_after_as_many_commits_as_announced_and_not_before(made, count):
    """'after N more commits' is exact: N - 1 of them do not release the file, N do."""
    builder = made.builder
    announced = {
        path: int(only(file, Need.COMMITS))
        for path, file in everything(builder.table(), commits_retained=count).items()
        if only(file, Need.COMMITS) is not None
    }
    for more in range(1, max(announced.values(), default=0) + 1):
        builder.commit(at(made.length + more), {"r0": [f"other{more}"]})
        planned = paths(builder.table(**FULL).plan_clean(commits_retained=count))
        assert {path for path in announced if path in planned} == {p for p, n in announced.items() if n <= more}


@examples(30)
@given(tables, st.integers(1, 6))
def test_file_goes_at_the_announced_time_and_not_a_millisecond_before(made, hours):
    """'from T on' is exact, given a commit inside the window."""
    builder = made.builder
    zone = builder.table().zone
    builder.commit(at(made.length + 1), {"r9": ["other"]})
    for path, file in everything(builder.table(), hours_retained=hours).items():
        if [each.need for each in file.conditions] != [Need.TIME, Need.RECENT_COMMIT]:
            continue
        moment = parse_instant_time(file.conditions[0].value, zone)
        builder.commit(file.conditions[0].value, {"r9": ["fresh"]})
        before = parse_instant_time(str(int(file.conditions[0].value) - 1), zone)
        assert path in paths(builder.table(**FULL).plan_clean(hours_retained=hours, now=moment))
        if file.conditions[0].value[10:] == "0000001":  # one before is a time of the same second
            assert path not in paths(builder.table(**FULL).plan_clean(hours_retained=hours, now=before))
        return


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("versions", [1, 3])
def test_file_goes_after_as_many_versions_as_announced(layout, versions):
    """'after N more versions' is exact."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    first = "r0/" + TableBuilder.base_name("f", at(1))
    for written in range(1, versions + 1):
        file = explained(builder.table(), first, file_versions_retained=versions)[first]
        assert only(file, Need.VERSIONS) == str(versions + 1 - written)
        assert not file.removable
        builder.commit(at(1 + written), {"r0": ["f"]})
    assert explained(builder.table(), first, file_versions_retained=versions)[first].removable


# --- who holds what --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", [1, 2])
def test_savepoints_that_hold_a_file_are_named_and_their_deletion_releases_it(layout):
    """The savepoint's time and maker stand in the answer; without it the file is planned."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3, 4):
        builder.commit(at(number), {"r0": ["f"]})
    first = TableBuilder.base_name("f", at(1))
    builder.savepoint(at(1), {"r0": [first]})
    file = explained(builder.table(), first, commits_retained=1)[f"r0/{first}"]
    assert not file.removable
    assert only(file, Need.SAVEPOINT) == at(1)
    assert f"held by savepoint {at(1)} (tester)" in file.also
    builder.delete_savepoint(at(1))
    assert explained(builder.table(), first, commits_retained=1)[f"r0/{first}"].removable


@pytest.mark.parametrize("layout", [1, 2])
def test_pending_instant_that_holds_the_window_back_is_named(layout):
    """Without the pending commit the window would have passed the file."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["g"]}, state=State.INFLIGHT)
    for number in (3, 4, 5):
        builder.commit(at(number), {"r0": ["f"]})
    first = "r0/" + TableBuilder.base_name("f", at(1))
    file = explained(builder.table(), first, commits_retained=1)[first]
    assert [(each.need, each.value) for each in file.conditions] == [(Need.PENDING, f"commit {at(2)} (inflight)")]
    assert f"commit {at(2)} (inflight) is pending, and the retention window does not pass it" in file.also


@pytest.mark.parametrize("layout", [1, 2])
def test_pending_compaction_is_named(layout):
    """A slice that a pending compaction reads waits for it."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["f"]})
    builder.compaction(at(2), [("r0", "f", at(1), ())])
    first = "r0/" + TableBuilder.base_name("f", at(1))
    file = explained(builder.table(), "f", file_versions_retained=1)[first]
    assert (Need.COMPACTION, at(2)) in [(each.need, each.value) for each in file.conditions]
    assert f"compaction {at(2)} of its file group is pending" in file.also


@pytest.mark.parametrize("layout", [1, 2])
def test_a_service_that_holds_the_slice_and_the_window_is_named_once(layout):
    """Both wait for the same plan; the window of another group's slice waits for it, too, and says so."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["f", "g"]}, action="deltacommit")
    builder.compaction(at(2), [("r0", "f", at(1), ())])
    for number in (3, 4, 5):
        builder.commit(at(number), {"r0": ["g"]}, action="deltacommit")
    held, other = (f"r0/{TableBuilder.base_name(group, at(1))}" for group in ("f", "g"))
    table = builder.table()
    waits = [each for each in explained(table, "f", commits_retained=1)[held].conditions if at(2) in each.value]
    assert [each.need for each in waits] == [Need.COMPACTION]
    waits = [each for each in explained(table, "g", commits_retained=1)[other].conditions if at(2) in each.value]
    assert [each.need for each in waits] == [Need.PENDING]


@pytest.mark.parametrize("layout", [1, 2])
def test_replaced_group_names_its_replacecommit(layout):
    """A replaced group waits until its replacecommit lies before the window."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["g"]}, replaced={"r0": ["f"]})
    file = explained(builder.table(), "f", commits_retained=1)["r0/" + TableBuilder.base_name("f", at(1))]
    assert file.replaced_by == at(2)
    assert only(file, Need.COMMITS) == "1"


# --- files that no planner looks at ----------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", [1, 2])
def test_files_outside_every_slice_are_explained_too(layout):
    """Pending write, orphan, task leftover, metafile, foreign file: each gets its own rule and is never removable."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["f"]}, state=State.INFLIGHT)
    builder.commit(at(4), {"r0": ["g"]})
    builder.put(f"r0/f_0-9-9_{at(3)}.parquet")
    builder.put(f"r0/g_0-0-0_{at(4)}.parquet")
    builder.put("r0/notes.txt")
    files = explained(builder.table(), "r0", commits_retained=1)
    rules = {path.partition("/")[2]: (file.origin, file.rule, file.removable) for path, file in files.items()}
    assert rules[TableBuilder.base_name("f", at(2))][0] == "inflight"
    assert "not completed" in rules[TableBuilder.base_name("f", at(2))][1]
    assert rules[f"f_0-9-9_{at(3)}.parquet"][0] == "orphan"
    assert "retried" in rules[f"g_0-0-0_{at(4)}.parquet"][1]
    assert rules["notes.txt"][:2] == ("unknown", "no file of a Hudi table")
    assert rules[".hoodie_partition_metadata"][1] == "marks the folder as a partition"
    assert not any(removable for _, _, removable in rules.values())


def test_log_file_of_layout_1_names_the_delta_commit_that_wrote_it():
    """Its name holds the base instant only; the delta commits know."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["f"]})
    builder.log_files(at(2), [("r0", "f", at(1))])
    builder.log_files(at(3), [("r0", "f", at(1))])
    writers = {
        path: file.written_by.requested_time
        for path, file in explained(builder.table(), "f").items()
        if file.kind == "log file"
    }
    assert [time for _, time in sorted(writers.items())] == [at(2), at(3)]


def test_partition_outside_the_scope_says_why_it_waits():
    """A file that the policy lets go stays while the next clean does not look at its partition."""
    builder = TableBuilder(2)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"]})
    builder.commit(at(4), {"r1": ["g"]})
    builder.commit(at(5), {"r1": ["g"]})
    builder.cleaned(at(6), earliest=at(4), last_commit=at(5))
    builder.commit(at(7), {"r1": ["g"]})
    first = "r0/" + TableBuilder.base_name("f", at(1))
    file = explained(builder.table(), first, commits_retained=1)[first]
    assert not file.removable
    assert [each.need for each in file.conditions] == [Need.FULL_CLEAN]
    assert explained(builder.table(**FULL), first, commits_retained=1)[first].removable


def test_what_is_not_there_is_an_error():
    """Nothing of that name: no empty answer."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"r0": ["f"]})
    with pytest.raises(ConfigError, match="no file, file group or partition 'nope'"):
        builder.table().explain("nope")


# --- real tables -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", fixture_names())
def test_every_file_of_a_real_table_is_explained_and_agrees_with_the_plan(name, tmp_path):
    """Nothing is orphaned in tables of real Hudi; removable = planned; the command line says the same."""
    path = unpack(name, tmp_path)
    table = Table(LocalStorage(path))
    answers = everything(table, commits_retained=1)
    planned = {p for p in paths(table.plan_clean(commits_retained=1)) if (path / p).exists()}  # a clean was interrupted
    assert {p for p, file in answers.items() if file.removable} == planned
    assert [] == [p for p, file in answers.items() if file.origin == "orphan" and "rolled_back" not in name]
    before = sorted(p for p in path.rglob("*"))
    for partition in table.partitions():
        arguments = ["explain", str(path), partition or ".", "--commits-retained", "1"]
        result = RUNNER.invoke(main, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        listed = {file["path"]: file["verdict"] == "removable" for file in json.loads(result.output)["files"]}
        assert listed == {p: answers[p].removable for p in listed}
        assert RUNNER.invoke(main, arguments).exit_code == 0
    assert before == sorted(p for p in path.rglob("*"))
