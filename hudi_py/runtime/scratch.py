"""Temporary files of this machine, outside of any table, for what does not fit into memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder, which is deleted with all that is in it at the end; TMPDIR says where it lies."""
    with tempfile.TemporaryDirectory(prefix="hudi_py-") as folder:
        yield Path(folder)
