"""Sessions of Spark for tests."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hudi_py.spark.session import local_session


def quick_session(name: str, **conf: Any) -> SparkSession:
    """
    Return a session with two cores, and no more tasks than they can do, whose JVM is made for short work.

    Java's second compiler and its parallel collector cost more than they save where no query runs twice.
    """
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": 2,
        **conf,
    }
    session = local_session(name, cores=2, memory="1g", **settings)
    session.sparkContext.setLogLevel("OFF")  # tasks that fail on purpose would fill the screen
    return session
