"""What all tests share: a Spark session, and a hypothesis that does not judge how fast a busy machine is."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def spark():
    """Without any Hudi on its class path; two cores, and no more tasks than they can do."""
    settings = {"spark.hudi_py.x": "y", "spark.sql.shuffle.partitions": 2, "spark.speculation": "false"}
    session = pytest.importorskip("hudi_py.spark.session").local_session("test", cores=2, memory="1g", **settings)
    session.sparkContext.setLogLevel("OFF")  # tasks that fail on purpose would fill the screen
    yield session
    session.stop()
