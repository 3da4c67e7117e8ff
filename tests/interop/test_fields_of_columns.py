"""
Columns and fields inside of them that either side adds, moves or widens, up to numbers that become texts: both read the
same rows and go on writing, also after either engine of ours or Hudi has rewritten the files.
"""

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
INNER = [("a", pa.int32()), ("f", pa.float32()), ("d", pa.int64()), ("t", pa.int32()), ("u", pa.float64())]
GROWN = [
    *[("f", pa.float64()), ("b", pa.string()), ("a", pa.int64())],
    *[("u", pa.string()), ("t", pa.string()), ("d", pa.float64())],
]
JAVA = {2e-05: "2.0E-5", 12345678.0: "1.2345678E7"}
LATER = [*GROWN, ("deep", pa.struct([("x", pa.int32())]))]


def rows(values, fields, ts):
    """Each value in columns of their own, in a struct, in a list and in a map."""
    inner = pa.struct(fields)
    types = [("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    schema = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), *types, *fields])
    flat = [
        {"id": key, "region": region, "ts": ts, "s": value, "l": [value], "m": [("k", value)], **value}
        for (key, region), value in values.items()
    ]
    return pa.Table.from_pylist(flat, schema=schema)


def values(found):
    """The values that a reader shows, which has to show the same one in all four places."""
    shown = {}
    for row in found:
        (element,), ((key, item),) = row["l"], dict(row["m"]).items()
        assert key == "k"
        top = {name: row[name] for name, _ in LATER if name in row}
        assert plain(top) == plain(row["s"]) == plain(element) == plain(item)
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


def shown(value):
    """A value as a table shows it once the fields have grown: numbers that became texts have Java's."""
    texts = {name: JAVA.get(each, str(each)) for name, each in value.items() if name in ("t", "u")}
    return value | texts


@pytest.mark.parametrize("rewriter", ["local", "spark", "hudi"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_go_on_with_what_the_other_has_evolved(patient, ours, tmp_path, kind, rewriter):
    """Ours grow first, then those of Hudi; an older file, its log files and rewritten ones lie beside each other."""
    path, model = tmp_path / "t", {}
    more = {"hoodie.table.type": kind, "hoodie.datasource.write.table.type": kind}
    version = {"hoodie.write.table.version": patient.table_version}
    theirs = {"hoodie.metadata.enable": True, "hoodie.clean.automatic": False, "hoodie.compact.inline": False, **more}
    # Inside of columns 0.15 and 1.0 show a float of an older file as the double of the same value.
    exactly = patient.version in ("0.15.0", "1.0.2")
    tenth, fifth = (0.125, 0.25) if exactly else (0.1, 0.2)

    def both_read():
        expected = {key: shown(value) for key, value in model.items()}
        assert values(table.refresh().rows().to_arrow().to_pylist()) == expected
        assert values(patient.read(path)) == expected

    small = {"a": 1, "f": tenth, "d": 7, "t": 5, "u": 2e-05}
    first = dict.fromkeys((("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "ap")), small)
    hudi_py.write(path, rows(first, INNER, 1), settings={**SETTINGS, **more, **version})
    table = hudi_py.open_table(
        path, settings={"hoodie.clean.automatic": False, "hoodie_py.write.numbers.to.text": True}
    )
    model |= first
    changes = {("d", "ap"): {**small, "t": 6, "u": 12345678.0}}  # a log file of before, if there are any
    table.upsert(rows(changes, INNER, 2))
    model |= changes

    changes = {("b", "eu"): {"f": fifth, "b": "new", "a": 2**40, "t": "text", "d": 0.5}, ("e", "ap"): {"b": "e"}}
    table.upsert(rows(changes, GROWN, 3))
    model |= changes
    both_read()

    changes = {("a", "eu"): {"f": 0.3, "b": "theirs", "a": 3, "u": "x"}, ("d", "ap"): {"f": 0.4}}
    patient.write(path, rows(changes, GROWN, 4), "upsert", theirs)
    model |= changes
    both_read()

    changes = {("c", "us"): {"b": "deep", "deep": {"x": 5}}}
    patient.write(path, rows(changes, LATER, 5), "upsert", theirs)
    model |= changes
    both_read()

    changes = {("a", "eu"): {"a": 6, "f": 0.5, "t": 9, "u": 0.1, "d": 3}}  # a writer that knows nothing of all that
    table.upsert(rows(changes, INNER, 6))
    model |= changes
    both_read()

    settings = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.clean.automatic": False}
    if rewriter == "hudi":
        inline = {"hoodie.compact.inline": True} if kind == "MERGE_ON_READ" else {}
        inline |= {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1}
        changes = {("f", "eu"): {"f": 0.75}}
        patient.write(path, rows(changes, LATER, 7), "upsert", theirs | settings | inline)
        model |= changes
        both_read()
    else:
        engine = table if rewriter == "local" else ours(path, settings).client()
        if kind == "MERGE_ON_READ":
            assert engine.compact()
            both_read()
        assert engine.cluster()
        both_read()
    changes = {("a", "eu"): {"a": 7, "u": 1.5}, ("c", "us"): {"t": 8}}
    table.refresh().upsert(rows(changes, INNER, 8))
    model |= changes
    both_read()
    assert not table.refresh().check()
