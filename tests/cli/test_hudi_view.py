"""The server's answers to clients of Apache Hudi: forms, times, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
from urllib.parse import urlencode

import pytest

import hudi_py
from hudi_py.inspection.hudi_view import _ANSWERS, _REFRESHING, PREFIX, bare_location
from hudi_py.inspection.site import Request, Site
from hudi_py.model.instant import State
from support.repository import ROOT
from support.tables import TableBuilder, at, on_disk

HOST = "127.0.0.1:8642"


@pytest.fixture
def ask(tmp_path):
    """Asks the server of a table: two groups, one of them replaced at 3, a write that is pending."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p q": ["f", "g"]})
    builder.commit(at(2), {"p q": ["f"]})
    builder.commit(at(3), {"p q": ["h"]}, replaced={"p q": ["g"]})
    builder.commit(at(4), {"p q": ["f"]}, state=State.INFLIGHT)
    table = on_disk(builder, tmp_path / "t")
    site = Site((str(tmp_path / "t"),), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}))
    known = "".join(f"{i.requested_time}_{i.action.value}_COMPLETED" for i in table.timeline.completed())

    def ask(name, method="GET", **query):
        given = {"basepath": f"file:{tmp_path / 't'}", "timelinehash": hashlib.sha256(known.encode()).hexdigest(),
                 "lastinstantts": at(3), "partition": "p q", **query}  # fmt: skip
        given = {key: value for key, value in given.items() if value is not None}
        response = site.answer(Request(method, f"{PREFIX}{name}?{urlencode(given)}", {"host": HOST}))
        return int(response.status), json.loads(response.body)

    ask.folder = tmp_path / "t"
    return ask


def files(answer):
    """File id and commit of base files."""
    status, found = answer
    assert status == 200, found
    return [(each["fileId"], each["commitTime"]) for each in found]


def test_a_time_decides_what_counts(ask):
    """What was written later does not, and a group that was replaced later still does."""
    assert files(ask("datafiles/beforeoron/latest/", maxinstant=at(1))) == [("f", at(1)), ("g", at(1))]
    assert files(ask("datafiles/beforeoron/latest/", maxinstant=at(2))) == [("f", at(2)), ("g", at(1))]
    assert files(ask("datafiles/beforeoron/latest/", maxinstant=at(9))) == [("f", at(2)), ("h", at(3))]
    assert files(ask("datafile/latest/partition", fileid="f")) == [("f", at(2))]
    assert ask("datafile/latest/partition", fileid="g") == (200, [])
    for name in ("slices/beforeoron/latest/", "slices/merged/beforeoron/latest/"):
        _, found = ask(name, maxinstant=at(2), includependingcompaction="false")
        assert [(each["fileId"], each["baseInstant"]) for each in found] == [("f", at(2)), ("g", at(1))]
    assert [(each["fileId"], each["baseInstant"]) for each in ask("slices/file/latest/", fileid="f")[1]] == [
        ("f", at(2))
    ]
    for name in ("slices/partition/latest/", "slices/partition/latest/stateless/"):
        assert [each["fileId"] for each in ask(name)[1]] == ["f", "h"]
    _, groups = ask("filegroups/all/partition/stateless/")
    assert [(each["fileId"], len(each["slices"])) for each in groups] == [("f", 2), ("h", 1)]
    assert [each["ts"] for each in groups[0]["timeline"]["instants"]] == [at(1), at(2), at(3)]
    assert groups[1]["timeline"] is None
    assert ask("filegroups/replaced/before/", maxinstant=at(3)) == (200, [])
    assert [each["fileId"] for each in ask("filegroups/replaced/before/", maxinstant=at(4))[1]] == ["g"]


def test_a_file_has_the_form_of_hadoop(ask):
    """Its address is a URL, its path is not; size and time are those of the file."""
    [found] = ask("datafile/latest/partition", fileid="h")[1]
    path = next(ask.folder.glob(f"p q/*{at(3)}*"))
    assert found["fileStatus"]["path"]["uri"] == path.as_uri()
    assert found["fullPath"] == f"file:{path}"
    assert found["fileLen"] == found["fileStatus"]["length"] == path.stat().st_size
    assert found["fileStatus"]["modificationTime"] == path.stat().st_mtime_ns // 1_000_000


def test_what_is_not_served_is_refused_by_name(ask):
    """Other questions, other tables, a client with another timeline; no name reaches a folder outside of partitions."""
    assert ask("slices/all")[0] == 501
    assert "slices/all" in ask("slices/all")[1]["error"]["message"]
    assert ask("datafile/latest/partition", fileid="f", basepath="/etc")[0] == 404
    assert ask("datafile/latest/partition", fileid="f", timelinehash="0" * 64)[0] == 400
    assert ask("datafile/latest/partition", fileid="f", timelinehash="0" * 64, refreshoff="true")[0] == 200
    assert ask("datafile/latest/partition")[0] == 400
    for partition in (".hoodie", ".hoodie/metadata/files", "/etc", "none", ""):
        assert ask("filegroups/all/partition/", partition=partition) == (200, [])
    for partition in ("..", "../t/p q", "p q/../../t/p q"):
        assert ask("filegroups/all/partition/", partition=partition)[0] == 400
    assert ask("datafile/latest/partition", method="POST", fileid="f")[0] == 405
    assert ask("refresh/", method="POST") == (200, True)
    assert ask("loadpartitions/", method="POST", partitions='["p q"]') == (200, True)
    properties = ask.folder / ".hoodie/hoodie.properties"
    properties.write_text(f"{properties.read_text()}hoodie.bootstrap.base.path=/lake/other\n")
    assert ask("datafile/latest/partition", fileid="f")[0] == 501


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("file:/lake/t", "/lake/t"), ("file:///lake/t/", "/lake/t"), ("/lake/t", "/lake/t"),
        ("s3a://lake/t", "s3://lake/t"), ("s3n://lake/t/", "s3://lake/t"), ("gs://lake/t", "gs://lake/t"),
    ],
)  # fmt: skip
def test_a_location_is_the_same_in_both_spellings(theirs, ours):
    """Hadoop's clients have their own names for schemes."""
    assert bare_location(theirs) == ours


@pytest.mark.parametrize("name", ["cow_nonpartitioned-1.1.1", "mor_logs-1.0.2", "cow_mixed-0.15.0"])
def test_slices_of_real_tables_are_those_that_are_read(table, name):
    """With and without partitions, with log files, of both layouts."""
    opened = hudi_py.open_table(table(name)).read_only()
    found = Site((str(table(name)),), lambda where: opened, hosts=frozenset({HOST}))
    last = max(each.requested_time for each in opened.timeline)
    for partition in opened.partitions():
        query = urlencode({"basepath": opened.storage.root, "partition": partition, "maxinstant": last})
        merged, newest = (
            json.loads(found.answer(Request("GET", f"{PREFIX}{address}?{query}", {"host": HOST})).body)
            for address in ("slices/merged/beforeoron/latest/", "slices/partition/latest/")
        )
        expected = {
            each.file_id: (
                None if each.base_file is None else each.base_file.name,
                {log.name for log in each.log_files},
            )
            for each in opened.file_slices(partition)
        }
        assert {
            each["fileId"]: (
                each["baseFile"] and each["baseFile"]["fullPath"].rpartition("/")[2],
                {log["path"].rpartition("/")[2] for log in each["logFiles"]},
            )
            for each in merged
        } == expected
        assert {each["fileId"] for each in newest} == set(expected)


def test_logs_behind_the_plan_of_a_compaction_lie_on_the_slice_that_it_compacts(table):
    """A merged slice has the rows of both; the plan's own slice has no base file yet."""
    opened = hudi_py.open_table(table("mor_compacted_pending-1.1.1")).read_only()
    found = Site((opened.storage.root,), lambda where: opened, hosts=frozenset({HOST}))
    [plan] = opened.timeline.pending("compaction")
    for partition in opened.partitions():
        names = [each.name for each in opened.storage.list(partition) if ".log." in each.name]
        query = urlencode({"basepath": opened.storage.root, "partition": partition, "maxinstant": "9" * 17})
        for address, has_base in (("slices/merged/beforeoron/latest/", True), ("slices/partition/latest/", False)):
            [shown] = json.loads(found.answer(Request("GET", f"{PREFIX}{address}?{query}", {"host": HOST})).body)
            base = shown["baseFile"]["commitTime"] if has_base else plan.requested_time
            assert (shown["baseFile"] is not None) == has_base
            later = {name for name in names if re.search(r"_(\d{17})\.log", name)[1] > base}
            assert {log["path"].rpartition("/")[2] for log in shown["logFiles"]} == later


def test_the_page_names_every_address():
    """What is served is documented, and nothing else is."""
    page = (ROOT / "docs" / "page.md").read_text(encoding="utf-8").partition("### For clients of Apache Hudi")[2]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([a-z/]+)`", row.split("|")[1])}
    assert told | {"filegroups/all/partition/", "loadallpartitions/"} == {*_ANSWERS, *_REFRESHING}
