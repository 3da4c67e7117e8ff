"""
Layout 1: merges small archive files into a larger one.

What a crash leaves after each step, and what the next archival does:

1. ``mergeArchivePlan``, with or without the merged file, and all its inputs: plan and merged file are deleted;
2. some inputs are deleted: the merged file has all their entries; the other inputs are deleted, then the plan;
3. an unreadable plan: it was never carried out, and is deleted.

Readers count an instant once, even if the archive has it twice. Source: rules/table-services D-20, rules/timeline
5.2; Hudi 0.15 ``HoodieTimelineArchiver``.
"""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.errors import AlreadyExists, CorruptMetadata, NotFound, StorageError
from hudi_py.formats.archive_log import (
    MergePlan,
    archive_file_name,
    archive_file_number,
    decode_archive_log,
    decode_merge_plan,
    encode_merge_plan,
)
from hudi_py.formats.instant_encoder import SYNC_BYTES
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness
from hudi_py.storage.base import Storage, StorageFailure

PLAN_FILE: Final = "mergeArchivePlan"
_MERGED_BYTES_MAX: Final = 256 * 1024**2  # a merge holds all its files in memory


@attrs.frozen
class LogMerge:
    """
    Merges the archive files of one layout-1 table.

    Args:
        storage: Storage of the table.
        folder: Folder of the archive.
        randomness: Source of the sync marker of the plan's file.
    """

    storage: Storage
    folder: str
    randomness: Randomness = MACHINE

    def recover(self) -> None:
        """
        Finish or undo an interrupted merge, ours or Apache Hudi's; done before anything is archived.

        Raises:
            CorruptMetadata: Inputs are deleted, but the merged file is missing or damaged; nothing was deleted now.
        """
        path = self._path(PLAN_FILE)
        try:
            data = self.storage.read(path)
        except NotFound:
            return
        try:
            plan = decode_merge_plan(data, self._source(PLAN_FILE))
        except CorruptMetadata as error:
            log.warning("archive.merge.plan.unreadable", why=str(error))
            self.storage.delete(path)
            return
        # Names alone: candidates are full paths, and those of a table that was moved are wrong (rule D-20).
        there = {entry.name for entry in self.storage.list(self.folder)}
        names = [name.rpartition("/")[2] for name in plan.candidates]
        self._check(plan, names)
        if there.issuperset(names):  # nothing is lost by undoing the merge, whether or not the merged file is whole
            self.storage.delete(self._path(plan.merged_name))
        else:
            self._decoded(plan.merged_name)  # before the last copies of its entries are deleted
            self._delete(names)
        self.storage.delete(path)
        log.info("archive.merge.settled", merged=plan.merged_name)

    def merge(self, *, files_at_least: int, size_bytes_max: int) -> int:
        """
        Merge the newest consecutive small files, if there are enough of them.

        Args:
            files_at_least: Smallest number of files that are merged.
            size_bytes_max: Size up to which a file counts as small.

        Returns:
            Number of merged files.

        Raises:
            CorruptMetadata: One of them is damaged; nothing was deleted.
        """
        numbered = sorted(
            (
                (number, entry.name, entry.size_bytes or 0)
                for entry in self.storage.list(self.folder, details=True)
                if (number := archive_file_number(entry.name)) is not None
            ),
            reverse=True,
        )
        chosen: list[str] = []
        total = 0
        for _, name, size in numbered:
            total += size
            # The first large file ends it: merged files have to be consecutive, or older entries would come before
            # newer ones.
            if size > size_bytes_max or total > _MERGED_BYTES_MAX:
                break
            chosen.append(name)
        if len(chosen) < files_at_least:
            return 0
        content = b"".join(self._decoded(name) for name in chosen)  # newest first: the order in which readers look
        plan = MergePlan(tuple(self._source(name) for name in chosen), archive_file_name(numbered[0][0] + 1))
        # The plan first: with it, the next run knows which files are inputs, whatever a crash left of them.
        try:
            self.storage.create_new(self._path(PLAN_FILE), encode_merge_plan(plan, self.randomness(SYNC_BYTES)))
            self.storage.create_new(self._path(plan.merged_name), content)
        except AlreadyExists:
            return 0  # another process archives; the next run settles its merge
        self._delete(chosen)
        self.storage.delete(self._path(PLAN_FILE))
        return len(chosen)

    def _check(self, plan: MergePlan, names: list[str]) -> None:
        """In doubt nothing is deleted: a plan must name archive files only, and not its result among its inputs."""
        strange = [name for name in (*names, plan.merged_name) if archive_file_number(name) is None]
        if strange or plan.merged_name in names:
            raise CorruptMetadata(
                f"{self._source(PLAN_FILE)} names {(strange or [plan.merged_name])[0]!r}, which cannot be merged; "
                "nothing was deleted. Move the file away and archive again: all archive files are kept and read"
            )

    def _decoded(self, name: str) -> bytes:
        """Bytes of an archive file that decodes."""
        try:
            data = self.storage.read(self._path(name))
        except NotFound as error:
            raise CorruptMetadata(
                f"{self._source(name)} is missing, and so are files that were merged into it"
            ) from error
        decode_archive_log(data, self._source(name))
        return data

    def _delete(self, names: list[str]) -> None:
        for path, outcome in self.storage.delete_many([self._path(name) for name in names]).items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(
                    f"{self.storage.root}/{path} could not be deleted: {outcome.message}; it is merged into another "
                    "file, and the next archival deletes it",
                    outcome.retryable,
                )

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _source(self, name: str) -> str:
        return f"{self.storage.root}/{self._path(name)}"
