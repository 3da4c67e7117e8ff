"""The second planner agrees with the first one everywhere, and stops it where it errs."""

from datetime import timezone

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import RefusedError
from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.clean.planning import table_planner
from hudi_py.services.clean.planning.quick import QuickJudge
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.retention import policy as policies_module
from hudi_py.services.clean.retention.policy import Reason
from hudi_py.services.clean.verifying.verification import load_roots
from hudi_py.services.clean.verifying.verify import garbage
from hudi_py.storage.base import Entry
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.clean_histories import Step, make, paths, policies, retained, tables
from support.fixtures import expected, fixture_names, unpack
from support.laws import examples
from support.tables import TableBuilder, at

VERIFY = {"hoodie_py.clean.verify": True}


def verified(builder, **settings):
    table = builder.table(**settings)
    table.settings = table.settings.merged(VERIFY)
    return table


def second_opinion(table, **retention):
    """Everything that the second planner calls garbage."""
    config = table.services.clean_config(**retention)
    service = table.services.clean(config)
    roots = load_roots(service.contents, table.config, config, table.timeline, "0")
    return {
        f"{path}/{name}"
        for path, entries in service.planner.situation().listing.walk()
        for name in garbage(roots, path, [entry.name for entry in entries])
    }


@examples(120)
@given(tables, policies, retained, st.booleans())
def test_both_planners_agree_on_every_generated_table(made, policy, count, incremental):
    """No file is planned that something reaches, none is left out that nothing reaches."""
    table = verified(made.builder, clean_incremental_enabled=incremental)
    table.plan_clean(**{policy: count})


@pytest.mark.parametrize("layout", [1, 2])
def test_both_planners_hold_what_a_savepoint_may_need_without_naming_it(layout):
    """In layout 1 a commit of a merge-on-read table may be a compaction that completed after the savepoint."""
    history = [Step(kind, ("r0",), group) for kind, group in (("write", 0), ("write", 1), ("replace", 0))]
    made = make(layout, [*history, Step("savepoint", ("r0",), 0)])
    table = verified(made.builder, clean_incremental_enabled=False)
    planned = {path.rpartition("/")[2] for path in paths(table.plan_clean(file_versions_retained=1))}
    assert {name[:4] for name in planned} == ({"g1-0"} if layout == 1 else {"g0-0", "g1-0"})


@examples(40)
@given(tables, st.sampled_from(("commits_retained", "file_versions_retained")), retained)
def test_garbage_is_what_a_full_plan_deletes(made, policy, count):
    """The comparison is not vacuous: the second planner's own set is the plan."""
    table = made.builder.table(clean_incremental_enabled=False)
    assert second_opinion(table, **{policy: count}) == paths(table.plan_clean(**{policy: count}))


@pytest.mark.parametrize("name", fixture_names())
def test_both_planners_agree_on_tables_of_real_hudi(name, tmp_path, monkeypatch):
    """Every question that real Hudi was asked, with the second planner listening."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    path = unpack(name, tmp_path)
    now = parse_instant_time(expected(name)["inputs"]["now"], timezone.utc)
    asked = 0
    for question in expected(name)["expected"]["clean_plans"]:
        arguments = dict(question["args"])
        incremental = {"hoodie.clean.incremental.enabled": arguments.pop("incremental", True)}
        table = Table(LocalStorage(path), settings={**incremental, **VERIFY})
        asked += bool(table.plan_clean(now=now, **arguments).file_count) + 1
    assert asked


# --- mistakes of the first planner -----------------------------------------------------------------------------------
def forget(reason):
    """A planner that does not know one of its rules."""
    real = Situation.judge

    def judge(self, partition_path, entries, config):
        judged = real(self, partition_path, entries, config)
        verdicts = tuple(
            each._replace(keep=False) if each.keep and each.reason is reason else each for each in judged.verdicts
        )
        return attrs.evolve(judged, verdicts=verdicts)

    return judge


def story(layout):
    """A table on which every rule keeps something that nothing else keeps."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"], "r2": ["c"]})
    builder.savepoint(at(1), {"r1": [TableBuilder.base_name("g", at(1))]})
    builder.commit(at(4), {"r0": ["f"], "r1": ["h"]})
    builder.commit(at(5), {"r1": ["k"]}, replaced={"r1": ["h"]})
    builder.commit(at(6), {"r0": ["f"], "r2": ["c"]})
    builder.commit(at(7), {"r0": ["f"]}, state=State.INFLIGHT)
    return builder


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("reason", "retention"),
    [
        (Reason.LATEST, {"commits_retained": 2}),
        (Reason.WINDOW, {"commits_retained": 3}),
        (Reason.BEFORE_WINDOW, {"commits_retained": 2}),
        (Reason.SAVEPOINT, {"commits_retained": 2}),
        (Reason.REPLACED_IN_WINDOW, {"commits_retained": 3}),
        (Reason.VERSIONS, {"file_versions_retained": 2}),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else "",
)
def test_a_forgotten_rule_deletes_nothing(layout, reason, retention, monkeypatch):
    """Whatever rule the planner forgets, the second one refuses, names the files, and nothing is written."""
    builder = story(layout)
    full = {"clean_incremental_enabled": False}
    assert verified(builder, **full).plan_clean(**retention) is not None
    before = builder.storage.files()
    monkeypatch.setattr(QuickJudge, "of", lambda *_, **__: None)  # verdicts on every slice
    monkeypatch.setattr(Situation, "judge", forget(reason))
    wrong = paths(builder.table(**full).plan_clean(**retention))
    assert wrong
    with pytest.raises(RefusedError, match="planned but still needed"):
        verified(builder, **full).clean(**retention)
    assert builder.storage.files() == before


@pytest.mark.parametrize("layout", [1, 2])
def test_a_planner_that_keeps_too_much_is_refused_too(layout, monkeypatch):
    """Garbage that is not planned is a disagreement."""
    builder = story(layout)
    monkeypatch.setattr(policies_module, "_judge_window", lambda group, earliest, protection: [])
    with pytest.raises(RefusedError, match="not planned but garbage"):
        verified(builder, clean_incremental_enabled=False).plan_clean(commits_retained=2)


@pytest.mark.parametrize("layout", [1, 2])
def test_verified_clean_deletes_what_an_unverified_one_does(layout):
    """Agreement changes nothing."""
    plain, held = story(layout), story(layout)
    plain.table().clean(commits_retained=1)
    verified(held).clean(commits_retained=1)
    assert {path for path in plain.storage.files() if path.startswith("r")} == {
        path for path in held.storage.files() if path.startswith("r")
    }
    assert not [path for path in held.storage.files() if path.endswith(f"f_0-1-0_{at(1)}.parquet")]


def test_a_metadata_table_that_lists_what_is_not_there_costs_no_file(monkeypatch):
    """To the planner a ghost is the newest version; the folders say that what it condemns is the newest."""
    builder = TableBuilder(2)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"]})
    ghost = f"r0/{TableBuilder.base_name('f', at(3))}"
    builder.storage.delete(ghost)

    class Listing:
        is_fresh = False

        def walk(self, *, details=False):
            yield "r0", self.partition("r0")

        def partition(self, path, *, details=False):
            return [Entry(TableBuilder.base_name("f", at(number)), False, 1) for number in (1, 2, 3)]

    monkeypatch.setattr(
        table_planner, "open_snapshot", lambda store, config, settings, only=None, *, to_read: (store.load(), Listing())
    )
    newest_on_disk = f"r0/{TableBuilder.base_name('f', at(2))}"
    assert newest_on_disk in paths(builder.table().plan_clean(file_versions_retained=1))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="planned but still needed"):
        verified(builder).clean(file_versions_retained=1)
    assert builder.storage.files() == before
