"""Random histories against a dict, on every table version and on both ways of writing."""

import random

import pytest

from support.laws import SHARE
from support.trips import COMMON, PARTITIONED, TWO_PASSES, trip

pytestmark = pytest.mark.spark
STEPS = 6 if SHARE == 1 else 3


@pytest.mark.parametrize(
    ("version", "settings", "seed"),
    [
        (6, PARTITIONED, 1),
        (8, PARTITIONED, 2),
        (9, PARTITIONED, 3),
        (6, COMMON | TWO_PASSES, 4),
        (8, PARTITIONED | TWO_PASSES, 5),
        (9, PARTITIONED | TWO_PASSES, 6),
    ],
    ids=lambda value: "two passes" if isinstance(value, dict) and value.keys() >= TWO_PASSES.keys() else None,
)
def test_random_history_ends_in_the_rows_of_the_model(version, settings, seed, trips):
    """Whatever is written, in whatever order, both readers see what a dict would hold."""
    chance = random.Random(seed)
    table = trips(
        settings | {"hoodie.clean.commits.retained": "2", "hoodie.parquet.small.file.limit": "20000"}, version
    )
    table.insert([trip(number) for number in range(30)], "bulk_insert")
    fresh = 30
    for step in range(2, STEPS + 2):
        kind = chance.choice(("upsert", "upsert", "upsert", "delete", "insert", "mark"))
        numbers = [chance.randrange(fresh + 10) for _ in range(chance.randrange(1, 25))]
        if kind == "delete":
            table.delete([trip(number) for number in numbers])
        elif kind == "insert":
            table.insert([trip(number, step) for number in range(fresh + 10, fresh + 22)])
            fresh += 22
        else:
            rows = [trip(number, chance.choice((step, step, step - 2, 1))) for number in numbers]
            if kind == "mark":
                rows = [row | {"_hoodie_is_deleted": chance.random() < 0.4} for row in rows]
            table.upsert(rows)
        assert table.expected() == table.stored(), f"step {step}, {kind}"
    table.check()
