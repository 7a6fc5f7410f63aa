import random
from itertools import islice

import pytest

from relaax.client.connector import Backoff


def test_pauses_grow_up_to_the_maximum() -> None:
    backoff = Backoff(initial_s=1, factor=3, max_s=10, jitter=0)
    assert list(islice(backoff.pauses(random.Random(0)), 5)) == [1, 3, 9, 10, 10]


def test_jitter_shortens_each_pause_by_a_random_part() -> None:
    backoff = Backoff(initial_s=1, factor=1, max_s=1, jitter=0.5)
    pauses = list(islice(backoff.pauses(random.Random(0)), 200))
    assert all(0.5 <= pause <= 1 for pause in pauses)
    assert max(pauses) - min(pauses) > 0.4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial_s": -1}, "initial_s"),
        ({"initial_s": 9, "max_s": 8}, "initial_s <= max_s, got 9 and 8"),
        ({"factor": 0.5}, "factor must be at least 1, is 0.5"),
        ({"jitter": 1.5}, "jitter must be between 0 and 1, is 1.5"),
        ({"attempts": 0}, "attempts must be at least 1, is 0"),
    ],
)
def test_impossible_numbers_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Backoff(**arguments)
