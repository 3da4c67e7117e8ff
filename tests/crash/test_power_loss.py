"""A write on a local disk that loses its power: nothing appears before what it stands on is durable."""

from fnmatch import fnmatch

import pytest

from hudi_py.storage.local import LocalStorage
from support.power_loss import Disk
from support.writes import CHANGES, OLD, create_table, upsert


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_nothing_appears_before_what_it_stands_on_is_durable(tmp_path, monkeypatch, version):
    """The inflight instant before the markers, a marker before its file, all files before the completed instant."""
    disk = Disk(monkeypatch, tmp_path)
    order: list[str] = []
    early: list[tuple[set[str], set[str]]] = []

    def look(names: set[str]) -> None:
        order.extend(names)
        if not_durable := disk.lost() - names:
            early.append((names, not_durable))

    storage = LocalStorage(tmp_path / "t")
    create_table(version, storage)
    disk.on_new_name = look
    upsert(storage, OLD)
    upsert(storage, CHANGES)
    assert early == []
    assert disk.lost() == set()
    files = [name for name in order if name.endswith(".parquet")]
    assert len(files) == 4
    for file in files:
        time = file.rpartition("_")[2].removesuffix(".parquet")
        marker = f"t/.hoodie/.temp/{time}/{file.removeprefix('t/')}.marker.*"
        steps = [f"*/{time}*inflight", marker, file, f"*/{time}*.commit"]
        positions = [next(number for number, name in enumerate(order) if fnmatch(name, step)) for step in steps]
        assert positions == sorted(positions)
