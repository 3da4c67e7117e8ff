"""`hudi-py read --from --to`."""

import json

import pytest

from support import fixtures


@pytest.mark.parametrize("name", ["cow_small_files-0.15.0", "cow_small_files-1.1.1"])
def test_read_gives_the_rows_that_changed_in_a_range(run, tmp_path, name):
    """As Hudi reads it; a question that has no answer is wrong usage."""
    path = fixtures.unpack_rows(name, tmp_path)
    for each in fixtures.expected_rows(name)["incremental"]:
        options = ("--to", each["end"]) if each["end"] else ()
        result = run("read", path, "--from", each["begin"], *options, "--json")
        assert (result.json["rows"], fixtures.row_hash(result.json["data"])) == (each["rows"], each["hash"])
    times = [run("timeline", path, "--json").json["instants"][number]["requested_time"] for number in (0, 1)]
    for wrong, told in {
        ("--from", times[1], "--to", times[0]): "before it begins",
        ("--from", "yesterday"): "is not a time",
        ("--from", "0", "--as-of", times[0]): "--as-of and --from or --to exclude each other",
        ("--to", times[0], "--savepoint", times[0]): "exclude each other",
        ("--from", "0", "--savepoint", ""): "exclude each other",
        ("--from", "", "--as-of", times[0]): "exclude each other",
        ("--columns", "id, ts,id"): "columns name id more than once",
    }.items():
        refused = run("read", path, *wrong)
        assert (refused.code, refused.out) == (2, "")
        assert told in refused.err


def test_read_gives_each_change_of_a_range(run, tmp_path):
    """Operation, time, row before and row after, as JSON; what has no meaning beside it is refused."""
    path = fixtures.unpack_rows("cow_cdc-1.1.1", tmp_path)
    for each in fixtures.expected_rows("cow_cdc-1.1.1")["cdc"]:
        options = ("--to", each["end"]) if each["end"] else ()
        result = run("read", path, "--cdc", "--from", each["begin"], *options, "--json").json
        theirs = [{**change, "ts": change["ts_ms"]} for change in each["data"]]
        assert result["rows"] == each["rows"]
        assert sorted(map(in_text, result["data"])) == sorted(map(in_text, theirs))
    assert run("read", path, "--cdc", "--columns", "id", "--limit", 1, "--json").json["data"][0]["after"].keys() == {
        "id"
    }
    assert run("read", path, "--cdc", "-o", tmp_path / "changes.parquet").code == 0
    for wrong in (("--where", "qty > 1"), ("--meta",), ("--as-of", "1d"), ("--as-of", ""), ("--read-optimized",)):
        refused = run("read", path, "--cdc", *wrong)
        assert (refused.code, refused.out) == (2, "")
        assert "--cdc" in refused.err


def in_text(change):
    return json.dumps([change[name] for name in ("op", "ts", "before", "after")], sort_keys=True)


def test_read_gives_deleted_rows_on_request(run, tmp_path):
    """Marked, before those that changed; what it has no meaning beside is refused."""
    path = fixtures.unpack_rows("cow_cdc-1.1.1", tmp_path)
    each = fixtures.expected_rows("cow_cdc-1.1.1")["cdc"][1]
    deleted = [change["before"] for change in each["data"] if change["op"] == "d"]
    result = run("read", path, "--from", each["begin"], "--to", each["end"], "--with-deletes", "--json").json["data"]
    assert [row["_hoodie_is_deleted"] for row in result] == [number < len(deleted) for number in range(len(result))]
    assert {row["id"] for row in result[: len(deleted)]} == {row["id"] for row in deleted}
    for wrong in ((), ("--from", "0", "--cdc"), ("--as-of", "1d")):
        refused = run("read", path, "--with-deletes", *wrong)
        assert (refused.code, refused.out) == (2, "")
        assert "--with-deletes" in refused.err


def test_a_table_without_change_logs_tells_no_single_changes(run, tmp_path):
    """With the way out."""
    path = fixtures.unpack_rows("cow_small_files-1.1.1", tmp_path)
    refused = run("read", path, "--cdc")
    assert refused.code == 5
    assert "without the change log" in refused.err
