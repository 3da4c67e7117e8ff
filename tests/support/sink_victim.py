"""
A streaming query to be killed: ``sink_victim.py TABLE SOURCE CHECKPOINT TYPE WHEN``.

Each file of SOURCE is a micro-batch, which `foreachBatch` inserts into TABLE under the query's write key. WHEN is
``never``, or the moment of the second batch of this process at which it kills itself: ``writing``, with its files
written; ``recording``, with the metadata table told; ``committed``, before the query's checkpoint knows.
"""

import os
import signal
import sys
from unittest import mock

from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.spark.client import WriteClient
from hudi_py.writing.transaction import WriteTransaction
from support.spark_sessions import quick_session

SCHEMA = "id string, region string, ts long"


def die(*_, **__):
    """As a power failure of this machine: with the JVM and its workers."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def main(path, source, checkpoint, table_type, when):
    """Run the query until nothing is left, or until it is killed."""
    session = quick_session("victim")
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.metadata.enable": True,
    }
    client = WriteClient(session, path, settings)
    batches = []

    def write(frame, number):
        batches.append(number)
        key = ("query", number)
        if len(batches) == 2 and when == "writing":
            with mock.patch.object(WriteTransaction, "commit", side_effect=die):
                client.insert(frame, write_key=key)
        if len(batches) == 2 and when == "recording":
            record = MetadataTableKeeper.record_commit

            def late(*arguments, **words):
                record(*arguments, **words)
                die()

            with mock.patch.object(MetadataTableKeeper, "record_commit", late):
                client.insert(frame, write_key=key)
        done = client.insert(frame, write_key=key)
        sys.stdout.write(f"{number} {'repeated' if done.is_repeated else 'written'}\n")
        sys.stdout.flush()
        if len(batches) == 2 and when == "committed":
            die()

    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source)
    query = rows.writeStream.option("checkpointLocation", checkpoint).foreachBatch(write)
    query.trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
