"""Dates and times before the calendars of Spark 3 and of older programs agree: in files of Apache Hudi and in ours."""

from datetime import date, datetime, timezone
from uuid import uuid4

import pyarrow as pa
import pytest
from real_hudi import RealHudiError
from real_hudi.canonical import canonical_rows

import hudi_py

pytestmark = pytest.mark.oracle

MODE = "spark.sql.parquet.datetimeRebaseModeInRead"


@pytest.fixture
def corrected(peer):
    """Sets the mode with which the session of Hudi reads old dates."""
    yield lambda: peer.sql(f"set {MODE}=CORRECTED")
    peer.sql(f"reset {MODE}")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_them_in_its_files_and_ours_when_it_is_told_how(peer, corrected, kind, tmp_path):
    """By default Spark reads neither, because the footers do not say which program wrote them."""
    path, name = tmp_path / "t", f"t{uuid4().hex}"
    peer.sql(
        f"create table {name} (id int, d date, t timestamp, ts bigint) using hudi location '{path}' "
        f"tblproperties (type='{kind}', primaryKey='id', preCombineField='ts')"
    )
    row = "date'0001-01-01', timestamp'1582-10-04 00:00:00'"
    upsert = {"hoodie.spark.sql.insert.into.operation": "upsert"}
    peer.sql(f"insert into {name} values (1, {row}, 1)", upsert)
    with pytest.raises(RealHudiError, match="READ_ANCIENT_DATETIME"):
        peer.read(path)
    corrected()
    values = {"d": date(1, 1, 1), "t": datetime(1582, 10, 4, tzinfo=timezone.utc), "ts": 1}
    rows = [{"id": number, **values} for number in (1, 2)]
    schema = pa.schema([("id", pa.int32()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("ts", pa.int64())])
    hudi_py.write(path, pa.Table.from_pylist(rows[1:], schema=schema), operation="upsert")
    assert peer.read(path) == canonical_rows(rows)
    peer.sql(f"update {name} set ts = 2 where id = 2")
    rows[1]["ts"] = 2
    assert peer.read(path) == canonical_rows(rows)
    assert canonical_rows(hudi_py.open_table(path).rows().to_arrow().to_pylist()) == canonical_rows(rows)
    peer.sql(f"drop table {name}")
