"""Archives of three releases of Apache Hudi, read and written again by us."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from hudi_py.formats.archive_log import archive_file_number, decode_archive_log, encode_archive_log
from hudi_py.formats.lsm_history import is_history_file, read_history, write_history
from hudi_py.inspection.instant_entry import instant_entry
from hudi_py.model.instant import State
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.timeline.archive import load_archived_contents
from support.fixtures import expected, fixture_names, metadata_files, unpack

V1 = [name for name in fixture_names() if name.endswith("0.15.0")]
V2 = [name for name in fixture_names() if not name.endswith("0.15.0")]


@pytest.mark.parametrize("name", [n for n in V1 if any("commits_.archive" in p for p in metadata_files(n))])
def test_log_files_written_again_hold_the_same_entries(name: str) -> None:
    """Every entry that 0.15.0 archived can be encoded by us, content included."""
    for path, data in metadata_files(name).items():
        if archive_file_number(path.rpartition("/")[2]) is None:
            continue
        entries = decode_archive_log(data, path)
        again = decode_archive_log(encode_archive_log(entries), path)
        assert entries == again


@pytest.mark.parametrize("name", [n for n in V2 if any(p.endswith("/_version_") for p in metadata_files(n))])
def test_history_files_written_again_hold_the_same_rows(name: str) -> None:
    """Rows and row order survive."""
    for path, data in metadata_files(name).items():
        if not is_history_file(path.rpartition("/")[2]):
            continue
        rows = read_history(data, path, with_contents=True)
        stream = io.BytesIO()
        write_history(stream, [rows[:1], rows[1:]])
        assert rows == read_history(stream.getvalue(), path, with_contents=True)


@pytest.mark.parametrize(
    "name", [n for n in fixture_names() if n.startswith(("cow_many", "cow_mixed", "cow_archived"))]
)
def test_archival_moves_instants_and_loses_none(name: str, tmp_path: Path) -> None:
    """On tables of real Hudi: active and archived together stay the same, rows' files and slices too."""
    path = unpack(name, tmp_path)
    table = Table(LocalStorage(path))
    slices = {p: table.file_slices(p) for p in table.partitions()}
    before = [instant_entry(i) for i in table.timeline if i.is_completed] + expected(name)["expected"]["timeline"][
        "archived"
    ]
    result = table.archive(keep_min_commits=1, keep_max_commits=2)
    archived = [instant_entry(i) for i in table.archived_timeline() if i.state is State.COMPLETED]
    active = [instant_entry(i) for i in table.timeline if i.is_completed]
    moved = {(i.requested_time, i.action.value) for i in result.instants}
    assert moved <= {(e["requested_time"], e["action"]) for e in archived}
    assert moved.isdisjoint((e["requested_time"], e["action"]) for e in active)
    assert {(e["requested_time"], e["action"]) for e in before if e["state"] == "COMPLETED"} == {
        (e["requested_time"], e["action"]) for e in [*archived, *active]
    }
    assert slices == {p: table.file_slices(p) for p in table.partitions()}


@pytest.mark.parametrize("name", [n for n in fixture_names() if n.startswith(("cow_many", "cow_archived"))])
def test_contents_stay_readable_when_archived(name: str, tmp_path: Path) -> None:
    """What Hudi archived and what we do (rules/timeline 5.2, 5.3); layout 1 keeps the fields of its Avro record."""
    table = Table(LocalStorage(unpack(name, tmp_path)))
    by_hudi = load_archived_contents(table.storage, table.config)
    assert list(table.archived_timeline()) == sorted(by_hudi, key=lambda i: (i.requested_time, i.action.value, i.state))
    held = {instant: table.contents.plain(instant) for instant in table.timeline if instant.is_completed}
    moved = table.archive(keep_min_commits=1, keep_max_commits=2).instants
    after = load_archived_contents(table.storage, table.config)
    assert by_hudi.items() <= after.items()
    for instant in held.keys() & after.keys():
        assert load_archived_contents(table.storage, table.config, instant.requested_time)[instant] == after[instant]
        ours, theirs = (written_files(content) for content in (after[instant], held[instant]))
        assert ours == theirs
        assert instant.action.value == "clean" or all(instant.requested_time in path for path in ours)
        if not name.endswith("0.15.0"):
            assert after[instant] == held[instant]
    assert {(i.requested_time, i.action) for i in held.keys() & after.keys()} >= {
        (i.requested_time, i.action) for i in moved if i.action.value == "commit"
    }


def written_files(content: dict[str, Any]) -> set[str]:
    """Paths that a commit wrote, or a clean removed."""
    written = {stat["path"] for stats in content.get("partitionToWriteStats", {}).values() for stat in stats}
    return written | {p for each in content.get("partitionMetadata", {}).values() for p in each["deletePathPatterns"]}
