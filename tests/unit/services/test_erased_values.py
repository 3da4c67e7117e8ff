"""Smallest and largest values that commits keep of their files, of rows that are erased."""

from __future__ import annotations

import json

import pytest

from hudi_py.services.erasure.facts import ErasureHolds, ErasurePlace, ErasureVerdict
from hudi_py.timeline import quarantine
from support.erasures import PLAIN, cleaned, delete, erased, made
from support.writes import open_table, upsert


@pytest.mark.parametrize("field", ["recordsStats", "columnStats"])
@pytest.mark.parametrize(("smallest", "verdict"), [("a", ErasureVerdict.HELD), ("0", ErasureVerdict.UNPROVEN)])
def test_a_commit_that_keeps_values_of_its_log_files_holds_them_until_it_is_archived(field, smallest, verdict):
    """Hudi's releases for table version 6 write them into the delta commit where there are column statistics."""
    storage = made(6, merge_on_read=True)
    for ts in (5, 6):
        upsert(storage, [{"id": "a", "region": "eu", "ts": ts}], **PLAIN)
    commit = open_table(storage).timeline.writes.completed()[-1]
    (path,) = (each for each in storage.files() if each == f".hoodie/{commit.requested_time}.deltacommit")
    content = json.loads(storage.read(path))
    (stat,) = content["partitionToWriteStats"]["eu"]
    stat[field] = {"val": {
        "_hoodie_record_key": {"columnName": "_hoodie_record_key", "minValue": smallest, "maxValue": "z"},
        "ts": {"columnName": "ts", "minValue": 6, "maxValue": 6},
    }}  # fmt: skip
    storage.replace(path, json.dumps(content).encode())
    assert path not in {each.path for each in erased(storage, keys="a").held}  # the log file itself has it
    delete(storage, {"id": "a", "region": "eu", "ts": 9})
    open_table(storage, **{**PLAIN, "hoodie.compact.inline.max.delta.commits": 1}).compact()
    cleaned(storage)
    report = erased(storage, keys="a")
    assert [(each.path, each.place, each.trace.holds) for each in report.held] == [
        (path, ErasurePlace.TIMELINE, ErasureHolds.VALUES)
    ]
    assert report.verdict is verdict
    assert path in {each.path for each in erased(storage, partition="eu").held}
    assert path not in {each.path for each in erased(storage, partition="us").held}
    for ts in range(20, 26):
        upsert(storage, [{"id": "d", "region": "eu", "ts": ts}], **PLAIN)
        open_table(storage, **{**PLAIN, "hoodie.compact.inline.max.delta.commits": 1}).compact()
        cleaned(storage)
    open_table(storage, **{**PLAIN, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}).archive()
    assert path not in storage.files()
    assert erased(storage, keys="a").verdict is ErasureVerdict.GONE


# --- a law ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_copies_of_commits_that_recover_made_hold_their_values_until_somebody_deletes_them(cut):
    """Nothing else deletes them; of a damaged one it is unknown whose values they are."""
    storage = made(6, merge_on_read=True)
    columns = {"_hoodie_record_key": {"columnName": "_hoodie_record_key", "minValue": "a", "maxValue": "c"}}
    stats = {"eu": [{"path": "eu/.f_20260101000000000.log.1_0-1-0", "recordsStats": {"val": columns}}]}
    content = json.dumps({"partitionToWriteStats": stats}).encode()
    path = f"{quarantine.FOLDER}/20260101000000000.deltacommit"
    storage.replace(path, content[: len(content) - cut])
    storage.replace(f"{quarantine.FOLDER}/20260101000000001.rollback.requested", b"Obj\x01")
    delete(storage, {"id": "a", "region": "eu", "ts": 9}, {"id": "b", "region": "eu", "ts": 9})
    for key, certain in (("a", not cut), ("b", False)):
        (held,) = (each for each in erased(storage, keys=key).held if each.place is ErasurePlace.QUARANTINE)
        assert (held.path, held.trace.holds, held.is_certain) == (path, ErasureHolds.VALUES, certain)
        assert "by hand" in held.until[0]
    assert path in {each.path for each in erased(storage, partition="eu").held}
    assert (path in {each.path for each in erased(storage, partition="us").held}) == bool(cut)
    storage.delete(path)
    assert path not in {each.path for each in erased(storage, keys="a").held}
