"""One table on three storages: the same answers, the same clean."""

import json
import os
import subprocess
import sys
import time
from datetime import timezone
from pathlib import Path
from uuid import uuid4

import pytest

from hudi_py.inspection.instant_entry import instant_entry
from hudi_py.inspection.report import files_report, plan_report
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support import fixtures

ROOT = Path(__file__).resolve().parents[3]
DROP = {"hoodie.metadata.enable": "false"}
NAMES = ["cow_partition_dropped-0.15.0", "cow_mixed-1.1.1", "mor_compacted-1.1.1"]
ARGUMENTS = {"commits_retained": 1}


def copy_to(storage, path):
    """Everything of the unpacked table, side files of Hadoop left out."""
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.name.endswith(".crc"):
            storage.create_new(file.relative_to(path).as_posix(), file.read_bytes())
    return storage


def everything(storage, folder=""):
    """Relative paths of all files."""
    for entry in storage.list(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_folder:
            yield from everything(storage, path)
        elif not path.startswith(".hoodie/"):
            yield path


def answers(storage, now):
    """Timeline, slices, plan, then the clean and what it leaves; nothing that depends on the place or the clock."""
    table = Table(storage, settings=DROP)
    found = {  # details in each plan: S3 tells sizes without being asked
        "timeline": [instant_entry(instant) for instant in table.timeline],
        "files": files_report(table.view_context, [table.partition(path) for path in table.partitions()]),
        "plan": plan_report(table.read_only().services.clean(now=now).plan(details=True), ()),
        "narrow plan": plan_report(table.plan_clean(details=True, **ARGUMENTS), ()),
    }
    results = table.clean(**ARGUMENTS)
    found["deleted"] = [set(result.deleted_files) for result in results]
    found["recorded"] = [(r.metadata.total_files_deleted, sorted(r.metadata.partitions)) for r in results]
    found["left"] = sorted(everything(storage))
    found["again"] = table.clean(**ARGUMENTS)
    return found


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """The fixtures were written by processes in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture(scope="module", params=NAMES)
def unpacked(request, tmp_path_factory):
    return request.param, fixtures.unpack(request.param, tmp_path_factory.mktemp("table"))


def test_memory_and_disk_give_equal_results(unpacked):
    """The local disk, where the table was written, against the dictionary."""
    name, path = unpacked
    now = parse_instant_time(fixtures.expected(name)["inputs"]["now"], timezone.utc)
    memory = copy_to(MemoryStorage(), path)
    local = copy_to(LocalStorage(path.parent / f"copy-{uuid4()}"), path)
    assert answers(memory, now) == answers(local, now)


@pytest.mark.s3
@pytest.mark.slow
def test_s3_gives_equal_results(unpacked, s3_options):
    """A real S3 server; the plan written there is carried out there."""
    from hudi_py.storage.remote import RemoteStorage

    name, path = unpacked
    now = parse_instant_time(fixtures.expected(name)["inputs"]["now"], timezone.utc)
    remote = copy_to(RemoteStorage(f"s3://contract/{uuid4()}", s3_options), path)
    expected = answers(copy_to(MemoryStorage(), path), now)
    ours = answers(remote, now)
    assert ours == expected


@pytest.mark.s3
@pytest.mark.slow
def test_command_line_on_s3(unpacked, s3_options):
    """``--storage-option``, one JSON document, no secret anywhere."""
    from hudi_py.storage.remote import RemoteStorage

    name, path = unpacked
    url = f"s3://contract/{uuid4()}"
    copy_to(RemoteStorage(url, s3_options), path)
    options = [text for key, value in s3_options.items() for text in ("--storage-option", f"{key}={value}")]

    def run(*arguments):
        command = [sys.executable, "-m", "hudi_py", *arguments, *options, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        assert s3_options["secret"] not in done.stdout + done.stderr
        return json.loads(done.stdout)

    assert run("timeline", url)["instants"] == fixtures.expected(name)["expected"]["timeline"]["instants"]
    assert run("files", url) == fixtures.expected(name)["expected"]["file_slices"]
    arguments = ("clean", url, "--commits-retained", "1", "--conf", "hoodie.metadata.enable=false")
    planned = {file["path"] for file in run(*arguments, "--dry-run")["files"]}
    deleted = {file for clean in run(*arguments)["cleans"] for file in clean["deleted_files"]}
    assert planned <= deleted
    assert run(*arguments) == {"cleans": []}
