"""Fields inside of columns that either side adds, moves or widens: both read the same rows and go on writing."""

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.compact.inline.max.delta.commits": 1,
}
INNER = [("a", pa.int32()), ("f", pa.float32())]
GROWN = [("f", pa.float64()), ("b", pa.string()), ("a", pa.int64())]
LATER = [*GROWN, ("deep", pa.struct([("x", pa.int32())]))]


def rows(values, fields, ts):
    """Each value in a struct, in a list and in a map."""
    inner = pa.struct(fields)
    types = [("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    schema = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), *types])
    flat = [
        {"id": key, "region": region, "ts": ts, "s": value, "l": [value], "m": [("k", value)]}
        for (key, region), value in values.items()
    ]
    return pa.Table.from_pylist(flat, schema=schema)


def values(found):
    """The values that a reader shows, which has to show the same one in all three places."""
    shown = {}
    for row in found:
        (element,), ((key, item),) = row["l"], dict(row["m"]).items()
        assert key == "k"
        assert plain(row["s"]) == plain(element) == plain(item)
        shown[row["id"], row["region"]] = plain(row["s"])
    return shown


def plain(found):
    return {k: plain(v) for k, v in found.items() if v is not None} if isinstance(found, dict) else found


@pytest.fixture
def patient(peer):
    """Real Hudi, reading as it has to where older files have narrower types inside of columns."""
    peer.sql("set spark.sql.parquet.enableVectorizedReader=false")
    yield peer
    peer.sql("reset spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("peer", ["1.1.1"], indirect=True)
def test_both_go_on_with_what_the_other_has_evolved(patient, tmp_path, kind):
    """Ours grow first, then those of Hudi; an older file, its log files and rewritten ones lie beside each other."""
    path, model = tmp_path / "t", {}
    more = {"hoodie.table.type": kind, "hoodie.datasource.write.table.type": kind}
    theirs = {"hoodie.metadata.enable": True, "hoodie.clean.automatic": False, **more}

    def both_read():
        assert values(table.refresh().rows().to_arrow().to_pylist()) == model
        assert values(patient.read(path)) == model

    first = {(key, region): {"a": 1, "f": 0.1} for key, region in (("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "ap"))}
    hudi_py.write(path, rows(first, INNER, 1), settings={**SETTINGS, **more})
    table = hudi_py.open_table(path, settings={"hoodie.clean.automatic": False})
    model |= first

    changes = {("b", "eu"): {"f": 0.2, "b": "new", "a": 2**40}, ("e", "ap"): {"b": "e"}}
    table.upsert(rows(changes, GROWN, 2))
    model |= changes
    both_read()

    changes = {("a", "eu"): {"f": 0.3, "b": "theirs", "a": 3}, ("d", "ap"): {"f": 0.4}}
    patient.write(path, rows(changes, GROWN, 3), "upsert", theirs)
    model |= changes
    both_read()

    changes = {("c", "us"): {"b": "deep", "deep": {"x": 5}}}
    patient.write(path, rows(changes, LATER, 4), "upsert", theirs)
    model |= changes
    both_read()

    changes = {("a", "eu"): {"a": 6, "f": 0.5}}  # a writer that knows nothing of all that
    table.upsert(rows(changes, INNER, 5))
    model |= changes
    both_read()

    if kind == "MERGE_ON_READ":
        assert table.compact()
        both_read()
    assert table.cluster()
    both_read()
    assert not table.check()
