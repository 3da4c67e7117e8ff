"""Laws of planning that need no expected answer, on generated tables."""

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.fsview.build import build_partition, latest_slices
from hudi_py.fsview.listing import walk_partitions
from support.clean_histories import PARTITIONS, paths, policies, retained, tables
from support.laws import examples
from support.tables import data_files


@examples(120)
@given(tables, policies, retained, st.booleans())
def test_every_committed_file_is_kept_or_deleted_and_never_both(made, policy, count, incremental):
    """Verdicts name each committed slice of the partitions in scope once; the plan is exactly the condemned ones."""
    table = made.builder.table(clean_incremental_enabled=incremental)
    plan = table.plan_clean(details=True, **{policy: count})
    slices = [verdict.file_slice for verdict in plan.verdicts]
    assert len(set(slices)) == len(slices)
    named = [f"{s.partition_path}/{name}" for s in slices for name in s.file_names]
    assert len(set(named)) == len(named)
    condemned = {
        f"{v.file_slice.partition_path}/{name}" for v in plan.verdicts if not v.keep for name in v.file_slice.file_names
    }
    assert paths(plan) == condemned
    pending = [i.requested_time for i in table.timeline.commits.pending()]
    uncommitted = {path for path in data_files(made.builder.storage) if any(time in path for time in pending)}
    uncommitted |= {  # a completed delta commit's logs on a slice whose base file is pending
        f"{path}/{name}" for path in PARTITIONS for s in table.partition(path).uncommitted for name in s.file_names
    }
    examined = {verdict.file_slice.partition_path for verdict in plan.verdicts}
    if plan.scope.everything:
        on_storage = {p for p in data_files(made.builder.storage) if p.partition("/")[0] in examined}
        assert on_storage - uncommitted <= set(named) <= on_storage


@examples(120)
@given(tables, policies, retained)
def test_what_readers_see_is_never_planned(made, policy, count):
    """Newest slices of live groups stay, whatever the retention; savepointed and uncommitted files too."""
    table = made.builder.table()
    plan = table.plan_clean(**{policy: count})
    visible = {
        f"{path}/{name}"
        for path, entries in walk_partitions(table.storage)
        for each in latest_slices(
            table.view_context,
            build_partition(table.view_context, path, ((entry.name, entry.size_bytes) for entry in entries)),
        )
        for name in each.file_names
    }
    assert not paths(plan) & visible
    assert not paths(plan) & made.savepointed
    for instant in table.timeline.commits.pending():
        assert not [path for path in paths(plan) if path.endswith(f"_{instant.requested_time}.parquet")]


@examples(120)
@given(tables, policies, st.integers(1, 5), st.integers(1, 4))
def test_larger_retention_never_deletes_more(made, policy, count, more):
    """Looking at all partitions, the plan of a larger retention is part of that of a smaller one."""
    table = made.builder.table(clean_incremental_enabled=False)
    small, large = (paths(table.plan_clean(**{policy: number})) for number in (count, count + more))
    if policy == "hours_retained" and table.plan_clean(hours_retained=count).earliest_to_retain is None:
        return  # nothing is as young as that: then nothing is cleaned at all
    assert large <= small


@examples(60)
@given(tables, policies, retained)
def test_planning_twice_gives_equal_plans_and_changes_nothing(made, policy, count):
    """A plan is a function of the table, the settings and the time."""
    before = made.builder.storage.files()
    first = made.builder.table().plan_clean(details=True, **{policy: count})
    assert made.builder.table().plan_clean(details=True, **{policy: count}) == first
    assert made.builder.storage.files() == before


@examples(80)
@given(tables, policies, retained)
def test_clean_removes_its_plan_and_nothing_else_and_then_has_nothing_to_do(made, policy, count):
    """Storage after = storage before - plan; the next clean finds nothing, incremental or not."""
    storage = made.builder.storage
    before = set(data_files(storage))
    plan = made.builder.table().plan_clean(**{policy: count})
    results = made.builder.table().clean(**{policy: count})
    if not plan.would_schedule:
        assert (results, set(data_files(storage))) == ([], before)
        return
    assert before - set(data_files(storage)) == paths(plan) & before
    assert [result.superseded for result in results] == [False]
    for incremental in (True, False):
        again = made.builder.table(clean_incremental_enabled=incremental).plan_clean(**{policy: count})
        assert again.file_count == 0


@examples(60)
@given(tables, retained)
def test_incremental_plan_is_part_of_the_full_one(made, count):
    """Looking at fewer partitions can only find less."""
    full = made.builder.table(clean_incremental_enabled=False).plan_clean(commits_retained=count)
    part = made.builder.table().plan_clean(commits_retained=count)
    assert paths(part) <= paths(full)
