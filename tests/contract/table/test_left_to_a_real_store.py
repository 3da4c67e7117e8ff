"""Removals that a bucket's lifecycle rule, or a person, carries out: the whole way, on a server that speaks S3."""

from __future__ import annotations

import gzip
import hashlib
import json
from datetime import datetime, timedelta, timezone
from urllib.parse import quote_plus
from uuid import uuid4

import attrs
import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.removal_list import RemovalList
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from support.writes import ALONE, SCHEMA, START, create_table

pytestmark = [pytest.mark.s3, pytest.mark.slow]
QUARANTINE = {"hoodie_py.clean.quarantine": True, "hoodie_py.quarantine.grace": "7d"}
TAGGED = {**QUARANTINE, "hoodie_py.quarantine.tag": "hudi-py=removed"}
WRITES = 3


class Bucket:
    """A table in a bucket of its own, and the store itself, which knows nothing of the table."""

    def __init__(self, options, *, versioned, version):
        from hudi_py.storage.remote import RemoteStorage
        from support.s3_running import create_bucket

        name = f"b-{uuid4()}"
        create_bucket(options, name)
        self.storage = RemoteStorage(f"s3://{name}/t", options)
        self.clock = FixedClock(START)
        if versioned:
            self.call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
        kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        create_table(version, self.storage, self.clock, **kind, **{"hoodie.metadata.enable": True})
        for number in range(WRITES):
            self.upsert(number)

    def call(self, method, **arguments):
        return self.storage._backend()._call(method, **arguments)

    def opened(self, **settings):
        self.clock.move(timedelta(minutes=1))
        return Table(self.storage, settings={**ALONE, "hoodie.metadata.enable": True, **settings}, clock=self.clock)

    def upsert(self, number):
        rows = [{"id": key, "region": region, "ts": number} for key, region in (("a", "eu"), ("b", "us"))]
        table = self.opened()
        table.upsert(pa.Table.from_pylist(rows, SCHEMA))
        self.opened(**{"hoodie.compact.inline.max.delta.commits": 1}).compact()

    def rows(self, **when):
        return sorted(
            self.opened().rows(columns=["id", "ts"], **when).to_arrow().to_pylist(), key=lambda row: row["id"]
        )

    def paths(self):
        pages = self.storage._backend()._call("list_objects_v2").get("Contents", [])
        return sorted(each["Key"].removeprefix("t/") for each in pages)

    def files(self):
        return [path for path in self.paths() if not path.startswith(".hoodie/") and not path.endswith("_metadata")]

    def tagged(self):
        return [
            path
            for path in self.paths()
            if {"Key": "hudi-py", "Value": "removed"} in self.call("get_object_tagging", Key=f"t/{path}")["TagSet"]
        ]

    def expire(self, paths):
        """Do what the lifecycle rule does, in a bucket with versions too."""
        for path in paths:
            self.call("delete_object", Key=f"t/{path}")

    def is_true(self, orphans=()):
        """Rows, check, metadata table and orphans tell the same as the store."""
        assert self.rows() == [{"id": "a", "ts": WRITES - 1}, {"id": "b", "ts": WRITES - 1}]
        found = [each.where for each in self.opened().check() if each.severity.name != "INFO"]
        assert found == list(orphans)
        views = [self.opened(**{"hoodie.metadata.enable": use}) for use in (True, False)]
        slices = [{path: view.file_slices(path) for path in view.partitions()} for view in views]
        assert slices[0] == slices[1]
        report = self.opened().orphans(dry_run=True, older_than="0m")
        assert (report.doubts, [each.file.path for each in report.verdicts]) == ((), list(orphans))


@pytest.fixture(params=[(9, False), (6, True)], ids=["plain-9", "versioned-6"])
def bucket(request, s3_options):
    """A table after a few writes and compactions, in a bucket with versions or without."""
    version, versioned = request.param
    return Bucket(s3_options, versioned=versioned, version=version)


def test_the_store_deletes_what_a_clean_tagged(bucket):
    """Rows are right at each step; an undo before gives all back, one after says what is lost."""
    before = bucket.files()
    first = bucket.opened().timeline.commits.completed()[1].requested_time
    asked = bucket.rows(as_of=first)
    (clean,) = bucket.opened(**TAGGED).clean(commits_retained=1)
    assert clean.deleted_files
    assert set(before) - set(bucket.files()) == set(clean.deleted_files)
    assert len(bucket.tagged()) == len(clean.deleted_files)
    bucket.is_true()

    bucket.opened(**TAGGED).undo(clean.instant)
    assert bucket.tagged() == []
    assert bucket.files() == before
    assert bucket.rows(as_of=first) == asked
    bucket.is_true()

    (again,) = bucket.opened(**TAGGED).clean(commits_retained=1)
    one, *others = bucket.tagged()
    bucket.expire([one])
    there = bucket.paths()
    with pytest.raises(RefusedError, match="in no place any more"):
        bucket.opened(**TAGGED).undo(again.instant)
    assert bucket.paths() == there
    bucket.clock.move(timedelta(days=30))
    assert bucket.opened(**TAGGED).empty_quarantine() == ()
    bucket.is_true()

    bucket.expire(others)
    assert bucket.opened(**TAGGED).empty_quarantine() == (again.instant,)
    assert not [path for path in bucket.paths() if "/quarantine/" in path]
    with pytest.raises(RefusedError):
        bucket.rows(as_of=first)
    bucket.is_true()


def test_quarantine_gives_back_and_is_emptied(bucket):
    """Without a tag; a bucket with versions keeps older ones, which nothing of the table sees."""
    before = bucket.files()
    (clean,) = bucket.opened(**QUARANTINE).clean(commits_retained=1)
    bucket.is_true()
    bucket.opened(**QUARANTINE).undo(clean.instant)
    assert bucket.files() == before
    bucket.is_true()
    (clean,) = bucket.opened(**QUARANTINE).clean(commits_retained=1)
    assert bucket.opened(**QUARANTINE).empty_quarantine() == ()
    bucket.clock.move(timedelta(days=8))
    assert bucket.opened(**QUARANTINE).empty_quarantine() == (clean.instant,)
    assert not [path for path in bucket.paths() if "/quarantine/" in path]
    bucket.is_true()


def test_exactly_the_approved_files_go(bucket):
    """A list of some of the files, carried out on the store; the next clean takes the rest."""
    before, files = bucket.paths(), bucket.files()
    text = bucket.opened(**TAGGED).list_for_approval(commits_retained=1).text()
    assert bucket.paths() == before
    asked = RemovalList.parse(text, "list")
    some = tuple(each for each in asked.files if each.path.startswith("eu/"))
    report = bucket.opened(**TAGGED).remove_approved(attrs.evolve(asked, files=some, approved_by="ann"))
    assert set(files) - set(bucket.files()) == set(report.removed) == {each.path for each in some}
    assert len(bucket.tagged()) == len(some)
    bucket.expire(bucket.tagged())
    bucket.is_true()
    bucket.upsert(WRITES - 1)
    results = bucket.opened().clean(commits_retained=1)
    assert {each.path for each in asked.files} <= {
        *report.removed,
        *(p for each in results for p in each.deleted_files),
    }
    bucket.is_true()


def test_an_inventory_of_amazon_is_read_where_it_lies(bucket):
    """Manifest and files in a bucket of their own, read with the options of the table's storage."""
    from hudi_py.storage.remote import RemoteStorage
    from support.s3_running import create_bucket

    path = next(path for path in bucket.files() if path.startswith("eu/") and path.endswith(".parquet"))
    stray = "eu/00000000-0000-0000-0000-000000000000-0_0-0-0_20260101000430000.parquet"
    bucket.storage.replace(stray, bucket.storage.read(path))
    source, reports = bucket.storage.root.split("/")[2], f"b-{uuid4()}"
    create_bucket(bucket.storage.options, reports)
    rows = "".join(f'"{source}","t/{quote_plus(path, safe="/")}"\n' for path in bucket.paths())
    data = gzip.compress(rows.encode())
    listed = {"key": "daily/data/0.csv.gz", "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()}
    manifest = {
        "sourceBucket": source,
        "destinationBucket": f"arn:aws:s3:::{reports}",
        "version": "2016-11-30",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key",
        "files": [listed],
    }
    store = RemoteStorage(f"s3://{reports}", bucket.storage.options)
    store.replace(listed["key"], data)
    store.replace("daily/2026-01-01T00-00Z/manifest.json", json.dumps(manifest).encode())
    bucket.clock.moment = datetime.now(timezone.utc) + timedelta(days=1)  # the store has a clock of its own
    inventory = f"s3://{reports}/daily/2026-01-01T00-00Z/manifest.json"
    assert bucket.opened().orphans(older_than="0m", inventory=inventory).done == (stray,)
    bucket.is_true()
    store.replace(listed["key"], data + b" ")
    with pytest.raises(ConfigError, match="nothing was done"):
        bucket.opened().orphans(older_than="0m", inventory=inventory)
    store.delete(listed["key"])
    with pytest.raises(ConfigError, match="the file is not there"):
        bucket.opened().orphans(older_than="0m", inventory=inventory)


def test_orphans_are_tagged_and_expire(bucket, tmp_path):
    """A file of no instant goes the same way, found by a listing and by an inventory of the store."""
    path = next(path for path in bucket.files() if path.startswith("eu/") and path.endswith(".parquet"))
    stray = "eu/00000000-0000-0000-0000-000000000000-0_0-0-0_20260101000430000.parquet"
    bucket.storage.replace(stray, bucket.storage.read(path))
    bucket.is_true(orphans=[stray])
    inventory = tmp_path / "inventory.csv"
    inventory.write_text("path,size,mtime\n" + "".join(f"{path},1,0\n" for path in bucket.paths()))
    bucket.clock.moment = datetime.now(timezone.utc) + timedelta(days=1)  # the store has a clock of its own
    report = bucket.opened(**TAGGED).orphans(older_than="0m", inventory=str(inventory))
    assert report.done == (stray,)
    bucket.is_true()
    bucket.expire(bucket.tagged())
    bucket.clock.move(timedelta(days=30))
    assert len(bucket.opened(**TAGGED).empty_quarantine()) == 1
    bucket.is_true()
