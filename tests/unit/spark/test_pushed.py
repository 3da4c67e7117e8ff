"""Filters that Spark hands to the source choose files, and never rows."""

import pickle

import attrs
import pytest

pytest.importorskip("pyspark", reason="needs Spark")

from hudi_py.errors import ConfigError
from hudi_py.spark import source
from hudi_py.spark.source import HudiDataSource, HudiPushedSource, register
from hudi_py.storage.local import LocalStorage
from support.writes import create_table, upsert

ROWS = [{"id": each, "region": region, "ts": ts} for each, region, ts in
        [("a", "eu", 1), ("b", "eu", 2), ("c", "us", 3), ("d", "", 4)]]  # fmt: skip


def pushed(kind, *path, **values):
    """As Spark 4.1 makes them: known by the name of their class."""
    made = attrs.make_class(kind, ["attribute", *values])
    return made(path, **values)


def negated(child):
    return attrs.make_class("Not", ["child"])(child)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def storage(request, tmp_path):
    made = create_table(9, LocalStorage(str(tmp_path / "t")), **{"hoodie.table.type": request.param})
    upsert(made, ROWS)
    upsert(made, [{"id": "a", "region": "eu", "ts": 5}])
    return made


def read(storage, *filters, **options):
    made = HudiPushedSource({"path": storage.root, **options})
    schema = made.schema()
    reader = pickle.loads(pickle.dumps(made)).reader(schema)
    left = list(reader.pushFilters(list(filters)))
    assert all(one is other for one, other in zip(left, filters, strict=True))  # by reference
    parts = reader.partitions()
    sent = pickle.loads(pickle.dumps(reader))
    return sorted(row["id"] for each in parts for batch in sent.read(each) for row in batch.to_pylist())


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ([pushed("EqualTo", "region", value="eu")], "ab"),
        ([pushed("In", "region", value=("eu", "us"))], "abcd"),  # where empty values lie is no single value
        ([negated(pushed("EqualTo", "region", value="eu"))], "cd"),
        ([pushed("IsNotNull", "region"), pushed("EqualTo", "region", value="us")], "cd"),
        ([pushed("EqualTo", "ts", value=99)], ""),
        ([pushed("GreaterThan", "ts", value=2), pushed("LessThanOrEqual", "ts", value=3)], "abc"),
        ([pushed("StringContains", "region", value="e")], "abcd"),
        ([pushed("EqualTo", "place", "zip", value="1")], "abcd"),
        ([pushed("EqualTo", "ts", value=1.5)], "abcd"),
    ],
)
def test_files_are_chosen_and_read_whole(storage, filters, ids):
    """Spark applies the filters itself; what is not understood rules nothing out."""
    found = set(read(storage, *filters))
    assert set("abcd") >= found >= set(ids) - {"d"}
    if "region" in str(filters[0]) and ids in ("ab", "cd"):
        assert found.isdisjoint(set("abc").difference(ids))


def test_answers_that_are_no_plain_rows_are_read_as_a_whole(storage):
    """Deleted rows come from other files than those that conditions choose."""
    asked = pushed("EqualTo", "_hoodie_is_deleted", value=True)
    assert read(storage, asked, start="0", with_deletes="true") == list("abcd")
    assert read(storage, pushed("EqualTo", "region", value="us"), start="0") in (["c"], ["c", "d"])


class Session:
    """What is asked of one of Spark 4."""

    version = "4.1.0"
    createDataFrame = None  # noqa: N815

    def __init__(self, **conf):
        self.taken, self._conf = [], conf
        self.conf, self.dataSource = self, self

    def get(self, name, default):
        return self._conf.get(name.rpartition(".")[2] if name.endswith("Batch") else name.split(".")[-2], default)

    def register(self, kind):
        self.taken.append(kind)


@pytest.fixture
def spark_4(monkeypatch):
    monkeypatch.setattr(source, "HAS_SOURCES", True)
    monkeypatch.setattr(source, "use_own_python", lambda _: None)


@pytest.mark.parametrize(("pushes", "kind"), [("true", HudiPushedSource), ("false", HudiDataSource)])
def test_a_session_that_pushes_filters_gets_a_source_that_takes_them(spark_4, pushes, kind):
    """Spark refuses a reader that takes filters in any other one."""
    session = Session(filterPushdown=pushes)
    register(session)
    assert session.taken == [kind]


@pytest.mark.parametrize("limit", ["0", "-1", " -1 "])
def test_a_session_without_a_limit_of_batches_is_refused_by_name(spark_4, limit):
    """Spark's own words name neither the setting nor a way out."""
    session = Session(maxRecordsPerBatch=limit)
    with pytest.raises(ConfigError, match=rf"maxRecordsPerBatch is {limit.strip()}, no limit: .*hudi_py\.read"):
        register(session)
    assert session.taken == []
