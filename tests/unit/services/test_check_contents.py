"""A file that holds other rows than its name and its commits say is found by its footer, or by its blocks."""

import pytest

import hudi_py
from hudi_py.model.files import BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_py.services.check.judge_contents import Block, Footer, judge_footer, judge_log
from hudi_py.versions.format import LogNaming
from support import writes
from support.fixtures import unpack_combined
from support.tables import data_files

NAME = "00000000-0000-0000-0000-000000000000-0_0-1-0_20260101000000000.parquet"
BASE = parse_base_file(NAME)
SOUND = Footer(3, (NAME, NAME), ("20250101000000000", BASE.instant_time))


def table(version):
    storage, rows = writes.create_table(version), (("a", "eu"), ("b", "us"), ("c", "us"))
    for ts in range(1, 9):  # so many files that some have the same size
        small = {"hoodie.index.bloom.num_entries": 100}
        writes.upsert(storage, [{"id": i, "region": r, "ts": ts} for i, r in rows], **small)
    return storage


def found(storage, **settings):
    return [(each.code, each.where) for each in writes.open_table(storage, **settings).check(contents=True)]


@pytest.mark.parametrize("version", [6, 9])
def test_swap_of_two_files_is_found(version):
    """Between versions of a group, or between groups of two partitions; by the listing where sizes differ."""
    whole = table(version)
    assert found(whole) == []
    paths = sorted(data_files(whole), key=whole.size)  # those of the same size are neighbours
    assert len(paths) == 16
    codes = []
    for path, other in zip(paths, [*paths[1:], paths[0]], strict=True):
        storage = whole.copy()
        storage.replace(path, whole.read(other))
        codes += [code for code, where in found(storage) if where == path and not code.startswith("mdt-")]
        assert codes[-1] == ("file-content-differs" if whole.size(path) == whole.size(other) else "file-size-differs")
    assert set(codes) == {"file-content-differs", "file-size-differs"}


def test_bytes_of_the_right_size_that_are_no_parquet_file_are_found():
    """Of the footer; a page that is damaged shows only when rows are read."""
    storage = table(6)
    path = data_files(storage)[0]
    storage.replace(path, bytes(storage.size(path)))
    assert found(storage) == [("file-unreadable", path)]
    assert writes.open_table(storage).check() == ()


@pytest.mark.parametrize(
    ("footer", "rows", "codes"),
    [
        (SOUND, 3, []),
        (SOUND, None, []),
        (Footer(3), 3, []),
        (Footer(0), 0, []),
        (Footer(3, (NAME, NAME), (BASE.instant_time, BASE.instant_time)), 3, []),
        (Footer(3, ("a" + NAME, NAME), None), 3, ["file-content-differs"]),
        (Footer(3, (NAME, NAME + "a"), None), 3, ["file-content-differs"]),
        (SOUND, 2, ["file-content-differs"]),
        (Footer(3, None, ("2", BASE.instant_time + "0")), 3, ["file-content-differs"]),
        ("torn", 3, ["file-unreadable"]),
    ],
)
def test_footer_is_judged_by_names_rows_and_times(footer, rows, codes):
    """What the footer does not tell proves nothing."""
    assert isinstance(BASE, BaseFile)
    assert [each.code for each in judge_footer("p", BASE, footer, rows)] == codes


def merge_on_read(version):
    """Two file groups in two partitions, each with a base file, rows in one log file, and deletes in another."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    keys = [("a", "eu"), ("b", "us"), ("c", "eu"), ("d", "us")]
    for operation, chosen in (("UPSERT", keys), ("UPSERT", keys[:2]), ("UPSERT", keys[:2]), ("DELETE", keys[2:])):
        ts = sum(path.endswith("commit") for path in storage.files())
        writes.upsert(storage, [{"id": i, "region": r, "ts": ts} for i, r in chosen], operation=operation)
    return storage


@pytest.mark.parametrize("version", [6, 8, 9])
def test_swap_of_two_log_files_is_found(version):
    """Of commits, groups and partitions, rows and deletes; nothing is found of those that are where they belong."""
    whole = merge_on_read(version)
    assert found(whole) == []
    paths = [path for path in whole.files() if ".log." in path and not path.startswith(".hoodie")]
    assert len(paths) >= 4
    for path in paths:
        for other in paths:
            storage, data = whole.copy(), whole.read(other)
            storage.replace(path, data.ljust(whole.size(path), b"\0"))  # what is no block is passed over
            codes = {code for code, where in found(storage) if where == path and not code.startswith("mdt-")}
            assert codes <= {"file-content-differs"}, (path, other)
            assert bool(codes) == (data != whole.read(path)), (path, other)


def test_bytes_of_the_right_size_that_are_no_log_file_are_found():
    """A plain check looks at sizes alone."""
    storage = merge_on_read(9)
    path = next(path for path in storage.files() if ".log." in path and not path.startswith(".hoodie"))
    storage.replace(path, bytes(storage.size(path)))
    assert [each.code for each in writes.open_table(storage).check()] == []
    assert found(storage) == [("file-unreadable", path)]


LOG_NAME = ".g-0_20260101000000000.log.1_0-1-0"
OWN, LATER, EARLIER = "20260101000000000", "20260102000000000", "20250101000000000"
ROWS = Block(OWN, rows=2, file_ids=frozenset({"g-0"}))


@pytest.mark.parametrize(
    ("blocks", "written", "by_slice", "by_write"),
    [
        ([ROWS], {OWN: 2}, 0, 0),
        ([ROWS, Block(OWN, rows=0, partitions=frozenset({"eu"}))], {OWN: 2}, 0, 0),
        ([Block(OWN, rows=None)], {OWN: 2}, 0, 0),
        ([ROWS], {OWN: 3}, 1, 1),
        ([ROWS], {OWN: 1}, 0, 1),
        ([ROWS, ROWS], {OWN: 2}, 0, 1),
        ([ROWS], {LATER: 2}, 1, 1),
        ([ROWS, Block(LATER, rows=2)], {OWN: 2, LATER: 2}, 0, 1),
        ([ROWS, Block(EARLIER, rows=2)], {OWN: 2}, 1, 1),
        ([Block(OWN, rows=2, file_ids=frozenset({"h-0"}))], {OWN: 2}, 1, 1),
        ([Block(OWN, rows=5, file_ids=frozenset({"h-0"}), is_merged=True)], {OWN: 2}, 0, 0),
        ([ROWS, Block(OWN, rows=0, partitions=frozenset({"us"}))], {OWN: 2}, 1, 1),
        ("torn", {OWN: 2}, 1, 1),
    ],
)
def test_log_is_judged_by_times_rows_groups_and_partitions(blocks, written, by_slice, by_write):
    """What may have been written by an archived commit, or twice by one task, proves nothing."""
    log = parse_log_file(LOG_NAME)
    assert isinstance(log, LogFile)
    for naming, expected in ((LogNaming.BY_SLICE, by_slice), (LogNaming.BY_WRITE, by_write)):
        assert expected == len(list(judge_log(f"eu/{LOG_NAME}", log, blocks, written, naming))), naming


@pytest.mark.parametrize("name", ["virtual_mor-0.15.0", "virtual_mor-1.1.1"])
def test_rows_without_meta_columns_say_nothing_of_their_file(name, tmp_path):
    """Tables of Apache Hudi with virtual keys; a file that names one commit and no file is still wrong."""
    path, _ = unpack_combined(name, tmp_path)
    assert [] == [each for each in hudi_py.open_table(path).check(contents=True) if each.severity.name == "ERROR"]
    odd = Footer(3, ("", ""), (BASE.instant_time, BASE.instant_time))
    assert ["file-content-differs"] == [each.code for each in judge_footer("eu/x", BASE, odd, 3)]
