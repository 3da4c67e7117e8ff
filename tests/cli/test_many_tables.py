"""``--tables`` and ``fleet``: a run over many tables gives what single runs give, and a failure stays its own."""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures.process import BrokenProcessPool

import pytest

from hudi_py.inspection import many_tables, over_tables, worker_pool
from hudi_py.inspection.clean_command import clean
from hudi_py.inspection.cli import main
from hudi_py.inspection.fleet_budget import budget_of
from hudi_py.inspection.maintain_command import maintain, maintenance_entry
from hudi_py.inspection.many_tables import Outcome, Plan
from hudi_py.inspection.run_journal import RunJournal
from hudi_py.services.maintenance.service import Chore, ChoreReport, ChoreResult, MaintenanceReport
from support.cli_runner import lines_of_tables
from support.tables import TableBuilder, at, on_disk

ALONE = ("--parallel", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("timeline", "--limit", 2), ("check",), ("doctor",), ("recover", "--dry-run"),
        ("clean", "--dry-run", "--commits-retained", 1), ("savepoint", "list"),
    ],
    ids=lambda each: each[0],
)  # fmt: skip
def test_a_run_over_many_tables_gives_what_single_runs_give(run, lake, tmp_path, arguments):
    """Result and exit code of each table; what is no table is an error of its own, and the run exits with 6."""
    position = 2 if arguments[0] == "savepoint" else 1
    names, rest = arguments[:position], arguments[position:]
    result = run(*names, "--tables", tmp_path / "list.txt", *rest, "--json", *ALONE)
    assert result.code == 6
    found = lines_of_tables(result)
    assert set(found) == {*lake, str(tmp_path / "none")}
    now = {"age_seconds"}
    for table, line in found.items():
        single = run(*names, table, *rest, "--json")
        assert line["exit_code"] == single.code
        if table in lake:
            assert set(line) == {"table", "exit_code", "result"}
            assert without(line["result"], now) == without(single.json, now)
        else:
            assert line == {"table": table, "exit_code": 5, "error": single.json["error"]}


def without(value, names):
    """The document without what differs from moment to moment."""
    if isinstance(value, dict):
        return {key: without(each, names) for key, each in value.items() if key not in names}
    return [without(each, names) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("overview",), r"2 partitions, 8\d\d\.\d kB in newest files, .* in older ones, last commit .* ago"),
        (("timeline",), r"12 instants"), (("files",), r"2 partitions"), (("history",), r"12 events"),
        (("savepoint", "list"), r"nothing"), (("savepoint", "create"), r"\d{17} keeps 2 files"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)  # fmt: skip
def test_a_line_tells_tables_apart(run, lake, tmp_path, words, said):
    """In words for people, not by keys of the document; singular and plural are right."""
    (tmp_path / "one.txt").write_text(lake[0])
    [line] = run(*words, "--tables", tmp_path / "one.txt", *ALONE).out.splitlines()
    assert re.fullmatch(rf"ok      {re.escape(lake[0])}{said and '  '}{said}", line), line


def test_exit_code_is_zero_when_none_failed(run, lake, tmp_path):
    """Findings are no failures; the summary is on standard error."""
    result = run("doctor", "--tables", tmp_path, *ALONE)
    assert result.code == 0
    assert result.err.strip().endswith("3 tables, 0 failed")
    assert all(table in result.out for table in lake)


def test_what_a_table_warns_of_is_told_once(run, lake, tmp_path):
    """As a run on that table alone tells it; the same words of the next tables are no news."""
    setting = ("--conf", "hoodie.clean.commits.retained=3")
    single = run("timeline", lake[0], *setting).err
    assert "has no effect" in single
    many = run("timeline", "--tables", tmp_path / "list.txt", *setting, *ALONE, "--json").err
    assert many.count(single.strip()) == 1
    assert "has no effect" not in run("timeline", "--tables", tmp_path, *ALONE).err


def test_wrong_usage_ends_before_the_first_table(run, lake, tmp_path, monkeypatch):
    """One error in the place of one per table."""
    monkeypatch.setattr(many_tables, "run_one", None)
    for arguments in (
        ("clean", "--frobnicate"), ("clean", lake[0]), ("clean", "--parallel", "0"), ("restore", "1"), ("write", "x"),
        ("du", "--within", "soon"), ("du", "--resume", tmp_path), ("nothing",), ("du", "--tables", "x"),
    ):  # fmt: skip
        result = run(*arguments, "--tables", tmp_path)
        assert result.code == 2, arguments
        assert result.err.startswith("hudi-py: ")
    for source in ("nowhere", str(tmp_path / "empty")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert run("du", "--tables", source, "--json").json["error"]["exit_code"] == 2
    assert run("du", "--tables").code == 2


def test_compact_leaves_out_tables_without_log_files(run, lake, tmp_path):
    """A lake has tables of both kinds; one that is named alone is refused, and so is an instant that it cannot have."""
    for words in (("--dry-run",), ()):
        result = run("compact", "--tables", tmp_path, *words, "--json", *ALONE)
        assert result.code == 0
        found = {table: line["result"] for table, line in lines_of_tables(result).items()}
        assert [
            table for table, each in found.items() if each.get("reason", "").startswith("a copy-on-write")
        ] == sorted(lake[:2])
        assert all({"would_schedule", "plan"} <= set(each) for each in found.values()) == bool(words)
    said = run("compact", "--tables", tmp_path, *ALONE).out
    assert f"ok      {lake[0]}  nothing: a copy-on-write table" in said
    assert run("compact", lake[0]).code == 2
    assert run("compact", "--tables", lake[0], "--cancel", "20261121063000000", *ALONE).code == 6


def test_a_table_with_more_to_do_has_not_failed(run, lake, tmp_path):
    """``--exit-code``: its line and the exit code say so, and the next run with the same journal takes it again."""
    journal, listed = tmp_path / "journal", tmp_path / "two.txt"
    listed.write_text("\n".join([lake[0], lake[1]]))
    words = ("clean", "--tables", listed, "--commits-retained", 1, "--max-files", 2, "--exit-code", "--resume", journal)
    codes = []
    for _ in range(9):
        result = run(*words, *ALONE)
        assert "failed " not in result.out
        codes.append(result.code)
        if not result.code:
            break
        assert re.search(r"^more    .* files? deleted$", result.out, re.MULTILINE), result.out
        assert re.search(r"0 failed, [12] with more to do", result.err)
    assert codes[0] == 7
    assert codes[-1] == 0
    assert run(*words, *ALONE).out == ""
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'none'}")
    assert run("clean", "--tables", tmp_path / "list.txt", "--exit-code", *ALONE).code == 6


def test_two_runs_with_one_journal_are_told_of_each_other(run, lake, tmp_path):
    """The second would do the same tables again beside the first; when that has ended, or was killed, it goes on."""
    journal, listed = tmp_path / "journal", tmp_path / "two.txt"
    listed.write_text("\n".join([lake[0], lake[1]]))
    words = ("check", "--tables", listed, "--resume", journal, *ALONE)
    with RunJournal(str(journal), "check").held() as (done, note):
        assert done == frozenset()
        beside = run(*words)
        assert (beside.code, beside.out) == (4, "")
        assert "another run has this file" in beside.err
        note(lake[0], 0)
    later = run(*words, "--json")
    assert (later.code, [json.loads(line)["table"] for line in later.out.splitlines()]) == (0, [lake[1]])
    dying = os.fork()
    if not dying:
        with RunJournal(str(journal), "check").held():
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(dying, 0)[1]) == 9
    assert run(*words).code == 0


def test_a_table_beside_many_is_told_as_such(run, lake, tmp_path):
    """And wrong usage names the help of the command, not that of the program."""
    both = run("clean", lake[0], "--tables", tmp_path)
    assert both.code == 2
    assert "give TABLE or --tables, not both; see hudi-py clean --help" in both.err
    for words in (("du", "--tables", "x"), ("archive", "--total-files", "2"), ("du", "--tables")):
        result = run(*words, "--tables", tmp_path)
        assert (result.code, f"see hudi-py {words[0]} --help" in result.err) == (2, True), result.err


def test_no_table_is_started_after_the_time(run, lake, tmp_path):
    """They are reported as not started, to be tried again."""
    seconds = iter([0.0, 1.0, 100.0, 100.0])
    code = over_tables.run_over_tables(
        main, ["check", "--tables", str(tmp_path), "--within", "10s", "--json", *ALONE], lambda: next(seconds)
    )
    assert code == 6
    over = iter([False, True])
    plan = Plan(command=("check",), arguments=(), tables=tuple(lake[:2]), is_over=lambda: next(over))
    outcomes = []
    plan.run(outcomes.append)
    done, left = outcomes
    assert (done.exit_code, left.exit_code, left.document["error"]["kind"]) == (0, 4, "NotStarted")


def test_cleans_of_many_tables_delete_what_each_alone_would(run, lake, tmp_path):
    """And a second run has nothing to do."""
    plans = {table: run("clean", table, "--dry-run", "--commits-retained", 1, "--json").json for table in lake}
    result = run("clean", "--tables", tmp_path, "--commits-retained", 1, "--json", *ALONE)
    assert result.code == 0
    for table, line in lines_of_tables(result).items():
        deleted = [file for clean in line["result"]["cleans"] for file in clean["deleted_files"]]
        assert len(deleted) == plans[table]["totals"]["files"]
    again = run("clean", "--tables", tmp_path, "--commits-retained", 1, "--json", *ALONE)
    assert all(not line["result"]["cleans"] for line in lines_of_tables(again).values())


def deleted_by(result):
    """Files that each table's cleans deleted, and their bytes."""
    cleans = {table: line.get("result", {}).get("cleans", []) for table, line in lines_of_tables(result).items()}
    return (
        {table: sum(len(each["deleted_files"]) for each in found) for table, found in cleans.items()},
        sum(each["bytes_freed"] for found in cleans.values() for each in found),
    )


@pytest.fixture
def wide_lake(tmp_path):
    """Five tables, of which a clean deletes 1, 2, 3, 4 and 5 files."""
    found = []
    for number in range(1, 6):
        builder = TableBuilder(2)
        for commit in (1, 2, 3):
            builder.commit(at(commit), {"p": [f"f{each}" for each in range(number)]})
        on_disk(builder, tmp_path / f"t{number}")
        found.append(str(tmp_path / f"t{number}"))
    return found


CLEAN = ("clean", "--commits-retained", 1, "--json")
CLUSTER = ("cluster", "--dry-run", "--json")


def deleted_by_files(result):
    """Files that each table's cleans deleted; 0 for a table that was not started."""
    found = lines_of_tables(result).values()
    return [sum(len(c["deleted_files"]) for c in line.get("result", {}).get("cleans", [])) for line in found]


@pytest.mark.parametrize("total", [1, 7, 14, 15, 1000])
def test_a_budget_holds_for_all_tables_together(run, wide_lake, tmp_path, total):
    """Used up as long as there is something to delete, and never exceeded; the rest is not started, or partial."""
    result = run(*CLEAN, "--tables", tmp_path, "--total-files", total, *ALONE)
    deleted, _ = deleted_by(result)
    assert sum(deleted.values()) == min(total, 15)
    left = [line for line in lines_of_tables(result).values() if "error" in line]
    assert all(line["error"]["kind"] == "NotStarted" and "--total-files" in line["error"]["message"] for line in left)
    assert result.code == (6 if left else 0)
    again, _ = deleted_by(run(*CLEAN, "--tables", tmp_path, *ALONE))
    assert sum(again.values()) == 15 - sum(deleted.values())


def test_a_budget_and_a_limit_for_each_table_both_hold(run, wide_lake, tmp_path):
    """The smaller one counts for a table; what that leaves over is for the next ones."""
    deleted, _ = deleted_by(run(*CLEAN, "--tables", tmp_path, "--total-files", 9, "--max-files=3", *ALONE))
    assert [deleted[each] for each in wide_lake] == [1, 2, 3, 3, 0]


def test_a_budget_of_bytes(run, wide_lake, tmp_path):
    """Half of it: the last clean, which deletes a file however small its share is, may go over it by one file."""
    sizes = [run("clean", each, "--dry-run", "--commits-retained", 1, "--json").json["totals"] for each in wide_lake]
    total = sum(each["bytes"] for each in sizes) // 2
    largest = max(each["bytes"] / each["files"] for each in sizes)
    _, freed = deleted_by(run(*CLEAN, "--tables", tmp_path, "--total-bytes", total, *ALONE))
    assert total - largest < freed < total + largest


@pytest.mark.slow
def test_tables_at_once_share_a_budget(run, wide_lake, tmp_path):
    """What runs beside each other never takes more together, and a table is not left out while others may give back."""
    result = run(*CLEAN, "--tables", tmp_path, "--total-files", 13, "--parallel", 3)
    deleted, _ = deleted_by(result)
    assert 5 <= sum(deleted.values()) <= 13
    assert all(deleted.values())


@pytest.mark.parametrize(
    "arguments",
    [("check", "--total-files", 3), ("maintain", "--total-bytes", "1GB"), ("clean", "--total-files", 0),
     ("clean", "--total-files", "x"), ("clean", "--total-bytes", "much"),
     ("clean", "--total-files", 3, "--schedule-only"), ("cluster", "--total-bytes", "1GB", "--schedule-only")],
)  # fmt: skip
def test_budgets_that_mean_nothing_are_refused(run, wide_lake, tmp_path, arguments):
    """Before the first table."""
    before = sorted(tmp_path.rglob("*"))
    assert run(*arguments, "--tables", tmp_path).code == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_tables_that_cannot_be_opened_use_nothing(run, wide_lake, tmp_path):
    """Nor do those for which an option is wrong: one folder that is no table must not end the run."""
    listed = tmp_path / "tables.txt"
    listed.write_text("\n".join([str(tmp_path / "gone"), *wide_lake]))
    result = run(*CLEAN, "--tables", listed, "--total-files", 15, *ALONE)
    deleted, _ = deleted_by(result)
    assert sum(deleted.values()) == 15


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_clean_that_was_begun_before_counts(run, wide_lake, tmp_path, dry):
    """Its files, in a dry run too; of its bytes nobody knows how many there were, so they take all that was left."""
    first = wide_lake[-1]
    assert run("clean", first, "--commits-retained", 1, "--schedule-only").code == 0
    listed = tmp_path / "tables.txt"
    listed.write_text("\n".join([first, *wide_lake[:-1]]))
    by_files = ("--tables", listed, "--total-files", 6, *ALONE, *dry)
    by_bytes = ("--tables", listed, "--total-bytes", "1TB", *ALONE)
    if dry:
        shown = lines_of_tables(run(*CLEAN, *by_files))
        assert [shown[each].get("result", {}).get("totals", {}).get("files") for each in wide_lake[:2]] == [1, None]
    else:
        result = run(*CLEAN, *by_bytes)
        assert [each for each in deleted_by_files(result) if each] == [5]
        assert result.code == 6


def test_what_leaves_quarantine_takes_all_that_a_table_may_use():
    """Maintenance deletes it within its share, and does not tell how many files it was."""
    for names, left in (([], 8), (["20260101000000000"], 4)):
        budget = budget_of("total-files", 10, maintain, {})
        share = budget.share(2) + budget.share(5)
        found = {Chore.CLEAN: {"a": "old", "b": "old"}, Chore.QUARANTINE: dict.fromkeys(names, "over")}
        steps = tuple(ChoreReport(step=step, found=ChoreResult("", files)) for step, files in found.items())
        budget.settle(share, maintenance_entry(MaintenanceReport(steps=steps)), has_failed=False)
        assert budget.left == left


def test_files_of_failed_writes_take_from_what_all_tables_may_use():
    """Those that were left alone do not."""
    budget = budget_of("total-files", 10, maintain, {})
    undone = ChoreResult("", {"20260101000000000": "rolled back", "20260102000000000": "may be running"}, deleted=3)
    found = {Chore.FAILED_WRITES: undone, Chore.CLEAN: ChoreResult("", {"a": "old"}, deleted=1)}
    steps = tuple(ChoreReport(step=step, found=each) for step, each in found.items())
    budget.settle(budget.share(1), maintenance_entry(MaintenanceReport(steps=steps)), has_failed=False)
    assert budget.left == 6


def test_a_clean_tells_of_the_failed_writes_that_it_rolled_back(run, table):
    """As its dry run does, also where it does nothing else; their files count in what all tables may use."""
    for form in ("text", "json"):
        path = table("cow_failed_write-1.1.1")
        options = ("clean", path, "--conf", "hoodie.clean.failed.writes.policy=LAZY")
        [time] = run(*options, "--dry-run", "--json").json["failed_writes"]
        before = {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
        done = run(*options, "--json") if form == "json" else run(*options)
        gone = sum(not each.exists() for each in before)
        if form == "text":
            assert f"write {time} had failed and was rolled back: {gone} file" in done.out
            shutil.rmtree(path)
            continue
        assert (done.json["failed_writes"], done.json["failed_writes_files"]) == ([time], gone)
        budget = budget_of("total-files", 100, clean, {})
        budget.settle(budget.share(1), done.json, has_failed=False)
        assert budget.left == 100 - gone - sum(len(each["deleted_files"]) for each in done.json["cleans"])


@pytest.mark.parametrize("name", ["cow_cleaned-1.1.1", "cow_archived-1.1.1", "cow_clean_inflight-1.1.1"])
def test_the_line_of_a_dry_run_has_what_the_run_deletes(run, table, tmp_path, name):
    """Also where a run finishes a pending clean instead, and where none is due; the budget counts the same."""
    path = table(name)
    (tmp_path / "one.txt").write_text(str(path))
    asked = ("clean", "--tables", tmp_path / "one.txt", "--commits-retained", 1, *ALONE)
    shown, document = (
        run(*asked, "--dry-run").out,
        run("clean", path, "--commits-retained", 1, "--dry-run", "--json").json,
    )
    before = {each for each in path.rglob("*.parquet") if ".hoodie" not in each.parts}
    assert run(*asked).code == 0
    gone = [each for each in before if not each.exists()]
    assert f"  {len(gone)} file{'' if len(gone) == 1 else 's'}, " in shown
    budget = budget_of("total-files", 100, clean, {})
    budget.settle(budget.share(1), document, has_failed=False)
    assert budget.left == 100 - len(gone)


def test_a_dry_run_of_clusterings_counts(run, table, tmp_path):
    """Its plan takes from the budget as if it were carried out: nothing is left for the second of two like tables."""
    first, second = table("cow_nonpartitioned-1.1.1"), tmp_path / "twin"
    shutil.copytree(first, second)
    listed = tmp_path / "tables.txt"
    listed.write_text(f"{first}\n{second}")
    total = run(*CLUSTER[:1], first, *CLUSTER[1:]).json["totals"]["bytes"]
    shown = lines_of_tables(run(*CLUSTER, "--tables", listed, "--total-bytes", total, *ALONE))
    assert (shown[str(first)]["result"]["totals"]["bytes"], shown[str(second)]["exit_code"]) == (total, 4)


def test_a_dry_run_shows_what_the_budget_would_let_through(run, wide_lake, tmp_path):
    """Its plans count as if they were carried out."""
    result = run(
        "clean", "--commits-retained", 1, "--dry-run", "--json", "--tables", tmp_path, "--total-files", 7, *ALONE
    )
    planned = [line["result"]["totals"]["files"] for line in lines_of_tables(result).values() if "result" in line]
    assert sum(planned) == 7


@pytest.mark.slow
def test_processes_give_the_same(run, lake, tmp_path):
    """Whatever is done at once, each table has its line."""
    alone = lines_of_tables(run("du", "--tables", tmp_path, "--json", *ALONE))
    assert lines_of_tables(run("du", "--tables", tmp_path, "--json", "--parallel", "2")) == alone


def test_a_killed_process_costs_its_own_table_alone(monkeypatch):
    """Tables that were running beside it run again, each in a process of its own."""

    class Pool:
        def __init__(self, *_, **__):
            self.broken = False

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def shutdown(self, **_):
            return None

        def submit(self, _work, _run, table, _argv):
            from concurrent.futures import Future

            future = Future()
            if self.broken:
                raise BrokenProcessPool
            if table == "bad":
                self.broken = True
                future.set_exception(BrokenProcessPool())
            else:
                future.set_result(Outcome(table, 0, {}))
            return future

    monkeypatch.setattr(worker_pool, "ProcessPoolExecutor", Pool)
    plan = Plan(command=("check",), arguments=(), tables=("a", "b", "bad", "c", "d"), parallel=3)
    codes = {}
    plan.run(lambda each: codes.update({each.table: each.exit_code}))
    assert codes == {"a": 0, "b": 0, "bad": 1, "c": 0, "d": 0}


def test_fleet_ranks_tables(run, lake, table, tmp_path):
    """The most wasted bytes first; stuck instants and failures by name; sums over all."""
    table("cow_failed_write-1.1.1")
    result = run(
        "fleet",
        tmp_path,
        "--tables",
        tmp_path / "list.txt",
        *ALONE,
        "--json",
        "--conf",
        "hoodie.clean.commits.retained=1",
    )
    assert result.code == 6
    page = result.json
    assert page["totals"]["tables"] == 5
    assert [each["table"] for each in page["failed"]] == [str(tmp_path / "none")]
    wasted = [each["bytes"]["wasted"] for each in page["tables"]]
    assert wasted == sorted(wasted, reverse=True)
    assert sum(wasted) == page["totals"]["wasted_bytes"] > 0
    assert page["ranking"]["stuck_instants"] == [str(tmp_path / "cow_failed_write")]
    assert page["ranking"]["wasted_bytes"][0] == page["tables"][0]["table"]
    for each in page["tables"]:
        usage = run("du", each["table"], "--json", "--commits-retained", 1).json
        assert each["bytes"]["total"] == usage["total"]["bytes"]
    text = run("fleet", tmp_path, *ALONE)
    assert text.code == 0
    assert "4 tables, the worst first" in text.out
    assert run("fleet").code == 2
