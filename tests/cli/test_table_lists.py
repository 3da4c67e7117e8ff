"""Which tables a file, a folder, a pattern and links stand for."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from hudi_py.inspection.table_lists import tables_of


def test_tables_come_from_files_folders_and_patterns(lake, tmp_path, monkeypatch):
    """Each once; inside of a table nothing is looked for."""
    assert set(tables_of(str(tmp_path), {})) == set(lake)
    assert set(tables_of(f"file://{tmp_path}", {})) == {f"file://{each}" for each in lake}
    assert tables_of(f"{tmp_path}/cow*", {}) == tuple(sorted(lake[:2]))
    assert tables_of(lake[0], {}) == (lake[0],)
    assert tables_of(str(tmp_path / "list.txt"), {}) == (*lake, str(tmp_path / "none"))
    monkeypatch.setattr(sys, "stdin", ["\ufeffa\n", "\n", "s3://b\n", "./a/\n", "s3://b/\n"])
    assert tables_of("-", {}) == ("a", "s3://b")


def test_a_list_may_be_of_any_editor_and_names_a_table_once(lake, tmp_path):
    """Two runs on one table at the same time would get in each other's way, and take two shares of a budget."""
    listed = tmp_path / "windows.txt"
    spellings = [lake[0], f"{lake[0]}/", f"{tmp_path}/./{lake[0].rpartition('/')[2]}", f"file://{lake[0]}", lake[1]]
    listed.write_bytes("\ufeff".encode() + "\r\n".join(spellings).encode())
    assert tables_of(str(listed), {}) == (lake[0], lake[1])


def test_a_fleet_has_each_table_once(run, lake, tmp_path, monkeypatch):
    """However it is named, by how many of the given places, and by which link: its bytes would count twice."""
    monkeypatch.chdir(tmp_path)
    name = lake[0].rpartition("/")[2]
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link").symlink_to(lake[0])
    (tmp_path / "links" / "loop").symlink_to(tmp_path)
    spellings = [name, f"./{name}/", lake[0], f"file://{lake[0]}", "links/link", ".", tmp_path]
    found = run("fleet", *spellings, "--json", "--parallel", "1").json
    assert (found["totals"]["tables"], len(found["tables"])) == (3, 3)


def test_links_are_followed_out_of_a_folder_and_not_back(lake, tmp_path):
    """``current -> trips_v2`` in a lake is no second table and no fault of the lake; a linked disk is part of it."""
    farm = tmp_path / "farm"
    farm.mkdir()
    for name, target in (("a", lake[0]), ("b", lake[0]), ("z", farm), ("up", tmp_path), ("gone", tmp_path / "nowhere")):
        (farm / name).symlink_to(target)
    assert tables_of(str(farm), {}) == (f"{farm}/a",)
    assert set(tables_of(str(tmp_path), {})) == set(lake)


def test_a_folder_that_may_not_be_listed_fails_as_a_table_of_its_own(lake, tmp_path, monkeypatch):
    """``lost+found`` of a mounted disk, say: all others are found."""
    (tmp_path / "lost+found").mkdir()
    scandir = os.scandir

    def refused(path):  # a user without rights; tests may run as root, who has all
        if str(path).endswith("lost+found"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert set(tables_of(str(tmp_path), {})) == {*lake, f"{tmp_path}/lost+found"}


def test_a_pattern_looks_for_nothing_inside_of_a_table(lake, tmp_path):
    """As a folder: a copy of a table in a partition is data of the table around it."""
    shutil.copytree(lake[1], f"{lake[0]}/partition/copy")
    assert tables_of(f"{tmp_path}/**", {}) == tables_of(str(tmp_path), {}) == tuple(sorted(lake))


@pytest.mark.parametrize(
    "words", [("read", "-o", "x.csv"), ("clean", "--dry-run", "--list", "x.jsonl"), ("orphans", "--list", "x.jsonl")]
)
def test_a_file_that_each_table_would_replace_is_refused(words, run, table, tmp_path, monkeypatch):
    """The rows of the last table alone would be left, and nobody would know."""
    monkeypatch.chdir(tmp_path)
    names = [str(table(name)) for name in ("cow_nonpartitioned-1.1.1", "cow_partitioned-1.1.1")]
    listed = tmp_path / "tables.txt"
    listed.write_text("\n".join(names))
    done = run(words[0], "--tables", str(listed), *words[1:])
    assert done.code == 2
    assert "names one file" in done.err
    assert not (tmp_path / words[-1]).exists()


@pytest.mark.parametrize("source", ["hive://db", "thrift://host:9083/db", "HMS://db"])
@pytest.mark.parametrize("command", [("overview", "--tables"), ("fleet",), ("serve", "--port", "0")])
def test_the_catalog_of_hive_is_refused_by_name(run, command, source):
    """With what to do instead, and not as a kind of storage that is not installed."""
    result = run(*command, source)
    assert result.code == 2
    assert "the catalog of Hive is not asked" in result.err
    assert "--tables FILE" in result.err
