"""``hudi-py orphans`` on tables of Apache Hudi: nothing of theirs is removed, whatever is put beside it."""

from __future__ import annotations

import csv
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_py
from hudi_py.model.files import parse_base_file

NAMES = ["cow_mixed-0.15.0", "cow_archived-1.1.1", "cow_failed_write-1.1.1", "mor_compacted_pending-0.15.0",
         "mor_failed_write-0.15.0", "mor_logs-1.1.1"]  # fmt: skip


def bare(path):
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def stray(path):
    """A copy of a data file under the time of no instant, two minutes after its own."""
    found = next(each for each in sorted(path.rglob("*.parquet")) if ".hoodie" not in each.parts)
    base = parse_base_file(found.name)
    last = max(each.requested_time for each in hudi_py.open_table(path).timeline)
    time = str(int(last) + 1)
    target = found.with_name(f"stray_{base.write_token}_{time}.parquet")
    shutil.copy(found, target)
    os.utime(target, (1_600_000_000, 1_600_000_000))
    return target.relative_to(path).as_posix()


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_hudis_tables_is_removed(run, table, name):
    """However old the files are asked to be: every file on disk stays, byte by byte."""
    path = table(name)
    before = bare(path)
    for options in (["--dry-run"], ["--delete"], []):
        done = run("orphans", path, "--older-than", "0m", "--json", *options)
        assert done.code in (0, 1), done.err
        if done.code == 0:
            assert not [each for each in done.json["orphans"] if each["removed"]]
    assert {p: b for p, b in bare(path).items() if "/quarantine/" not in p} == before


@pytest.mark.parametrize("name", ["cow_archived-1.1.1", "mor_logs-1.1.1"])
def test_a_stray_file_is_shown_moved_and_deleted(run, table, name):
    """In a dry run nothing is written; then it lies in quarantine; with --delete it is deleted."""
    path = table(name)
    rows = hudi_py.open_table(path).rows().to_arrow()
    file = stray(path)
    before = bare(path)
    shown = run("orphans", path, "--dry-run", "--json").json
    assert [(each["path"], each["verdict"]) for each in shown["orphans"]] == [(file, "remove")]
    assert file in run("orphans", path, "--dry-run").out
    assert bare(path) == before
    done = run("orphans", path, "--json").json
    assert [each["path"] for each in done["orphans"] if each["removed"]] == [file]
    assert (path / done["quarantine"] / "files" / file).is_file()
    assert not (path / file).exists()
    assert hudi_py.open_table(path).rows().to_arrow().equals(rows)
    file = stray(path)
    assert run("orphans", path, "--delete").code == 0
    assert not (path / file).exists()


def test_an_inventory_is_read_in_place_of_the_folders(run, table, tmp_path):
    """With relative paths or full ones; a file that changed since the inventory is judged as it is now."""
    path = table("cow_archived-1.1.1")
    file = stray(path)
    listed = [each for each in path.rglob("*") if each.is_file()]
    inventory = tmp_path / "inventory.csv"
    for prefix in ("", f"file://{path}/", f"{path}/"):
        with inventory.open("w", newline="") as text:
            writer = csv.writer(text)
            writer.writerow(("path", "size", "mtime"))
            for each in listed:
                writer.writerow((prefix + each.relative_to(path).as_posix(), each.stat().st_size, 1_600_000_000))
        shown = run("orphans", path, "--dry-run", "--inventory", inventory, "--json").json
        assert [each["path"] for each in shown["orphans"]] == [file]
        assert shown["orphans"][0]["verdict"] == "remove"
    os.utime(path / file)
    shown = run("orphans", path, "--dry-run", "--inventory", inventory, "--json").json
    assert shown["orphans"][0]["verdict"] == "young"
    inventory.write_text("path,size\n")
    assert run("orphans", path, "--inventory", inventory).code == 2


def listed(path, inventory, *, prefix="", change=str, mtime=1_600_000_000, encoding="utf-8"):
    """An inventory of all files of a table."""
    with inventory.open("w", newline="", encoding=encoding) as text:
        writer = csv.writer(text)
        writer.writerow(("path", "size", "mtime"))
        for each in sorted(path.rglob("*")):
            if each.is_file():
                name = change(each.relative_to(path).as_posix())
                writer.writerow((f"{prefix}{name}", each.stat().st_size, mtime))
    return inventory


def test_an_inventory_that_is_no_inventory_of_the_table_is_refused(run, table, tmp_path):
    """Of another bucket it would look like a table in order; cut off, or with times that are none, it is refused."""
    path = table("cow_archived-1.1.1")
    file = stray(path)
    inventory = tmp_path / "inventory.csv"
    for wrong in ({"prefix": "s3://other/trips/"}, {"prefix": f"{path}_old/"}, {"mtime": "inf"}, {"mtime": "nan"}):
        done = run("orphans", path, "--inventory", listed(path, inventory, **wrong))
        assert (done.code, "nothing was done" in done.err) == (2, True), done.err
    inventory.write_text("path,size,mtime\n")
    assert run("orphans", path, "--inventory", inventory).code == 2
    columns = {"path": [file], "size": [1], "mtime": [1]}
    pq.write_table(pa.table(columns), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for end in (0, 3, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.parquet").write_bytes(whole[:end])
        done = run("orphans", path, "--inventory", tmp_path / "cut.parquet")
        assert (done.code, "nothing was done" in done.err) == (2, True), (end, done.err)
    assert (path / file).exists()


def test_an_inventory_with_a_mark_of_the_byte_order_is_read(run, table, tmp_path):
    """Spreadsheets write it."""
    path = table("cow_archived-1.1.1")
    file = stray(path)
    inventory = listed(path, tmp_path / "inventory.csv", encoding="utf-8-sig")
    shown = run("orphans", path, "--dry-run", "--inventory", inventory, "--json").json
    assert [each["path"] for each in shown["orphans"]] == [file]


@pytest.mark.parametrize("odd", ["kept/../", "./", "kept//"])
def test_paths_of_an_inventory_that_are_not_plain_are_passed_over(run, table, tmp_path, odd):
    """Those of timelines, too: they name no table below this one."""
    path = table("cow_archived-1.1.1")
    file = stray(path)
    inventory = listed(path, tmp_path / "inventory.csv")
    inventory.write_text(f"{inventory.read_text()}{odd}.hoodie/hoodie.properties,1,1\n{odd}{file},1,1\n")
    done = run("orphans", path, "--dry-run", "--inventory", inventory, "--json")
    assert done.code == 0, done.err
    assert [(each["path"], each["verdict"]) for each in done.json["orphans"]] == [(file, "remove")]


def test_files_of_an_inventory_that_are_not_there_are_told(run, table, tmp_path):
    """Whose paths are encoded for URLs: their orphans are not found, which must not look like none."""
    path = table("cow_archived-1.1.1")
    stray(path)
    inventory = listed(path, tmp_path / "inventory.csv", change=lambda name: name.replace("stray_", "str%61y_"))
    shown = run("orphans", path, "--dry-run", "--inventory", inventory)
    assert shown.code == 0, shown.err
    assert "orphans.inventory.not_there" in shown.err
    assert "str%61y_" in shown.err


def test_empty_folders_go_the_deepest_first(run, table):
    """Old ones only; a folder with any file in it stays, and so does a young one."""
    path = table("cow_archived-1.1.1")
    (path / "old" / "deep" / "deeper").mkdir(parents=True)
    (path / "full" / "deep").mkdir(parents=True)
    (path / "full" / "notes.txt").write_text("mine")
    for each in (path / "old" / "deep" / "deeper", path / "old" / "deep", path / "old", path / "full" / "deep"):
        os.utime(each, (1_600_000_000, 1_600_000_000))
    (path / "young").mkdir()
    done = run("orphans", path, "--json").json
    assert done["removed_folders"] == ["old/deep/deeper", "full/deep", "old/deep", "old"]
    assert (path / "full" / "notes.txt").exists()
    assert (path / "young").exists()


@pytest.mark.parametrize("options", [["--dry-run", "--quarantine"], ["--quarantine", "--delete"],
                                     ["--older-than", "soon"], ["--max-deletes", "-1"]])  # fmt: skip
def test_wrong_options_are_wrong_usage(run, table, options):
    """Exit code 2, and nothing is looked at."""
    assert run("orphans", table("cow_mixed-0.15.0"), *options).code == 2
