"""Every command on tables of real Hudi: one JSON document of the contract's shape, with Hudi's answers in it."""

import hashlib
import json
import shutil

import pytest

from hudi_py.errors import ConfigError
from hudi_py.model.words import human_bytes
from hudi_py.table import open_table
from support import fixtures

VERSIONS = ("0.15.0", "1.0.2", "1.1.1")
EVERY = pytest.mark.parametrize("version", VERSIONS)
COW = [name for name in fixtures.fixture_names() if name.startswith("cow")]


def with_placeholder(value, base):
    """The base path written as in the expected answers."""
    text = json.dumps(value)
    return json.loads(text.replace(f"file:{base}", "{table}").replace(base, "{table}"))


@EVERY
def test_timeline_gives_hudis_instants(run, table, version):
    """Shape and content of ``timeline --json``."""
    name = f"cow_archived-{version}"
    path, theirs = table(name), fixtures.expected(name)["expected"]["timeline"]
    document = run("timeline", path, "--json").json
    assert document == {
        "layout_version": 1 if version == "0.15.0" else 2,
        "instants": theirs["instants"],
        "archived": [],
    }
    with_archive = run("timeline", path, "--json", "--archived").json
    key = lambda each: (each["requested_time"], each["action"], each["state"])
    assert sorted(with_archive["archived"], key=key) == sorted(theirs["archived"], key=key)


@EVERY
def test_archived_instants_are_told_like_active_ones(run, table, version):
    """``timeline --archived --contents`` decodes them too, and ``instant`` finds them."""
    path = table(f"cow_archived-{version}")
    document = run("timeline", path, "--json", "--archived", "--contents").json
    done = [each for each in document["archived"] if each["state"] == "COMPLETED"]
    assert {"commit", "clean"} <= {each["action"] for each in done}
    for each in done:
        assert run("instant", path, each["requested_time"], "--json").json == each
        parts = each["content"]["partitionMetadata" if each["action"] == "clean" else "partitionToWriteStats"]
        assert parts
    assert run("instant", path, done[0]["requested_time"]).code == 0
    assert run("instant", path, "20000101000000000", "--json").code == 2


@EVERY
def test_timeline_selects_by_action_state_and_number(run, table, version):
    """The options narrow what is listed, and work together."""
    path = table(f"cow_mixed-{version}")
    everything = run("timeline", path, "--json").json["instants"]
    for action in {each["action"] for each in everything}:
        chosen = run("timeline", path, "--json", "--action", action).json["instants"]
        assert chosen == [each for each in everything if each["action"] == action]
    for state in ("COMPLETED", "inflight"):
        chosen = run("timeline", path, "--json", "--state", state).json["instants"]
        assert chosen == [each for each in everything if each["state"] == state.upper()]
    assert run("timeline", path, "--json", "--limit", 2).json["instants"] == everything[-2:]
    assert run("timeline", path, "--json", "--limit", 0).json["instants"] == []
    assert run("timeline", path, "--json", "--limit", 999).json["instants"] == everything
    assert run("timeline", path, "--json", "--limit", 2, "--archived").json["archived"] == []
    files = run("timeline", path, "--json", "--all-states").json["instants"]
    assert len(files) == len(fixtures.expected(f"cow_mixed-{version}")["expected"]["timeline"]["files"])


@EVERY
def test_contents_are_those_that_hudi_decodes(run, table, version):
    """``timeline --contents --all-states`` and ``instant``, for every file on the timeline."""
    name = f"cow_mixed-{version}"
    path, expected = table(name), fixtures.expected(name)
    listed = run("timeline", path, "--json", "--contents", "--all-states").json["instants"]
    theirs = [each.get("content") or {} for each in expected["expected"]["timeline"]["files"].values()]
    ours = [with_placeholder(each["content"], expected["inputs"]["base"]) for each in listed]
    ordered = lambda values: sorted(json.dumps(value, sort_keys=True) for value in values)
    assert ordered(ours) == ordered(theirs)
    for each in listed:
        document = run("instant", path, each["requested_time"], "--state", each["state"], "--json").json
        assert set(document) == {"requested_time", "action", "state", "completion_time", "content"}
        if document["action"] == each["action"]:
            assert document == each


@EVERY
@pytest.mark.parametrize("name", ["cow_mixed", "mor_pending_compaction", "cow_pending_clustering"])
def test_files_gives_hudis_slices(run, table, name, version):
    """Shape and content of ``files --json``, whole and by partition."""
    path = table(f"{name}-{version}")
    theirs = fixtures.expected(f"{name}-{version}")["expected"]["file_slices"]
    document = run("files", path, "--json").json
    assert document == theirs
    for partition, entry in theirs["partitions"].items():
        one = run("files", path, "--json", "--partition", partition).json
        assert one["partitions"] == {partition: entry}


@EVERY
def test_files_as_of_shows_the_past(run, table, version):
    """Only slices that existed then; times as instants, ISO 8601 and durations mean the same."""
    name = f"cow_nomdt-{version}"
    path = table(name)
    times = fixtures.expected(name)["inputs"]["as_of"]
    for time in times:
        document = run("files", path, "--json", "--as-of", time).json
        groups = [group for each in document["partitions"].values() for group in each["file_groups"]]
        bases = [each["base_instant"] for group in groups for each in group["slices"]]
        assert bases and max(bases) <= time
    day, clock = times[0][:8], times[0][8:]
    iso = f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:6]}.{clock[6:]}"
    assert run("files", path, "--json", "--as-of", iso).json == run("files", path, "--json", "--as-of", times[0]).json
    assert (
        run("files", path, "--json", "--as-of", "1ms").json["partitions"]
        == (run("files", path, "--json").json["partitions"])
    )
    opened = open_table(path)
    assert opened.as_of(iso).file_slices("r0") == opened.as_of(times[0]).file_slices("r0")
    with pytest.raises(ConfigError, match="not a time"):
        opened.as_of("yesterday")


def rows_hash(rows):
    """As fixtures/README.md says."""
    lines = sorted(json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", COW)
def test_read_gives_hudis_rows(run, table, name):
    """Snapshot and time travel of every copy-on-write table; what Hudi refuses is refused."""
    path = table(name)
    reads = fixtures.expected(name)["expected"]["reads"]
    questions = {(): reads["snapshot"], **{("--as-of", time): answer for time, answer in reads["as_of"].items()}}
    for options, theirs in questions.items():
        result = run("read", path, "--json", *options)
        if "error" in theirs:
            assert result.code == 1, (options, theirs)
            assert list(result.json) == ["error"]
            continue
        if name.startswith("cow_clean_inflight") and result.code == 1:
            # half-executed clean: Hudi reads what happens to be left of older instants (fixtures/README.md)
            assert options[1] < fixtures.expected(name)["inputs"]["as_of"][-1]
            continue
        assert result.code == 0, result.err
        assert set(result.json) == {"rows", "data"}
        assert result.json["rows"] == theirs["rows"] == len(result.json["data"])
        assert rows_hash(result.json["data"]) == theirs["hash"], options


def test_files_that_have_all_columns_are_read_although_the_table_was_bootstrapped(run, table):
    """Only files of the first commit lack columns; `tests/golden/test_bootstrapped.py` reads such ones."""
    path = table("cow_nomdt-1.1.1")
    before = run("read", path, "--json").json
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text("utf-8") + "\nhoodie.bootstrap.base.path=/lake/before\n", "utf-8")
    assert run("read", path, "--json").json == before
    assert run("clean", path, "--dry-run").code == 0


@pytest.mark.parametrize(
    "name", ["cow_nomdt-0.15.0", "cow_nomdt-1.1.1", "cow_nonpartitioned-0.15.0", "mor_compacted-1.0.2"]
)
@pytest.mark.parametrize("retention", [("--commits-retained", 1), ("--file-versions-retained", 1)])
def test_files_of_somebody_else_are_neither_read_nor_cleaned(run, table, name, retention):
    """K-28: names like several versions of one file, without the time of an instant or without a format of Hudi's."""
    path, elsewhere = table(name), ("--conf", "hoodie.metadata.enable=false")
    folder = min(each.parent for each in path.rglob(".hoodie_partition_metadata"))
    before = run("read", path, "--json", *elsewhere).out
    listed = run("files", path, "--json", *elsewhere).out
    foreign = [
        *(f"report_2024_{month:02}.csv" for month in (1, 2, 3)),
        *(f"sales_eu_{day}.parquet" for day in (20240101, 20240102, 20240103)),
        *(f"export_1_{time}.csv" for time in (20240101000000, 20240102000000)),
        *(f".app_2024{month:02}01.log.1" for month in (1, 2)),
        *(f".app_1.log.{number}" for number in (1, 2)),
    ]
    for each in foreign:
        (folder / each).write_bytes(b"mine")
    assert before == run("read", path, "--json", *elsewhere).out
    assert listed == run("files", path, "--json", *elsewhere).out
    assert run("clean", path, *retention, *elsewhere).code == 0
    assert set(foreign) <= {each.name for each in folder.iterdir()}


@pytest.mark.parametrize("name", ["cow_cleaned-1.1.1", "cow_partitioned-0.15.0"])
def test_the_timeline_does_not_depend_on_the_metadata_table(run, table, name):
    """Who removed it still sees what happened; what reads files goes around it, of itself or if asked to."""
    path = table(name)
    commands = (("timeline", "--contents", "--archived", "--json"), ("timeline",))
    whole = [run(*each, path).out for each in commands]
    shutil.rmtree(path / ".hoodie" / "metadata")
    assert whole == [run(*each, path).out for each in commands]
    around = run("files", path, "--conf", "hoodie.metadata.enable=false")
    assert around.code == 0
    assert run("files", path).out == around.out


@pytest.mark.parametrize("name", ["cow_partitioned-0.15.0", "cow_partitioned-1.0.2", "cow_partitioned-1.1.1"])
@pytest.mark.parametrize("statistics", ["whole", "damaged", "gone", "off"])
def test_read_where_gives_the_rows_that_meet_it(run, table, caplog, name, statistics):
    """With the statistics of real Hudi, without, and with what is left of them: the same rows, and why it was slow."""
    path = table(name)
    everything = run("read", path, "--json", "--meta").json["data"]
    stored = sorted((path / ".hoodie" / "metadata").glob("column_stats/.col-stats-*.log.*"))
    for each in stored if statistics == "damaged" else ():
        each.write_bytes(each.read_bytes()[:-30])
    if statistics == "gone":
        shutil.rmtree(path / ".hoodie" / "metadata" / "column_stats", ignore_errors=True)
    options = ("--conf", "hoodie.metadata.enable=false") if statistics == "off" else ()
    skipped = 0
    for where, check in {
        "qty > 90": lambda row: row["qty"] > 90,
        "ts <= 1005": lambda row: row["ts"] <= 1005,
        "name = 'zzz'": lambda row: row["name"] == "zzz",
        "region is null": lambda row: row["region"] is None,
        "_hoodie_commit_time < 2024": lambda row: row["_hoodie_commit_time"] < "2024",
        "qty > 90 or name = 'zzz'": lambda row: row["qty"] > 90,
        "not (qty <= 90 and name is not null)": lambda row: row["qty"] > 90,
        "region in ('r0', 'zzz') and ts not between 0 and 1005": lambda row: row["region"] == "r0" and row["ts"] > 1005,
        "_hoodie_record_key like 'z%' or qty = 1e9": lambda row: False,
    }.items():
        result = run("read", path, "--json", "--meta", "--where", where, *options)
        expected = [row for row in everything if check(row)]
        assert (result.json["rows"], result.json["data"]) == (len(expected), expected)
        skipped += result.json["files_skipped"]
        if statistics == "damaged" and stored:
            assert "column_stats" in caplog.text
    assert skipped
    assert run("read", path, "--where", "name = 'zzz'").out.startswith("0 rows, from 0 of ")
    assert run("read", path, "--where", "qty is large").code == 2
    assert run("read", path, "--where", "qty > 40", "--where", "qty <= 60", "--json").json["data"] == [
        {key: value for key, value in row.items() if key[0] != "_"} for row in everything if 40 < row["qty"] <= 60
    ]


def test_read_chooses_columns_and_rows(run, table, tmp_path):
    """Columns, limit, meta columns, output files."""
    path = table("cow_nomdt-1.1.1")
    everything = run("read", path, "--json").json
    column = min(everything["data"][0])
    assert run("read", path, "--json", "--columns", column, "--limit", 3).json["data"] == [
        {column: row[column]} for row in everything["data"][:3]
    ]
    with_meta = run("read", path, "--json", "--meta", "--limit", 1).json["data"][0]
    assert {"_hoodie_commit_time", "_hoodie_record_key"} < set(with_meta)
    lines = tmp_path / "rows.jsonl"
    assert run("read", path, "--json", "-o", lines).json["rows"] == everything["rows"]
    assert [json.loads(line) for line in lines.read_text("utf-8").splitlines()] == everything["data"]
    for suffix in ("parquet", "csv"):
        assert run("read", path, "-o", tmp_path / f"rows.{suffix}").code == 0
        assert (tmp_path / f"rows.{suffix}").stat().st_size > 0
    assert run("read", path, "-o", tmp_path / "rows.xls").code == 2
    assert run("read", path, "--columns", "nonsense").code == 2


def test_output_of_a_read_replaces_no_file_of_the_table(run, table, tmp_path):
    """``-o`` into the table's folders is refused, through a symbolic link and relative paths too; nothing changes."""
    path = table("cow_nomdt-1.1.1")
    (tmp_path / "link").symlink_to(path, target_is_directory=True)
    before = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    inside = next(path.rglob("*.parquet")).relative_to(path)
    sideways = tmp_path / ".." / tmp_path.name / path.relative_to(tmp_path)
    for root in (path, tmp_path / "link", sideways):
        for name in (inside, "rows.csv"):
            refused = run("read", path, "-o", root / name)
            assert refused.code == 2
            assert "inside the table" in refused.err
    assert before == {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    assert run("read", path, "-o", path.parent / "rows.csv").code == 0


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_rows_are_written_completely_or_not_at_all(run, table, tmp_path, suffix):
    """A table without rows makes a file without rows; what cannot be written is told, and nothing is left half done."""
    empty = table("cow_empty-1.1.1")
    out = tmp_path / "out"
    out.mkdir()
    assert run("read", empty, "--json", "-o", out / f"empty.{suffix}").json["rows"] == 0
    assert [f"empty.{suffix}"] == [each.name for each in out.iterdir()]
    full = table("cow_nomdt-1.1.1")
    refused = run("read", full, "-o", out / "nowhere" / f"rows.{suffix}")
    assert refused.code == 2
    assert "give a place" in refused.err
    damaged = max(full.rglob("*.parquet"), key=lambda each: each.name.rpartition("_")[2])
    damaged.write_bytes(b"no Parquet")
    assert run("read", full, "-o", out / f"rows.{suffix}").code == 1
    assert [f"empty.{suffix}"] == [each.name for each in out.iterdir()]


def comparable(plan):
    times = plan["plan"]["extra_metadata"].get("savepointed_timestamps")
    if times:
        plan["plan"]["extra_metadata"]["savepointed_timestamps"] = sorted(times.split(","))
    return {key: plan[key] for key in ("needs_cleaning", "would_schedule", "plan")}


def options_of(arguments):
    """Clean arguments of a fixture as options of the command."""
    names = {"policy", "commits_retained", "hours_retained", "file_versions_retained"}
    options = [text for key in names & set(arguments) for text in ("--" + key.replace("_", "-"), str(arguments[key]))]
    return options + (["--full"] if arguments.get("incremental") is False else [])


def snapshot(path):
    """Every file's content and times, folders' times too."""
    return {
        each.relative_to(path): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else b"")
        for each in [path, *path.rglob("*")]
    }


@EVERY
@pytest.mark.parametrize("name", ["cow_mixed", "mor_cleaned"])
def test_dry_run_gives_hudis_plans_and_writes_nothing(run, table, name, version):
    """All policies; the tree is the same to the byte and the nanosecond, metadata table or not."""
    path = table(f"{name}-{version}")
    expected = fixtures.expected(f"{name}-{version}")
    before = snapshot(path)
    for question in expected["expected"]["clean_plans"]:
        options = [*options_of(question["args"]), "--now", expected["inputs"]["now"]]
        result = run("clean", path, "--dry-run", "--json", *options)
        assert result.code == 0, result.err
        assert comparable(result.json) == comparable(question["result"]), question["args"]
        assert {"totals", "files", "kept", "scope", "pending_cleans"} < set(result.json)
        assert sum(each["bytes"] for each in result.json["files"]) == result.json["totals"]["bytes"]
        assert run("clean", path, "--dry-run", *options).code == 0
    assert snapshot(path) == before


@EVERY
def test_clean_reports_what_it_did(run, table, version):
    """``clean --json``: instant, stored metadata, deleted and failed files; then there is nothing to do."""
    path = table(f"cow_nomdt-{version}")
    result = run("clean", path, "--commits-retained", 1, "--json", "--engine", "local")
    assert result.code == 0, result.err
    (clean,) = result.json["cleans"]
    assert {"instant", "metadata", "deleted_files", "failed_files"} <= set(clean)
    assert clean["metadata"]["totalFilesDeleted"] == len(clean["deleted_files"]) > 0
    assert not [file for file in clean["deleted_files"] if (path / file).exists()]
    assert run("clean", path, "--commits-retained", 1, "--json").json == {"cleans": []}
    assert run("clean", path, "--commits-retained", 1).out == "nothing to do: no commit since the last clean\n"


def test_schedule_only_stores_the_plan_and_a_clean_carries_it_out(run, table):
    """Two steps, the second possibly elsewhere; a second schedule waits for the first."""
    path = table("cow_nomdt-1.1.1")
    scheduled = run("clean", path, "--commits-retained", 1, "--schedule-only", "--json").json["scheduled"]
    assert (scheduled["action"], scheduled["state"]) == ("clean", "REQUESTED")
    assert run("clean", path, "--commits-retained", 1, "--schedule-only", "--json").json == {"scheduled": None}
    dry = run("clean", path, "--dry-run", "--json").json
    assert dry["pending_cleans"] == [scheduled["requested_time"]]
    (clean,) = run("clean", path, "--json").json["cleans"]
    assert clean["instant"] == scheduled["requested_time"]


def test_settings_old_new_and_from_a_file(run, table, tmp_path):
    """Both spellings mean the same; options win over the file; contradictions are refused."""
    path = table("cow_nomdt-1.1.1")
    wanted = run("clean", path, "--dry-run", "--json", "--commits-retained", 1).json
    for key in ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"):
        assert run("clean", path, "--dry-run", "--json", "--conf", f"{key}=1").json == wanted
    file = tmp_path / "hudi.conf"
    file.write_text("# ours\nhoodie.cleaner.commits.retained = 1\n")
    assert run("clean", path, "--dry-run", "--json", "--conf-file", file).json == wanted
    file.write_text("hoodie.cleaner.commits.retained=5\nhoodie.clean.policy=KEEP_LATEST_COMMITS")
    assert (
        run("clean", path, "--dry-run", "--json", "--conf-file", file, "--conf", "hoodie.clean.commits.retained=1").json
        == wanted
    )
    (tmp_path / "torn.conf").write_bytes(b"hoodie.x=\\u00zz")
    for options in (
        ("--conf", "hoodie.clean.commits.retained=1", "--conf", "hoodie.cleaner.commits.retained=2"),
        ("--conf", "hoodie.clean.commits.retained=1", "--conf", "hoodie.clean.commits.retained=2"),
        ("--conf", "hoodie.clean.commits.retained=0"),
        ("--conf", "hoodie.clean.commits.retained=many"),
        ("--conf", "hoodie.clean.policy=KEEP_ALL"),
        ("--conf", "nonsense"),
        ("--conf-file", tmp_path / "none"),
        ("--conf-file", tmp_path / "torn.conf"),
        ("--policy", "KEEP_ALL"),
        ("--commits-retained", 0),
        ("--engine", "flink"),
        ("--dry-run", "--schedule-only"),
        ("--now", "yesterday"),
        ("--now", "99999999999999999"),
    ):
        result = run("clean", path, "--dry-run", *options)
        assert result.code == 2, options
        assert result.out == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lost_metadata_table_is_named_with_the_ways_out(run, table, version):
    """Readers list the folders and say so, nothing is deleted on a guess; both ways that the messages name lead on."""
    path = table(f"cow_partitioned-{version}")
    expected = run("files", path).out
    shutil.rmtree(path / ".hoodie" / "metadata")
    read, refused = run("files", path), run("clean", path, "--commits-retained", 1)
    assert (read.code, read.out, refused.code) == (0, expected, 1)
    for told in (read.err, refused.err):
        assert "hudi-py recover" in told
        assert "hoodie.metadata.enable=false" in told
        assert "unexpected" not in told
    assert run("files", path, "--conf", "hoodie.metadata.enable=false").out == expected
    assert run("recover", path).code == 0
    assert run("files", path).out == expected


def test_a_ladder_beside_file_versions_leaves_no_time_with_other_rows(run, table):
    """After a clean by versions with a ladder each earlier time shows its rows or is refused; `check` agrees."""
    path = table("cow_multilevel_hive-1.0.2")
    times = [each["requested_time"] for each in run("timeline", path, "--json").json["instants"]]
    rows = {time: run("read", path, "--json", "--as-of", time).json["data"] for time in times}
    assert run("clean", path, "--file-versions-retained", 1, "--keep-daily", 2).code == 0
    answers = {time: run("read", path, "--json", "--as-of", time) for time in times}
    shown = {time: each.json["data"] for time, each in answers.items() if each.code == 0}
    assert shown == {time: rows[time] for time in shown}
    assert set(shown) == {times[1], times[-1]}
    assert run("check", path).code == 0


def test_a_dry_run_of_a_rollback_names_the_plans_that_would_go(run, table):
    """A clean that is only planned would delete what is the latest afterwards, so its plan is withdrawn first."""
    path = table("cow_nomdt-1.0.2")
    run("clean", path, "--file-versions-retained", 1, "--schedule-only")
    timeline = run("timeline", path, "--json").json["instants"]
    clean = next(each for each in timeline if each["action"] == "clean" and each["state"] == "REQUESTED")
    last = [each["requested_time"] for each in timeline if each["action"] == "commit"][-1]
    said = run("rollback", path, last, "--dry-run", "--json").json
    assert said["plans_to_withdraw"] == [{"requested_time": clean["requested_time"], "action": "clean"}]
    assert f"the plan of clean {clean['requested_time']}" in run("rollback", path, last, "--dry-run").out
    assert run("timeline", path, "--json").json["instants"] == timeline
    assert run("rollback", path, last).code == 0
    assert all(each["action"] != "clean" for each in run("timeline", path, "--json").json["instants"])


def test_dry_runs_of_a_rollback_and_a_restore_tell_sizes(run, table):
    """Those of the files that would go, and what each commit that would be undone wrote."""
    path = table("cow_nomdt-1.1.1")
    instants = [
        each["requested_time"] for each in run("timeline", path, "--action", "commit", "--json").json["instants"]
    ]
    assert run("savepoint", "create", path, instants[-2], "--name", "before").code == 0
    rollback = run("rollback", path, instants[-1], "--dry-run", "--json").json
    on_disk = {each: (path / each).stat().st_size for each in rollback["files_to_delete"]}
    assert on_disk
    assert rollback["sizes"] == on_disk
    assert (
        f"{len(on_disk)} files, {human_bytes(sum(on_disk.values()))}"
        in run("rollback", path, instants[-1], "--dry-run").out
    )
    restore = run("restore", path, "before", "--dry-run", "--json").json
    assert restore["sizes"] == {instants[-1]: sum(on_disk.values())}
    listed = run("files", path, "--sizes", "--json").json
    for partition, sizes in listed["sizes"].items():
        assert sizes == {name: (path / partition / name).stat().st_size for name in sizes}
        slices = [each for group in listed["partitions"][partition]["file_groups"] for each in group["slices"]]
        assert set(sizes) == {name for each in slices for name in (each["base_file"], *each["log_files"])} - {None}
