"""The views for SQL in Spark have the rows that they have without it."""

import pytest

import hudi_py
from support import fixtures

pytestmark = pytest.mark.spark


def test_views_in_spark_have_the_same_rows(spark, tmp_path):
    """In a session of another time zone too: a moment stays the same moment."""
    table = hudi_py.open_table(str(fixtures.unpack("cow_savepoints-1.1.1", tmp_path)))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        names = table.register_views(spark, prefix="trips_")
        for name in names:
            expected = table.view(name.removeprefix("trips_"))
            columns = [
                f"unix_millis({field.name}) as {field.name}" if str(field.type).startswith("timestamp") else field.name
                for field in expected.schema
            ]
            found = [row.asDict() for row in spark.sql(f"select {', '.join(columns)} from {name}").collect()]
            plain = [
                {key: round(value.timestamp() * 1000) if hasattr(value, "timestamp") else value
                 for key, value in row.items()}
                for row in expected.to_pylist()
            ]  # fmt: skip
            assert sorted(found, key=str) == sorted(plain, key=str), name
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        for name in names:
            spark.catalog.dropTempView(name)
