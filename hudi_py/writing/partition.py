"""A partition before a write: its latest base files, which of them has which key, and which can take inserts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import ConflictError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.fsview.build import build_partition, latest_base_files
from hudi_py.fsview.foreign import refuse_foreign
from hudi_py.model.files import PARTITION_METAFILE, BaseFile, join_path
from hudi_py.rows.lookup import lookup_keys
from hudi_py.storage.base import Storage
from hudi_py.writing.assign import ExistingFile
from hudi_py.writing.job import WriteJob
from hudi_py.writing.log_slices import GroupLogs, deleted_in_logs, group_logs, keys_in_logs
from hudi_py.writing.replaced import check_listed


@attrs.frozen(eq=False)
class Owners:
    """
    The file groups of keys.

    Args:
        first: Shape (n,), position in `PartitionFiles.file_ids` of the group of each key; -1 for a key that is in none.
        again: Shape (2, m), number of a key and position of a further group that has a row with it, too: a
            ``bulk_insert`` looks up no keys. Each copy is updated or deleted, as by Apache Hudi.
    """

    first: npt.NDArray[np.int64]
    again: npt.NDArray[np.int64]

    def with_copies(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """Return number of the key and owner of each row to write; None where no key has several rows."""
        if not self.again.size:
            return None
        numbers = np.concatenate([np.arange(len(self.first)), self.again[0]])
        return numbers, np.concatenate([self.first, self.again[1]])


@attrs.frozen
class PartitionFiles:
    """
    A partition before the commit.

    Args:
        path: Relative path of the partition.
        has_metafile: Whether the partition has its metafile, so that readers find it.
        latest: Newest base file of each file group that is not replaced, by file id.
        clustering: File ids in a pending clustering, with the time of the clustering.
        logs: What a write needs to know of each group of a merge-on-read table, by file id; empty otherwise.
        small_files_max: Number of groups that one write fills with inserts; None for all small ones.
    """

    path: str
    has_metafile: bool
    latest: dict[str, BaseFile]
    clustering: dict[str, str]
    logs: Mapping[str, GroupLogs] = attrs.field(factory=dict)
    small_files_max: int | None = None

    @property
    def file_ids(self) -> tuple[str, ...]:
        """Ids of all groups that may hold keys: those with a base file first."""
        return (*self.latest, *(file_id for file_id in self.logs if file_id not in self.latest))

    def owners_of(self, storage: Storage, keys: Array) -> Owners:
        """
        Find the file groups of each key.

        Args:
            keys: Record keys, n of them.
        """
        owners = np.full(len(keys), -1, dtype=np.int64)
        found_in: list[npt.NDArray[np.int64]] = []
        again = [np.empty((2, 0), dtype=np.int64)]
        is_contested = False
        # The first group with a key gets it. Where log files may have deleted it there, `_settle` decides.
        for file_id in self.file_ids:
            found = self._holds(storage, file_id, keys)
            position = len(found_in)
            found_in.append(np.flatnonzero(found))
            is_contested = is_contested or bool((found & (owners >= 0)).any())
            owners[found & (owners < 0)] = position
        if is_contested:
            again += self._settle(storage, keys, owners, found_in)
        return Owners(owners, np.concatenate(again, axis=1))

    def _holds(self, storage: Storage, file_id: str, keys: Array) -> npt.NDArray[np.bool_]:
        base, logs = self.latest.get(file_id), self.logs.get(file_id)
        found = np.zeros(len(keys), dtype=np.bool_)
        if base is not None:
            with storage.open_read(join_path(self.path, base.name)) as stream:
                found = lookup_keys(stream, keys, is_near=storage.capabilities.has_folders)
        if logs is not None:
            for stored in keys_in_logs(storage, self.path, logs.keyed, logs.written):
                found |= compute.is_in(keys, value_set=stored).to_numpy(zero_copy_only=False)
        return found

    def _settle(
        self,
        storage: Storage,
        keys: Array,
        owners: npt.NDArray[np.int64],
        found_in: list[npt.NDArray[np.int64]],
    ) -> list[npt.NDArray[np.int64]]:
        """
        If several groups have the same key, choose the first in which no log file deletes it; return the others.

        A deleted key stays in its base file until a compaction. If it is then inserted again (an insert looks up no
        keys), its row is in another group.
        """
        # Keys that only one group has need no further reading of log files, and those are nearly all of them.
        counts = np.bincount(np.concatenate(found_in), minlength=len(keys))
        is_contested = counts > 1
        is_open = is_contested.copy()
        again = []
        for position, (file_id, found) in enumerate(zip(self.file_ids, found_in, strict=True)):
            asked = found[is_contested[found]]
            if not len(asked):
                continue
            some = keys.take(pa.array(asked, pa.int64()))
            logs = self.logs.get(file_id)
            gone = set() if logs is None else deleted_in_logs(storage, self.path, logs)
            lives = np.array([key not in gone for key in some.to_pylist()], dtype=np.bool_)
            # The first living group wins, as in `owners_of`; where all groups have deleted the key, its first owner
            # stays.
            chosen = lives & is_open[asked]
            owners[asked[chosen]] = position
            is_open[asked[chosen]] = False
            copies = asked[lives & ~chosen]
            again.append(np.stack([copies, np.full(len(copies), position, dtype=np.int64)]))
        return again

    def candidates(self) -> list[ExistingFile]:
        """
        Return the groups that can take inserts: those that are not in a pending clustering (E-52).

        In a merge-on-read table only the smallest groups without log files and pending compactions (E-51).
        """
        found = [
            ExistingFile(file_id=base.file_id, size_bytes=base.size_bytes or 0)
            for base in self.latest.values()
            if base.file_id not in self.clustering
            and (self.small_files_max is None or self.logs[base.file_id].is_plain)
        ]
        if self.small_files_max is None:
            return found
        return sorted(found, key=lambda file: (file.size_bytes, file.file_id))[: self.small_files_max]

    def refuse_clustering(self, updated: Iterable[str]) -> None:
        """
        Raise if a group to update is in a pending clustering: completing it would lose the update (E-44).

        Raises:
            ConflictError: A group is in a pending clustering.
        """
        for file_id in updated:
            clustering = self.clustering.get(file_id)
            if clustering is not None:
                raise ConflictError(
                    f"file group {file_id} in partition {self.path!r} is waiting for clustering {clustering}; carry "
                    f"it out with hudi-py cluster, or withdraw it with --cancel {clustering}, then write again"
                )


def load_partition(job: WriteJob, path: str) -> PartitionFiles:
    """
    List the folder of a partition and return its files; a new partition has none, nor has one that is overwritten.

    Raises:
        CorruptMetadata, ConflictError: See `check_listed`.
        UnsupportedTable: A base file has a format that the table does not have.
    """
    context = job.context
    entries = [entry for entry in job.storage.list(path, details=True) if not entry.is_folder]
    # With any extension: Hudi may write the metafile in the format of the base files
    # (hoodie.partition.metafile.use.base.format).
    has_metafile = any(entry.name.startswith(PARTITION_METAFILE) for entry in entries)
    if job.overwrites:  # all rows go to new groups, so neither keys nor small files of the earlier ones matter
        return PartitionFiles(path=path, has_metafile=has_metafile, latest={}, clustering={})
    check_listed(job, path, (entry.name for entry in entries))
    refuse_foreign(path, (entry.name for entry in entries), context.extensions, "a write")
    view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
    latest = {base.file_id: base for base in latest_base_files(context, view)}
    logs: dict[str, GroupLogs] = {}
    if job.logs is not None:
        names = (entry.name for entry in entries)
        logs = group_logs(context, view, names, latest, job.logs)
    return PartitionFiles(
        path=path,
        has_metafile=has_metafile,
        latest=latest,
        clustering={file_id: time for (where, file_id), time in context.pending_clustering.items() if where == path},
        logs=logs,
        small_files_max=None if job.logs is None else job.logs.small_files_max,
    )
