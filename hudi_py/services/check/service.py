"""Checks a table: collects facts, lists the files, judges. Nothing is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import attrs

from hudi_py.config.keys import METADATA_ENABLED
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.properties import parse_properties
from hudi_py.fsview.listing import listing_threads, other_tables, walk_folders
from hudi_py.mdt.lookup import KEYED
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import METADATA_TABLE_FOLDER, PARTITION_METAFILE, above, is_data_file, join_path
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import Finding, Severity, finding
from hudi_py.services.check.footers import read_footers
from hudi_py.services.check.gather import gather
from hudi_py.services.check.judge_columns import judge_columns
from hudi_py.services.check.judge_contents import judge_footer, judge_log
from hudi_py.services.check.judge_files import (
    Expectation,
    judge_partition,
    readable_files,
    readable_logs,
)
from hudi_py.services.check.judge_instants import judge_instants
from hudi_py.services.check.judge_metadata import judge_metadata
from hudi_py.services.check.judge_own import judge_own
from hudi_py.services.check.judge_properties import judge_properties
from hudi_py.services.check.judge_rewrites import judge_order, judge_rewrites
from hudi_py.services.check.log_blocks import read_blocks
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.lost import TimelineLost
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.versions.format import LogNaming

_EXAMINATIONS_MAX: Final = 3
_ORDER: Final = {severity: position for position, severity in enumerate(Severity)}


class Seen(NamedTuple):
    """
    Result of one look at a table.

    Args:
        facts: The facts.
        findings: The findings, in no order.
        has_moved: Whether the timeline changed during the look, so that early and late parts may contradict each other.
    """

    facts: TableFacts
    findings: tuple[Finding, ...]
    has_moved: bool


@attrs.frozen(kw_only=True)
class CheckService:
    """
    Checks one table. Memory: the active instants' contents and one partition at a time.

    Args:
        store: The table's timeline.
        table: Its properties.
        settings: ``hoodie.metadata.enable=false`` leaves the metadata table out.
        contents: Whether the footers of base files and the blocks of log files are read, too.
    """

    store: TimelineStore
    table: TableConfig
    settings: Settings
    contents: bool = False

    def run(self) -> tuple[Finding, ...]:
        """
        Check the whole table; findings by severity, then code, then place.

        Beside a running writer, early and late parts of a look may contradict each other. So if the timeline has
        changed and something is wrong, the table is checked again; if it changes every time, a finding says so.

        Raises:
            StorageError: The storage refused or cannot be reached.
        """
        try:
            self.store.load()
        except TimelineLost as error:  # before anything else: all its files would pass for orphans
            return (finding("timeline-lost", self.store.folder, str(error)),)
        except CorruptMetadata as error:  # without a timeline nothing else can be judged
            return (finding("instant-unreadable", self.store.folder, str(error)),)
        seen = self.examine()
        for _ in range(_EXAMINATIONS_MAX - 1):
            # Without an error nothing has to be confirmed, even if the table has changed.
            if not seen.has_moved or not any(each.severity is Severity.ERROR for each in seen.findings):
                break
            seen = self.examine()
        found = [*seen.findings, *([finding("table-changing", self.store.folder)] if seen.has_moved else [])]
        return tuple(sorted(found, key=lambda each: (_ORDER[each.severity], each.code, each.where)))

    def examine(self) -> Seen:
        """Check the whole table once, with nothing taken from caches."""
        # A store of its own: contents read for an earlier examination must not be used again.
        contents = Contents(TimelineStore(self.store.storage, self.store.config, self.store.clock))
        table = self._table_now()
        facts = gather(contents, table, metadata=self._compares)
        findings = tuple(_once(self._judge(facts, table)))
        return Seen(facts, findings, has_moved=facts.timeline.instants != self.store.load().instants)

    def _table_now(self) -> TableConfig:
        """The properties as they are: since the table was opened its metadata table may have been made or dropped."""
        try:
            return read_table_config(self.store.storage)
        except (CorruptMetadata, NotFound, UnsupportedTable):
            return self.table  # the damage is a finding, and the rest is judged all the same

    @property
    def _compares(self) -> bool:
        return self.settings[METADATA_ENABLED] is not False

    def _judge(self, facts: TableFacts, table: TableConfig) -> list[Finding]:
        found = [*judge_properties(table.properties), *judge_instants(facts, self.store.folder)]
        found += judge_columns(self.store.storage, facts)
        found += (*judge_rewrites(facts), *judge_order(facts))
        found += judge_own(self.store.storage, table.properties, self.store.leases)
        if self._compares:
            found += judge_metadata(facts)
        expected = Expectation(facts)
        with contextlib.ExitStack() as stack:
            reader, problem = self._reader(facts, stack)
            if problem is not None and all(each.code != "mdt-unreadable" for each in found):
                found.append(finding("mdt-unreadable", METADATA_TABLE_FOLDER, problem))
            if reader is not None:
                found += self._indexes(facts, table)
            try:
                found += self._files(facts, expected, reader)
            # The folders are judged all the same, without the comparison.
            except (CorruptMetadata, UnsupportedTable) as error:  # a block of its base file, which is read only now
                found.append(finding("mdt-unreadable", METADATA_TABLE_FOLDER, str(error)))
                found += self._files(facts, expected, None)
        return found

    def _reader(self, facts: TableFacts, stack: contextlib.ExitStack) -> tuple[MetadataReader | None, str | None]:
        metadata = facts.metadata
        if metadata is None or metadata.problem is not None or not facts.has_metadata_folder:
            return None, None
        try:
            table = MetadataTable(self.store.storage, self.store.clock)
            reader = MetadataReader(table, facts.timeline, metadata.timeline)
            return stack.enter_context(reader), None
        except (CorruptMetadata, UnsupportedTable, NotFound) as error:
            return None, str(error)

    def _indexes(self, facts: TableFacts, table: TableConfig) -> list[Finding]:
        names = table.metadata_partitions
        if not {*KEYED, COLUMN_STATS} & set(names):
            return []
        from hudi_py.services.check.judge_indexes import judge_indexes  # loads PyArrow, which most checks do without

        metadata = MetadataTable(self.store.storage, self.store.clock)
        return judge_indexes(self.store.storage, names, metadata, Contents(self.store), facts.timeline)

    def _files(self, facts: TableFacts, expected: Expectation, reader: MetadataReader | None) -> Iterator[Finding]:
        storage = self.store.storage
        listed = frozenset(reader.partitions()) if reader is not None else frozenset()
        seen: set[str] = set()

        def judged(folder: str, files: Mapping[str, int | None]) -> list[Finding]:
            there = None if reader is None else reader.files(folder)
            found = judge_partition(expected, folder, files, there, log_naming=facts.log_naming)
            if self.contents:
                found += _contents(storage, expected, folder, files, facts.log_naming)
            is_empty = folder in listed and folder not in seen and not there
            return [finding("mdt-partition-empty", folder), *found] if is_empty else found

        walked = walk_folders(storage, details=True, threads=listing_threads(storage), to_the_bottom=True)
        for folder, entries, is_partition in walked:
            files = {entry.name: entry.size_bytes for entry in entries}
            outer = next(filter(seen.__contains__, above(folder)), None)
            if outer is not None:
                if not is_partition:  # as Hudi: what lies below a partition belongs to it
                    continue
                code = "partition-in-partition" if folder in listed else "partition-hidden"
                yield finding(code, folder, f"the outer one is {outer or 'the table itself'}")
            if not is_partition:
                # Without data files it may be anybody's folder.
                if any(map(is_data_file, files)):
                    yield finding("partition-metafile-missing", join_path(folder, PARTITION_METAFILE))
                else:
                    continue
            elif PARTITION_METAFILE in files and not self._tells_depth(folder):
                yield finding("partition-metafile-damaged", join_path(folder, PARTITION_METAFILE))
            seen.add(folder)
            yield from judged(folder, files)
        known = expected.partitions | listed
        # Partitions that have no folder any more: their files are missing, all of them.
        others = other_tables(storage, known - seen)
        for folder in sorted(known - seen):
            if folder in others:
                yield finding("partition-of-other-table", folder, f"{others[folder]} has a .hoodie of its own")
            if folder not in others or folder in expected.partitions:
                yield from judged(folder, {})

    def _tells_depth(self, folder: str) -> bool:
        path = join_path(folder, PARTITION_METAFILE)
        try:
            depth = parse_properties(self.store.storage.read(path), path).get("partitionDepth")
        except (CorruptMetadata, NotFound):
            return False
        # By this number, Apache Hudi finds the table of a partition.
        return depth == str(folder.count("/") + 1 if folder else 0)


def _contents(
    storage: Storage,
    expected: Expectation,
    folder: str,
    files: Mapping[str, int | None],
    log_naming: LogNaming,
) -> Iterator[Finding]:
    named = expected.named.get(folder, {})
    for path, base, footer in read_footers(storage, readable_files(expected, folder, files)):
        yield from judge_footer(path, base, footer, named[base.name].rows if base.name in named else None)
    for path, log, blocks in read_blocks(storage, readable_logs(expected, folder, files)):
        yield from judge_log(path, log, blocks, named[log.name].written, log_naming)


def _once(found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings with one about the archive at most: each file that needs it reports it."""
    has_archive_finding = False
    for each in found:
        if each.code != "archive-unreadable":
            yield each
        elif not has_archive_finding:
            has_archive_finding = True
            yield each
