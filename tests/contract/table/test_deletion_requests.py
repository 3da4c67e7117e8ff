"""What a clean costs on an object store, counted at a real S3 server."""

from collections import Counter
from uuid import uuid4

import pytest

from hudi_py.storage.remote import RemoteStorage
from hudi_py.storage.remote_backends import S3Backend
from hudi_py.table import Table
from support.tables import TableBuilder, at, data_files

pytestmark = pytest.mark.s3


def test_a_clean_asks_far_less_often_than_once_for_each_file(s3_options, monkeypatch):
    """At least eight times fewer requests: for each folder whether it is another table's, nothing for a file."""
    builder = TableBuilder(2)
    for number in range(1, 12):
        builder.commit(at(number), {f"r{each}": [f"f{n}" for n in range(6)] for each in range(5)})
    storage = RemoteStorage(f"s3://contract/{uuid4()}", s3_options)
    for path, data in builder.storage.files().items():
        storage.replace(path, data)
    plan = Table(storage, clock=builder.clock).plan_clean(commits_retained=1)
    counts: Counter[str] = Counter()
    call = S3Backend._call

    def counted(self, method, **arguments):
        counts[method] += 1
        return call(self, method, **arguments)

    monkeypatch.setattr(S3Backend, "_call", counted)
    table = Table(storage, clock=builder.clock)
    service = table.services.clean(table.services.clean_config(commits_retained=1))
    service.schedule()
    counts.clear()
    (result,) = service.execute_pending()
    assert result.deleted_count == plan.file_count == 270
    assert sum(counts.values()) * 8 <= result.deleted_count, counts
    assert counts["delete_objects"] <= 4
    left = {f"r{n}/{entry.name}" for n in range(5) for entry in storage.list(f"r{n}") if entry.name[0] == "f"}
    assert left == set(data_files(builder.storage)) - set(result.deleted_files)
