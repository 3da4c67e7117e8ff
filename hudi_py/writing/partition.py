"""A partition before a write: its latest base files, which of them has which key, and which can take inserts."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
import numpy.typing as npt

from hudi_py.errors import ConflictError
from hudi_py.formats.arrow_types import Array
from hudi_py.fsview.build import build_partition, latest_base_files
from hudi_py.fsview.foreign import refuse_foreign
from hudi_py.model.files import PARTITION_METAFILE, BaseFile, join_path
from hudi_py.rows.lookup import lookup_keys
from hudi_py.storage.base import Storage
from hudi_py.writing.assign import ExistingFile
from hudi_py.writing.job import WriteJob
from hudi_py.writing.replaced import check_listed


@attrs.frozen
class PartitionFiles:
    """
    A partition before the commit.

    Args:
        path: Relative path of the partition.
        has_metafile: Whether the partition has its metafile, so that readers find it.
        latest: Newest base file of each file group that is not replaced, by file id.
        clustering: File ids in a pending clustering, with the time of the clustering.
    """

    path: str
    has_metafile: bool
    latest: dict[str, BaseFile]
    clustering: dict[str, str]

    def owners_of(self, storage: Storage, keys: Array) -> npt.NDArray[np.int64]:
        """
        Find the file group of each key.

        Args:
            keys: Record keys, n of them.

        Returns:
            Shape (n,), positions in `latest`; -1 for a key that is in no group.
        """
        owners = np.full(len(keys), -1, dtype=np.int64)
        for position, base in enumerate(self.latest.values()):
            with storage.open_read(join_path(self.path, base.name)) as stream:
                found = lookup_keys(stream, keys)
            owners[found & (owners < 0)] = position
        return owners

    def candidates(self) -> list[ExistingFile]:
        """Return the groups that can take inserts: those that are not in a pending clustering (E-52)."""
        return [
            ExistingFile(file_id=base.file_id, size_bytes=base.size_bytes or 0)
            for base in self.latest.values()
            if base.file_id not in self.clustering
        ]

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
                    f"file group {file_id} in partition {self.path!r} is waiting for clustering {clustering}; run or "
                    "roll back the clustering, then write again"
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
    has_metafile = any(entry.name.startswith(PARTITION_METAFILE) for entry in entries)
    if job.overwrites:
        return PartitionFiles(path=path, has_metafile=has_metafile, latest={}, clustering={})
    check_listed(job, path, (entry.name for entry in entries))
    refuse_foreign(path, (entry.name for entry in entries), context.extensions, "a write")
    view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
    return PartitionFiles(
        path=path,
        has_metafile=has_metafile,
        latest={base.file_id: base for base in latest_base_files(context, view)},
        clustering={file_id: time for (where, file_id), time in context.pending_clustering.items() if where == path},
    )
