"""Statistics in the metadata table: ours are Hudi's, compacted by us as by Hudi, and Hudi goes on with them."""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
from decimal import Decimal

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.formats.records_codec import decode_compaction_plan
from hudi_py.local.rows import ArrowRows
from hudi_py.mdt.blocks import Validity, visible_blocks
from hudi_py.mdt.read_statistics import StatisticsReader, open_part
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable, Slice
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.storage.local import LocalStorage
from hudi_py.testing import Crash, StopBefore
from support import writes
from support.interop_sample import sized
from support.metadata_tables import compact_metadata_table

pytestmark = pytest.mark.oracle

WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.clean.automatic": False,
}
COMPACT = WRITE | {"hoodie.metadata.compact.max.delta.commits": 1}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("region", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("bin", pa.binary()),
        ("day", pa.date32()),
        ("dec", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(30, 10)),
        ("t", pa.timestamp("us", tz="UTC")),
        ("nul", pa.string()),
    ]
)
UTC = dt.timezone.utc
COMPACTIONS = ("column_stats", "partition_stats")


def rows(ts, names="abcdef"):
    """One row for each name, all types that have bounds; `c` is not a number."""
    found = []
    for name in names:
        number = ord(name) - ord("a")
        found.append(
            {
                "id": name,
                "region": ("eu", "us")[number % 2],
                "ts": ts,
                "i": 100 * ts + number,
                "d": float("nan") if name == "c" else number / 4,
                "b": number > 2,
                "bin": bytes([number, 255]),
                "day": dt.date(2024, 1, 1) + dt.timedelta(ts),
                "dec": Decimal(ts * 100 + number) / 4,
                "wide": Decimal(number) / 8 - ts,
                "t": dt.datetime(2024, 1, 1, ts, number, 0, 7, UTC),
                "nul": None if number < 4 else "x",
            }
        )
    return pa.Table.from_pylist(found, schema=SCHEMA)


def table_with_statistics(peer, path):
    """Four writes and a clean of Hudi's: log files of data and of deletions, and no compaction yet."""
    for ts, names in enumerate(("abcdef", "abcdef", "ac", "b"), 1):
        peer.write(path, rows(ts, names), "upsert", WRITE | {"hoodie.write.table.version": peer.table_version})
    peer.clean(path, WRITE | {"hoodie.cleaner.commits.retained": 1})
    peer.write(path, rows(5, "abc"), "upsert", WRITE)


EXPECTED = {"a": 5, "b": 5, "c": 5, "d": 2, "e": 2, "f": 2}
"""What `table_with_statistics` leaves: id to ts."""


def partitions_of(storage):
    return [each for each in COMPACTIONS if each in MetadataTable(storage).partitions()]


def statistics(storage):
    """Everything that both partitions say."""
    timeline = hudi_py.open_table(storage.root).timeline
    found = {}
    for partition in partitions_of(storage):
        with StatisticsReader(MetadataTable(storage), timeline, partition=partition) as reader:
            found[partition] = dict(reader.scan())
    return found


def compacted(storage):
    timeline = hudi_py.open_table(storage.root).timeline
    return compact_metadata_table(storage, timeline, 1)


def agree(peer, path, expected, *, skips=True):
    """Rows by data skipping for conditions on every kind of column, beside those of a full read; no finding."""
    everything = peer.read(path, metadata=False)
    assert expected == {row["id"]: row["ts"] for row in everything}
    assert len(everything) == len(expected)
    skipped = 0
    newest = max(expected.values())
    for ts in (1, newest):
        for where in (
            f"ts = {ts}",
            f"i >= {100 * ts} and i < {100 * ts + 100}",
            f"day = date'{dt.date(2024, 1, 1) + dt.timedelta(ts)}'",
            f"dec >= {25 * ts} and dec < {25 * ts + 25}",
        )[: 4 if ts == newest else sized(4, 1)]:
            found = peer.find(path, where)
            assert {key for key, value in expected.items() if value == ts} == {row["id"] for row in found["rows"]}
            skipped += found["files_read"] == 0
    assert skipped or not skips, "the statistics were not used"
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    assert [] == [each for each in hudi_py.open_table(str(path)).check() if each.severity.name != "INFO"]


def test_our_merge_equals_the_base_files_of_real_hudi(peer, tmp_path):
    """Hudi compacts twice; of each file group in its plans our merge has the records that are in Hudi's base file."""
    path = tmp_path / "t"
    table_with_statistics(peer, path)
    for ts in (6, 7):
        peer.write(path, rows(ts, "a"), "upsert", COMPACT)
    storage = LocalStorage(str(path))
    table = MetadataTable(storage)
    timeline = table.store.load()
    validity = Validity(timeline, hudi_py.open_table(str(path)).timeline)
    compared = 0
    for done in timeline.completed(Action.COMMIT):
        planned = Instant(done.requested_time, Action.COMPACTION, State.REQUESTED)
        for operation in decode_compaction_plan(table.store.read_plan(planned), "").operations:
            if operation.partition_path == FILES_PARTITION:
                continue
            logs = tuple(sorted(map(parse_log_file, operation.delta_file_paths), key=lambda log: log.order))
            group = (operation.partition_path, operation.file_id)
            before = Slice(*group, parse_base_file(operation.data_file_path or ""), logs, "")
            bases = [parse_base_file(each.name) for each in table.storage.list(group[0])]
            (base,) = [b for b in bases if b and (b.file_id, b.instant_time) == (group[1], done.requested_time)]
            with contextlib.ExitStack() as stack:
                ours = open_part(table, before, visible_blocks(table, before, timeline, validity), stack)
                theirs = open_part(table, Slice(*group, base, (), ""), [], stack)
                assert _plain(theirs.scan(), peer) == _plain(ours.scan(), peer)
                compared += 1
    assert compared >= 4


def _plain(records, peer):
    """Hudi 0.15.0 forgets in a compaction of which kind dates and decimals are."""
    found = {key: dict(record.fields) for key, record in records}
    if peer.table_version == 6:
        found = {key: each for key, each in found.items() if each["columnName"] not in ("day", "dec", "wide")}
    return found


def test_real_hudi_goes_on_with_what_we_compacted(peer, tmp_path):
    """Ours says the same before and after, Hudi skips files by it, writes, cleans, compacts; and ours again."""
    path = tmp_path / "t"
    table_with_statistics(peer, path)
    storage = LocalStorage(str(path))
    before = statistics(storage)
    assert before
    agree(peer, path, EXPECTED)
    assert compacted(storage).is_completed
    assert before == statistics(storage)
    table = MetadataTable(storage)
    for partition in (FILES_PARTITION, *partitions_of(storage)):
        assert all(each.base and not each.logs for each in table.slices(table.store.load(), partition))
    agree(peer, path, EXPECTED)
    expected = dict(EXPECTED)
    for ts, names, settings in ((6, "ad", WRITE), (7, "b", COMPACT), (8, "ef", WRITE))[: sized(3, 2)]:
        peer.write(path, rows(ts, names), "upsert", settings)
        peer.clean(path, WRITE | {"hoodie.cleaner.commits.retained": 1})
        expected |= dict.fromkeys(names, ts)
        agree(peer, path, expected)
        assert compacted(storage).is_completed
        agree(peer, path, expected)


def test_real_hudi_takes_over_a_compaction_that_we_left_half_done(peer, tmp_path):
    """Stopped at every few calls; Hudi reads by data skipping, writes on and compacts."""
    original = tmp_path / "t"
    table_with_statistics(peer, original)
    stopped = 0
    for n in range(4, 100, sized(9, 27)):
        path = tmp_path / f"stopped-{n}"
        shutil.copytree(original, path)
        storage = StopBefore(LocalStorage(str(path)), n)
        timeline = hudi_py.open_table(str(path)).timeline
        try:
            compact_metadata_table(storage, timeline, 1)
        except Crash:
            pass
        else:
            break
        if not MetadataTable(LocalStorage(str(path))).store.load().pending(Action.COMPACTION):
            continue
        stopped += 1
        peer.write(path, rows(6, "ad"), "upsert", COMPACT)
        agree(peer, path, EXPECTED | {"a": 6, "d": 6})
    assert stopped


def test_cleans_alone_keep_a_metadata_table_with_statistics_small(peer, tmp_path):
    """Each takes one file; they compact all partitions; then Hudi reads by data skipping, writes and cleans."""
    path = tmp_path / "t"
    for ts in range(1, 9):
        peer.write(path, rows(ts), "upsert", WRITE | {"hoodie.write.table.version": peer.table_version})
    settings = COMPACT | {"hoodie_py.clean.max.files": 1, "hoodie_py.clean.breakers": False}
    storage = LocalStorage(str(path))
    had = partitions_of(storage)
    cleans = 0
    while hudi_py.open_table(str(path), settings=settings).clean(commits_retained=1):
        cleans += 1
    assert cleans > 6
    assert had == partitions_of(storage)
    table = MetadataTable(storage)
    for partition in (FILES_PARTITION, *had):
        assert all(each.base and len(each.logs) < 3 for each in table.slices(table.store.load(), partition))
    expected = dict.fromkeys("abcdef", 8)
    agree(peer, path, expected)
    for ts, names in ((9, "abc"), (10, "d"))[: sized(2, 1)]:
        peer.write(path, rows(ts, names), "upsert", COMPACT)
        peer.clean(path, WRITE | {"hoodie.cleaner.commits.retained": 1})
        expected |= dict.fromkeys(names, ts)
        agree(peer, path, expected)


def test_statistics_outlive_the_instants_that_wrote_them(peer, tmp_path):
    """
    Hudi archives what is older than our compaction, and would pass over its blocks had we not taken them in.

    A plan for `files` alone lets 1.1.1 lose the rows of the partition that is not written to any more.
    """
    path = tmp_path / "t"
    archival = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.cleaner.commits.retained": 1}
    settings = WRITE | archival | {"hoodie.clean.automatic": True, "hoodie.archive.automatic": True}
    for ts, names in enumerate(("abcdef", "bdf", "ace"), 1):
        peer.write(path, rows(ts, names), "upsert", settings | {"hoodie.write.table.version": peer.table_version})
    assert compacted(LocalStorage(str(path))).is_completed
    for ts in range(4, 8):
        peer.write(path, rows(ts, "ace"), "upsert", settings)
        assert ["b", "d", "f"] == sorted(row["id"] for row in peer.find(path, "i >= 200 and i < 300")["rows"])
    assert peer.timeline(path, archived=True)["archived"]


def test_real_hudi_skips_files_by_what_we_wrote(peer, tmp_path):
    """Our writes keep the statistics; its conditions find every row, it writes and computes bounds of its own again."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", WRITE | {"hoodie.write.table.version": peer.table_version})
    table = hudi_py.open_table(str(path))
    writes.write(LocalStorage(str(path)), ArrowRows(rows(2)), table, "UPSERT")
    expected = dict.fromkeys("abcdef", 2)
    kept = set(partitions_of(LocalStorage(str(path))))
    assert kept == (set() if peer.table_version == 6 else set(COMPACTIONS))  # `wide` is too wide for 0.15.0
    if kept:
        agree(peer, path, expected)
    peer.write(path, rows(3, "e"), "upsert", WRITE)
    agree(peer, path, expected | {"e": 3}, skips=bool(kept))  # else nothing of ours is left
