"""Several streams that write to one table batch by batch, and a compactor beside them."""

import json
import threading
from contextlib import suppress

import pytest

import hudi_py
from hudi_py.errors import ConflictError
from support.rival_places import FILE_LOCK
from support.trips import PARTITIONED

pytestmark = pytest.mark.spark

BATCHES, ROWS = 2, 3
SETTINGS = {
    **PARTITIONED,
    **FILE_LOCK,
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.compact.inline.max.delta.commits": "1",
}
NAMES = ("inserts", "upserts", "others")


def arrived(folder, name):
    """A file for each batch: rows of their own, and one that all streams write."""
    folder.mkdir()
    for batch in range(BATCHES):
        keys = [f"{name}-{batch}-{number}" for number in range(ROWS)] + ["all"] * (name != "inserts")
        rows = [{"id": key, "region": "eu", "ts": batch * 10 + NAMES.index(name)} for key in keys]
        (folder / f"{batch}.json").write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_each_batch_of_each_stream_is_there_once(spark, tmp_path, version):
    """Also one that is repeated because the stream failed right after it was committed."""
    location, fails, committed = str(tmp_path / "table"), [("inserts", 1)], threading.Event()
    settings = {**SETTINGS, "hoodie.write.table.version": str(version)}
    first = spark.createDataFrame([("all", "eu", -1)], "id string, region string, ts bigint")
    hudi_py.WriteClient(spark, location, settings).upsert(first)

    def sink(name):
        def write(frame, number):
            client = hudi_py.WriteClient(spark, location, settings)
            act = client.insert if name == "inserts" else client.upsert
            act(frame, write_key=(name, number), retries=50)
            committed.set()
            if (name, number) in fails:
                fails.remove((name, number))
                raise ConnectionError

        return write

    def started(name):
        source = spark.readStream.schema(first.schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / name))
        writer = source.writeStream.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        return writer.foreachBatch(sink(name)).trigger(availableNow=True).start()

    for name in NAMES:
        arrived(tmp_path / name, name)
    queries = {name: started(name) for name in NAMES}
    compacted = 0
    while any(query.isActive for query in queries.values()):
        committed.wait(1)
        committed.clear()
        with suppress(ConflictError):  # a writer is at work in layout 1
            compacted += len(hudi_py.open_table(location, settings=settings).compact())
    with pytest.raises(Exception, match="ConnectionError"):
        queries.pop("inserts").awaitTermination()
    for query in (*queries.values(), started("inserts")):
        query.awaitTermination()
    compacted += len(hudi_py.open_table(location, settings=settings).compact())

    table = hudi_py.open_table(location, settings=settings)
    rows = table.rows(columns=["id", "ts"]).to_arrow().to_pylist()
    found = {row["id"]: row["ts"] for row in rows}
    own = {f"{name}-{batch}-{i}" for name in NAMES for batch in range(BATCHES) for i in range(ROWS)}
    assert len(rows) == len(found)
    assert set(found) == own | {"all"}
    # In version 6 the row of the last write wins, later that with the largest ordering value.
    written = [batch * 10 + NAMES.index(name) for name in NAMES[1:] for batch in range(BATCHES)]
    assert found["all"] in (written if version == 6 else [max(written)])
    assert compacted
    assert fails == []
    assert not table.timeline.pending()
    assert not [each for each in table.check() if each.severity.name == "ERROR"]
