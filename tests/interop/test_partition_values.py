"""Rows that lie in another partition than their column says: shown and found as Apache Hudi does."""

import json

import pyarrow as pa
import pytest

import hudi_py
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "false",
}
WHERE = [
    "region = 'eu'", "region = 'us'", "region in ('eu', 'us')", "region = 'us' or ts = 7",
    "region is null", "region is not null", "region != 'eu'", "not (region = 'eu')", "region not in ('us')",
    "region < 'f'", "not (region is null or ts = 2)",
]  # fmt: skip
QUESTIONS = {"snapshot": {}, "read_optimized": {"read_optimized": True}, "incremental": {"start": "0"}}
SIDES = ("before", "after")


def arrow(*rows):
    return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for key, region, ts in rows])


def in_order(rows):
    return sorted((row["id"], str(row["region"]), row["ts"]) for row in rows)


def values(row):
    """Those of a side of a change; Apache Hudi shows its own columns, too."""
    return str(
        sorted((name, value) for name, value in row.items() if name in ("id", "region", "ts") and value is not None)
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("generator", ["Simple", "Custom"])
@pytest.mark.parametrize("peer", releases(6, 8, 9), indirect=True)
def test_a_row_that_stayed_where_it_was(peer, tmp_path, generator, kind):
    """A global index that keeps rows in their partitions; rows without a value, or with an empty one."""
    path, settings = tmp_path / "t", SETTINGS | {"hoodie.datasource.write.table.type": kind}
    settings["hoodie.datasource.write.keygenerator.class"] = f"org.apache.hudi.keygen.{generator}KeyGenerator"
    if generator == "Custom":
        settings["hoodie.datasource.write.partitionpath.field"] = "region:SIMPLE"
    rows = arrow(("a", "eu", 1), ("b", "us", 1), ("e", "", 1), ("n", None, 1))
    peer.write(path, rows, "upsert", settings)
    peer.write(path, arrow(("a", "us", 2)), "upsert", settings)
    table = hudi_py.open_table(path)
    for question, asked in QUESTIONS.items():
        options = {"hoodie.datasource.query.type": question, "hoodie.datasource.read.begin.instanttime": "0"}
        expected = peer.read(path, options={} if question == "snapshot" else options)
        rows = table.changes(**asked) if "start" in asked else table.rows(**asked)
        assert in_order(expected) == in_order(rows.to_arrow().to_pylist()), question
    if (peer.table_version, kind, generator) == (6, "MERGE_ON_READ", "Custom"):
        return  # what is stored is shown, and nothing tells that the path is not made of a time
    for where in WHERE:
        expected = in_order(peer.find(path, where)["rows"])
        found = in_order(table.rows(where=where).to_arrow().to_pylist())
        # 0.15.0 shows an empty value where it merges log files, and chooses its partition as one of nulls.
        assert [row for row in found if row[1]] == [row for row in expected if row[1]], where
        assert found == expected or (peer.table_version, kind) == (6, "MERGE_ON_READ"), where


@pytest.mark.parametrize(
    ("kind", "mode"), [("COPY_ON_WRITE", "op_key_only"), ("MERGE_ON_READ", "data_before_after")], ids=str
)
@pytest.mark.parametrize("peer", releases(9), indirect=True)
def test_change_logs_show_what_is_stored(peer, tmp_path, kind, mode):
    """Of rows that stayed where they were; the same ones in base files and in logs."""
    settings = SETTINGS | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    peer.write(tmp_path / "t", arrow(("a", "eu", 1), ("n", None, 1)), "upsert", settings)
    peer.write(tmp_path / "t", arrow(("a", "us", 2), ("n", "us", 2)), "upsert", settings)
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    theirs = peer.read(tmp_path / "t", options=asked)
    changes = hudi_py.open_table(tmp_path / "t").change_log("0").to_arrow().to_pylist()
    expected = [[each["op"], *(values(json.loads(each[side] or "{}")) for side in SIDES)] for each in theirs]
    assert sorted(expected) == sorted([each["op"], *(values(each[side] or {}) for side in SIDES)] for each in changes)
    assert ("us", 2) in {(each["after"]["region"], each["after"]["ts"]) for each in changes}


DAY = 86_400_000
"""In milliseconds."""
BY_TIME = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    "hoodie.keygen.timebased.timezone": "GMT",
}
OF_NUMBERS = ["at = 20231102", "at = 1698883200000", "at > 1000000000000", "at in (20231102, 7)", "not (at = 20231102)"]


def with_times(rows):
    return sorted((row["id"], str(row["region"]), row["ts"], row["at"]) for row in rows)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("field", ["region:SIMPLE", "region:SIMPLE,ts:SIMPLE", "at:TIMESTAMP,region:SIMPLE"])
def test_conditions_on_columns_of_a_custom_key_generator(peer, tmp_path, kind, field):
    """Those that are no times, which version 6 does not tell from those that are: the rows that Hudi finds."""
    path = tmp_path / "t"
    settings = (
        SETTINGS | BY_TIME | {"hoodie.datasource.write.partitionpath.field": field, "hoodie.index.type": "SIMPLE"}
    )
    settings |= {"hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    for rows in ((("a", "eu", 1), ("b", "us", 1), ("c", "ap", 2)), (("d", "eu", 2), ("b", "us", 1))):
        given = arrow(*rows)
        peer.write(
            path, given.append_column("at", [[(19663 + at) * DAY for at in range(len(given))]]), "upsert", settings
        )
    table = hudi_py.open_table(path)
    conditions = ["region = 'eu'", "region in ('us', 'ap') or ts = 2", "not (region = 'eu')", "ts = 1 and region < 'f'"]
    for question in QUESTIONS if kind == "MERGE_ON_READ" else ("snapshot", "incremental"):
        options = {"hoodie.datasource.query.type": question, "hoodie.datasource.read.begin.instanttime": "0"}
        for where in conditions:
            expected = peer.find(path, where, options)["rows"]
            asked = {"where": where}
            rows = (
                table.changes("0", **asked) if question == "incremental" else table.rows(**QUESTIONS[question], **asked)
            )
            assert with_times(rows.to_arrow().to_pylist()) == with_times(expected), (question, where)


@pytest.mark.parametrize("field", ["at:TIMESTAMP", "region:SIMPLE,at:TIMESTAMP"])
@pytest.mark.parametrize("peer", releases(6), indirect=True)
def test_conditions_on_times_of_which_the_path_is_shown(peer, tmp_path, field):
    """0.15.0 shows and compares the text of the path, as a number where the column is one."""
    path = tmp_path / "t"
    settings = SETTINGS | BY_TIME | {"hoodie.datasource.write.partitionpath.field": field}
    rows = arrow(("a", "eu", 1), ("b", "us", 1), ("c", "eu", 2)).append_column(
        "at", [[at * DAY for at in (19663, 19664, 19663)]]
    )
    peer.write(path, rows, "upsert", settings | {"hoodie.index.type": "SIMPLE"})
    table = hudi_py.open_table(path)
    found = {}
    for where in [*OF_NUMBERS, "at = 20231102 and region = 'eu' and ts = 2"]:
        found[where] = sorted((row["id"], row["at"]) for row in table.rows(where=where).to_arrow().to_pylist())
        assert found[where] == sorted((row["id"], row["at"]) for row in peer.find(path, where)["rows"]), where
    assert found["at = 20231102"] == [("a", 20231102), ("c", 20231102)]
