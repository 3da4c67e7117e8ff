"""Spark with the bundle of one Hudi version, and the few JVM calls everything else is built from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

LOG4J = "rootLogger.level = {level}\n"


def start_spark(
    jar: Path,
    scratch: Path,
    *,
    cores: str = "2",
    memory: str = "1500m",
    java_options: str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms600m -XX:NewSize=300m",
    log_level: str = "off",
    settings: dict[str, str] | None = None,
) -> Any:
    """
    Start a local Spark session with *jar* on the driver's class path, in UTC.

    The class path, not ``spark.jars``: with the latter 1.0.2 finds its Avro classes in the wrong class loader and
    fails on delete blocks. The default JVM options favour start-up over peak speed; benchmarks pass their own.
    """
    from pyspark.sql import SparkSession

    log4j = scratch / "log4j2.properties"
    log4j.write_text(LOG4J.format(level=log_level))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").appName("real-hudi")
    for key, value in {
        "spark.driver.extraClassPath": str(jar),
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dlog4j2.configurationFile=file:{log4j} {java_options}",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": cores,
        "spark.default.parallelism": cores,
        # the test clock jumps by hours: no time-out may notice
        "spark.network.timeout": "1000000s",
        "spark.network.timeoutInterval": "1000000s",
        "spark.executor.heartbeatInterval": "500000s",
        "spark.cleaner.periodicGC.interval": "1000h",
        **(settings or {}),
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level.upper())
    return spark


class HudiJvm:
    """A running Spark session of one Hudi version, seen through py4j."""

    def __init__(self, version: str, spark: Any) -> None:
        self.version = version
        self.is_v1 = version.startswith("1.")
        self.spark = spark
        self.jvm = spark._jvm  # noqa: SLF001  (the only way to the JVM)
        self._gateway = spark.sparkContext._gateway  # noqa: SLF001
        self._java_context = spark.sparkContext._jsc  # noqa: SLF001
        self.engine = self.jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(self._java_context)

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return int(self._gateway.proc.pid)

    @property
    def gateway(self) -> Any:
        """Py4j's connection."""
        return self._gateway

    # ------------------------------------------------------------------ Hudi's objects
    def storage_configuration(self) -> Any:
        """Hudi's wrapper of the Hadoop configuration."""
        hadoop = self._java_context.hadoopConfiguration()
        return self.jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(hadoop)

    def meta_client(self, table: str) -> Any:
        """A fresh ``HoodieTableMetaClient``."""
        builder = self.jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(self.storage_configuration()).setBasePath(table).build()

    def write_config(self, settings: dict[str, str]) -> Any:
        """A ``HoodieWriteConfig`` of exactly these settings."""
        properties = self.jvm.java.util.Properties()
        for key, value in settings.items():
            properties.setProperty(key, value)
        return self.jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withProperties(properties).build()

    def write_client(self, config: Any) -> Any:
        """A ``SparkRDDWriteClient``; the caller closes it."""
        return self.jvm.org.apache.hudi.client.SparkRDDWriteClient(self.engine, config)

    def spark_table(self, config: Any) -> Any:
        """A ``HoodieSparkTable``."""
        return self.jvm.org.apache.hudi.table.HoodieSparkTable.create(config, self.engine)

    def listing(self, spark_table: Any) -> Any:
        """The ``HoodieTableMetadata`` that lists the table; 1.2.0 renamed the method."""
        has_old_name = self.version.startswith(("0.", "1.0.", "1.1."))
        return spark_table.getMetadataTable() if has_old_name else spark_table.getTableMetadata()

    # ------------------------------------------------------------------ Java values
    def option(self, value: Any = None) -> Any:
        """Hudi's ``Option``."""
        factory = self.jvm.org.apache.hudi.common.util.Option
        return factory.empty() if value is None else factory.of(value)

    def class_of(self, name: str) -> Any:
        """``Class.forName`` (Spark's class loader sees the bundle, because it is on the driver's class path)."""
        return self.jvm.java.lang.Class.forName(name)

    def invoke_hidden(self, target: Any, method: str, types: list[str], values: list[Any]) -> Any:
        """Call a method that is not public."""
        classes = self._array("java.lang.Class", [self.class_of(name) for name in types])
        found = target.getClass().getDeclaredMethod(method, classes)
        found.setAccessible(True)
        return found.invoke(target, self._array("java.lang.Object", values))

    def construct_hidden(self, class_name: str, values: list[Any]) -> Any:
        """An object by the constructor with so many parameters, which need not be public."""
        constructors = self.class_of(class_name).getDeclaredConstructors()
        (found,) = (each for each in constructors if len(each.getParameterTypes()) == len(values))
        found.setAccessible(True)
        # By way of a list, because py4j puts no objects of Python into an array.
        given = self.jvm.java.util.ArrayList()
        for value in values:
            given.add(value)
        return found.newInstance(given.toArray())

    def heartbeat_manager(self, owner: str, every_ms: int, renew: Any) -> Any:
        """What renews a lock of ``StorageBasedLockProvider`` from a thread."""
        name = "org.apache.hudi.client.transaction.lock.models.LockProviderHeartbeatManager"
        return self.construct_hidden(name, [owner, every_ms, renew])

    def _array(self, class_name: str, values: list[Any]) -> Any:
        java_class = self.jvm
        for part in class_name.split("."):
            java_class = getattr(java_class, part)
        array = self._gateway.new_array(java_class, len(values))
        for position, value in enumerate(values):
            array[position] = value
        return array

    def forget_last_instant(self) -> None:
        """Let the instant generator go back in time; it waits for its last instant to pass otherwise."""
        generator = self.class_of("org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator")
        for field in generator.getDeclaredFields():
            if field.getName().upper().replace("_", "") == "LASTINSTANTTIME":
                field.setAccessible(True)
                field.get(None).set("-2147483648")


def java_items(java_list: Any) -> list[Any]:
    """A Java list as a Python list, by index (Avro's arrays do not iterate under py4j)."""
    return [java_list.get(position) for position in range(java_list.size())]


def java_stream(stream: Any) -> list[Any]:
    """A Java stream as a Python list."""
    iterator = stream.iterator()
    items = []
    while iterator.hasNext():
        items.append(iterator.next())
    return items


def unwrap(option: Any) -> Any:
    """Value of Hudi's ``Option`` or None."""
    return option.get() if option is not None and option.isPresent() else None
