"""A Spark writer to be killed, with its JVM and its workers: ``spark_victim.py TABLE VERSION NUMBER``."""

import sys

from hudi_py.spark.client import WriteClient
from support.spark_sessions import quick_session
from support.victim import SETTINGS, batch


def main(path, version, number):
    """Upsert batch after batch from NUMBER on, and tell how far it is."""
    session = quick_session("victim")
    settings = {
        **SETTINGS,
        "hoodie.table.name": "t",
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.table.ordering.fields": "ts",
    }
    # A task writes, because it is tasks and their processes that are killed.
    client = WriteClient(session, path, {**settings, "hoodie_py.write.driver.max.rows": "0"})
    while True:
        say(f"begin {number}")
        client.upsert(session.createDataFrame(batch(number), "id string, region string, ts long"))
        say(f"done {number}")
        number += 1


def say(line):
    """Tell the test, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
