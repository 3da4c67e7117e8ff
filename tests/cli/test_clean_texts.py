"""What ``hudi-py clean`` tells people: nothing that will not happen, and why nothing will."""

import pytest

from hudi_py.model.words import human_bytes

OFF = ("--conf", "hoodie.table.services.enabled=false")
RARE = ("--conf", "hoodie.clean.trigger.max.commits=100")


def lines(result):
    """First word of each line of the summary to the rest of it."""
    return {line.split(" ", 1)[0]: line[11:] for line in result.out.splitlines() if line[10:11] == " "}


@pytest.mark.parametrize(
    ("options", "reason"), [(OFF, "switches cleaning off"), (RARE, "hoodie.clean.trigger.max.commits=100")]
)
def test_a_clean_that_would_not_run_is_not_announced(run, table, options, reason):
    """The plan is shown all the same, for whoever changes the setting; the document agrees with the text."""
    path = table("cow_nomdt-1.1.1")
    asked = (path, "--commits-retained", 1, *options)
    shown = run("clean", *asked, "--dry-run")
    assert reason in lines(shown)["nothing"]
    assert "if a clean were due" in shown.out
    assert run("clean", *asked, "--dry-run", "--json").json["would_schedule"] is False
    assert "nothing" in run("clean", *asked).out
    assert run("clean", *asked, "--json").json == {"cleans": []}


def test_a_clean_that_does_nothing_says_why(run, table):
    """No commit since, fewer commits than asked for, no file to delete, and a window that nothing lies in."""
    path = table("cow_nomdt-1.1.1")
    assert "trigger.max.commits=100 commits" in run("clean", path, *RARE).out
    assert run("clean", path, "--commits-retained", 100).out == "nothing to delete\n"
    assert run("clean", path, "--commits-retained", 1).code == 0
    assert run("clean", path, "--commits-retained", 1).out == "nothing to do: no commit since the last clean\n"
    old = run("clean", path, "--hours-retained", 1, "--now", "20990101", "--dry-run", *RARE)
    assert "every commit is older than the retention window" in lines(old)["examined"]
    new = run("clean", path, "--commits-retained", 100, "--dry-run", *RARE)
    assert "no commit lies outside the retention window" in lines(new)["examined"]


def test_what_is_readable_afterwards(run, table):
    """From the window, or from where an earlier clean began to keep everything if that is later; else nobody knows."""
    path = table("cow_cleaned-1.1.1")
    wide, narrow = (run("clean", path, "--commits-retained", n, "--dry-run") for n in (3, 1))
    before = run("clean", path, "--commits-retained", 100, "--dry-run")
    assert lines(before)["readable"] <= lines(wide)["readable"] < lines(narrow)["readable"]
    versions = run("clean", path, "--file-versions-retained", 1, "--dry-run")
    assert "newest snapshot" in lines(versions)["readable"]
    empty = run("clean", table("cow_empty-1.1.1"), "--dry-run")
    assert lines(empty)["readable"] == "the same snapshots as before"
    assert "nothing is listed" in lines(empty)["examined"]


def test_a_window_wider_than_that_of_the_last_clean(run, table):
    """There is nothing to look at, and no range that runs backwards."""
    path = table("cow_cleaned-1.1.1")
    assert run("clean", path, "--commits-retained", 1).code == 0
    shown = run("clean", path, "--commits-retained", 3, "--dry-run")
    assert "the last clean got to" in lines(shown)["examined"]
    document = run("clean", path, "--commits-retained", 3, "--dry-run", "--json").json
    assert document["readable_from"] == lines(shown)["examined"].split()[5].rstrip(",")
    assert document["totals"]["files"] == 0


@pytest.mark.parametrize(
    "asked",
    [("clean", "--hours-retained", 1), ("orphans",), ("expire-partitions", "--days", 1)],
    ids=lambda asked: asked[0],
)
def test_a_replaced_clock_is_told(run, table, asked):
    """By each command that deletes what is old by it; a dry run deletes nothing."""
    command, *options = asked
    asked = (command, table("cow_nomdt-1.1.1"), *options, "--now", "20991231")
    assert "as if it were 20991231" not in run(*asked, "--dry-run").err
    assert "as if it were 20991231" in run(*asked).err


@pytest.mark.parametrize("kept", [("--quarantine",), ("--tag", "a=b")], ids=lambda kept: kept[0])
@pytest.mark.parametrize("later", [("--schedule-only",), ("--list", "files.jsonl")], ids=lambda later: later[0])
def test_what_is_deleted_later_is_not_put_aside_by_this_run(run, table, tmp_path, monkeypatch, kept, later):
    """A plan and a list do not hold it, and the run that carries them out would delete the files for good."""
    monkeypatch.chdir(tmp_path)
    path = table("cow_nomdt-1.1.1")
    before = sorted(path.rglob("*"))
    refused = run("clean", path, "--commits-retained", 1, *kept, *later)
    assert (refused.code, refused.out) == (2, "")
    assert f"{later[0]} and {kept[0]} exclude each other" in refused.err
    assert sorted(path.rglob("*")) == before
    assert not (tmp_path / "files.jsonl").exists()


def test_an_empty_name_of_a_savepoint_is_refused(run, table):
    """As an unset variable leaves it; a savepoint without a name is one without the option."""
    path = table("cow_nomdt-1.1.1")
    refused = run("savepoint", "create", path, "--name", " ")
    assert refused.code == 2
    assert "--name is empty" in refused.err
    assert run("savepoint", "list", path, "--json").json == []


def test_a_clean_says_what_it_freed_and_whether_there_is_more_to_do(run, table, tmp_path):
    """The bytes are those that the folder lost; a limit is told in text, document and, on request, exit code."""
    path = table("cow_nomdt-1.1.1")

    def data_bytes():
        return sum(each.stat().st_size for each in path.rglob("*.parquet") if ".hoodie" not in each.parts)

    asked = ("clean", path, "--commits-retained", 1)
    before = data_bytes()
    limited = run(*asked, "--max-files", 1, "--exit-code", "--json")
    [clean] = limited.json["cleans"]
    assert limited.code == 7
    assert clean["more_to_do"]
    assert clean["bytes_freed"] == before - data_bytes() > 0
    before = data_bytes()
    rest = run(*asked, "--full", "--exit-code", "--conf", "hoodie.clean.trigger.max.commits=1")
    assert rest.code == 0
    freed = before - data_bytes()
    assert freed > 0
    assert f", {human_bytes(freed)} freed" in rest.out


def test_an_exit_code_that_could_never_come_is_refused(run, table):
    """Neither a dry run nor a stored plan deletes anything; the question would be passed over."""
    path = table("cow_nomdt-1.1.1")
    for other in ("--dry-run", "--schedule-only"):
        result = run("clean", path, "--exit-code", other)
        assert result.code == 2
        assert "--exit-code" in result.err
        assert other in result.err


def test_only_files_that_are_deleted_are_measured(table, monkeypatch):
    """The bytes freed are those of the deleted files, and no folder is listed with all of its sizes for them."""
    import hudi_py
    from hudi_py.storage.local import LocalStorage

    path = table("cow_nomdt-1.1.1")
    sizes = {str(file.relative_to(path)): file.stat().st_size for file in path.rglob("*.parquet")}
    opened = hudi_py.open_table(str(path))
    listed, measured = [], []
    real_list, real_sizes = LocalStorage.list, LocalStorage.sizes

    def spy_list(self, folder, *, details=False):
        listed.append((folder, details))
        return real_list(self, folder, details=details)

    def spy_sizes(self, folder, names):
        measured.extend(f"{folder}/{name}" for name in names)
        return real_sizes(self, folder, names)

    monkeypatch.setattr(LocalStorage, "list", spy_list)
    monkeypatch.setattr(LocalStorage, "sizes", spy_sizes)
    service = opened.services.clean(opened.services.clean_config(commits_retained=1), on_progress=lambda progress: None)
    [result] = opened.run_clean(service)
    partitions = {deleted.rpartition("/")[0] for deleted in result.deleted_files}
    assert result.bytes_freed == sum(sizes[deleted] for deleted in result.deleted_files)
    assert result.deleted_files
    assert not [folder for folder, details in listed if details and folder in partitions]
    assert set(result.deleted_files) <= set(measured)


def test_limits_say_what_goes_past_them(run, table):
    """A slice that is larger than a limit is deleted all the same, or no run would ever get on."""
    path = table("cow_nomdt-1.1.1")
    for limit in ("--max-bytes", "--max-files", "--max-partitions"):
        shown = run("clean", path, "--commits-retained", 1, limit, 1, "--dry-run", "--json").json
        assert (shown["totals"]["files"], shown["totals"]["bytes"] > 1) == (1, True)
    for words in (("clean",), ("maintain",)):
        said = " ".join(run(*words, "--help").out.split())
        assert "at most this much" not in said
        assert "delete at most" not in said.lower()
    assert "One file slice goes in any case" in " ".join(run("clean", "--help").out.split())
