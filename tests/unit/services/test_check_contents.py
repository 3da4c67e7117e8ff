"""A base file that holds other rows than its name and its commit say is found by its footer."""

import pytest

from hudi_py.model.files import BaseFile, parse_base_file
from hudi_py.services.check.judge_contents import Footer, judge_footer
from support import writes
from support.tables import data_files

NAME = "00000000-0000-0000-0000-000000000000-0_0-1-0_20260101000000000.parquet"
BASE = parse_base_file(NAME)
SOUND = Footer(3, (NAME, NAME), ("20250101000000000", BASE.instant_time))


def table(version):
    storage = writes.create_table(version)
    for ts in (1, 2, 3):
        writes.upsert(storage, [{"id": i, "region": r, "ts": ts} for i, r in (("a", "eu"), ("b", "us"), ("c", "us"))])
    return storage


def found(storage, **settings):
    return [(each.code, each.where) for each in writes.open_table(storage, **settings).check(contents=True)]


@pytest.mark.parametrize("version", [6, 9])
def test_swap_of_two_files_is_found(version):
    """Between versions of a group, or between groups of two partitions; by the listing where sizes differ."""
    whole = table(version)
    assert found(whole) == []
    paths = data_files(whole)
    assert len(paths) == 6
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
