"""What each kind of write means, and what is refused."""

import datetime as dt
import math
from pathlib import Path

import pytest
from pyspark.sql import functions

import hudi_py
from hudi_py.errors import ConfigError, CorruptMetadata, TableNotFound, WriteError
from support.trips import COMMON, DRIVER_ROWS, PARTITIONED, ROWS, TWO_PASSES, Trips, hudi_rs_rows, trip

pytestmark = pytest.mark.spark
BOTH_WAYS = pytest.mark.parametrize("way", [{}, TWO_PASSES], ids=["single pass", "two passes"])


def states(table: Trips) -> list[str]:
    """Action and state of everything on the timeline."""
    return [f"{each.action.value} {each.state.name.lower()}" for each in hudi_py.open_table(table.path).timeline]


def base_files(table: Trips) -> list[Path]:
    return sorted(path for path in Path(table.path).rglob("*.parquet") if ".hoodie" not in path.parts)


@BOTH_WAYS
def test_insert_keeps_duplicates(way, trips):
    """An insert looks for no keys: a row with a stored key stands beside it, also inside the same small file."""
    table = trips(PARTITIONED | way)
    table.insert([trip(1, region="r1")])
    table.client.insert(table.frame([trip(1, 2, region="r1"), trip(2, 2, region="r1")]))
    expected = sorted([("k00001", 1), ("k00001", 2), ("k00002", 2)])
    rows = hudi_py.read(table.spark, table.path).select("id", "ts", "_hoodie_file_name").collect()
    assert expected == sorted((row.id, row.ts) for row in rows)
    assert 1 == len({row["_hoodie_file_name"] for row in rows}), "packed into the small file"
    assert expected == sorted((row["id"], row["ts"]) for row in hudi_rs_rows(table.path))


@BOTH_WAYS
def test_overwrites_replace_partitions_and_dropped_ones_are_empty(way, trips):
    """With Spark as without: only the partitions of the rows, the whole table, the named ones; once for each key."""
    table = trips(PARTITIONED | way)
    table.insert([trip(number, region=f"r{number}") for number in (1, 2, 3)])

    def stored() -> list[tuple[str, int]]:
        rows = hudi_py.read(table.spark, table.path).select("id", "ts").collect()
        return sorted((row.id, row.ts) for row in rows)

    for _ in range(2):
        done = table.client.insert_overwrite(table.frame([trip(4, 2, region="r1")]), write_key=("job", 1))
    assert done.is_repeated
    assert stored() == [("k00002", 1), ("k00003", 1), ("k00004", 2)]
    table.client.drop_partitions(["r2"])
    assert stored() == [("k00003", 1), ("k00004", 2)]
    table.client.insert_overwrite_table(table.frame([trip(5, 3, region="r3")]))
    assert stored() == [("k00005", 3)]
    assert not table.client.table.check()


def test_insert_combines_when_asked(trips):
    """With hoodie.combine.before.insert one row per key is kept."""
    table = trips(PARTITIONED | {"hoodie.combine.before.insert": "true"})
    table.client.insert(table.frame([trip(1, 1), trip(1, 3), trip(1, 2)]))
    assert [3] == [row[2] for row in table.stored()]


@pytest.mark.parametrize(
    ("kind", "less", "greater"),
    [("double", -0.0, 0.0), ("float", 0.0, math.nan), ("string", "\U00010000", "\uff00")],
)
def test_rows_to_combine_are_compared_as_in_java(kind, less, greater, spark, tmp_path):
    """Spark takes both zeros for equal, and compares texts by their UTF-8 bytes."""
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.combine.before.insert": True,
    }
    rows = spark.createDataFrame([("a", greater, 1), ("a", less, 2)], f"id string, ts {kind}, v int").coalesce(1)
    hudi_py.WriteClient(spark, str(tmp_path / "t"), settings).bulk_insert(rows)
    assert [row["v"] for row in hudi_py.open_table(tmp_path / "t").rows().to_arrow().to_pylist()] == [1]


def test_row_with_another_partition_is_another_row(trips):
    """Keys are unique within a partition only, as with Hudi's default index."""
    table = trips()
    table.upsert([trip(1, 1, region="a")])
    table.upsert([trip(1, 2, region="b")])
    table.check()
    assert ["a", "b"] == [row[1] for row in table.stored()]


@BOTH_WAYS
def test_later_of_two_equal_rows_wins(way, trips):
    """Without ordering fields, and among equal ordering values, the order of the DataFrame decides."""
    settings = {key: value for key, value in PARTITIONED.items() if key != "hoodie.table.ordering.fields"}
    table = trips(settings | way)
    for _ in range(2):
        table.client.upsert(table.frame([trip(number % 5, 100 - number) for number in range(50)]))
        assert {f"k0000{number}": 100 - 45 - number for number in range(5)} == {
            row[0]: row[2] for row in table.stored()
        }


def test_columns_may_come_go_and_return(trips):
    """A new column is null in older rows, a missing one is null in newer rows, an older snapshot has its own schema."""
    table = trips()
    first = table.insert([trip(1, 1)])
    table.client.upsert(table.frame([trip(2, 2, extra="x")], f"{ROWS}, extra string"))
    table.client.upsert(table.frame([{"id": "k00003", "region": "r0", "ts": 3}], "id string, region string, ts int"))
    rows = hudi_py.read(table.spark, table.path).select("id", "amount", "extra").orderBy("id").collect()
    assert [("k00001", 1.125, None), ("k00002", 2.25, "x"), ("k00003", None, None)] == [tuple(row) for row in rows]
    then = hudi_py.read(table.spark, table.path, as_of=first.instant)
    assert "extra" not in then.columns
    assert 1 == then.count()
    with pytest.raises(ConfigError, match="column 'amount' is string in the rows and double in the table"):
        table.client.upsert(table.frame([trip(4, amount="much")], ROWS.replace("double", "string")))


def test_types_may_grow_while_older_files_keep_theirs(trips):
    """A wider type rewrites no file; every reader sees the rows of all ages in it."""
    table = trips()
    narrow = ROWS.replace("bigint", "int").replace("double", "float")
    table.client.insert(table.frame([trip(number, 1) for number in range(3)], narrow))
    table.insert([trip(number, 2**40) for number in range(3, 5)])
    table.model.update({table.key(row): row for row in (trip(number, 1) for number in range(3))})
    assert 3 == len({path.parent for path in base_files(table)})
    assert ["bigint", "double"] == [
        kind for name, kind in hudi_py.read(table.spark, table.path).dtypes if name in "ts amount"
    ]
    table.check()


@BOTH_WAYS
def test_numbers_become_texts_and_columns_without_a_type_have_that_of_the_table(way, trips):
    """Rows of older and newer files show the same texts, and a literal null takes no type away."""
    table = trips(PARTITIONED | way | {"hoodie_py.write.numbers.to.text": "true"})
    table.client.insert(table.frame([trip(number, 1) for number in range(3)]))
    texts = [trip(number, 2) | {"amount": f"{number}!"} for number in (2, 3)]
    table.client.upsert(table.frame(texts, ROWS.replace("double", "string")))
    numbers = table.frame([trip(4, 2)])
    table.client.upsert(numbers)
    nothing = table.frame([trip(5, 2)]).withColumn("amount", functions.lit(None))
    table.client.upsert(nothing)
    expected = {f"k0000{number}": str(trip(number, ts)["amount"]) for number, ts in ((0, 1), (1, 1), (4, 2))}
    expected |= {"k00002": "2!", "k00003": "3!", "k00005": None}
    rows = hudi_py.read(table.spark, table.path)
    assert dict(rows.dtypes)["amount"] == "string"
    assert {row.id: row.amount for row in rows.collect()} == expected
    local = hudi_py.open_table(table.path).rows(columns=["id", "amount"]).to_arrow().to_pylist()
    assert {row["id"]: row["amount"] for row in local} == expected


def test_what_defines_a_table_cannot_change(trips):
    """Other keys or partitions than the table's are refused, under either spelling of the setting."""
    table = trips()
    table.insert([trip(1)])
    for setting in ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields"):
        with pytest.raises(ConfigError, match="leave the setting out or write to another table"):
            hudi_py.WriteClient(table.spark, table.path, {setting: "name"})
    with pytest.raises(ConfigError, match="has 'region'"):
        hudi_py.WriteClient(table.spark, table.path, {"hoodie.datasource.write.partitionpath.field": "name"})
    with pytest.raises(ConfigError, match="has 'ts'"):
        hudi_py.WriteClient(table.spark, table.path, {"hoodie.datasource.write.precombine.field": "amount"})
    generator = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}
    with pytest.raises(ConfigError, match=r"COMPLEX, but the table at .* has SIMPLE"):
        hudi_py.WriteClient(table.spark, table.path, generator).upsert(table.frame([trip(1)]))


@pytest.mark.parametrize(("way", "key"), [({}, None), (TWO_PASSES, "")], ids=["single pass", "two passes"])
def test_rows_without_a_key_are_refused_and_leave_nothing(way, key, trips):
    """The error names the column; nothing is visible, and no instant of the refused write is left."""
    table = trips(PARTITIONED | way)
    table.upsert([trip(number) for number in range(6)])
    before = base_files(table)
    with pytest.raises(WriteError, match="record key id is null or empty in 1 row;"):
        table.client.upsert(table.frame([trip(1, 2), {**trip(2, 2), "id": key}]))
    table.check()
    assert ["commit completed"] == states(table)
    table.upsert([trip(1, 3)])
    table.check()
    assert ["commit completed", "commit completed"] == states(table)
    assert 1 == len(set(base_files(table)) - set(before))


@pytest.mark.parametrize("way", [{}, TWO_PASSES, {DRIVER_ROWS: "1000"}], ids=["single pass", "two passes", "driver"])
def test_rows_that_lack_a_value_are_counted_in_all_tasks(way, spark, tmp_path):
    """Not those of the task that met one first; rows to delete need no ordering value."""
    client = hudi_py.WriteClient(spark, str(tmp_path / "t"), {**PARTITIONED, DRIVER_ROWS: "0", **way})
    rows = spark.range(0, 60, 1, 6).selectExpr(
        "case when id % 10 = 0 then null when id % 10 = 1 then '' else concat('k', id) end id",
        "concat('r', id % 7) region",
        "case when id % 10 = 5 then null else 1L end ts",
        "id % 20 = 5 _hoodie_is_deleted",
    )
    with pytest.raises(WriteError, match="record key id is null or empty in 12 rows"):
        client.upsert(rows)
    with pytest.raises(WriteError, match="ordering field 'ts' is null in 3 rows"):
        client.upsert(rows.where("id != ''"))
    client.upsert(rows.where("id != '' and (ts is not null or _hoodie_is_deleted)"))
    assert hudi_py.open_table(tmp_path / "t").rows().to_arrow().num_rows == 42
    required = rows.selectExpr("concat('l', ts) id", "region", "1L ts", "array(named_struct('n', 1L)) parts")
    client.insert(required.limit(1))
    with pytest.raises(WriteError, match=r"column 'parts\.element\.n' is null in 6 places"):
        client.insert(rows.selectExpr("uuid() id", "region", "1L ts", "array(named_struct('n', ts)) parts"))


WAYS = {
    "single pass": {},
    "two passes": TWO_PASSES,
    "driver": {DRIVER_ROWS: "1000"},
    "global index": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "sorted by key": {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_bytes_that_are_no_text_are_refused_in_every_column(way, spark, tmp_path):
    """Spark casts any bytes to a string; no reader in Python, and no other one reliably, decodes them."""
    client = hudi_py.WriteClient(spark, str(tmp_path / "t"), {**PARTITIONED, DRIVER_ROWS: "0", **way})
    columns = {"id": "concat('k', id)", "region": "'r'", "ts": "1L", "parts": "array(named_struct('s', 't'))"}
    client.upsert(spark.range(2).selectExpr(*(f"{value} {name}" for name, value in columns.items())))
    broken = "cast(X'61ff' as string)"
    for name, value in {"id": broken, "region": broken, "parts": f"array(named_struct('s', {broken}))"}.items():
        rows = spark.range(2, 9, 1, 3).selectExpr(*(f"{each} {at}" for at, each in {**columns, name: value}.items()))
        writes = (client.bulk_insert,) if "hoodie.bulkinsert.sort.mode" in way else (client.upsert, client.delete)
        for write in writes[: 1 if name == "parts" else None]:  # of rows to delete only keys are asked
            with pytest.raises(WriteError, match=rf"column '{name}' has bytes that are no text in UTF-8"):
                write(rows)
    table = hudi_py.open_table(tmp_path / "t")
    assert table.rows().to_arrow().num_rows == 2
    assert not table.check()


def test_errors_of_the_users_own_code_are_one_line(trips):
    """A failing UDF ends in our error with its own last words."""
    from pyspark.sql.functions import udf

    table = trips()
    table.insert([trip(1)])

    @udf("string")
    def broken(value):
        raise ValueError(f"cannot digest {value}")

    rows = table.frame([trip(2)])
    with pytest.raises(WriteError, match="nothing of the write is visible: ValueError: cannot digest") as caught:
        table.client.upsert(rows.withColumn("name", broken("id")))
    assert "\n" not in str(caught.value)
    table.check()


def test_unfit_rows_are_refused_before_anything_starts(trips, tmp_path):
    """Neither a table nor an instant comes from rows that cannot be written."""
    table = trips()
    for unfit in ("make_interval(1) AS span", "map(1, 2) AS span", "struct(1 AS `a b`) AS span"):
        with pytest.raises(ConfigError, match=r"span|interval"):
            table.client.insert(table.frame([trip(1)]).selectExpr("*", unfit))
    with pytest.raises(ConfigError, match="no column region"):
        table.client.insert(table.frame([trip(1)]).drop("region"))
    with pytest.raises(ConfigError, match="no column ts"):
        table.client.upsert(table.frame([trip(1)]).drop("ts"))
    with pytest.raises(ConfigError, match="did you mean ID"):
        table.client.insert(table.frame([trip(1)]).withColumnRenamed("id", "ID"))
    with pytest.raises(TableNotFound):
        table.client.delete(table.frame([trip(1)]))
    assert not Path(table.path).exists()


def test_columns_are_matched_without_case(trips):
    """Spark takes both spellings for one name; the table's own is kept."""
    table = trips()
    table.insert([trip(1)])
    shouted = table.frame([trip(1, 2)]).withColumnsRenamed({"id": "ID", "amount": "Amount"})
    table.client.upsert(shouted)
    table.model[("r1", "k00001")] = trip(1, 2)
    table.check()
    assert {"id", "amount"} < set(hudi_py.read(table.spark, table.path).columns)


@BOTH_WAYS
def test_empty_rows_make_an_empty_commit_unless_forbidden(way, trips):
    """As Hudi does; with hoodie.allow.empty.commit=false there is no commit and nothing is left behind."""
    table = trips(PARTITIONED | way)
    empty = table.frame([trip(1)]).where("false")
    assert {} == dict(table.client.upsert(empty).metadata.partition_to_write_stats)
    table.check()
    assert ["id", "region", "ts", "amount", "name"] == hudi_py.read(table.spark, table.path).columns[5:]
    careful = hudi_py.WriteClient(table.spark, table.path, table.settings | {"hoodie.allow.empty.commit": "false"})
    assert careful.upsert(empty).instant is None
    assert ["commit completed"] == states(table)
    table.upsert([trip(1)])
    table.check()


@BOTH_WAYS
def test_what_was_read_can_be_written_back(way, trips):
    """Hudi's own columns are made anew; the same goes for deletes of what was read."""
    table = trips(PARTITIONED | way)
    table.insert([trip(number) for number in range(9)])
    read = hudi_py.read(table.spark, table.path)
    table.client.upsert(read.withColumn("ts", read.ts + 1).withColumn("amount", read.amount * 2))
    for row in table.model.values():
        row.update(ts=row["ts"] + 1, amount=row["amount"] * 2)
    table.check()
    table.client.delete(hudi_py.read(table.spark, table.path).where("region = 'r1'"))
    table.model = {key: row for key, row in table.model.items() if key[0] != "r1"}
    table.check()


@BOTH_WAYS
def test_nested_rows_and_timestamps_survive_any_session_zone(way, trips):
    """Instants stay instants, whatever zone the session shows them in; structures of all kinds are rewritten whole."""
    schema = (
        "id string, region string, ts bigint, at timestamp, local timestamp_ntz, day date, price decimal(12,3), "
        "tags array<string>, props map<string,array<int>>, "
        "inner struct<a:int,b:struct<c:string,d:timestamp>>, raw binary"
    )
    table = trips(PARTITIONED | way)
    zone = table.spark.conf.get("spark.sql.session.timeZone")
    moment = "TIMESTAMP '2024-10-27 00:30:00.123456 UTC'"

    def rows(first: int, version: int):
        return table.spark.range(first, first + 8).selectExpr(
            "concat('k', id) AS id", "concat('r', id % 2) AS region", f"{version}L AS ts",
            f"{moment} + make_interval(0, 0, 0, 0, int(id)) AS at", "TIMESTAMP_NTZ '2024-10-27 02:30:00' AS local",
            "DATE '0900-02-28' AS day", "CAST(id * 1.5 AS decimal(12,3)) AS price",
            "array('a', concat('b', id)) AS tags",
            f"named_struct('a', {version}, 'b', named_struct('c', 'é', 'd', {moment})) AS inner",
            "unhex('00ff') AS raw", "map('x', array(int(id), 7)) AS props",
        )  # fmt: skip

    try:
        table.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # its clocks go back in these hours
        table.client.upsert(rows(0, 1))
        table.spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        table.client.upsert(rows(4, 2))
        found = hudi_py.read(table.spark, table.path)
        names = [
            part.split()[0] for part in schema.replace("struct<a:int,b:struct<c:string,d:timestamp>>", "x").split(", ")
        ]
        wanted = rows(0, 1).where("price < 6").unionByName(rows(4, 2)).select(*names)
        assert sorted(map(str, wanted.collect())) == sorted(map(str, found.select(*names).collect()))
    finally:
        table.spark.conf.set("spark.sql.session.timeZone", zone)
    micros = found.where("id = 'k1'").selectExpr("unix_micros(at)").collect()[0][0]
    assert dt.datetime(2024, 10, 27, 1, 30, 0, 123456, dt.timezone.utc).timestamp() * 1e6 == micros


@BOTH_WAYS
def test_partition_columns_of_all_kinds(way, trips):
    """Null and empty share the default partition; dates, numbers and odd characters name folders as Hudi's do."""
    settings = (
        COMMON
        | way
        | {
            "hoodie.datasource.write.partitionpath.field": "region,ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
        }
    )
    table = trips(settings)
    rows = [
        trip(n, n % 2) | {"region": region}
        for n, region in enumerate([None, "", "__HIVE_DEFAULT_PARTITION__", "a/b=ü", "c d"])
    ]
    for _ in range(2):
        table.client.upsert(table.frame(rows))
    found = {row["_hoodie_partition_path"]: row.id for row in hudi_py.read(table.spark, table.path).collect()}
    default = "region=__HIVE_DEFAULT_PARTITION__"
    assert {f"{default}/ts=0", f"{default}/ts=1", "region=a%2Fb%3Dü/ts=1", "region=c d/ts=0"} == set(found)
    assert 5 == len(hudi_rs_rows(table.path))


@pytest.mark.parametrize("hive_style", ["true", "false"])
def test_partition_names_that_look_like_patterns(trips, hive_style):
    """Spark takes a path for a pattern where it can; a folder of such a name is still itself."""
    table = trips({**PARTITIONED, "hoodie.datasource.write.hive_style_partitioning": hive_style})
    names = ["[z]", "z", "*", "a?c", "abc", "{a,b}", "a", "back\\slash", "100%", "%20", "a b", "#1", "ü𝄞"]
    for ts in (1, 2):
        table.upsert([trip(number, ts, region=name) for number, name in enumerate(names)])
    table.check()


def test_a_second_client_and_a_client_used_again_see_each_other(trips):
    """A client keeps nothing of the table between two calls."""
    table = trips()
    table.insert([trip(number) for number in range(6)])
    second = Trips(table.spark, table.path, table.settings)
    second.model = table.model
    second.upsert([trip(1, 2), trip(7, 2)])
    table.upsert([trip(1, 3), trip(7, 3)])
    second.delete([trip(2)])
    table.check()
    assert 4 == len(hudi_py.open_table(table.path).timeline.completed("commit"))


def test_reading(trips):
    """Times are instants, ISO dates or durations, savepoints have names; a table without rows has its columns."""
    table = trips()
    with pytest.raises(TableNotFound):
        hudi_py.read(table.spark, table.path)
    first = table.insert([trip(number) for number in range(4)])
    then = table.expected()
    hudi_py.open_table(table.path).create_savepoint(name="then")
    table.upsert([trip(1, 2), trip(9, 2)])
    assert then == table.stored(as_of=first.instant) == table.stored(savepoint="then")
    hudi_py.open_table(table.path, settings={"hoodie_py.clean.breakers": False}).clean(file_versions_retained=1)
    assert then == table.stored(savepoint="then") == table.stored(as_of="then")
    with pytest.raises(ConfigError):
        table.stored(savepoint="then", as_of=first.instant)
    assert table.expected() == table.stored(as_of="0s") == table.stored(as_of="2999-01-01")
    assert [] == table.stored(as_of="2001-01-01")
    table.delete(list(table.model.values()))
    table.check()
    assert {"_hoodie_partition_path", "region"} < set(hudi_py.read(table.spark, table.path).columns)


@pytest.mark.parametrize("settings", [PARTITIONED, PARTITIONED | TWO_PASSES])
@pytest.mark.parametrize("operation", ["upsert", "insert", "delete"])
def test_nothing_is_written_where_the_newest_base_file_is_lost(trips, settings, operation):
    """G: executors hold what they list against the commits; the error is one line, and names file and commit."""
    table = trips(settings | {"hoodie.clean.automatic": "false"})
    for ts in range(2):
        table.upsert([trip(number, ts) for number in range(3)])
    newest = table.client.table.file_slices("r1")[0].base_file
    (Path(table.path) / "r1" / newest.name).unlink()
    with pytest.raises(CorruptMetadata, match=rf"{newest.name} is missing, .*commit {newest.instant_time} wrote"):
        getattr(table.client, operation)(table.frame([trip(1, 7)]))
    assert len(table.client.table.timeline.completed("commit")) == 2
