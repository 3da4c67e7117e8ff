"""The turns of long tests: whatever a test is called, no day leaves it out for ever."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from support import rota

SLOW, PROPERTY = Path("tests/crash/test_x.py"), Path("tests/property/test_x.py")


def item(name, path, marks):
    return SimpleNamespace(nodeid=name, path=path, iter_markers=lambda: [SimpleNamespace(name=each) for each in marks])


@pytest.mark.parametrize(
    ("marks", "days", "per_day"),
    [
        (("oracle",), 3, (0.25, 0.42)),
        (("oracle", "slow"), 3, (0.25, 0.42)),
        (("slow",), 2, (0.4, 0.6)),
        (("s3",), 2, (0.4, 0.6)),
        (("spark", "slow"), 2, (0.4, 0.6)),
        (("spark",), 3, (0.25, 0.42)),
        (("slow", "daily"), 1, (1, 1)),
        ((), 1, (1, 1)),
    ],
)
def test_every_test_has_its_turn_and_each_day_a_like_share(marks, days, per_day, monkeypatch):
    """On one version of Spark or the other, and again after so many days."""
    items = [item(f"{SLOW}::test_{number}[case]", SLOW, marks) for number in range(300)]
    turns = []
    for day in range(100, 100 + days):
        monkeypatch.setattr(rota, "_DAY", str(day))
        for is_first in (True, False) if "spark" in marks else (True,):
            monkeypatch.setattr(rota, "_IS_FIRST_SPARK", is_first)
            turns.append({each.nodeid for each in items if rota.is_its_turn(each)})
    assert set().union(*turns) == {each.nodeid for each in items}
    assert sum(map(len, turns)) == len(items) * (2 if marks == ("spark",) else 1)  # on each of two versions
    least, most = per_day
    assert all(least <= len(turn) / len(items) <= most for turn in turns if turn or "spark" not in marks)


def test_histories_are_played_every_day(monkeypatch):
    """They are what holds all services together."""
    monkeypatch.setattr(rota, "_DAY", "7")
    assert all(rota.is_its_turn(item(f"{PROPERTY}::test_x[{n}]", PROPERTY, ("slow",))) for n in range(20))
