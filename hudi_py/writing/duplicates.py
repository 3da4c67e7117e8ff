"""Finds inserted rows whose keys the table has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config import keys as settings
from hudi_py.config.duplicates import Duplicates
from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.writing.job import WriteJob
from hudi_py.writing.log_slices import deleted_in_logs
from hudi_py.writing.partition import PartitionFiles


def known_rows(
    job: WriteJob, partition: PartitionFiles, keys: Array, owners: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """
    Return which keys a partition has.

    A key that log files have deleted stays in its base file until a compaction; it does not count.

    Args:
        job: The write.
        partition: The partition.
        keys: Keys of n rows.
        owners: Shape (n,), what `PartitionFiles.owners_of` found.

    Raises:
        WriteError: The settings forbid known keys, and there is one.
    """
    known = owners >= 0
    for position in np.unique(owners[known]) if partition.logs else ():
        logs = partition.logs.get(partition.file_ids[position])
        if logs is not None:
            gone: Any = pa.array(list(deleted_in_logs(job.storage, partition.path, logs)), pa.string())
            found: Any = compute.is_in(keys, value_set=gone)
            known &= ~((owners == position) & found.to_numpy(zero_copy_only=False))
    refuse_known(job, [str(keys[number]) for number in np.flatnonzero(known)[:1].tolist()], int(known.sum()))
    return known


def refuse_known(job: WriteJob, some: Sequence[str], count: int) -> None:
    """
    Raise if there are known keys, and the settings forbid them.

    Args:
        job: The write.
        some: One of them, if there are any.
        count: Their number.

    Raises:
        WriteError: There are.
    """
    if count and job.duplicates is Duplicates.REFUSED:
        raise WriteError(
            f"{count} rows to insert have keys that the table has, the first of them {some[0]!r}; "
            f"{settings.INSERT_DUPLICATES.name}=fail forbids it, and nothing was committed"
        )
