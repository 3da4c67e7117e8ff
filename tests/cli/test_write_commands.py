"""Writing on the command line: numbers, exit codes, and rehearsals that change nothing."""

import hashlib

import pytest

from support.hostile_tables import KINDS

CONF = [
    part
    for name in (
        "hoodie.table.name=t",
        "hoodie.datasource.write.recordkey.field=id",
        "hoodie.datasource.write.partitionpath.field=region",
    )
    for part in ("--conf", name)
]
NUMBERS = ("rows_inserted", "rows_updated", "rows_deleted", "files_written")


@pytest.fixture
def trips(run, tmp_path):
    """A table that the command itself has created."""
    (tmp_path / "a.csv").write_text("id,region,v\n1,eu,1.5\n2,us,2.5\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "region": "eu", "v": 9}\n{"id": 5, "region": "eu", "v": 8}\n')
    done = run("write", tmp_path / "t", tmp_path / "a.csv", *CONF, "--write-key", "app:1", "--json")
    assert done.code == 0, done.err
    assert set(done.json) == {"instant", *NUMBERS, "seconds", "cleans", "retries"}
    return tmp_path / "t"


def digest(table):
    return hashlib.md5(
        repr(sorted((str(f), f.read_bytes()) for f in table.rglob("*") if f.is_file())).encode()
    ).digest()


def statements(table):
    source = table.parent / "b.jsonl"
    return {
        ("write", table, source): [1, 1, 0, 1],
        ("write", table, source, "--operation", "insert_overwrite"): [2, 0, 0, 1],
        ("delete", table, "--where", "v > 2"): [0, 0, 1, 1],
        ("update", table, "--set", "v=v * 2", "--where", "id = 1"): [0, 1, 0, 1],
        ("merge", table, source, "--on", "id", "--when-matched", "delete"): [0, 0, 1, 1],
        (
            "merge",
            table,
            source,
            "--on",
            "id",
            "--when-matched",
            "delete if source.v < 0",
            "--when-matched",
            "update",
            "--when-not-matched",
            "insert if v > 0",
            "--when-not-matched-by-source",
            "delete",
        ): [1, 1, 1, 2],
        ("drop-partition", table, "us"): [0, 0, 0, 0],
    }


def test_rehearsals_tell_the_numbers_and_change_nothing(run, trips):
    """Not a byte of the table, whatever the command; no table is created either."""
    before = digest(trips)
    for words, numbers in statements(trips).items():
        done = run(*words, "--dry-run", "--json")
        assert [done.json[name] for name in NUMBERS] == numbers, words
        assert done.json["instant"] is None
    assert digest(trips) == before
    run("write", trips.parent / "new", trips.parent / "a.csv", *CONF, "--dry-run")
    assert not (trips.parent / "new").exists()


@pytest.mark.parametrize("dry", [("--dry-run",), ()], ids=["rehearsed", "done"])
def test_file_groups_that_are_replaced_are_told(run, trips, dry):
    """With "0 deleted" alone, dropping a partition with all its rows would look like nothing."""
    words = ("drop-partition", trips, "us", *dry)
    groups = len(run("files", trips, "--partition", "us", "--json").json["partitions"]["us"]["latest_slices"])
    result = run(*words) if dry else run(*words, "--json")
    if dry:
        assert f", {groups} file group{'s' * (groups > 1)} replaced with all their rows" in result.out
    else:
        assert result.json["file_groups_replaced"] == groups > 0


def test_rehearsal_tells_that_a_service_would_fail_and_speaks_of_no_commit(run, table, tmp_path):
    """Commit and error exist in the memory of the rehearsal alone: nobody is told that rows are visible."""
    spoilt = table("cow_archived-1.1.1")
    KINDS["plan leaves the table upwards"](spoilt, tmp_path)
    before = digest(spoilt)
    done = run("delete", spoilt, "--where", "id is not null", "--dry-run")
    assert done.code == 1
    assert "nothing was written" in done.err
    assert "is not a partition of a table" in done.err
    assert "visible" not in done.err
    assert digest(spoilt) == before


@pytest.mark.parametrize("number", range(7))
def test_commands_do_what_they_say(run, trips, number):
    """The numbers are those of the rehearsal, and the table is whole afterwards."""
    words, numbers = list(statements(trips).items())[number]
    done = run(*words, "--json")
    assert [done.json[name] for name in NUMBERS] == numbers, done.err
    assert run("check", trips).code == 0
    assert run("instant", trips, done.json["instant"], "--json").json["state"] == "COMPLETED"


@pytest.mark.parametrize("words", [("delete",), ("update", "--set", "v=0")])
def test_rows_meet_all_conditions_that_are_given(run, trips, words):
    """As for reading: with the last condition alone more rows would be changed than those that were read before."""
    conditions = ("--where", "v > 0", "--where", "id = 1", "--where", "v < 1000")
    rows = run("read", trips, *conditions, "--json").json["rows"]
    done = run(words[0], trips, *words[1:], *conditions, "--dry-run", "--json").json
    assert done["rows_updated"] + done["rows_deleted"] == rows == 1


def test_write_to_a_place_without_a_table_says_so(run, trips):
    """The settings that a new one needs are no help where the path is a wrong one."""
    done = run("write", trips.parent / "tripz", trips.parent / "a.csv")
    assert done.code == 2
    assert f"there is no table at {trips.parent / 'tripz'}" in done.err
    assert "hoodie.table.name" in done.err


def test_write_key_given_twice_writes_once(run, trips):
    """The second time nothing is done, and the commit of the first is named."""
    done = run("write", trips, trips.parent / "b.jsonl", "--write-key", "app:1", "--json")
    assert done.json["is_repeated"] is True
    assert run("read", trips, "--json").json["rows"] == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("write", "t", "absent.csv"), 2),
        (("write", "t", "a.csv", "--write-key", "app"), 2),
        (("write", "t", "a.csv", "--operation", "replace"), 2),
        (("delete", "t", "--where", "nope = 1"), 2),
        (("update", "t", "--set", "id=7"), 2),
        (("update", "t", "--set", "v=7", "--where", ""), 2),
        (("delete", "t", "--where", "v > 0", "--where", " "), 2),
        (("merge", "t", "a.csv", "--on", "id"), 2),
        (("merge", "t", "a.csv", "--on", "id", "--when-matched", "delete if "), 2),
        (("merge", "t", "a.csv", "--on", "id", "--when-not-matched", "update"), 2),
        (("drop-partition", "t", "nowhere"), 2),
        (("delete", "no-table", "--where", "id = 1"), 5),
        (("drop-partition", "no-table", "eu"), 5),
    ],
)
def test_exit_codes(run, trips, monkeypatch, words, code):
    """Wrong usage is 2, no table is 5; one line says why, and nothing is pending."""
    monkeypatch.chdir(trips.parent)
    done = run(*words)
    assert (done.code, done.out) == (code, "")
    assert len(done.err.splitlines()) == 1
    assert all(each["state"] == "COMPLETED" for each in run("timeline", trips, "--json").json["instants"])


def test_operation_of_the_settings_counts(run, trips):
    """Where the command names none; two that differ are refused before anything is written."""
    source = trips.parent / "b.jsonl"
    conf = ("--conf", "hoodie.datasource.write.operation=insert_overwrite")
    before = digest(trips)
    done = run("write", trips, source, *conf, "--operation", "upsert")
    assert done.code == 2
    assert "leave one of them out" in done.err
    assert before == digest(trips)
    done = run("write", trips, source, *conf, "--json")
    assert [done.json[name] for name in NUMBERS] == [2, 0, 0, 1]
    assert "no effect" not in done.err
