"""The commands and the Python of the documentation are run, on tables in the state that a page is about."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from types import ModuleType

import click
import pyarrow as pa
import pytest

import hudi_py
from hudi_py.inspection.cli import main
from support import fixtures
from support.cli_runner import RUNNER
from support.repository import ROOT

DOCS = ROOT / "docs"
LINE = re.compile(r"`(hudi-py [^`]+)`")
SETTINGS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.clean.automatic": "false",
}


def blocks(page, kind):
    """Code blocks of a page, of one kind."""
    return re.findall(rf"```{kind}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def steps(page):
    """The command lines of a page, without those that are only mentioned."""
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.startswith("hudi-py ")]


def run(line, **words):
    """Run a command line; words in capitals stand for what the reader fills in."""
    filled = [words.get(word, word) for word in shlex.split(line)[1:]]
    result = RUNNER.invoke(main, filled)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    # 3: findings, which are what the reader is here for.
    assert result.exit_code in (0, 3), (line, result.output)
    return result


def written(folder, commits=4):
    """A table with some commits and no clean."""
    location = str(folder / "trips")
    for number in range(commits):
        rows = pa.table({"id": ["a", "b"], "p": ["x", "y"], "v": [number, number]})
        hudi_py.write(location, rows, settings=SETTINGS)
    return location


def test_a_clean_that_is_stuck_is_finished(tmp_path):
    """Afterwards no clean is pending."""
    location = str(fixtures.unpack("cow_clean_inflight-1.1.1", tmp_path))
    assert hudi_py.open_table(location).timeline.pending(hudi_py.Action.CLEAN)
    for line in steps("runbooks/clean-is-stuck.md"):
        run(line, TABLE=location)
    assert not hudi_py.open_table(location).timeline.pending(hudi_py.Action.CLEAN)


def test_storage_that_grows_is_freed(tmp_path):
    """The bytes of old versions go, the rows stay."""
    location = written(tmp_path)
    before = hudi_py.open_table(location).usage().total.bytes
    for line in steps("runbooks/storage-keeps-growing.md"):
        run(line, TABLE=location)
    table = hudi_py.open_table(location)
    assert table.usage().total.bytes < before
    assert table.rows().to_arrow()["v"].to_pylist() == [3, 3]


def test_a_file_that_is_gone_is_explained(tmp_path):
    """By the clean that deleted it; the steps after it keep what readers need."""
    location = written(tmp_path)
    [result] = hudi_py.open_table(location).clean(commits_retained=1)
    gone = min(result.deleted_files)
    shown = {line: run(line, TABLE=location, FILE=gone).output for line in steps("runbooks/file-not-found.md")}
    [explained] = [text for line, text in shown.items() if " explain " in line]
    assert result.instant in explained
    table = hudi_py.open_table(location)
    assert len(table.services.savepoint().savepoints()) == 1


def test_a_bad_commit_is_undone(tmp_path):
    """The rows are those of the commit before; what it did is seen before that."""
    location = written(tmp_path)
    before, last = [each.requested_time for each in hudi_py.open_table(location).timeline.completed("commit")[-2:]]
    files = {name: str(tmp_path / name) for name in ("before.parquet", "then.parquet")}
    words = {"BEFORE": before, "INSTANT": last, "CONDITION": "id = 'a'", **files}
    shown = {}
    for line in steps("runbooks/undo-a-bad-commit.md"):
        if line.startswith("hudi-py rollback"):
            assert hudi_py.open_table(location).rows().to_arrow()["v"].to_pylist() == [3, 3]
        shown[line] = run(line, TABLE=location, **words).output
    assert "0 inserted, 2 updated, 0 deleted" in shown["hudi-py diff TABLE BEFORE INSTANT"]
    assert hudi_py.open_table(location).rows().to_arrow()["v"].to_pylist() == [2, 2]


def test_a_bad_commit_below_later_ones_is_written_over(tmp_path):
    """Its rows have greater ordering values than the right ones, as the page warns; then partitions are replaced."""
    location, right = str(tmp_path / "trips"), str(tmp_path / "before.parquet")
    settings = {**SETTINGS, "hoodie.table.ordering.fields": "v"}
    for rows in ({"id": ["a", "b"], "v": [1, 1]}, {"id": ["a", "c"], "v": [9, 9]}, {"id": ["d"], "v": [5]}):
        hudi_py.write(location, pa.table({**rows, "p": ["x"] * len(rows["id"])}), settings=settings)
    first = hudi_py.open_table(location).timeline.completed("commit")[0].requested_time
    lines = [line for line in steps("runbooks/undo-a-bad-commit.md") if "before.parquet" in line]

    def rows():
        found = hudi_py.open_table(location).rows().to_arrow().to_pylist()
        return {each["id"]: each["v"] for each in found}

    for line in lines:
        run(line, TABLE=location, BEFORE=first, CONDITION="v < 9", **{"before.parquet": right})
    assert rows() == {"a": 9, "b": 1, "c": 9, "d": 5}
    run("hudi-py write TABLE before.parquet --operation insert_overwrite", TABLE=location, **{"before.parquet": right})
    assert rows() == {"a": 1, "b": 1}


def test_the_rows_of_a_time_come_back_without_a_restore(tmp_path):
    """As a new commit, which leaves the files of the rows between where they are."""
    location, then = written(tmp_path), str(tmp_path / "then.parquet")
    [first, *_, last] = [each.requested_time for each in hudi_py.open_table(location).timeline.completed("commit")]
    for line in steps("runbooks/undo-a-bad-commit.md"):
        if "then.parquet" in line:
            run(line, TABLE=location, BEFORE=first, **{"then.parquet": then})
    table = hudi_py.open_table(location)
    assert table.rows().to_arrow()["v"].to_pylist() == [0, 0]
    assert table.rows(as_of=last).to_arrow()["v"].to_pylist() == [3, 3]


def test_a_table_is_moved(tmp_path):
    """The copy has the same rows, and passes the check; the old place stays as it is."""
    location, copy = written(tmp_path), str(tmp_path / "copy")
    shutil.copytree(location, copy)
    for line in steps("runbooks/move-a-table.md"):
        result = run(line, TABLE=location, COPY=copy)
        assert "check" not in line or result.exit_code == 0
    assert hudi_py.open_table(copy).rows().to_arrow() == hudi_py.open_table(location).rows().to_arrow()
    assert hudi_py.open_table(location).services.deletion() is not None
    assert RUNNER.invoke(main, ["clean", location, "--commits-retained", "1"]).exit_code == 1
    assert RUNNER.invoke(main, ["clean", copy, "--commits-retained", "1"]).exit_code == 0


PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if not {"rules", "decisions"} & set(path.parts)
)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_exists(page):
    """With the options that it names: a reader copies what stands there."""
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = [*LINE.findall(text), *re.findall(r"^(?:\S+ \S+ \* \* \*  )?(hudi-py [^#\n]+)", text, re.MULTILINE)]
    for line in lines:
        names = shlex.split(line.replace("'", "").replace("\\", " "))[1:]
        command = main
        while names and isinstance(command, click.Group) and names[0] in command.commands:
            command = command.commands[names.pop(0)]
        # Several at once, and what a command prints about itself.
        if command is main and ("|" in names[0] or names[0].endswith(":")):
            assert set(names[0].rstrip(":").split("|")) <= set(main.commands), line
            continue
        assert command is not main or names[0].startswith("-") or names[0] == "COMMAND", line
        known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        given = {word.partition("=")[0] for word in names[: names.index("--") if "--" in names else None]}
        unknown = {word for word in given if word.startswith("--")} - known - {"--help"}
        assert not unknown or isinstance(command, click.Group), (line, unknown)


def test_the_examples_of_sql_run(tmp_path, capsys):
    """In DuckDB, on a table of the same name."""
    location = written(tmp_path)
    for block in blocks("sql.md", "python"):
        exec(compile(block.replace("s3://lake/trips", location), "sql.md", "exec"), {})
    assert "live" in capsys.readouterr().out


def test_the_example_of_hooks_runs(capsys):
    """A hook is added and taken out."""
    for block in blocks("hooks.md", "python"):
        exec(compile(block, "hooks.md", "exec"), {})


def test_the_recipe_for_airflow_runs(tmp_path, monkeypatch):
    """With Airflow's own decorators where it is installed, else with ones that run the functions at once."""
    location = written(tmp_path)
    [block] = [each for each in blocks("howto/schedulers.md", "python") if "airflow" in each]
    ran = []

    class Task:
        def __init__(self, function, **_):
            self.function = function

        def override(self, **_):
            return self

        def __call__(self, *arguments):
            ran.append(self.function.__name__)
            self.function(*arguments)
            return self

        def __rshift__(self, other):
            return other

    def task(function=None, **options):
        return Task(function) if function else lambda inner: Task(inner, **options)

    sdk = ModuleType("airflow.sdk")
    sdk.task, sdk.dag = task, lambda **_: lambda function: function
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    code = block.replace('["s3://lake/trips", "s3://lake/riders"]', repr([location]))
    exec(compile(code, "schedulers.md", "exec"), {})
    assert ran == ["maintain", "examine"]


def test_the_recipe_for_dagster_runs(tmp_path):
    """Its assets are materialized, in this process."""
    dagster = pytest.importorskip("dagster")
    location = written(tmp_path)
    [block] = [each for each in blocks("howto/schedulers.md", "python") if "dagster" in each]
    names = {}
    code = block.replace("s3://lake/trips", location).replace("s3://lake/riders", location)
    exec(compile(code, "schedulers.md", "exec"), names)
    assert dagster.materialize(names["assets"]).success


def test_the_site_is_built_without_warnings(tmp_path):
    """Every link leads somewhere, every page is reached."""
    config = pytest.importorskip("mkdocs.config", reason="needs mkdocs")
    from mkdocs.commands.build import build

    loaded = config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True)
    build(loaded)
    assert (tmp_path / "site" / "index.html").is_file()
