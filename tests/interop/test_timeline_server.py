"""Apache Hudi works with our view of a table in the place of its own: ``hoodie.filesystem.view.type=REMOTE_ONLY``."""

from __future__ import annotations

import socket
import threading

import pytest

import hudi_py
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Site
from support.interop_sample import releases, sized

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
}
KINDS = {
    "COPY_ON_WRITE": {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"},
    "MERGE_ON_READ": {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"},
}


class Counted(Site):
    """A site that remembers what it was asked and how it answered."""

    def answer(self, request):
        response = super().answer(request)
        asked.append((request.target.partition("?")[0], int(response.status), response.body))
        return response


asked: list[tuple[str, int, bytes]] = []


@pytest.fixture
def served(tmp_path):
    """Settings of a client that asks our server for everything about the files of the table."""
    asked.clear()
    with Server(("127.0.0.1", 0), socket.AF_INET) as server:
        port = server.server_port
        server.site = Counted(
            (str(tmp_path / "t"),), lambda where: hudi_py.open_table(where).read_only(),
            hosts=frozenset({f"127.0.0.1:{port}"}),
        )  # fmt: skip
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield {
            "hoodie.embed.timeline.server": "false",
            "hoodie.filesystem.view.type": "REMOTE_ONLY",
            "hoodie.filesystem.view.remote.host": "127.0.0.1",
            "hoodie.filesystem.view.remote.port": str(port),
        }
        server.shutdown()


def rows(time, keys):
    """Rows of some keys in three regions, all written at one time."""
    return [{"id": f"k{key}", "ts": time, "region": f"r{key % 3}"} for key in keys]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("peer", releases(), indirect=True)
def test_a_client_writes_and_cleans_by_our_view(peer, tmp_path, served, kind):
    """Upserts, deletes, overwrites, cleans, compactions or clusterings: the rows are those of a model."""
    path, options = tmp_path / "t", {**SETTINGS, **KINDS[kind], "hoodie.datasource.write.table.type": kind}
    model = {}

    def write(time, keys, operation, more=()):
        given = rows(time, keys)
        # The first write makes the table; a client asks for a view of one that is there.
        peer.write(path, given, operation, {**options, **(served if model else {}), **dict(more)})
        if operation == "insert_overwrite":
            gone = {row["region"] for row in given}
            for key in [key for key, row in model.items() if row["region"] in gone]:
                del model[key]
        for row in given:
            if operation == "delete":
                del model[row["id"]]
            else:
                model[row["id"]] = row

    write(1, range(12), "insert")
    for time in range(2, sized(7, 4)):
        write(time, range(time, 12 + time), "upsert")
    if kind == "MERGE_ON_READ":  # log files behind the plan of a compaction that nobody carries out yet
        later = {"hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true"}
        write(9, range(6), "upsert", {**later, "hoodie.compact.inline.max.delta.commits": "1"})
        write(10, range(4), "upsert", {"hoodie.compact.inline": "false"})
    write(11, (0, 3), "insert_overwrite")
    write(12, range(2, 8), "upsert")
    # Last: 1.0.2 cannot read rows that lie behind deletes, of its own tables either (docs/rules/data-files.md).
    write(13, range(3, 5), "delete")
    table = hudi_py.open_table(path)
    expected = sorted(model.values(), key=lambda row: row["id"])
    assert sorted(peer.read(path), key=lambda row: row["id"]) == expected
    found = table.rows(columns=["id", "ts", "region"]).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected
    assert not table.check()
    assert any(instant.action.value == "clean" for instant in table.timeline)
    assert {status for _, status, _ in asked} == {200}, [each for each in asked if each[1] != 200][:3]
    names = {address.removeprefix("/v1/hoodie/view/") for address, _, _ in asked}
    assert {"datafiles/beforeoron/latest/", "filegroups/all/partition/stateless/", "compactions/pending/"} <= names
