"""What is told of executors that cannot do the work, and which engine is chosen."""

import re
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

import hudi_py
from hudi_py.engine.answers import Answering, packed, raise_first
from hudi_py.engine.choice import SPARK_FILES_MIN, SPARK_FILES_MIN_REMOTE, AutoEngine, is_for_spark
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, StorageError
from hudi_py.spark.client import WriteClient
from hudi_py.spark.engine import SparkEngine
from hudi_py.spark.failures import executor_errors, naming_executors
from hudi_py.spark.probe import check_finding, look_around, probe
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.properties_file import PROPERTIES_FILE

FINE = {"host": "worker-1", "python": "3.11.1", "version": hudi_py.__version__, "sees": PROPERTIES_FILE}


def without(*names, **more):
    return {**{name: value for name, value in FINE.items() if name not in names}, **more}


class Missing:
    """Cannot be unpickled, as a storage whose library is not installed."""

    def __reduce__(self):
        return __import__, ("s3fs_of_another_machine",)


def test_more_files_never_lead_back_to_threads():
    """There is one border each for disks and object stores; without a session there is no Spark."""
    counts = (0, 1, SPARK_FILES_MIN_REMOTE - 1, SPARK_FILES_MIN_REMOTE, SPARK_FILES_MIN - 1, SPARK_FILES_MIN, 10**7)
    for is_remote, has_session in product((False, True), repeat=2):
        chosen = [is_for_spark(count, is_remote=is_remote, has_session=has_session) for count in counts]
        assert sorted(chosen) == chosen
        assert has_session is chosen[-1]
        assert not chosen[1]
    assert is_for_spark(SPARK_FILES_MIN_REMOTE, is_remote=True, has_session=True)
    assert not is_for_spark(SPARK_FILES_MIN_REMOTE, is_remote=False, has_session=True)


def test_auto_starts_spark_for_many_files_only():
    """The session is asked for when it is needed, not before."""
    started = []

    def spark():
        started.append(True)
        return LocalEngine(1)

    engine, storage = AutoEngine(spark), MemoryStorage()
    assert 1 != engine.prepared(storage, SPARK_FILES_MIN_REMOTE - 1).slots
    assert [] == started
    assert 1 == engine.prepared(storage, SPARK_FILES_MIN).slots
    assert [True] == started
    assert "local" == AutoEngine().prepared(storage, 10**9).name


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (without("version", "sees", missing="No module named 'hudi_py'"), "No module named 'hudi_py'.*--archives"),
        (without("sees", missing="Install s3fs to access S3"), "Install s3fs.*--archives"),
        (without(version="0.0.9"), "hudi_py is 0.0.9, and .* here.*PYSPARK_PYTHON"),
        (without("sees", error="StorageError: 403"), "/lake/t cannot be reached: StorageError: 403.*credentials"),
        (without("sees"), "there is no table at /lake/t.*all executors share"),
    ],
)
def test_what_executors_lack_is_told_as_theirs(finding, told):
    """The message says where, what, that nothing was deleted, and what to do."""
    with pytest.raises(ConfigError, match=told) as raised:
        check_finding(finding, root="/lake/t", version=hudi_py.__version__)
    assert str(raised.value).startswith("on the Spark executors (worker-1, Python 3.11.1)")
    assert "Nothing was deleted" in str(raised.value)


def test_an_executor_that_has_everything_passes(tmp_path):
    """What an executor runs is the same here: the table is seen, and one that is not there is not."""
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(ConfigError, match="there is no table at"):
        probe(lambda function, items: [function(item) for item in items], storage, 2)
    storage.create_new(PROPERTIES_FILE, b"")
    probe(lambda function, items: [function(item) for item in items], storage, 2)


def test_the_probe_travels_as_code():
    """It has to run where hudi_py is not installed, so nothing but its name may lead to our modules."""
    look = look_around(PROPERTIES_FILE)
    assert "<locals>" in look.__qualname__
    globals_read = {name for name in look.__code__.co_names if name in look.__globals__}
    assert globals_read <= {"pickle", "__name__", "RELEASE"}  # the first is imported inside, the others are attributes


def test_a_package_that_tasks_lack_is_missing_on_the_executors():
    """It is no advice to install it here."""
    answer = Answering(len)(packed((Missing(),)))
    told = r"on the Spark executors: a package is missing: .*s3fs_of_another"
    with pytest.raises(ConfigError, match=told), naming_executors():
        raise_first([answer])
    assert [3] == raise_first([Answering(len)(packed("abc"))])


OTHER_PYTHON = (
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11, PySpark cannot "
    "run with different minor versions."
)
REPORT = """An error occurred while calling o1.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times
Traceback (most recent call last):
  File "worker.py", line 1100, in main
{words}
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            f"pyspark.errors.PySparkRuntimeError: {OTHER_PYTHON}",
            "Python has another version: .*: 3.10 than.*: 3.11.*PYSPARK_PYTHON",
        ),
        ("ModuleNotFoundError: No module named 'hudi_py'", "a package is missing.*'hudi_py'.*--archives"),
    ],
)
def test_executors_on_which_no_task_begins_are_told_as_such(words, told):
    """Spark's worker itself refuses another Python, and a task without our package cannot even be unpickled."""
    failure = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    with pytest.raises(ConfigError, match=f"^on the Spark executors .*{told}"), executor_errors(StorageError, "again"):
        raise failure(REPORT.format(words=words))


def connected():
    """A session like that of Spark Connect."""
    return type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


@pytest.mark.parametrize("use", [SparkEngine, lambda spark: WriteClient(spark, "t", {"hoodie.table.name": "t"})])
def test_sessions_of_spark_connect_are_refused_by_name(use, tmp_path, monkeypatch):
    """Before anything is created."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"Spark Connect.*nothing was created"):
        use(connected())
    assert [] == list(tmp_path.iterdir())


def test_the_version_is_told_once():
    """Executors compare it where no metadata of an installation travels along."""
    text = Path(hudi_py.__file__).parents[1].joinpath("setup.cfg").read_text()
    assert not re.search(r"^version = ", text, re.MULTILINE)  # setup.py has it from the tag, or from the same constant
    assert re.fullmatch(r"\d+\.\d+\.\d+", hudi_py.__version__)
