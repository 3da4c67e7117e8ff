"""Tables that Apache Hudi made from the files of another folder, which keep their columns there."""

import hashlib
import json

import pytest

import hudi_py
from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.rows.read import plain_rows
from support.bootstrapped import point_index_to, unpack_bootstrapped
from support.fixtures import FOLDER, HASHED_META, row_hash

NAMES = sorted(path.name.removesuffix(".tar.gz") for path in (FOLDER / "bootstrapped").glob("*.tar.gz"))
JOINED = [name for name in NAMES if not name.startswith("full")]


def plain(batches):
    return [row for batch in batches for row in plain_rows(batch)]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_that_hudi_reads(name, tmp_path):
    """Snapshot, base files alone, earlier times and ranges; columns of the paths; after an upsert, too."""
    reads = json.loads((FOLDER / "bootstrapped" / f"{name}.expected.json").read_text())["reads"]
    table = hudi_py.open_table(unpack_bootstrapped(name, tmp_path))
    questions = [(reads["snapshot"], table.rows(with_meta=True))]
    questions += [(reads["read_optimized"], table.rows(with_meta=True, read_optimized=True))]
    questions += [(answer, table.rows(with_meta=True, as_of=time)) for time, answer in reads["as_of"].items()]
    questions += [(each, table.changes(each["begin"], each["end"], with_meta=True)) for each in reads["incremental"]]
    for answer, batches in questions:
        rows = plain(batches)
        assert (len(rows), row_hash(rows, HASHED_META)) == (answer["rows"], answer["hash"]), answer


@pytest.mark.parametrize("name", JOINED)
def test_rows_are_the_same_where_folders_are_listed(name, tmp_path):
    """Folders tell no sizes; where those of the commits are filled in, the file outside of the table stays known."""
    path = unpack_bootstrapped(name, tmp_path)
    listed = hudi_py.open_table(path, settings={"hoodie.metadata.enable": False})
    assert sorted(map(str, plain(listed.rows()))) == sorted(map(str, plain(hudi_py.open_table(path).rows())))


@pytest.mark.parametrize("name", NAMES)
def test_the_time_of_the_first_commit_is_no_date_and_stops_nothing(name, tmp_path):
    """Cleans are replayed without it, and the last write is rolled back also where an index is asked for."""
    path = unpack_bootstrapped(name, tmp_path)
    table = hudi_py.open_table(path, settings={"hoodie.metadata.record.index.enable": True})
    steps = table.simulate(commits_retained=1).steps
    assert len(steps) == len(table.timeline.writes.completed())
    if len(steps) > 1:
        table.rollback(steps[-1].time)
        before = hudi_py.open_table(path)
        assert sorted(map(str, plain(before.rows()))) == sorted(map(str, plain(before.rows(as_of=steps[0].time))))
        assert [] == [each for each in before.check() if each.severity.name != "INFO"]


@pytest.mark.parametrize("name", JOINED)
def test_conditions_and_columns_give_what_is_left_of_all_rows(name, tmp_path):
    """Statistics of the table's own files say nothing about columns that are elsewhere."""
    table = hudi_py.open_table(unpack_bootstrapped(name, tmp_path))
    everything = plain(table.rows())
    assert everything
    for where, keeps in (
        ("x > 3", lambda row: row["x"] is not None and float(row["x"]) > 3),
        ("v = 'v3'", lambda row: row["v"] == "v3"),
        ("id in ('1', 'a1', 'b15')", lambda row: row["id"] in ("1", "a1", "b15")),
        ("x is null", lambda row: row["x"] is None),
    ):
        expected = [{"id": row["id"], "p": row["p"]} for row in everything if keeps(row)]
        assert sorted(map(str, plain(table.rows(where=where, columns=["id", "p"])))) == sorted(map(str, expected))
    assert sorted(map(str, plain(table.rows(columns=["p"])))) == sorted(str({"p": row["p"]}) for row in everything)


@pytest.mark.parametrize("damage", ["missing", "longer", "elsewhere", "no index"])
def test_columns_that_cannot_be_had_are_an_error(damage, tmp_path):
    """Never rows with nulls; and no file of the machine that is not below the folder the table was made from."""
    path = unpack_bootstrapped("cow-1.1.1", tmp_path)
    (source, *_) = (tmp_path / "source").rglob("*f1.parquet")
    if damage == "missing":
        source.unlink()
    elif damage == "longer":
        source.write_bytes(source.read_bytes() + b"x")
    elif damage == "elsewhere":
        point_index_to(path, str(tmp_path / "source" / ".." / "source"))
    else:
        (index,) = (path / ".hoodie" / ".aux" / ".bootstrap" / ".partitions").glob("*.hfile")
        index.unlink()
    with pytest.raises(CorruptMetadata, match=r"restore it|outside of"):
        plain(hudi_py.open_table(path).rows(as_of="00000000000001"))


def test_what_would_lose_columns_is_refused_and_a_clean_leaves_the_source_alone(tmp_path):
    """Base files as rows, rewriting, writing; a clean deletes files of the table only."""
    path = unpack_bootstrapped("cow-1.1.1", tmp_path)
    table = hudi_py.open_table(path)

    def digests():
        files = (each for each in (tmp_path / "source").rglob("*") if each.is_file())
        return {each: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}

    before, rows = digests(), sorted(map(str, plain(table.rows(with_meta=True))))
    for attempt in (
        lambda: table.snapshot().base_files(),
        table.cluster,
        lambda: table.upsert([{"id": "a1", "ts": 10, "v": "x", "p": "a"}]),
        lambda: table.delete(where="id = 'a1'"),
    ):
        with pytest.raises(UnsupportedTable, match="bootstrap"):
            attempt()
    cleans = table.clean(file_versions_retained=1)
    assert any(each.deleted_files for each in cleans)
    assert digests() == before
    assert sorted(map(str, plain(hudi_py.open_table(path).rows(with_meta=True)))) == rows
