"""Unity's generator against numbers known from the real build."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.draws import UnityDraws, UnityRandom


@pytest.mark.parametrize(("seed", "heading"), [(2023, 160.0709), (0, 149.7097)])
def test_first_headings_of_the_real_build(seed: int, heading: float) -> None:
    assert UnityRandom(seed).uniform(0.0, 360.0) == pytest.approx(heading, abs=5e-5)


def test_words_of_a_seed_follow_from_each_other() -> None:
    first, second, third, last = UnityRandom(5).state
    assert (first, second) == (5, (5 * 1812433253 + 1) % 2**32)
    assert (third, last) == tuple((1812433253 * w + 1) % 2**32 for w in (second, third))
    assert UnityRandom(-1).state == UnityRandom(2**32 - 1).state


def test_numbers_are_of_single_precision_and_within_their_range() -> None:
    random = UnityRandom(1)
    drawn = [random.uniform(0.5, 39.5) for _ in range(2000)]
    assert all(0.5 <= value <= 39.5 and float(np.float32(value)) == value for value in drawn)
    assert np.mean(drawn) == pytest.approx(20.0, abs=1.0)
    assert random.uniform(0.0, 0.0) == 0.0
    assert {random.integers(3) for _ in range(50)} == {0, 1, 2}


def test_what_is_drawn_elsewhere_leaves_the_stream_be() -> None:
    draws = UnityDraws(4)
    before = draws.random.state
    assert draws.aside().random() == draws.aside().random()
    assert draws.random.state == before
