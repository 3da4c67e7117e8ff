"""Tags on a schedule, leases with a savepoint and savepoints of Apache Hudi, beside its own clean and writes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from real_hudi import RealHudiError, canonical_rows

import hudi_py
from hudi_py.errors import RefusedError
from hudi_py.runtime.clock import FixedClock
from support.interop_model import PARTITIONED, Model
from support.interop_ours import hudi_py_json

pytestmark = pytest.mark.oracle

OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "true"}
ONE_COMMIT = {**OPTIONS, "hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
NUMBERS = range(9)
"""Of the rows of each write, so that each replaces all files."""


def files_of(path, at):
    table = hudi_py.open_table(str(path)).as_of(at)
    return {f"{p}/{n}" for p in table.partitions() for each in table.file_slices(p) for n in each.file_names}


def rows_of(path, at=None, **options):
    rows = hudi_py.open_table(str(path)).rows(**({"as_of": at} if at else {}), **options)
    return canonical_rows(rows.to_arrow().to_pylist(maps_as_pydicts="strict"))


def there(path, files):
    return {file for file in files if (path / file).exists()}


def commits(path):
    return [each.requested_time for each in hudi_py.open_table(str(path)).timeline.completed("commit")]


def test_its_clean_keeps_what_a_tag_and_the_savepoint_of_a_lease_hold(peer, tmp_path):
    """
    Of three commits of a past day the last is tagged and the first is leased; the one between them goes.

    Both are read afterwards, by name and by the lease; its own savepoint is a tag, which our clean keeps in turn; and
    once the lease is released its next clean takes those files, too.
    """
    path, model, states = tmp_path / "t", Model(PARTITIONED), []
    create = PARTITIONED.create(peer.table_version)
    noon = datetime.now(timezone.utc).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
    for version in (1, 2, 3):
        rows = model.upsert(PARTITIONED.batch(NUMBERS, version))
        hudi_py.write(path, rows, settings=create | OPTIONS, clock=FixedClock(noon + timedelta(hours=version)))
        states.append(model.rows())

    def write(version):
        peer.write(path, model.upsert(PARTITIONED.batch(NUMBERS, version)), "upsert", OPTIONS)
        states.append(model.rows())

    write(4)
    first, between, last, _ = commits(path)
    opened = hudi_py.open_table(str(path), settings={"hoodie_py.tags.daily": 30})
    assert [each.requested_time for each in opened.create_due_tags()] == [last]
    (tag,) = hudi_py_json("tag", "list", str(path))
    assert tag["name"] == f"daily-{noon:%Y-%m-%d}"
    lease = opened.take_lease(ttl="3h", at=first, savepoint=True)
    snapshot = opened.as_of(first)
    held = {at: files_of(path, at) for at in (first, between, last)}
    write(5)
    newest = commits(path)[-1]
    peer.savepoint(path, newest)  # of Apache Hudi: without a name or an end
    kept = files_of(path, newest)
    write(6)
    write(7)
    peer.clean(path, ONE_COMMIT)
    assert {at: there(path, files) for at, files in held.items()} == held | {between: set()}
    assert model.rows() == peer.read(path) == peer.read(path, metadata=True) == rows_of(path)
    assert states[0] == canonical_rows(snapshot.rows().to_arrow().to_pylist(maps_as_pydicts="strict"))
    assert states[0] == rows_of(path, savepoint=first)
    assert states[2] == rows_of(path, tag["name"])
    with pytest.raises(RefusedError, match="clean"):
        rows_of(path, between)
    # Its savepoint is a tag like ours.
    listed = hudi_py_json("tag", "list", str(path))
    assert {each["requested_time"] for each in listed} == {first, last, newest}
    write(8)
    hudi_py.open_table(str(path)).clean(commits_retained=1)
    assert there(path, kept) == kept
    assert states[4] == rows_of(path, savepoint=newest)
    # It cannot go while it is needed, and goes with the lease; then nothing keeps these files from its clean.
    with pytest.raises(RefusedError, match=lease.id):
        hudi_py.open_table(str(path)).delete_savepoint(first)
    assert hudi_py.open_table(str(path)).release_lease(lease.id)
    write(9)
    peer.clean(path, ONE_COMMIT)
    assert there(path, held[first]) == set()
    assert there(path, held[last]) == held[last]
    assert model.rows() == peer.read(path) == peer.read(path, metadata=True) == rows_of(path)
    assert states[2] == rows_of(path, tag["name"])
    assert [each for each in hudi_py_json("check", str(path)) if each["severity"] != "info"] == []


def test_it_restores_to_a_tag_and_knows_no_lease(peer, tmp_path):
    """A tag is a savepoint to it: it restores to the tag, and we read what it restored; it knows no lease."""
    path, model, states = tmp_path / "t", Model(PARTITIONED), []
    for version in (1, 2, 3):
        batch = model.upsert(PARTITIONED.batch(NUMBERS, version))
        peer.write(path, batch, "upsert", (PARTITIONED.create(peer.table_version) if version == 1 else {}) | OPTIONS)
        states.append(model.rows())
    table = hudi_py.open_table(str(path))
    second = commits(path)[1]
    table.create_savepoint(second, name="before-the-load", ttl="30d")
    lease = table.take_lease(ttl="3h")  # of the third commit
    snapshot = table.as_of(lease.instant)
    try:
        peer.restore(path, second, OPTIONS)
    except RealHudiError as refused:
        pytest.fail(f"a savepoint of ours is none to it: {refused}")
    assert states[1] == peer.read(path) == rows_of(path) == rows_of(path, "before-the-load")
    # Its restore knew no lease: the reader gets an error, never other rows.
    with pytest.raises(hudi_py.HudiError):
        snapshot.rows().to_arrow()
    assert hudi_py_json("lease", "list", str(path))[0]["id"] == lease.id
