"""Files that are moved between folders of a local table: many at once end as each by itself."""

import os

import pytest

from hudi_py.storage._move import _LISTED_FROM
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.local import LocalStorage

KINDS = ("file", "file with a checksum", "file beside an old checksum", "both", "absent", "link", "folder", "pipe")


def lay(folder, count):
    """*count* names of each kind below ``p``, and what an earlier attempt may have left below ``q``."""
    for place in ("p", "q"):
        (folder / place).mkdir(parents=True)
    for kind in KINDS:
        for number in range(count):
            name = f"{kind.replace(' ', '-')}-{number}"
            path, side, old = folder / "p" / name, folder / "p" / f".{name}.crc", folder / "q" / f".{name}.crc"
            if kind == "link":
                path.symlink_to(folder / "p" / "file-0")
            elif kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind != "absent":
                path.write_text(name)
            if kind in ("file with a checksum", "both"):
                side.write_text("its own")
            if kind in ("file beside an old checksum", "both"):
                old.write_text("of before")
            yield f"p/{name}"


def told(outcomes):
    """What became of each file; of a failure the words without the place."""
    return {p: o.message.rpartition(": ")[2] if isinstance(o, StorageFailure) else o for p, o in outcomes.items()}


def laid(folder):
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("count", [1, _LISTED_FROM])
def test_many_files_are_moved_as_each_by_itself(tmp_path, count):
    """With their checksums, whatever lay at the target; what is no regular file stays and is told."""
    together, alone = LocalStorage(str(tmp_path / "together")), LocalStorage(str(tmp_path / "alone"))
    paths = list(lay(tmp_path / "together", count))
    list(lay(tmp_path / "alone", count))
    assert len(paths) >= _LISTED_FROM
    outcomes = told(together.move_many(paths, "", "q"))
    singly = {}
    for path in paths:
        singly |= told(alone.move_many([path], "", "q"))
    assert outcomes == singly
    assert laid(tmp_path / "together") == laid(tmp_path / "alone")
    assert set(map(str, outcomes.values())) == {"True", "False", "it is not a regular file; it was left where it is"}
