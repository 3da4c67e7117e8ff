"""
The files that the latest slices of some groups must have, in as few commits as possible.

A base file ends the search for its group, so mostly the last commits are enough. For all groups of a table:
`hudi_py.fsview.needed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import ExpectedSlice, Written, latest_slices, replaced_groups, written_files
from hudi_py.fsview.named import group_of
from hudi_py.fsview.named_logs import group_of_file, is_log, sizes_of_groups
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import load_archived_replaced
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class GroupFiles:
    """
    Looks up files of groups in the completed commits of a timeline.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The active timeline.
        counted: Only commits with these requested times count; None for all.
    """

    def __init__(self, contents: Contents, timeline: Timeline, counted: frozenset[str] | None = None) -> None:
        self._contents = contents
        commits = timeline.writes.completed()
        self._commits = tuple(each for each in commits if counted is None or each.requested_time in counted)

    def sizes_of(self, groups: Mapping[str, Collection[str]]) -> dict[str, dict[str, int]]:
        """
        Sizes of the files of some groups, 0 if unknown; log files may be larger.

        Commits are read newest first, until all groups are found.

        Args:
            groups: Partition path to file ids.

        Returns:
            Partition path to names and sizes in bytes.

        Raises:
            CorruptMetadata: A replacecommit does not decode.
        """
        files = self._quick_sizes_of(groups)
        if files is None:
            files = [(file.path, file.size_bytes) for each in self.newest_of(groups).values() for file in each.files]
        sizes: dict[str, dict[str, int]] = {}
        for path, size in files:
            partition, _, name = path.rpartition("/")
            sizes.setdefault(partition, {})[name] = size
        return sizes

    def newest_of(self, groups: Mapping[str, Collection[str]]) -> dict[GroupKey, ExpectedSlice]:
        """
        The files that decoded commits name for the latest slices of some groups.

        Some log files may be left out, and all files written before a commit that does not decode.

        Args:
            groups: Partition path to file ids.

        Returns:
            The groups that a commit names, without replaced ones.

        Raises:
            CorruptMetadata: A replacecommit does not decode.
        """
        left = {(path, file_id) for path, file_ids in groups.items() for file_id in file_ids}
        wanted, layers = frozenset(left), list[list[Written]]()
        for instant in reversed(self._commits):
            if not left:
                break
            try:
                written = written_files(
                    instant, self._contents.commit(instant), self._contents.store.config.format.log_naming
                )
                layers.append([each for each in written if (each.partition_path, each.file_id) in wanted])
            # Archived or undone since: behind it an older file could be taken for the newest.
            except NotFound:
                break
            except CorruptMetadata as error:
                self._contents.pass_over(instant, error)
                break
            # A base file ends the search for its group: older commits name only files below it. Log files do not.
            left.difference_update((each.partition_path, each.file_id) for each in layers[-1] if not each.is_log)
        found = latest_slices(file for layer in reversed(layers) for file in layer)
        replaced = replaced_in(self._contents, self._commits) if found else ()
        return {key: each for key, each in found.items() if join_path(*key).encode() not in replaced}

    def _quick_sizes_of(self, groups: Mapping[str, Collection[str]]) -> list[tuple[str, int]] | None:
        """As `sizes_of`, from undecoded commits; None if a commit has to be decoded."""
        left = {join_path(path, file_id).encode() for path, file_ids in groups.items() for file_id in file_ids}
        found: dict[bytes, int] = {}
        for instant in reversed(self._commits):
            if not left:
                break
            try:
                sizes = sizes_of_groups(self._contents.store.read(instant), instant.requested_time, left)
            except NotFound:
                break
            if sizes is None:
                return None
            for path, size in sizes.items():
                # In layout 1 a log file grows with each delta commit.
                found[path] = max(size, found.get(path, 0))
            # A base file ends the search for its group. Log files do not.
            left.difference_update(group_of(path) for path in sizes if not is_log(path))
        gone = replaced_in(self._contents, self._commits) if found else ()
        return [(path.decode(), size) for path, size in found.items() if not gone or group_of_file(path) not in gone]


def replaced_in(contents: Contents, commits: Iterable[Instant]) -> set[bytes]:
    """Groups that replacecommits among *commits* replaced: partition path and file id, as `group_of` returns them."""
    replacing = (contents.commit(i) for i in commits if i.action is Action.REPLACE_COMMIT)
    return {join_path(*key).encode() for metadata in replacing for key in replaced_groups(metadata)}


def archived_replacements(contents: Contents, since: Mapping[GroupKey, str]) -> set[GroupKey]:
    """
    The groups that an archived replacecommit replaced: archival went beyond a savepoint (rule D-7).

    Args:
        since: Groups to look up, each with the time of the commit that wrote its newest file.
    """
    store = contents.store
    try:
        replaced = load_archived_replaced(store.storage, store.config)
    except (CorruptMetadata, NotFound) as error:
        log.warning("view.archive.unreadable", error=str(error))
        return set()
    return {key for key, written in since.items() if replaced.get(key, "") > written}
