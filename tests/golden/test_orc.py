"""Tables of real Hudi whose base files are in ORC: services serve them, readers narrow them, writers refuse them."""

import hashlib

import pyarrow as pa
import pytest
from pyarrow import compute

import hudi_py
from hudi_py.config.uses import Use
from hudi_py.errors import HudiError, UnsupportedTable
from support.fixtures import combined_names, unpack_combined

NAMES = [name for name in combined_names() if name.startswith("orc_")]
EVERY = pytest.mark.parametrize("name", NAMES)
ONE_FORMAT = [name for name in NAMES if not name.startswith("orc_mixed")]


def opened(name, folder):
    return hudi_py.open_table(unpack_combined(name, folder)[0])


def in_order(rows):
    return sorted(map(str, rows.to_arrow().to_pylist()))


def contents(path):
    return {str(file): hashlib.sha256(file.read_bytes()).digest() for file in path.rglob("*") if file.is_file()}


def no_errors(table):
    return [each for each in table.check(contents=True) if each.severity.name == "ERROR"]


@EVERY
def test_services_serve_them_by_their_names(name, tmp_path):
    """Check, orphans, savepoint, rollback, clean, archival and restore; the rows stay those of the time."""
    table = opened(name, tmp_path)
    first, *_, earlier, last = (each.requested_time for each in table.timeline.writes.completed())
    before, early = (in_order(table.rows(as_of=time)) for time in (earlier, first))
    assert no_errors(table) == []
    assert table.orphans(dry_run=True).verdicts == ()
    table.create_savepoint(first)
    table.rollback(last)
    table = hudi_py.open_table(table.storage.root)
    assert in_order(table.rows()) == before
    assert no_errors(table) == []
    table.clean(commits_retained=1)
    table.archive(keep_min_commits=1, keep_max_commits=2)
    table = hudi_py.open_table(table.storage.root)
    assert in_order(table.rows()) == before
    assert in_order(table.rows(savepoint=first)) == early
    assert no_errors(table) == []


@EVERY
def test_conditions_and_columns_give_what_is_left_of_all_rows(name, tmp_path):
    """By keys (Bloom filters of the files), by partitions and by values; as rows and as a dataset."""
    table = opened(name, tmp_path)
    everything = table.rows().to_arrow()
    number = everything["i"].drop_null()[0].as_py()
    for where, chosen in (
        ("id = 'k2'", compute.field("id") == "k2"),
        ("p = 'a'", compute.field("p") == "a"),
        (f"i = {number}", compute.field("i") == number),
        ("i is null", compute.field("i").is_null()),
        ("z is null", compute.field("z").is_null()),
    ):
        expected = sorted(map(str, everything.filter(chosen).select(["s", "at"]).to_pylist()))
        rows = table.rows(columns=["s", "at"], where=where)
        assert in_order(rows) == expected, where
        found = table.rows().to_dataset().to_table(columns=["s", "at"], filter=chosen)
        assert sorted(map(str, found.to_pylist())) == expected, where
    assert table.rows(columns=["day"]).to_arrow().sort_by("day")["day"] == everything.sort_by("day")["day"]
    rows = table.rows(where="p = 'a'")
    assert rows.to_arrow().num_rows
    assert rows.skipped["partitions"]


@EVERY
@pytest.mark.parametrize(
    "way",
    [
        lambda table: table.upsert(table.rows().to_arrow()),
        lambda table: table.bulk_insert(table.rows().to_arrow()),
        lambda table: table.delete(where="id = 'k2'"),
        lambda table: table.update({"s": "'x'"}, where="id = 'k2'"),
        lambda table: table.drop_partitions(["a"]),
        lambda table: table.cluster(),
        lambda table: table.compact(),
        lambda table: table.compact_logs(),
        lambda table: table.schedule_compaction(),
    ],
    ids=["upsert", "bulk_insert", "delete", "update", "drop", "cluster", "compact", "compact_logs", "schedule"],
)
def test_writing_and_rewriting_are_refused_before_anything_is_touched(name, way, tmp_path):
    """By name: hudi_py writes Parquet."""
    table = opened(name, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(
        UnsupportedTable, match=r"hoodie\.table\.(base\.file\.format=ORC|multiple\.base\.file\.formats)"
    ):
        way(table)
    assert contents(tmp_path) == before
    with pytest.raises(UnsupportedTable, match="not supported for writing"):
        table.require(Use.WRITE)


@pytest.mark.parametrize("name", ONE_FORMAT)
def test_a_file_in_orc_of_a_table_in_parquet_is_refused(name, tmp_path):
    """Apache Hudi would read it as Parquet; and so the other way round."""
    table = opened(name, tmp_path)
    properties = tmp_path / name.rpartition("-")[0] / ".hoodie" / "hoodie.properties"
    text = properties.read_text(encoding="utf-8")
    lines = (line for line in text.splitlines(keepends=True) if not line.startswith("hoodie.table.checksum"))
    properties.write_text("".join(lines).replace("file.format=ORC", "file.format=PARQUET"), encoding="utf-8")
    with pytest.raises(UnsupportedTable, match=r"\.orc is not in Parquet"):
        hudi_py.open_table(table.storage.root).rows().to_arrow()


@pytest.mark.parametrize("name", ONE_FORMAT)
def test_damage_is_an_error_and_never_other_rows(name, tmp_path):
    """A file that is cut off, empty or of other bytes."""
    table = opened(name, tmp_path)
    (partition, base), *_ = [
        (each.partition_path, each.base_file)
        for path in table.partitions()
        for each in table.file_slices(path)
        if each.base_file
    ]
    file = tmp_path / name.rpartition("-")[0] / partition / base.name
    whole = file.read_bytes()
    everything = in_order(table.rows())
    for damaged in (whole[:-1], b"", whole[: len(whole) // 2], bytes(len(whole)), b"PAR1" + whole[4:]):
        file.write_bytes(damaged)
        try:
            rows = in_order(hudi_py.open_table(table.storage.root).rows())
        except HudiError as error:
            assert base.name in str(error)
        else:
            assert rows == everything


@EVERY
def test_the_schema_is_that_of_the_commits_or_else_of_the_files(name, tmp_path):
    """Columns of today, also where nothing but a file tells them."""
    from hudi_py.rows.read import row_schema
    from hudi_py.snapshot.schema import schema_text_of_files

    table = opened(name, tmp_path)
    slices = [each for path in table.partitions() for each in table.file_slices(path) if each.base_file]
    files = [(each.partition_path, each.base_file) for each in slices]
    assert set(table.schema.names) >= set(row_schema(table.storage, lambda: files, None).names)
    assert '"name":"id"' in schema_text_of_files(table.storage, files, "t").replace(" ", "")
    assert pa.types.is_timestamp(table.schema.field("at").type)
