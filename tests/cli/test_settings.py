"""Settings on the command line: unknown ones are wrong usage, and nothing is done with a default in their place."""

import pytest

TABLE = "cow_many-1.1.1"
TYPO = "hoodie.cleaner.commits.retaned"


def snapshot(path):
    return {each: each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def test_a_misspelled_setting_is_wrong_usage(run, table):
    """Exit code 2 from every command, one line with the name that was meant, and no byte is changed."""
    path = table(TABLE)
    before = snapshot(path)
    for command in ("clean", "check", "timeline", "read", "archive", "recover", "files"):
        result = run(command, path, "--conf", f"{TYPO}=2")
        assert result.code == 2, command
        assert f"{TYPO} (did you mean hoodie.cleaner.commits.retained?)" in result.err
        assert result.err.count("\n") <= 2
    assert before == snapshot(path)


def test_unknown_settings_pass_when_asked_to(run, table):
    """The default counts then, as the user has been told."""
    result = run("clean", table(TABLE), "--dry-run", "--json", "--conf", f"{TYPO}=2", "--allow-unknown-conf")
    assert result.code == 0
    assert result.json["plan"]


def test_a_file_shared_with_a_spark_job_is_taken(run, table, tmp_path):
    """Settings of Spark, of the streamer, of catalogs and of writing stand in it; a clean needs none of them."""
    shared = tmp_path / "job.properties"
    shared.write_text(
        "spark.sql.shuffle.partitions=2\nhoodie.streamer.source.dfs.root=/in\nhoodie.datasource.hive_sync.enable=true\n"
        "hoodie.index.type=BUCKET\nhoodie.bucket.index.num.buckets=4\nhoodie.datasource.write.operation=upsert\n"
        "hoodie.archive.async=true\nhoodie.metrics.on=true\nhoodie.cleaner.commits.retained=2\n"
    )
    path = table(TABLE)
    with_file = run("clean", path, "--dry-run", "--json", "--conf-file", shared)
    assert with_file.code == 0, with_file.err
    assert with_file.json["plan"] == run("clean", path, "--dry-run", "--json", "--commits-retained", "2").json["plan"]


def test_a_misspelled_setting_in_a_file_is_wrong_usage(run, table, tmp_path):
    """Among many, the one that nothing knows is named."""
    shared = tmp_path / "job.properties"
    shared.write_text(f"spark.app.name=x\nhoodie.datasource.hive_sync.enable=true\n{TYPO}=2\n")
    result = run("clean", table(TABLE), "--conf-file", shared)
    assert result.code == 2
    assert TYPO in result.err
    assert "hive_sync" not in result.err


@pytest.mark.parametrize(
    "setting", ["hoodie.clean.trigger.strategy=NONSENSE", "hoodie.clean.partition.filter.selected=a"]
)
def test_what_a_clean_cannot_do_is_refused(run, table, setting):
    """Instead of deleting by another rule; the same setting does not keep anyone from looking."""
    path = table(TABLE)
    before = snapshot(path)
    result = run("clean", path, "--conf", setting)
    assert result.code == 2
    assert f"{setting} is refused for cleaning" in result.err
    assert run("timeline", path, "--conf", setting).code == 0
    assert before == snapshot(path)


def test_a_value_of_a_served_setting_is_valid_or_wrong_usage(run, table):
    """Also where the command would not have asked for it."""
    result = run("timeline", table(TABLE), "--conf", "hoodie.clean.policy=KEEP_EVERYTHING")
    assert result.code == 2
    assert "hoodie.clean.policy" in result.err
