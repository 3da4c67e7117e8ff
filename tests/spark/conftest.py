"""Tables with a model of their rows."""

from __future__ import annotations

import pytest

from support.trips import PARTITIONED, Trips


@pytest.fixture
def trips(spark, tmp_path):
    """``trips(settings)``: a table with a model of its rows."""
    made: list[Trips] = []

    def make(settings: dict[str, str] | None = None, version: int = 9) -> Trips:
        path = tmp_path / f"t{len(made)}"
        made.append(Trips(spark, str(path), {**(settings or PARTITIONED), "hoodie.write.table.version": str(version)}))
        return made[-1]

    return make
