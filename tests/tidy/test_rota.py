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
        (("oracle",), 4, (0.2, 0.3)),
        (("oracle", "slow"), 4, (0.2, 0.3)),
        (("slow",), 3, (0.25, 0.42)),
        (("s3",), 3, (0.25, 0.42)),
        (("spark", "slow"), 3, (0.25, 0.42)),
        (("spark",), 4, (0.2, 0.3)),
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


def test_all_others_take_turns_where_a_number_is_set(monkeypatch):
    """As with old libraries, where most tests show what they show with new ones."""
    items = [item(f"{SLOW}::test_{number}", SLOW, ()) for number in range(300)]
    monkeypatch.setattr(rota, "_TURNS", 3)
    turns = []
    for day in range(7, 10):
        monkeypatch.setattr(rota, "_DAY", str(day))
        turns += [each.nodeid for each in items if rota.is_its_turn(each)]
    assert sorted(turns) == sorted(each.nodeid for each in items)


def test_histories_are_played_every_day(monkeypatch):
    """They are what holds all services together."""
    monkeypatch.setattr(rota, "_DAY", "7")
    assert all(rota.is_its_turn(item(f"{PROPERTY}::test_x[{n}]", PROPERTY, ("slow",))) for n in range(20))
