"""Random histories of all services: in whatever order things are done, no row is lost and no old one is shown."""

import pytest

from support.history_corpus import CORPUS
from support.history_laws import Kind
from support.history_runner import find_failure, kinds, make_steps, outcome_of

SEQUENCES, CHUNK = 100, 5
STEPS_MAX, ROWS_SHARE = 7, 0.12  # a long run plays longer ones, and more that take longer
FIRST_SEED = 20_260


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CORPUS))
def test_sequence_that_once_broke_a_law(name):
    """Found by the random ones, or feared by somebody, and made as short as it goes."""
    for kind, steps in CORPUS[name]:
        violation, _ = outcome_of(1, kind, steps)
        assert violation is None, f"{kind}: {violation}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEQUENCES, CHUNK))
def test_random_history_breaks_no_law(first, record_property):
    """The latest rows, every time that may be asked for and every savepoint are the model's after each step."""
    for seed in range(first, first + CHUNK):
        failure, _ = find_failure(seed, steps_max=STEPS_MAX, rows_share=ROWS_SHARE)
        assert failure is None, f"\n{failure}"
        record_property("history seed", seed)


def test_history_follows_from_its_seed():
    """What a failure prints can be played again."""
    for seed in range(20):
        assert make_steps(seed, kinds(seed)) == make_steps(seed, kinds(seed))


@pytest.mark.slow
def test_history_is_the_same_in_each_run():
    """Names of files are drawn from the seed too, so a crash hits the same file."""
    kind = Kind(version=6)
    stories = []
    for _ in range(2):
        violation, counts = outcome_of(7, kind, make_steps(7, kind))
        stories.append((violation and violation.args, counts))
    assert stories[0] == stories[1]
