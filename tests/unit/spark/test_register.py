"""A session gets the format, or is told by name why not."""

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

from hudi_py.errors import ConfigError
from hudi_py.spark import source
from hudi_py.spark.python_sources import DataSourceReader
from hudi_py.spark.source import HudiDataSource, HudiReader, register

LIMIT = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Session:
    """What is asked of one of Spark 4."""

    version = "4.1.0"
    createDataFrame = None  # noqa: N815

    def __init__(self, **conf):
        self.taken, self._conf = [], conf
        self.conf, self.dataSource = self, self

    def get(self, name, default):
        return self._conf.get(name, default)

    def register(self, kind):
        self.taken.append(kind)


@pytest.fixture(autouse=True)
def spark_4(monkeypatch):
    monkeypatch.setattr(source, "HAS_SOURCES", True)
    monkeypatch.setattr(source, "use_own_python", lambda _: None)


@pytest.mark.parametrize("limit", ["0", "-1", " -1 "])
def test_a_session_without_a_limit_of_batches_is_refused_by_name(limit):
    """Spark's own words name neither the setting nor a way out."""
    session = Session(**{LIMIT: limit})
    with pytest.raises(ConfigError, match=rf"maxRecordsPerBatch is {limit.strip()}, no limit: .*hudi_py\.read"):
        register(session)
    assert session.taken == []


@pytest.mark.parametrize("conf", [{}, {LIMIT: "10000"}, {LIMIT: "${of.another}"}])
def test_any_other_session_gets_the_format(conf):
    """Whatever Spark says of it later."""
    session = Session(**conf)
    register(session)
    assert session.taken == [HudiDataSource]


def test_the_source_takes_no_filters():
    """Spark 4.3 reads what was chosen for one query of a DataFrame for its other ones, too: rows would be missing."""
    assert getattr(HudiReader, "pushFilters", None) is getattr(DataSourceReader, "pushFilters", None)
