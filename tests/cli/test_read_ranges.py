"""`hudi-py read --from --to`."""

import pytest

import fixtures


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
    }.items():
        refused = run("read", path, *wrong)
        assert (refused.code, refused.out) == (2, "")
        assert told in refused.err
