"""The keeps besides Hudi's policy, on the command line."""

import pytest

import hudi_py

TABLE = "cow_many-1.1.1"


def planned(document):
    return {path for files in document["plan"]["files_to_delete"].values() for path in files}


def test_keeps_on_the_command_line_are_those_of_python(run, table):
    """``clean --dry-run`` and ``explain`` take the same names with dashes, and settings say the same."""
    path = table(TABLE)
    opened = hudi_py.open_table(str(path))
    alone = run("clean", path, "--commits-retained", 1, "--dry-run", "--json").json
    asked = ("--commits-retained", 1, "--min-commits", 4, "--min-file-versions", 2, "--keep-daily", 3)
    union = run("clean", path, *asked, "--dry-run", "--json").json
    plan = opened.plan_clean(commits_retained=1, min_commits=4, min_file_versions=2, keep_daily=3)
    assert planned(union) == {file.path for files in plan.files.values() for file in files} < planned(alone)
    settings = ("hoodie_py.clean.min.commits=4", "hoodie_py.clean.min.file.versions=2", "hoodie_py.clean.keep.daily=3")
    conf = [part for each in settings for part in ("--conf", each)]
    assert run("clean", path, "--commits-retained", 1, *conf, "--dry-run", "--json").json == union
    answer = run("explain", path, opened.partitions()[0], *asked, "--json").json
    assert "the last 4 commits need" in answer["retention"]
    removable = {each["path"] for each in answer["files"] if each["verdict"] == "removable"}
    assert removable == {each for each in planned(union) if each.startswith(opened.partitions()[0])}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--older-than", "2999-01-01"), "is in the future"),
        (("--older-than", "7d", "--commits-retained", "3"), "replaces the policy's retention"),
        (
            ("--age-retained", "7d", "--min-commits", "5", "--max-commits", "3"),
            "the minimum must not exceed the maximum",
        ),
        (("--age-retained", "soon"), "a duration such as 90m"),
        (("--older-than", "20249999999999999"), "older_than"),
        (("--older-than", "9999-12-31T23:59:59-12:00"), "is not a time"),
        (("--hours-retained", "1", "--now", "0001-01-01T00:00:00+12:00"), "is not a time"),
        (("--hours-retained", "1", "--now", "99999999999d"), "is not a date"),
        (("--conf", "hoodie_py.write.single.pas=1"), "did you mean hoodie_py.write.single.pass.max.bytes?"),
    ],
)
def test_contradictions_are_wrong_usage_in_one_line(run, table, options, message):
    """Exit code 2, and nothing is written."""
    path = table(TABLE)
    before = sorted(each for each in path.rglob("*"))
    result = run("clean", path, *options)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") <= 2
    assert sorted(each for each in path.rglob("*")) == before


def test_a_questionable_setting_is_warned_about(run, table):
    """In the text and in the document; archival tighter than cleaning never lets anything go (K-17)."""
    path = table(TABLE)
    asked = ("--commits-retained", 40, "--dry-run")
    assert "warning    archival leaves at most 30 commits" in run("clean", path, *asked).out
    assert len(run("clean", path, *asked, "--json").json["warnings"]) == 1
    assert run("clean", path, "--commits-retained", 3, "--dry-run", "--json").json["warnings"] == []
