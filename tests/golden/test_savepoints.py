"""Savepoints of three releases of Apache Hudi: which files they pinned, beside which files ours would."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_py.fsview.as_of import context_as_of
from hudi_py.fsview.loader import load_context
from hudi_py.model.instant import Action
from hudi_py.services.savepoint.gather import partitions_of
from hudi_py.services.savepoint.plan import held_files
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.fixtures import expected, fixture_names, unpack


def with_savepoints() -> list[str]:
    names = []
    for name in fixture_names():
        instants = expected(name)["expected"]["timeline"]["instants"]
        if any(i["action"] == "savepoint" and i["state"] == "COMPLETED" for i in instants):
            names.append(name)
    return names


@pytest.mark.parametrize("name", with_savepoints())
def test_we_pin_what_hudi_pinned(name: str, tmp_path: Path) -> None:
    """Later commits, cleans and replaced groups do not change which files belong to a savepointed commit (C-4)."""
    table = Table(LocalStorage(unpack(name, tmp_path)), settings={"hoodie.metadata.enable": False})
    for instant in table.timeline.completed(Action.SAVEPOINT):
        recorded = table.contents.savepoint(instant).files
        time = instant.requested_time
        context = context_as_of(load_context(table.timeline, table.contents, with_clustering=False), time)
        planned = [each.requested_time for each in table.timeline.pending("compaction") if each.requested_time <= time]
        ours = held_files(context, partitions_of(context, table.listing), planned)
        assert {path: sorted(names) for path, names in recorded.items() if names} == {
            path: sorted(names) for path, names in ours.items()
        }
