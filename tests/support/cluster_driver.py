"""A job on a cluster, ``cluster_driver.py TABLE TYPE PARTITIONS FILES``: a bulk insert, an upsert of half the rows."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from hudi_py.spark.client import WriteClient
from support.trips import DRIVER_ROWS

ROWS_PER_FILE = 4


def main(path, table_type, partitions, files):
    """Tell before and after each write."""
    session = (
        SparkSession.builder.master(os.environ["SPARK_MASTER"])
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.network.timeout", "20s")
        .config("spark.network.timeoutInterval", "5s")
        .config("spark.executor.heartbeatInterval", "5s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.clean.automatic": False,
        DRIVER_ROWS: 0,
    }
    client = WriteClient(session, path, settings)
    # Each task has rows of each partition, so each makes a file in each.
    every = session.range(0, partitions * files * ROWS_PER_FILE, 1, files)
    rows = every.select(
        F.format_string("k%08d", "id").alias("id"),
        F.format_string("r%04d", F.col("id") % partitions).alias("region"),
        F.lit(1).cast("long").alias("ts"),
        F.md5(F.col("id").cast("string")).alias("name"),
    )
    say("begin insert")
    client.bulk_insert(rows)
    say("begin upsert")
    client.upsert(
        rows.where(F.substring("id", -1, 1).isin("0", "2", "4", "6", "8")).withColumn("ts", F.lit(2).cast("long"))
    )
    say("done")
    session.stop()


def say(line):
    """Tell the test, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
