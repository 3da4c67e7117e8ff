"""
Proves that the bytes of a partition, or of record keys, are gone from a table, or names what holds them. Read only.

In doubt nothing is gone: a file that cannot be read may hold them, and a table that changes while it is looked at is
looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import is_partition_path
from hudi_py.model.instant_time import iso_utc
from hudi_py.rows.asked_keys import key_fields_of
from hudi_py.services.clean.service import CleanService
from hudi_py.services.erasure.facts import ErasurePlace, ErasureReport, ErasureVerdict, HeldFile, LastRemoval
from hudi_py.services.erasure.indexes import NO_ROWS
from hudi_py.services.erasure.past import Past, last_purge, load_past
from hudi_py.services.erasure.rows import Wanted
from hudi_py.services.erasure.search import Found, Search
from hudi_py.services.explain.files import Explainer
from hudi_py.storage.base import Storage
from hudi_py.timeline import quarantine
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline

_ATTEMPTS: Final = 3
_BOOTSTRAP_PATH: Final = "hoodie.bootstrap.base.path"
_OF_INDEXES: Final = "the metadata table's "
_BY_HAND: Final = "never by itself: delete it by hand"
_PAST_IT: Final = (
    "when the metadata table has been compacted and cleaned past it (some commits later, or by hudi-py maintain), or "
    "is made again"
)


@attrs.frozen(kw_only=True)
class ErasureService:
    """
    Looks for bytes in one table.

    Args:
        clean: The table's clean service; its settings decide when a clean deletes a file.
        partition: Path of the partition; None for all.
        keys: Record keys; empty for all rows of the partition.
    """

    clean: CleanService
    partition: str | None = None
    keys: tuple[str, ...] = ()

    def run(self) -> ErasureReport:
        """
        Look everywhere.

        Raises:
            ConfigError: Neither a partition nor a key is given, or the table never had the partition.
            UnsupportedTable: Keys are asked for, and the table's rows hold none.
            ConflictError: The table kept changing while it was looked at.
            CorruptMetadata: The timeline or its archive cannot be read.
            StorageError: A file or a folder cannot be read.
        """
        self._refuse()
        for _ in range(_ATTEMPTS):
            before = self._store.load()
            try:
                report = self._look(before)
            except NotFound:  # deleted or moved since it was listed
                continue
            if self._store.afresh().load().instants == before.instants:
                return report
        raise ConflictError(
            f"{self._storage.root} changed each of the {_ATTEMPTS} times while it was looked at; try again"
        )

    def _refuse(self) -> None:
        if self.partition is None and not self.keys:
            raise ConfigError("give a partition or a record key: what should be gone?")
        if self.partition and not is_partition_path(self.partition):
            raise ConfigError(f"{self.partition!r} is not the path of a partition")
        if not all(self.keys):
            raise ConfigError("no row has an empty record key")
        if self.keys and not self._table.populate_meta_fields:
            raise UnsupportedTable(
                f"{self._storage.root}: its rows hold no record keys (hoodie.populate.meta.fields=false), so none can "
                "be looked for; ask for a partition"
            )

    def _look(self, timeline: Timeline) -> ErasureReport:
        past = load_past(self.clean.contents, self._table, timeline, lambda path: self.partition in (None, path))
        search = Search(self._storage, self.partition, self._wanted, past.bounds)
        looked_at = iso_utc(int(self._store.clock.now().timestamp() * 1000))
        found = search.run()
        # A slip in the path must not be taken for a proof.
        if self.partition is not None and not (search.has_folder or found or self.partition in past.partitions):
            raise ConfigError(
                f"{self._storage.root} never had a partition {self.partition!r}, as far as its timeline and archive "
                "tell; give its whole path, as hudi-py files shows it"
            )
        report = ErasureReport(
            partition=self.partition,
            keys=self.keys,
            looked_at=looked_at,
            files_seen=search.files_seen,
            held=tuple(sorted((*self._explained(found), *self._in_commits(search)), key=attrgetter("path"))),
            doubts=tuple(self._doubts()),
        )
        if report.verdict is not ErasureVerdict.GONE:
            return report
        return attrs.evolve(report, last_removal=self._last_removal(past, search))

    def _last_removal(self, past: Past, search: Search) -> LastRemoval:
        try:
            removals = [past.last_removal(search.paths), last_purge(self.clean.contents, self.partition)]
            # The indexes have cleans of their own, which may be later.
            if self._table.has_metadata_table:
                metadata = MetadataTable(self._storage, self._store.clock)
                timeline = metadata.store.load()
                indexes = load_past(
                    Contents(metadata.store), metadata.config, timeline, lambda path: path not in NO_ROWS, _OF_INDEXES
                )
                removals.append(indexes.last_removal(search.index_paths))
        except (CorruptMetadata, NotFound) as error:
            return LastRemoval(at=None, by=str(error))
        ms, by = max(removals)
        return LastRemoval(at=iso_utc(ms), by=by) if ms else LastRemoval(at=None, by="no removal is on record")

    def _doubts(self) -> Iterator[str]:
        source = self._table.properties.get(_BOOTSTRAP_PATH, "")
        if source:
            yield f"the files that the table was made from, {source}, lie outside of it and were not looked at"

    # --- why a file is kept --------------------------------------------------------------------------------------
    def _explained(self, found: Iterable[Found]) -> Iterator[HeldFile]:
        in_partitions = [each for each in found if each.is_partition]
        explainer = Explainer(self.clean) if in_partitions else None
        off = self._store.deletion.why_off()
        waits = () if off is None else ("when deletion is allowed again: hudi-py deletion allow",)
        for folder, group in groupby(in_partitions, key=attrgetter("folder")):
            assert explainer is not None
            traces = {each.path: each for each in group}
            for file in explainer.partition(folder, [each.entry for each in traces.values()]):
                each = traces[file.path]
                until = (*map(str, file.conditions), *waits)
                yield _held(each, (file.rule, *file.also), until)
        for each in found:
            if each.place is ErasurePlace.QUARANTINE:
                yield self._in_quarantine(each, waits)
            elif each.place is ErasurePlace.METADATA_TABLE:
                yield _held(each, ("the metadata table has not passed it",), (_PAST_IT,))
            elif not each.is_partition:
                yield _held(
                    each, ("it lies in a folder that is no partition",), ("never by a clean: delete it by hand",)
                )

    def _in_commits(self, search: Search) -> Iterator[HeldFile]:
        for commit, trace in search.in_timeline().items():
            yield HeldFile(
                path=self._store.path(commit),
                place=ErasurePlace.TIMELINE,
                trace=trace,
                why_kept=("the commit of Apache Hudi that wrote log files keeps values of their columns",),
                until=("when the commit has been archived: the archive does not keep them",),
            )

    def _in_quarantine(self, each: Found, waits: tuple[str, ...]) -> HeldFile:
        if each.folder == quarantine.FOLDER:
            return _held(each, ("recover copied the instant before it removed or replaced it",), (_BY_HAND,))
        name = each.folder.removeprefix(f"{quarantine.FOLDER}/").partition("/")[0]
        try:
            manifest = quarantine.load_manifest(self._storage, name)
        except CorruptMetadata as error:
            return _held(each, (str(error),), (_BY_HAND,))
        if manifest is None:
            return _held(each, (f"{name} has no manifest in quarantine",), (_BY_HAND,))
        what = f"clean {name}" if manifest.kind == "clean" else name
        until = f"from {iso_utc(manifest.until_ms)} on, when the quarantine is emptied (hudi-py maintain)"
        if manifest.tag is not None:
            until = f"the store deletes it, by its rule for objects with the tag {manifest.tag}"
        return _held(each, (f"{what} moved it into quarantine, from where it can be put back",), (until, *waits))

    # --- the table -----------------------------------------------------------------------------------------------
    @property
    def _wanted(self) -> Wanted:
        """The keys in every form in which a release stores them: for a single field ``1`` and ``id:1``."""
        fields = key_fields_of(self._table.properties)
        forms = set(self.keys)
        if len(fields) == 1:
            prefix = f"{fields[0]}:"
            forms |= {f"{prefix}{key}" for key in self.keys}
            forms |= {key.removeprefix(prefix) for key in self.keys}
        return Wanted(frozenset(forms - {""}), fields)

    @property
    def _store(self) -> TimelineStore:
        return self.clean.contents.store

    @property
    def _storage(self) -> Storage:
        return self._store.storage

    @property
    def _table(self) -> TableConfig:
        return self.clean.table


def _held(found: Found, why_kept: tuple[str, ...], until: tuple[str, ...]) -> HeldFile:
    return HeldFile(
        path=found.path,
        place=found.place,
        trace=found.trace,
        size_bytes=found.entry.size_bytes,
        why_kept=why_kept,
        until=until,
    )
