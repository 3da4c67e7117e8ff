"""A write on a local disk that loses its power: nothing appears before what it stands on is durable."""

from fnmatch import fnmatch

import pyarrow as pa
import pytest

from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.writing.transaction import begin_write
from support.power_loss import Disk
from support.writes import ALONE, CHANGES, NEW, OLD, SCHEMA, START, create_table, open_table, rows_of, upsert

TIMES = ".hoodie/.aux/hudi_py/times"


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_nothing_appears_before_what_it_stands_on_is_durable(tmp_path, monkeypatch, version):
    """The inflight instant before the markers, a marker before its file, all files before the completed instant."""
    disk = Disk(monkeypatch, tmp_path)
    order: list[str] = []
    early: list[tuple[set[str], set[str]]] = []

    def lost() -> set[str]:
        # Reserved times speak to running processes alone, and none runs on: see `TimelineStore.new_time`.
        return {name for name in disk.lost() if not fnmatch(name, "*/hudi_py/times/*")}

    def look(names: set[str]) -> None:
        order.extend(names)
        if not_durable := lost() - names:
            early.append((names, not_durable))

    storage = LocalStorage(tmp_path / "t")
    create_table(version, storage)
    disk.on_new_name = look
    upsert(storage, OLD)
    upsert(storage, CHANGES)
    assert early == []
    assert lost() == set()
    files = [name for name in order if name.endswith(".parquet")]
    assert len(files) == 4
    for file in files:
        time = file.rpartition("_")[2].removesuffix(".parquet")
        marker = f"t/.hoodie/.temp/{time}/{file.removeprefix('t/')}.marker.*"
        steps = [f"*/{time}*inflight", marker, file, f"*/{time}*.commit"]
        positions = [next(number for number, name in enumerate(order) if fnmatch(name, step)) for step in steps]
        assert positions == sorted(positions)


@pytest.mark.parametrize("version", [6, 9])
def test_a_time_that_a_power_loss_gave_back_harms_no_commit(tmp_path, version):
    """
    Names of reserved times are not synchronised. Without them, and with a clock that was set back, later times follow.

    So does a write whose instant lasted and whose time did not: it is rolled back as any other.
    """
    storage = LocalStorage(tmp_path / "t")
    create_table(version, storage)
    upsert(storage, OLD)
    table = open_table(storage)
    clock = FixedClock(START)  # before everything
    keeper = table.services.metadata_table
    with begin_write(table.contents, table.config, table.settings, keeper) as left:
        pass
    storage.delete_folder(TIMES)
    again = Table(storage, settings=ALONE, clock=clock)
    again.upsert(pa.Table.from_pylist(CHANGES, schema=SCHEMA))
    newest = again.refresh().timeline.commits.completed()[-1].requested_time
    assert newest > left.instant_time
    assert rows_of(storage) == NEW
    assert not again.timeline.pending()
