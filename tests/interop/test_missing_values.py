"""Rows that lack a key, an ordering value or a partition, written by real Hudi and by us to equal tables."""

import pyarrow as pa
import pytest
from real_hudi import RealHudiError

import hudi_py
from hudi_py.errors import WriteError
from support.interop_sample import sized

pytestmark = pytest.mark.oracle

NAMES = ("id", "region", "ts")
OPERATIONS = ("upsert", "delete", "insert", "bulk_insert", "insert_overwrite")
LACKING = {
    "no key": (None, "eu", 5),
    "empty key": ("", "eu", 5),
    "no ordering value": ("a", "eu", None),
    "new, no ordering value": ("z", "eu", None),
    "no partition": ("z", None, 5),
    "empty partition": ("z", "", 5),
}


def rows(*given):
    types = (pa.string(), pa.string(), pa.int64())
    listed = [dict(zip(NAMES, row, strict=True)) for row in given]
    return pa.Table.from_pylist(listed, schema=pa.schema(list(zip(NAMES, types, strict=True))))


def ended(write, refusal):
    """Whether it was refused."""
    try:
        write()
    except refusal:
        return True
    return False


def settings_of(peer, kind):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(peer.table_version),
        "hoodie.metadata.enable": "false",
    }


def shown(peer, path):
    return sorted(str([row[name] for name in NAMES]) for row in peer.read(path))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_that_lack_a_value(peer, tmp_path, kind):
    """
    Both refuse rows without a key, and write the others in the same way.

    But an upsert of rows without an ordering value is refused by us alone: Hudi writes some of them, and then neither
    reads the table nor writes to it when it meets such a row.
    """
    settings = settings_of(peer, kind)
    first = rows(("a", "eu", 1), ("b", "us", 1))
    for case, lacking in LACKING.items():
        for operation in OPERATIONS[: sized(5, 2)]:
            theirs, ours = tmp_path / f"{case} {operation} theirs", tmp_path / f"{case} {operation} ours"
            peer.write(theirs, first, "upsert", settings)
            hudi_py.write(ours, first, settings=settings)
            they_refuse = ended(lambda: peer.write(theirs, rows(lacking), operation, settings), RealHudiError)  # noqa: B023
            we_refuse = ended(
                lambda: hudi_py.write(ours, rows(lacking), operation=operation, settings=settings),  # noqa: B023
                WriteError,
            )
            if "ordering" in case and operation == "upsert":
                assert we_refuse, (case, operation)
                assert shown(peer, ours) == sorted(str(list(row.values())) for row in first.to_pylist())
                continue
            assert they_refuse == we_refuse == ("key" in case), (case, operation)
            assert shown(peer, theirs) == shown(peer, ours), (case, operation)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_real_hudi_updates_what_statements_leave(peer, tmp_path, kind):
    """None leaves a row without an ordering value, at which Hudi would fail when it updates the row."""
    settings = settings_of(peer, kind)
    hudi_py.write(tmp_path / "t", rows(("a", "eu", 1), ("b", "us", 1)), settings=settings)
    table = hudi_py.open_table(tmp_path / "t", settings=settings)
    merge = table.merge(rows(("b", "us", None)), on="id").when_matched_update()
    insert = table.merge(rows(("c", "us", None)), on="id").when_not_matched_insert()
    for statement in (lambda: table.update({"ts": "null"}, where="id = 'a'"), merge.execute, insert.execute):
        ended(statement, WriteError)
    newer = [("a", "eu", 2), ("b", "us", 2), ("c", "us", 2)]
    peer.write(tmp_path / "t", rows(*newer), "upsert", settings)
    assert shown(peer, tmp_path / "t") == sorted(str(list(row)) for row in newer)
