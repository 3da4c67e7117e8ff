"""Finds every file of a table and what keeps it. A folder is listed once; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from hudi_py.config.table import TableConfig
from hudi_py.fsview.listing import listing_threads, walk_folders
from hudi_py.model.files import METADATA_FOLDER, METADATA_TABLE_FOLDER, BaseFile, LogFile, join_path, parse_data_file
from hudi_py.model.instant import Instant
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.retention.policy import Reason
from hudi_py.services.clean.service import CleanService
from hudi_py.services.explain.explain import rule_of
from hudi_py.services.explain.files import Explainer, FileExplanation
from hudi_py.services.usage.facts import WASTED, FileUse, Holder, Usage, holders_of, sum_up
from hudi_py.storage.base import Entry

_KINDS = {"unknown file": Holder.FOREIGN, "partition metafile": Holder.METAFILE}
_PENDING = frozenset({"requested", "inflight"})


class UsageService:
    """
    Finds out where the bytes of one table are.

    Args:
        service: The table's clean service; its policy decides what is retained.
        small_bytes: Base files below this size count as small (``hoodie.parquet.small.file.limit``).
    """

    def __init__(self, service: CleanService, small_bytes: int) -> None:
        self._explainer = Explainer(service)
        self._table: TableConfig = service.table
        self._storage = service.contents.store.storage
        self._small_bytes = small_bytes

    @property
    def situation(self) -> Situation:
        """What the next clean is planned from."""
        return self._explainer.situation

    def run(self) -> Usage:
        """
        Sum up all files.

        Raises:
            CorruptMetadata: An instant that decides about files is damaged.
        """
        return sum_up(self.files(), self._small_bytes)

    def files(self) -> Iterator[FileUse]:
        """Every file in the table's folder, once; hidden temporary files and checksum files are left out."""
        threads = listing_threads(self._storage)
        partitions: list[str] = []
        for folder, entries, is_partition in walk_folders(
            self._storage, details=True, threads=threads, to_the_bottom=True, with_others=True
        ):
            # A partition within another is one only to the metadata table and to the commits, not to a walk of folders.
            is_inner = any(folder.startswith(f"{path}/") for path in partitions) if is_partition else False
            if is_partition and (not is_inner or folder in self._named):
                partitions.append(folder)
                yield from self._partition(folder, entries)
            else:
                for entry in entries:
                    yield _use(folder, None, entry, Holder.FOREIGN, "in a folder that is not a partition")
        internal = walk_folders(
            self._storage,
            details=True,
            threads=threads,
            start=METADATA_FOLDER,
            to_the_bottom=True,
            with_others=True,  # the metadata table is one
        )
        for folder, entries, _ in internal:
            holder = self._internal(folder)
            for entry in entries:
                yield _use(folder, None, entry, holder, holder.meaning)

    def files_of(self, path: str) -> Iterator[FileUse]:
        """
        Every file of one partition, once.

        Args:
            path: Path of a partition that the table has; no other folder is listed.
        """
        yield from self._partition(path, [e for e in self._storage.list(path, details=True) if not e.is_folder])

    @cached_property
    def _named(self) -> frozenset[str]:
        """Partitions that the metadata table lists: only those count that lie inside of other partitions."""
        listing = self.situation.listing
        return frozenset() if listing.is_fresh else frozenset(path for path, _ in listing.walk())

    def _internal(self, folder: str) -> Holder:
        # The timeline last: in layout 1 its folder is that of everything else, so only its own files count.
        for path, holder in (
            (METADATA_TABLE_FOLDER, Holder.METADATA_TABLE),
            (self._table.history_folder, Holder.ARCHIVE),
            (self._table.timeline_folder, Holder.TIMELINE),
        ):
            if folder == path or (path != METADATA_FOLDER and folder.startswith(f"{path}/")):
                return holder
        return Holder.INTERNAL

    def _partition(self, path: str, entries: list[Entry]) -> Iterator[FileUse]:
        explainer = self._explainer
        judged, listed = explainer.judged(path, entries)
        not_examined = explainer.not_examined(path)
        replaced = self.situation.context.replaced
        holders = holders_of(
            judged.verdicts, lambda file_id: (path, file_id) in replaced, is_examined=not_examined is None
        )
        held = {
            name: (holder, rule_of(verdict, not_examined))
            for verdict, holder in zip(judged.verdicts, holders, strict=True)
            for name in verdict.file_slice.file_names
        }
        for entry in entries:
            found = held.get(entry.name)
            if found is None:
                # Rare, so the answer may cost more: a look into the archive, or into delta commits.
                explained = explainer.outside(path, entry, listed)
                commit = None if explained.written_by is None else explained.written_by.requested_time
                yield _use(path, path, entry, _outside(explained), explained.rule, commit)
            else:
                parsed = parse_data_file(entry.name)
                # Verdicts are about slices, so the name is that of a data file.
                assert parsed is not None
                holder, rule = found
                if holder not in WASTED and explainer.is_uncommitted(path, parsed):
                    holder, rule = Holder.UNCOMMITTED, Reason.UNCOMMITTED.value
                is_base = isinstance(parsed, BaseFile)
                yield _use(path, path, entry, holder, rule, self._commit(path, parsed), is_base=is_base)

    def _commit(self, path: str, parsed: BaseFile | LogFile) -> str | None:
        if isinstance(parsed, BaseFile) or not self.situation.context.log_naming.tells_slice:
            return parsed.instant_time
        written_by = self._log_writers.get(join_path(path, parsed.name))
        return None if written_by is None else written_by.requested_time

    @cached_property
    def _log_writers(self) -> Mapping[str, Instant]:
        return self._explainer.log_writers("")


def _outside(explained: FileExplanation) -> Holder:
    """Holder of a file outside of all committed slices."""
    if explained.kind in _KINDS:
        return _KINDS[explained.kind]
    # In layout 1 a log file without a commit that names it may be of a write that is still running.
    is_pending = explained.origin in _PENDING or (explained.kind == "log file" and explained.origin == "unknown")
    return Holder.UNCOMMITTED if is_pending else Holder.ORPHAN


def _use(
    folder: str,
    partition: str | None,
    entry: Entry,
    holder: Holder,
    rule: str,
    commit: str | None = None,
    *,
    is_base: bool = False,
) -> FileUse:
    size = entry.size_bytes
    return FileUse(
        join_path(folder, entry.name), partition, 0 if size is None else max(size, 0), holder, rule, commit, is_base
    )
