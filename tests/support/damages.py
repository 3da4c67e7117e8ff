"""Files of a table on disk, to be damaged."""

from __future__ import annotations

from pathlib import Path

from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table


def opened(path, **settings):
    return Table(LocalStorage(str(path)), settings=settings)


def timeline_folder(path: Path) -> Path:
    folder = path / ".hoodie" / "timeline"
    return folder if folder.is_dir() else path / ".hoodie"


def newest_base_file(path: Path) -> Path:
    last = opened(path).timeline.commits.completed()[-1].requested_time
    return next(iter(sorted(path.rglob(f"*_{last}.parquet"))))


def shortened(file: Path, part: int = 2) -> None:
    """Only the first part of the bytes, as a torn write leaves them."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // part])
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
