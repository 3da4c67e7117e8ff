"""One partition as a write finds it: its latest base files, who holds which key, and which groups take inserts."""

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
        path: Relative.
        has_metafile: Whether it is a partition already.
        latest: The newest base file of each live group, by file id.
        clustering: File ids waiting for clustering, with the time of that clustering.
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
            Shape (n,), positions in `latest`, -1 for a key that no group holds.
        """
        owners = np.full(len(keys), -1, dtype=np.int64)
        for position, base in enumerate(self.latest.values()):
            with storage.open_read(join_path(self.path, base.name)) as stream:
                found = lookup_keys(stream, keys)
            owners[found & (owners < 0)] = position
        return owners

    def candidates(self) -> list[ExistingFile]:
        """Groups that may take inserts: not those of a pending clustering (rule E-52)."""
        return [
            ExistingFile(file_id=base.file_id, size_bytes=base.size_bytes or 0)
            for base in self.latest.values()
            if base.file_id not in self.clustering
        ]

    def refuse_clustering(self, updated: Iterable[str]) -> None:
        """
        Rule E-44: changes would be lost with the group when the clustering completes.

        Raises:
            ConflictError: One of the groups waits for clustering.
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
    List one partition's folder; a partition that is not there has no files.

    Raises:
        CorruptMetadata, ConflictError: See `check_listed`.
        UnsupportedTable: It holds a base file in a format that the table does not have.
    """
    context = job.context
    entries = [entry for entry in job.storage.list(path, details=True) if not entry.is_folder]
    check_listed(job, path, (entry.name for entry in entries))
    refuse_foreign(path, (entry.name for entry in entries), context.extensions, "a write")
    view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
    return PartitionFiles(
        path=path,
        has_metafile=any(entry.name.startswith(PARTITION_METAFILE) for entry in entries),
        latest={base.file_id: base for base in latest_base_files(context, view)},
        clustering={file_id: time for (where, file_id), time in context.pending_clustering.items() if where == path},
    )
