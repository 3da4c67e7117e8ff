"""``--list`` and ``hudi-py approve`` on tables of Apache Hudi."""

from __future__ import annotations

import json

import pytest

import hudi_py

NAMES = ["cow_nonpartitioned-1.1.1", "cow_multilevel_hive-0.15.0", "mor_compacted-1.1.1"]


def data_files(path):
    found = {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()}
    return {each for each in found if not each.startswith(".hoodie/") and not each.endswith(".crc")}


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_files_that_were_left_in_the_list_go(run, table, name, tmp_path):
    """Nothing before it is approved; then those files and no others, check finds nothing, and clean finds the rest."""
    path, asked = table(name), tmp_path / "files.jsonl"
    before, rows = data_files(path), hudi_py.open_table(path).rows().to_arrow()
    assert "nothing was removed" in run("clean", path, "--file-versions-retained", 1, "--list", asked).out
    assert run("clean", path, "--file-versions-retained", 1, "--list", asked).code == 2
    head, *lines = asked.read_text().splitlines()
    assert lines
    assert run("approve", path, asked).code == 1
    first = json.loads(lines[0])["path"]
    asked.write_text("\n".join((head, lines[0])))
    trial = run("approve", path, asked, "--dry-run", "--json").json
    assert data_files(path) == before
    done = run("approve", path, asked, "--by", "ann", "--json").json
    assert done["removed"] == trial["removed"]
    assert {first} == {*done["removed"], *(each["path"] for each in done["kept"])}
    assert before - data_files(path) == set(done["removed"])
    assert run("check", path).code == 0
    assert hudi_py.open_table(path).rows().to_arrow().equals(rows)
    assert run("clean", path, "--file-versions-retained", 1).code == 0
    assert not {json.loads(line)["path"] for line in lines} & data_files(path)


def test_words_that_help(run, table, tmp_path):
    """What was removed and what stays, with the next step; a file that is no list is wrong usage."""
    path, asked = table(NAMES[0]), tmp_path / "files.jsonl"
    out = run("clean", path, "--file-versions-retained", 1, "--list", asked).out
    assert f"hudi-py approve {path} {asked} --by NAME" in out
    shown = run("approve", path, asked, "--by", "ann").out
    assert "approved by ann" in shown
    assert "approved by ann" in run("history", path, "--action", "clean").out
    assert "0 of" not in shown
    again = run("approve", path, asked, "--by", "ann").out
    assert "it is not there any more" in again
    asked.write_text("no list")
    assert run("approve", path, asked, "--by", "ann").code == 2
    assert run("approve", path, tmp_path / "none", "--by", "ann").code == 2
