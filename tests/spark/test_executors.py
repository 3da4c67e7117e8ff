"""Deletions as Spark jobs: who does them, and what is told when an executor cannot."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_py
from hudi_py.engine import choice
from hudi_py.errors import ConfigError
from hudi_py.fsview import lister
from hudi_py.services.clean.executing import execute
from hudi_py.services.clean.executing.tasks import delete_files
from hudi_py.spark.engine import SparkEngine
from hudi_py.spark.session import ensure_java
from hudi_py.storage.local import LocalStorage
from support.event_logs import jobs_of, spark_home
from support.trips import PARTITIONED, trip

pytestmark = pytest.mark.spark

PROJECT = Path(hudi_py.__file__).parents[1]


def audited(folder):
    """``delete_files``, leaving a note of the process, the task and the files; sent to executors as code."""

    def run(task):
        import os
        from pathlib import Path
        from uuid import uuid4

        from pyspark import TaskContext

        from hudi_py.services.clean.executing.tasks import delete_files

        context = TaskContext.get()
        where = "driver" if context is None else f"{context.stageId()}.{context.partitionId()}"
        Path(folder, str(uuid4())).write_text("\n".join((str(os.getpid()), where, *task.paths)))
        return delete_files(task)

    return run


def notes(folder):
    """Process, task and files of each task."""
    return [text.split("\n") for text in (path.read_text() for path in Path(folder).iterdir())]


@pytest.mark.parametrize("by", ["commit", "call"])
def test_a_large_clean_is_deleted_by_executors(by, trips, tmp_path, monkeypatch):
    """After a commit and by hand: each planned file by a task of a Spark job, none in the driver's process."""
    folder = tmp_path / "notes"
    folder.mkdir()
    table = trips(
        PARTITIONED
        | {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false", "hoodie.clean.max.commits": "3"}
    )
    for version in range(3):
        table.upsert([trip(number, version) for number in range(6)])
    monkeypatch.setattr(execute, "delete_files", audited(str(folder)))
    monkeypatch.setattr(choice, "SPARK_FILES_MIN", 2)
    monkeypatch.setitem(SparkEngine.__init__.__kwdefaults__, "files_min", 1)
    if by == "call":
        cleans = table.client.clean()
    else:
        client = table.client
        service = client._service
        service._settings = service._settings.merged({"hoodie.clean.automatic": "true"})
        cleans = client.upsert(table.frame([trip(number, 9) for number in range(6)])).cleans
    (clean,) = cleans
    found = notes(folder)
    assert 2 <= len(found)
    assert str(os.getpid()) not in {process for process, *_ in found}
    assert "driver" not in {where for _, where, *_ in found}
    assert sorted(clean.deleted_files) == sorted(path for _, _, *paths in found for path in paths)


def audited_listing(folder):
    """``list_folders``, leaving a note as `audited` does."""

    def run(task):
        import os
        from pathlib import Path
        from uuid import uuid4

        from pyspark import TaskContext

        from hudi_py.fsview.lister import list_folders

        context = TaskContext.get()
        where = "driver" if context is None else f"{context.stageId()}.{context.partitionId()}"
        Path(folder, str(uuid4())).write_text("\n".join((str(os.getpid()), where, *task.folders)))
        return list_folders(task)

    return run


def test_many_partitions_are_listed_by_executors(trips, tmp_path, monkeypatch):
    """For the plan of a clean: each partition by a task of a Spark job, none in the driver's process."""
    folder = tmp_path / "notes"
    folder.mkdir()
    table = trips(PARTITIONED | {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})
    for version in range(3):
        table.upsert([trip(number, version) for number in range(6)])
    monkeypatch.setattr(lister, "list_folders", audited_listing(str(folder)))
    monkeypatch.setattr("hudi_py.spark.engine.is_listing_for_spark", lambda folders, **_: folders > 1)
    expected = hudi_py.open_table(table.path).plan_clean(commits_retained=1)
    assert expected.files
    (clean,) = table.client.clean()
    found = notes(folder)
    assert sorted(expected.files) == sorted(path for _, _, *paths in found for path in paths)
    assert str(os.getpid()) not in {process for process, *_ in found}
    assert "driver" not in {where for _, where, *_ in found}
    assert sum(len(expected.files.names(path)) for path in expected.files) == len(clean.deleted_files)


def test_few_files_after_a_commit_stay_on_the_driver(trips, tmp_path, monkeypatch):
    """A job would take longer than the deletion."""
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setattr(execute, "delete_files", audited(str(folder)))
    table = trips(PARTITIONED | {"hoodie.clean.commits.retained": "1"})
    for version in range(3):
        table.upsert([trip(number, version) for number in range(3)])
    assert {(str(os.getpid()), "driver")} == {(process, where) for process, where, *_ in notes(folder)}


def test_executors_are_asked_before_anything_is_deleted(spark, tmp_path, monkeypatch):
    """Where they are not this process; a folder that they do not share with the driver is no empty table."""
    monkeypatch.setattr("hudi_py.spark.engine.is_in_this_process", lambda _: False)
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(ConfigError, match=r"on the Spark executors .* there is no table at"):
        SparkEngine(spark).prepared(storage, 5)
    storage.create_new(".hoodie/hoodie.properties", b"")
    assert SparkEngine(spark).prepared(storage, 5).name == "spark"


class Unshipped:
    """Cannot be unpickled, as a storage whose library is not installed there."""

    def __reduce__(self):
        return __import__, ("s3fs_of_another_machine",)


def test_a_library_that_executors_lack_is_told_as_theirs(spark, tmp_path):
    """No task is tried again for it."""
    with pytest.raises(ConfigError, match=r"on the Spark executors: a package is missing: .*s3fs_of_another"):
        SparkEngine(spark).map(delete_files, [Unshipped(), Unshipped()], parallelism=2, description="test")


def cleaned_by(command, folder, *options):
    """A table of which 1,200 files go, more than one task does, cleaned by a process: Spark's jobs, files left."""
    root, home = folder / "table", folder / "home"
    size = ["--partitions", "4", "--groups", "50", "--slices", "10", "--empty-files"]
    make = [sys.executable, str(PROJECT / "tools/bench/make_table.py"), str(root), "--version", "9", "--mode", "full"]
    made = json.loads(subprocess.run([*make, *size], check=True, capture_output=True).stdout)
    ensure_java()  # as the package brings it, where the machine has none
    done = subprocess.run(
        [
            *command,
            "clean",
            str(root),
            "--conf",
            "hoodie.clean.commits.retained=3",
            "--engine",
            "spark",
            "--json",
            *options,
        ],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable, **spark_home(home)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    (clean,) = json.loads(done.stdout)["cleans"]
    assert made["expect_deleted"] == len(clean["deleted_files"])
    assert made["files"] - made["expect_deleted"] == sum(1 for _ in root.glob("p*/*.parquet"))
    return jobs_of(home / "events")


@pytest.mark.slow  # starts a cluster: a master, a worker and an executor with a Python of its own
def test_the_command_line_deletes_on_a_cluster(tmp_path):
    """``--master`` leads to executors in other processes, which are asked first and do all that is deleted."""
    jobs = cleaned_by([sys.executable, "-m", "hudi_py"], tmp_path, "--master", "local-cluster[1,2,1024]")
    assert ["hudi_py check the executors", "hudi_py clean: delete files"] == list(jobs)
    assert all(executors == ["0"] * 2 for executors in jobs.values())


@pytest.mark.slow  # starts a JVM of its own
def test_the_command_line_deletes_where_spark_submit_says(tmp_path):
    """As docs/executors.md puts it, without installing anything: no master of ours, the files go in a Spark job."""
    submit = [str(tmp_path / "home/bin/spark-submit"), "--master", "local[2]", "--name", "submitted"]
    jobs = cleaned_by([*submit, str(PROJECT / "hudi_py/__main__.py")], tmp_path)
    assert {"hudi_py clean: delete files": ["driver"] * 2} == jobs
