"""Tables with schema on read, read and written by Spark executors: columns are found by their ids there, too."""

import pytest

import hudi_py
from hudi_py.storage.local import LocalStorage
from support.altering import added, alter, dropped, renamed
from support.trips import DRIVER_ROWS
from support.writes import create_table

pytestmark = pytest.mark.spark
COLUMNS = "id string, region string, ts bigint"


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_executors_find_columns_by_their_ids(spark, tmp_path, version, kind):
    """Renamed columns keep their values in reads, upserts, compactions and clusterings; what was dropped stays away."""
    storage = LocalStorage(tmp_path)
    create_table(version, storage, **{"hoodie.datasource.write.table.type": kind})
    settings = {DRIVER_ROWS: "0", "hoodie.compact.inline.max.delta.commits": "1", "hoodie.clean.automatic": "false"}
    client = hudi_py.WriteClient(spark, tmp_path, settings)
    keys = [(f"k{number}", "eu" if number % 2 else "us") for number in range(6)]
    first = [(*key, 1, f"x{key[0]}", f"y{key[0]}") for key in keys]
    client.upsert(spark.createDataFrame(first, f"{COLUMNS}, x string, y string"))
    client.upsert(spark.createDataFrame(first[:2], f"{COLUMNS}, x string, y string"))
    for change in (renamed("x", "z"), dropped("y"), added("y")):
        alter(storage, change)
    expected = {key[0]: {"region": key[1], "ts": 1, "z": f"x{key[0]}", "y": None} for key in keys}

    def assert_rows():
        found = {}
        for row in hudi_py.read(spark, tmp_path).collect():
            row = {name: value for name, value in row.asDict().items() if not name.startswith("_hoodie")}
            found[row.pop("id")] = row
        assert found == expected
        return hudi_py.open_table(tmp_path)

    assert_rows()
    client.upsert(spark.createDataFrame([("k0", "us", 2, "new", "Y")], f"{COLUMNS}, z string, y string"))
    expected["k0"] = {"region": "us", "ts": 2, "z": "new", "y": "Y"}
    assert_rows()
    if kind == "MERGE_ON_READ":
        assert client.compact()
        assert_rows()
    assert client.cluster()
    table = assert_rows()
    assert not [each for each in table.check() if each.severity.value != "info"]
