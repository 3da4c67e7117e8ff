"""Inventories of Amazon S3, as its user guide describes them, in place of listings of a search for orphans."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from datetime import datetime, timezone
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError
from hudi_py.services.orphans.facts import OrphanFate
from hudi_py.storage.memory import MemoryStorage
from support.tables import TableBuilder, at

BUCKET = "lake"
STRAY = f"r0/stray_0-0-0_{at(2)[:-7]}1500000.parquet"
CURRENT = ("Bucket", "Key")
FULL = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate", "ETag")
ARROW = {"Bucket": "bucket", "Key": "key", "VersionId": "version_id", "IsLatest": "is_latest",
         "IsDeleteMarker": "is_delete_marker", "Size": "size", "LastModifiedDate": "last_modified_date",
         "ETag": "e_tag"}  # fmt: skip
OTHERS = "lake/trips_old/r0/a.parquet", "lake/notes.txt", "lake/trips/r0/"  # and what stands for a folder


def table():
    """Three commits and a file that no instant knows; its partitions have names that URLs encode."""
    builder = TableBuilder()
    for hour in (1, 2, 3):
        builder.commit(at(hour), {"r0": ["f"], "day=1 a+b%20": ["g"]})
    builder.put(STRAY)
    builder.storage = copied(builder, f"s3a://{BUCKET}/trips")
    return builder


def copied(builder, root):
    """The table at another place; all its files are old."""
    storage = MemoryStorage(root, clock_ms=lambda: 0)
    for path, content in builder.storage.files().items():
        storage.replace(path, content)
    return storage


def rows_of(builder, columns):
    """A row for each object, and for older versions and a marker of a deletion where there are versions."""
    rows = []
    for path in (*(f"{BUCKET}/trips/{path}" for path in builder.storage.files()), *OTHERS):
        key = path.removeprefix(f"{BUCKET}/")
        row = {"Bucket": BUCKET, "Key": key, "VersionId": "v1", "IsLatest": True, "IsDeleteMarker": False,
               "Size": 3, "LastModifiedDate": datetime(2026, 1, 1, tzinfo=timezone.utc), "ETag": "e"}  # fmt: skip
        rows.append(row)
    gone = {**rows[0], "Key": "trips/r0/gone_0-0-0_20240101000000000.parquet"}
    if "IsLatest" in columns:
        rows += [{**gone, "IsDeleteMarker": True, "Size": None}, {**gone, "IsLatest": False}]
    return [{name: row[name] for name in columns} for row in rows]


def encoded(rows, form):
    """The content of a data file, and its ending."""
    if form == "CSV":
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row in rows:
            cells = [
                str(cell).lower() if isinstance(cell, bool) else "" if cell is None else cell for cell in row.values()
            ]
            named = dict(zip(row, cells, strict=True))
            writer.writerow([quote_plus(cell, safe="/") if name == "Key" else cell for name, cell in named.items()])
        return gzip.compress(text.getvalue().encode()), "csv.gz"
    columns = pa.Table.from_pylist([{ARROW[name]: cell for name, cell in row.items()} for row in rows])
    sink = io.BytesIO()
    if form == "ORC":
        pyarrow.orc.write_table(columns, sink)
        return sink.getvalue(), "orc"
    pq.write_table(columns, sink)
    return sink.getvalue(), "parquet"


def inventory(folder, builder, form="CSV", columns=FULL, parts=2, layout="data", rows=None, **changed):
    """Write an inventory as Amazon lays it out; the path of its manifest."""
    rows = rows_of(builder, columns) if rows is None else rows
    files = []
    for number in range(parts):
        content, ending = encoded(rows[number::parts], form)
        key = f"inventories/{BUCKET}/daily/data/{number}.{ending}"
        place = {"data": folder / "daily" / "data", "beside": folder / "daily" / "time", "key": folder / key}[layout]
        place = place.parent if layout == "key" else place
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.{ending}").write_bytes(content)
        files.append({"key": key, "size": len(content), "MD5checksum": hashlib.md5(content).hexdigest()})
    manifest = {
        "sourceBucket": BUCKET,
        "destinationBucket": "arn:aws:s3:::reports",
        "version": "2016-11-30",
        "creationTimestamp": "1514944800000",
        "fileFormat": form,
        "fileSchema": ", ".join(columns),
        "files": files,
        **changed,
    }
    file = folder / "daily" / "time" / "manifest.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(manifest))
    return file


def found(builder, file, **options):
    report = builder.table().orphans(dry_run=True, older_than="0m", inventory=str(file), **options)
    assert report.doubts == ()
    return {each.file.path: each.fate for each in report.verdicts}


@pytest.mark.parametrize("form", ["CSV", "Parquet", "ORC"])
@pytest.mark.parametrize("columns", [CURRENT, (*CURRENT, "Size"), FULL], ids=len)
def test_the_objects_of_the_bucket_are_those_of_a_listing(tmp_path, form, columns, caplog):
    """Whatever the form, with versions or without; sizes and times may be absent."""
    builder = table()
    listed = builder.table().orphans(dry_run=True, older_than="0m")
    assert {each.file.path: each.fate for each in listed.verdicts} == {STRAY: OrphanFate.REMOVE}
    report = builder.table().orphans(
        dry_run=True, older_than="0m", inventory=str(inventory(tmp_path, builder, form, columns))
    )
    assert (report.doubts, report.files_seen) == ((), listed.files_seen)
    assert {each.file.path: each.fate for each in report.verdicts} == {STRAY: OrphanFate.REMOVE}
    assert "not_there" not in caplog.text


@pytest.mark.parametrize("layout", ["data", "beside", "key"])
def test_files_of_a_copied_inventory_are_found(tmp_path, layout):
    """As Amazon lays them out, all in one folder, or by the keys of the bucket that was copied."""
    builder = table()
    assert found(builder, inventory(tmp_path, builder, layout=layout)) == {STRAY: OrphanFate.REMOVE}


def test_the_removal_goes_by_an_inventory_too(tmp_path):
    """What it finds is moved into quarantine; from then on it lists a file that is not there."""
    builder = table()
    file = inventory(tmp_path, builder)
    assert builder.table().orphans(older_than="0m", inventory=str(file)).done == (STRAY,)
    assert found(builder, file) == {}


def damaged(change):
    """A change of the first data file."""

    def do(file):
        data = next((file.parent.parent / "data").iterdir())
        data.write_bytes(change(data.read_bytes()))

    return do


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (damaged(lambda data: data[:-9]), "end-of-stream|bytes"),
        (damaged(lambda data: data + b"\0"), "bytes"),
        (damaged(lambda data: data[:-1] + bytes([data[-1] ^ 1])), "CRC|length|MD5"),
        (damaged(lambda data: gzip.compress(gzip.decompress(data).replace(b"stray", b"other"), mtime=1)), "MD5|bytes"),
        (lambda file: next((file.parent.parent / "data").iterdir()).unlink(), "beside it"),
        (lambda file: file.with_name("manifest.checksum").write_text("0" * 32), "checksum file"),
        (lambda file: file.write_text(file.read_text()[:-5]), "manifest of an inventory"),
        (lambda file: file.write_text("[]"), "manifest of an inventory"),
        (lambda file: file.unlink(), "no such file"),
    ],
    ids=["cut", "longer", "changed", "another", "gone", "checksum", "manifest cut", "no manifest", "no file"],
)  # fmt: skip
def test_what_is_not_what_the_manifest_says_is_refused(tmp_path, harm, why):
    """Its file is named, and nothing was done."""
    builder = table()
    file = inventory(tmp_path, builder)
    checksum = file.with_name("manifest.checksum")
    checksum.write_text(hashlib.md5(file.read_bytes()).hexdigest())
    assert found(builder, file)
    if why.startswith("manifest"):
        checksum.unlink()
    harm(file)
    before = builder.storage.files()
    with pytest.raises(ConfigError, match=rf"(?s)--inventory .*({why}).*nothing was done"):
        builder.table().orphans(older_than="0m", inventory=str(file))
    assert builder.storage.files() == before


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sourceBucket": "other"}, "lists the bucket other, and the table is in lake"),
        ({"version": "2030-01-01"}, "version '2030-01-01'"),
        ({"fileFormat": "JSON"}, "fileFormat 'JSON'"),
        ({"fileSchema": "Bucket, Size"}, "no column Key"),
        ({"fileSchema": "Bucket, Key, Key"}, "twice"),
        ({"fileSchema": "Bucket, Key, VersionId, Size"}, "cannot be told"),
        ({"fileSchema": "Bucket, Key, IsLatest, Size"}, "cannot be told"),
        ({"fileSchema": "Bucket, Key"}, r"row 1: it has 8 columns, and 2"),
        ({"fileSchema": ", ".join(FULL).replace("IsLatest", "X").replace("VersionId", "IsLatest")}, "'v1', neither"),
        ({"fileSchema": ", ".join(("ETag", *FULL[1:-1], "Bucket"))}, "bucket 'e'"),
        ({"files": [{"key": "../../secret.csv.gz"}]}, "beside it"),
        ({"files": [{}]}, "no 'key'"),
        ({"files": None}, "is understood"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_understood_is_refused(tmp_path, changed, why):
    """By name: taken for something else, it could make a table look like one full of strangers, or without any."""
    builder = table()
    with pytest.raises(ConfigError, match=rf"{why}.*nothing was done"):
        found(builder, inventory(tmp_path, builder, **changed))


def test_sums_that_a_manifest_does_not_give_are_not_asked(tmp_path):
    """Only what it says is compared."""
    builder = table()
    file = inventory(tmp_path, builder)
    manifest = json.loads(file.read_text())
    manifest["files"] = [{"key": each["key"]} for each in manifest["files"]]
    file.write_text(json.dumps(manifest))
    assert found(builder, file) == {STRAY: OrphanFate.REMOVE}


def test_an_inventory_without_a_file_of_the_table_is_refused(tmp_path):
    """As of any other store: it would look like a table in order."""
    builder = table()
    for rows in ([], [dict(zip(CURRENT, (BUCKET, "trips_old/r0/a.parquet"), strict=True))]):
        with pytest.raises(ConfigError, match="lists no file of"):
            found(builder, inventory(tmp_path, builder, columns=CURRENT, parts=1, rows=rows))


def test_a_table_in_no_bucket_has_no_such_inventory(tmp_path):
    """The refusal says what to give instead."""
    builder = table()
    file = inventory(tmp_path, builder)
    builder.storage = copied(builder, "/lake/trips")
    with pytest.raises(ConfigError, match="is in none; give a CSV"):
        found(builder, file)
