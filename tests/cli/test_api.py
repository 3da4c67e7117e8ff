"""The JSON addresses of the server: as described, and as the commands of the same names say."""

from __future__ import annotations

import json
import re

import pytest

import hudi_py
from hudi_py.formats.records_codec import encode_compaction_plan
from hudi_py.inspection.page_file import script_json
from hudi_py.inspection.site import Request, Site
from hudi_py.inspection.site_api import ENDPOINTS
from hudi_py.model.instant import State
from hudi_py.model.records import CompactionOperation, CompactionPlan
from support.tables import SYNC, TableBuilder, at, on_disk

HOST = "127.0.0.1:8642"
jsonschema = pytest.importorskip("jsonschema", reason="needs openapi-spec-validator")


@pytest.fixture
def site(table):
    """Of one table with everything in it."""
    return Site(
        (str(table("mor_compacted_pending-1.1.1")),), lambda where: hudi_py.open_table(where).read_only(),
        hosts=frozenset({HOST}),
    )  # fmt: skip


def ask(site, target, method="GET"):
    """The response to a request of a program on this machine."""
    return site.answer(Request(method, target, {"host": HOST}))


def said(site, target):
    """The document of an address."""
    response = ask(site, target)
    assert response.status == 200, response.body
    return json.loads(response.body)


def test_the_description_is_one(site):
    """It passes the checks of OpenAPI, and its page names each address."""
    from openapi_spec_validator import validate

    document = said(site, "/openapi.json")
    validate(document)
    page = ask(site, "/api").body.decode()
    assert all(path in page for path in document["paths"])


def test_every_address_answers_as_described(site):
    """Addresses, parameters and forms of answers are in one list, which the server follows."""
    document = said(site, "/openapi.json")
    time = said(site, "/t/0/timeline")["instants"][0]["requested_time"]
    for path, operation in document["paths"].items():
        get = operation["get"]
        asked = [each for each in get["parameters"] if each["in"] == "query"]
        required = [each["name"] for each in asked if each["required"] or path.endswith(("/columns", "/slices"))]
        query = "&".join(f"{name}={hudi_py.open_table(site.tables[0]).partitions()[0]}" for name in required)
        response = ask(site, path.format(number=0, instant=time) + (f"?{query}" if query else ""))
        assert response.status == 200, (path, response.body)
        [(kind, described)] = get["responses"]["200"]["content"].items()
        if kind == "application/json":
            assert response.kind == kind
            jsonschema.validate(json.loads(response.body), described["schema"])


def test_documents_are_those_of_the_commands(run, site):
    """So a program may use either."""
    path = site.tables[0]
    for address, command in (
        ("timeline", ("timeline",)), ("history", ("history",)), ("files", ("files",)), ("findings", ("doctor",)),
        ("history?archived=true", ("history", "--archived")), ("usage", ("du", "--by-reason", "--by-partition",
                                                                        "--by-commit")),
    ):  # fmt: skip
        assert said(site, f"/t/0/{address}") == run(command[0], path, *command[1:], "--json").json, address
    [partition, *_] = hudi_py.open_table(path).partitions()
    assert (
        said(site, f"/t/0/files?partition={partition}") == run("files", path, "--partition", partition, "--json").json
    )
    assert said(site, f"/t/0/explain?target={partition}") == run("explain", path, partition, "--json").json


def test_slices_are_what_keeps_the_files_of_a_partition(site):
    """All of them, with the rule that explain names; what the next clean takes is told."""
    table = hudi_py.open_table(site.tables[0])
    for partition in table.partitions():
        told = said(site, f"/t/0/slices?partition={partition}")
        explained = {each.path: each for each in table.explain(partition).files}
        assert {f"{partition}/{each['name']}": each["rule"] for each in told["files"]} == {
            path: each.rule for path, each in explained.items()
        }
        assert [each["reason"] == "removable" for each in told["files"]] == [
            explained[f"{partition}/{each['name']}"].removable for each in told["files"]
        ]
        assert {each["group"] for each in told["files"]} >= {
            each.file_id for each in explained.values() if each.file_id
        }


def test_an_instant_is_found_by_its_action_and_in_the_archive(run, table):
    """A savepoint has the time of its commit; archived instants are as good as active ones."""
    for name, options in (("cow_savepoints-1.1.1", ()), ("cow_archived-0.15.0", ("--archived",))):
        path = str(table(name))
        site = Site((path,), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}))
        listed = run("timeline", path, *options, "--contents", "--json").json
        wanted = [each for each in (*listed["instants"], *listed["archived"]) if each["state"] == "COMPLETED"]
        assert {each["action"] for each in wanted} > {"commit"} or options
        assert bool(listed["archived"]) == bool(options)
        for each in wanted:
            assert said(site, f"/t/0/instant/{each['requested_time']}?action={each['action']}") == each
    assert ask(site, "/t/0/instant/20000101000000000").status == 404
    assert ask(site, f"/t/0/instant/{wanted[0]['requested_time']}?action=restore").status == 404


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("slices", 400), ("slices?partition=..", 404), ("slices?partition=.hoodie", 404),
        ("files?partition=../..", 404), ("files?partition=.hoodie", 404), ("files?as_of=never", 400),
        ("files?partition=a&partition=b", 400), ("timeline?limit=1", 400), ("history?archived=perhaps", 400),
        ("explain", 400), ("explain?target=../../../etc/passwd", 400),
        ("explain?target=.hoodie/hoodie.properties", 400), ("usage/", 404), ("usage/1", 404),
        ("instant/1", 404), ("nothing", 404),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(site, target, status):
    """With an error that says why; no name reaches a folder outside of the table's partitions."""
    response = ask(site, f"/t/0/{target}")
    assert response.status == status, response.body
    assert json.loads(response.body)["error"]["message"]


def test_addresses_are_plain_words():
    """Nothing in them is special to a pattern, so each is matched as it is written."""
    for endpoint in ENDPOINTS:
        assert re.fullmatch(r"[a-z]+(/\{instant\})?", endpoint.path)


def strictly(text):
    """JSON as its standard has it, without NaN."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_has_not_are_text(run, tmp_path, value):
    """Plans are Avro, which has them; every document stays one that any program reads, the page's too."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"p": ["f"]}, action="deltacommit")
    operation = CompactionOperation(
        base_instant_time=at(1), file_id="f", partition_path="p", data_file_path=builder.base_name("f", at(1)),
        metrics={"TOTAL_IO_MB": value},
    )  # fmt: skip
    content = encode_compaction_plan(CompactionPlan(operations=(operation,)), sync=SYNC)
    builder.instant(at(2), "compaction", State.REQUESTED, content)
    on_disk(builder, tmp_path)
    site = Site((str(tmp_path),), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}))
    told = strictly(ask(site, f"/t/0/instant/{at(2)}").body)
    assert told["content"]["operations"][0]["metrics"] == {"TOTAL_IO_MB": str(value)}
    assert strictly(run("instant", tmp_path, at(2), "--json").out) == told
    strictly(run("timeline", "--tables", tmp_path, "--contents", "--json", "--parallel", "1").out)
    assert strictly(script_json({"a": [value], value: 1})) == {"a": [str(value)], str(value): 1}
