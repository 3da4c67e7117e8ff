"""One Spark session for all tests of this folder."""

from __future__ import annotations

import pytest

from spark.trips import PARTITIONED, Trips


@pytest.fixture(scope="session")
def spark():
    """Two cores, and no more tasks than they can do."""
    settings = {"spark.hudi_py.x": "y", "spark.sql.shuffle.partitions": 2, "spark.speculation": "false"}
    session = pytest.importorskip("hudi_py.spark.session").local_session("test", cores=2, memory="1g", **settings)
    session.sparkContext.setLogLevel("OFF")  # tasks that fail on purpose would fill the screen
    yield session
    session.stop()


@pytest.fixture
def trips(spark, tmp_path):
    """``trips(settings)``: a table with a model of its rows."""
    made: list[Trips] = []

    def make(settings: dict[str, str] | None = None, version: int = 9) -> Trips:
        path = tmp_path / f"t{len(made)}"
        made.append(Trips(spark, str(path), {**(settings or PARTITIONED), "hoodie.write.table.version": str(version)}))
        return made[-1]

    return make
