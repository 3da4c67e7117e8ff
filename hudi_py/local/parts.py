"""Splits rows by their keys."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.java_hash import java_hashes
from hudi_py.writing.job import WriteJob

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing: keys that differ in their last digit only go to different parts."""


def parts_of_keys(job: WriteJob, batch: pa.RecordBatch, parts: int) -> npt.NDArray[np.int64]:
    """Return for each row one of *parts* numbers, which its key decides."""
    hashes = java_hashes(job.keys.record_keys(batch)).astype(np.uint64)
    mixed: npt.NDArray[np.int64] = ((hashes * _MIX >> np.uint64(33)) % np.uint64(parts)).astype(np.int64)
    return mixed
