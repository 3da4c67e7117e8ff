"""Reads from timeline and folders what is left of the state before some writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import RefusedError
from hudi_py.fsview.expected import ExpectedSlice, expected_slices
from hudi_py.fsview.listing import FolderListing
from hudi_py.fsview.loader import HasLogged
from hudi_py.model.files import join_path, parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.services.rollback.before import Before, Commit, judge_before, touched_groups
from hudi_py.timeline.archive import load_archived_cleans, load_archived_written
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


@attrs.frozen
class StateBefore:
    """
    Judges whether a table can be set back to its state before some writes.

    Args:
        contents: The table's timeline.
        table: Its properties.
    """

    contents: Contents
    table: TableConfig

    def judge(self, timeline: Timeline, undone: Iterable[Instant]) -> Before:
        """
        Args:
            timeline: The active timeline.
            undone: The writes; pending ones are ignored, for readers do not see them.

        Raises:
            CorruptMetadata: A commit or clean that this depends on does not decode.
            RefusedError: That state is from before a downgrade to layout 1.
        """
        writes = sorted((i for i in undone if i.is_completed), key=lambda i: i.requested_time, reverse=True)
        times = frozenset(i.requested_time for i in writes)
        is_merge_on_read = self.table.table_type is TableType.MERGE_ON_READ
        touched = touched_groups(self._commits(writes), is_merge_on_read=is_merge_on_read)
        # Decoding all commits costs most: only groups whose writes do not name their base file need it.
        uncertain = {key for key, touch in touched.items() if not touch.is_certain}
        kept = [i for i in timeline.writes.completed() if i.requested_time not in times]
        expected = expected_slices(self._commits(kept), self.table.format.log_naming) if uncertain else {}
        # Of these, only the ones whose base file no kept commit names depend on what cleans recorded.
        uncertain = {
            key
            for key in uncertain
            if (is_merge_on_read or touched[key].was_there) and expected.get(key, ExpectedSlice(None)).base is None
        }
        listing = FolderListing(self.contents.store.storage)
        found = judge_before(
            touched,
            expected,
            {path: {entry.name for entry in listing.partition(path)} for path in {key[0] for key in touched}},
            self._cleaned(timeline, min(times), {path for path, _ in uncertain}) if uncertain else {},
            times,
            self.table.format.log_naming,
            self._behind_savepoint(timeline, kept, min(times)) if times else {},
        )
        if self.table.format.log_naming.tells_slice:
            self._refuse_before_downgrade(timeline, found.needed)
        return found

    def _refuse_before_downgrade(self, timeline: Timeline, needed: Mapping[str, Collection[str]]) -> None:
        """Writers and compactions of layout 1 would take each log file that is named after its write for a slice."""
        has_logged = HasLogged(timeline, self.contents)
        for path, names in needed.items():
            files = [file for file in map(parse_data_file, sorted(names)) if file is not None]
            oldest: dict[str, str] = {}
            for file in files:
                oldest[file.file_id] = min(file.instant_time, oldest.get(file.file_id, file.instant_time))
            for file in files:
                if oldest[file.file_id] < file.instant_time and has_logged(file.instant_time):
                    raise RefusedError(
                        f"undoing is refused: what it would bring back was written before the table was downgraded to "
                        f"version 6, where {join_path(path, file.name)} would hide the rows below it from later "
                        "writes; read them (hudi-py read TABLE --as-of TIME -o rows.parquet) and write them again. "
                        "Nothing was changed"
                    )

    def _commits(self, instants: Iterable[Instant]) -> Iterator[Commit]:
        return ((instant, self.contents.commit(instant)) for instant in instants)

    def _behind_savepoint(self, timeline: Timeline, kept: Sequence[Instant], until: str) -> dict[str, frozenset[str]]:
        """Partition path to names of files that archived commits wrote after the first kept commit, up to *until*."""
        if not kept or timeline.find(kept[0].requested_time, Action.SAVEPOINT) is None:
            return {}
        return load_archived_written(self.contents.store.storage, self.table, kept[0].requested_time, until)

    def _cleaned(self, timeline: Timeline, since: str, partitions: Collection[str]) -> dict[str, set[str]]:
        """Partition path to names of files that cleans deleted, with archived cleans since the given time."""
        archived = load_archived_cleans(self.contents.store.storage, self.table, since)
        found = {path: set(archived.get(path, ())) for path in partitions}
        # All active ones, whatever their time: names say what they deleted.
        for instant in timeline.completed(Action.CLEAN):
            for path, result in self.contents.clean(instant).partitions.items():
                if path in found:
                    found[path].update(name.rpartition("/")[2] for name in result.delete_path_patterns)
        return found
