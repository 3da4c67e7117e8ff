"""Every example in a help text is run on a table, and does what it is there for."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hudi_py
from hudi_py.inspection.cli import main

NOT_RUN = {"serve", "fleet-entry"}  # the first runs until it is stopped, the second is part of another
ROWS = pa.table(
    {
        "trip_id": ["a", "b", "c"],
        "fare": [10.0, 30.0, 20.0],
        "city": ["Rome", "Oslo", "Rome"],
        "region": ["rome", "oslo", "rome"],
        "ts": [1, 2, 3],
    }
)
SETTINGS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "trip_id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
}


def commands(group=main, names=()):
    """Name and command of everything that can be run."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


def examples(command):
    """The example lines of a command's help, without what a shell would do with them."""
    text = re.split(r"Examples?:", command.help or "")[-1] if "Example" in (command.help or "") else ""
    text = re.sub(r" \\\n\s+", " ", text)  # a line that a shell reads on
    return [line.strip() for line in text.splitlines() if re.match(r"\s+(eval|HUDI_PY_TOKEN|hudi-py)\b", line)]


ALL = {name: examples(command) for name, command in commands()}
RUN = sorted({(name, line) for name, lines in ALL.items() if name not in NOT_RUN for line in lines})


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_help_text_has_an_example(name):
    """At least one; a hurried reader looks at nothing else."""
    assert ALL[name] or name in NOT_RUN


@pytest.mark.parametrize("name", sorted(ALL))
def test_no_line_of_a_help_text_is_wider_than_a_terminal(name):
    """Of 80 columns: it would be broken anywhere, and no example could be read."""
    shown = CliRunner().invoke(main, [*name.split(), "--help"], terminal_width=80, prog_name="hudi-py").output
    assert "Usage" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Tables with all that the examples name."""
    lake = tmp_path_factory.mktemp("made") / "lake"
    kinds = {"trips": "COPY_ON_WRITE", "logs": "MERGE_ON_READ", "warehouse/trips": "COPY_ON_WRITE"}
    for name, kind in kinds.items():
        hudi_py.write(str(lake / name), ROWS, settings={**SETTINGS, "hoodie.datasource.write.table.type": kind})
    table = hudi_py.open_table(str(lake / "trips"))
    table.create_savepoint(name="before-migration")
    table.upsert(ROWS.slice(0, 2))
    table.consumer("job-7").at(table.timeline.completed("commit")[0].requested_time)
    return lake


@pytest.fixture
def place(lake, tmp_path, monkeypatch):
    """A folder with a copy of the tables, and with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(lake, tmp_path / "lake")
    pq.write_table(ROWS, tmp_path / "new.parquet")
    (tmp_path / "tables.txt").write_text(f"{tmp_path / 'lake/trips'}\n")
    (tmp_path / "job.properties").write_text("hoodie.clean.commits.retained=3\n")
    (tmp_path / "policy.toml").write_text('[keep]\neverything = "7d"\n')
    return tmp_path / "lake"


def words_of(run, line, lake):
    """The words of an example, with what this table has in place of names and times."""
    path = lake / ("logs" if line.startswith("hudi-py compact") else "trips")
    table = hudi_py.open_table(str(path))
    commits = [each.requested_time for each in table.timeline.commits.completed()]
    first, last = commits[0], commits[-1]
    lease = run("lease", "create", path, "--ttl", "1h", "--json").json["id"] if " 4f1c" in line else ""
    if line.startswith(("hudi-py savepoint create", "hudi-py undo")):
        assert run("savepoint", "delete", path, "before-migration").code == 0
    if line.startswith("hudi-py undo"):
        assert run("consumer", "delete", path, "job-7").code == 0
        [clean] = run("clean", path, "--file-versions-retained", 1, "--quarantine", "--json").json["cleans"]
        first = clean["instant"]
    if line.startswith("hudi-py approve"):
        assert run("consumer", "delete", path, "job-7").code == 0
        assert run("clean", path, "--file-versions-retained", 1, "--list", "files.jsonl").code == 0
    line = line.removeprefix('eval "$(').removesuffix(')"')
    words = []
    # Up to the word by which a shell would write the output into a file; in conditions the sign is not a word.
    for word in itertools.takewhile(lambda word: word != ">", shlex.split(line)[1:]):
        word = re.sub(r"\bTABLE\b|s3://lake/trips", str(path), word)
        word = re.sub(r"s3://lake/warehouse|s3://lake\b|^/lake/warehouse", str(lake / "warehouse"), word)
        word = word.replace("20261121063000000", last).replace("20261101120000000", first)
        word = re.sub(r"2026-11-0\d|2026-11-21", "2099-01-01", word)
        words.append({"4f1c": lease, "2024/01/01": table.partitions()[0]}.get(word, word))
    return words


@pytest.mark.parametrize(("name", "line"), RUN, ids=[line for _, line in RUN])
def test_an_example_runs(run, place, name, line):
    """It ends well, or with the code that says that problems were found; never with a word about its usage."""
    if name == "lease run":
        line = re.sub(r"-- .*", "-- true", line)
    line = re.sub(r" --watch \S+", "", line)  # else it runs until it is stopped
    done = run(*words_of(run, line, place))
    # There are no orphans that could be brought back, and a bucket's inventory is not of a table on a local disk.
    expected = (1, 2) if "orphans-" in line or "--inventory s3://" in line else (0, 3)
    assert done.code in expected, done.err
    assert "Usage" not in done.err


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        ("timeline", "lake/t", {"lake/trips"}),
        ("rollback lake/trips", "2", "commits"),
        ("savepoint delete lake/trips", "bef", {"before-migration"}),
        ("drop-partition lake/trips", "", {"rome", "oslo"}),
        ("files lake/trips --partition", "r", {"rome"}),
        ("rollback lake/none", "", set()),
        ("rollback s3://lake/trips", "", set()),
    ],
)
def test_a_shell_is_offered_what_the_table_has(place, words, begun, offered):
    """Tables, instants, partitions, savepoints; nothing, and no error, where there is no such table or a remote one."""
    asked = {"_HUDI_PY_COMPLETE": "bash_complete", "COMP_WORDS": f"hudi-py {words} {begun}"}
    asked["COMP_CWORD"] = str(len(words.split()) + 1)
    answer = CliRunner(env=asked).invoke(main, [], prog_name="hudi-py")
    found = {line.partition(",")[2] for line in answer.stdout.splitlines() if line.startswith("plain,")}
    if offered == "commits":
        offered = {each.requested_time for each in hudi_py.open_table(str(place / "trips")).timeline.instants}
    assert found == offered
