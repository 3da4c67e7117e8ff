"""Spark's words about a file that is gone, in ours."""

from urllib.parse import quote

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

from pyspark.errors.exceptions import captured

from hudi_py.spark import lost_files
from hudi_py.storage.local import LocalStorage
from support.writes import create_table, open_table, upsert

SAYS = (
    "org.apache.spark.SparkException: Job aborted ...\njava.io.FileNotFoundException: \nFile {} does not exist\n\nIt is"
)
SAYS_4 = (
    "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file {}. File does not exist. SQLSTATE: KD001"
)


class OfJava:
    """An error of Java with a cause, as Python sees it."""

    def __init__(self, text, cause=None):
        self._text, self._cause = text, cause

    def toString(self):  # noqa: N802
        return self._text

    def getCause(self):  # noqa: N802
        return self._cause


@pytest.fixture
def lost(tmp_path, monkeypatch):
    """A table, and the path of a file that a clean deleted."""
    storage = create_table(9, LocalStorage(str(tmp_path / "a table")))
    upsert(storage, [{"id": "a", "region": "e u", "ts": 1}])
    ((path, base),) = open_table(storage).base_files()
    upsert(storage, [{"id": "a", "region": "e u", "ts": 2}])
    assert open_table(storage).clean(file_versions_retained=1)
    monkeypatch.setattr(captured, "convert_exception", lambda error: ("spark", error))
    monkeypatch.setattr(lost_files, "_known", type(lost_files._known)())
    table = open_table(storage)
    lost_files.explain_lost_files(table.contents)
    lost_files.explain_lost_files(table.contents)  # each read does
    return table, f"{storage.root}/{path}/{base.name}"


@pytest.mark.parametrize("says", [SAYS, SAYS_4])
@pytest.mark.parametrize("form", [str, quote, "file:{}".format, lambda path: f"file://{quote(path)}"])
def test_the_clean_is_named(lost, says, form):
    """However the path is written, and whichever error is the cause of which."""
    table, path = lost
    (clean,) = table.timeline.completed("clean")
    found = captured.convert_exception(OfJava("Job aborted", OfJava(says.format(form(path)))))
    assert f"clean {clean.requested_time}" in str(found)
    assert "deleted it while rows were read" in str(found)


def test_all_other_errors_are_those_of_spark(lost):
    """Also one about a file of which nothing is known."""
    _, path = lost
    for text in ("division by zero", SAYS.format("/elsewhere/x.parquet"), SAYS.format(path.replace("_2026", "_2025")),
                 f"cannot parse {path}"):  # fmt: skip
        error = OfJava(text)
        assert captured.convert_exception(error) == ("spark", error)


def test_what_cannot_be_asked_leaves_the_error_of_spark(lost):
    """The table may be gone as a whole, and no second error hides the first."""
    table, path = lost
    table.storage.delete_folder(".hoodie")
    for error in (OfJava(SAYS.format(path)), object()):
        assert captured.convert_exception(error) == ("spark", error)
