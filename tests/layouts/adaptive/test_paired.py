"""Comparing agents by what they did on common arenas."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from animalcat.layouts.adaptive.paired import (
    ERROR,
    chance_of_growth,
    compare,
    compare_all,
    log_capital,
    mean_interval,
    p_value,
)


def test_p_values_are_those_of_all_ways_in_which_fair_coins_fall() -> None:
    arenas = 10
    signs = np.array(list(product((1, -1), repeat=arenas)))
    capital = log_capital(np.cumsum(signs > 0, 1), np.cumsum(signs < 0, 1), arenas)
    most = capital.max(axis=1).round(9)
    levels, place = np.unique(most, return_inverse=True)
    chances = np.array([chance_of_growth(arenas, float(level)) for level in levels])
    assert chances.tolist() == [np.mean(most >= level) for level in levels]
    assert np.mean(chances[place] <= ERROR) <= ERROR
    assert p_value(signs[5].tolist()) == chances[place[5]]


def test_what_was_once_told_stays_told_and_ties_tell_nothing() -> None:
    clear = compare([1.0] * 9, 100)
    assert clear.apart
    assert 0.0 <= clear.low < clear.difference == clear.high == 1.0
    assert compare([1.0] * 9 + [-1.0] * 9, 100).p_value == clear.p_value
    assert compare([1.0, 0.0] * 9, 100).p_value == clear.p_value
    mirrored = compare([-1.0] * 9, 100)
    assert (mirrored.p_value, mirrored.high) == (clear.p_value, -clear.low)
    none = compare([], 100)
    assert (none.low, none.high, none.p_value, none.alike) == (-1.0, 1.0, 1.0, False)


def test_agents_are_alike_within_a_margin_that_is_named() -> None:
    equal = [1.0, 0.0, -1.0, 0.0] * 80
    assert compare(equal).verdict == "alike within 10 points"
    assert compare(equal, margin=0.02).verdict == "neither told apart nor alike"
    assert not compare([1.0] + [0.0] * 4).alike
    with pytest.raises(ValueError, match="margin: above 0 and below 1, not 0"):
        compare(equal, margin=0.0)


def test_a_pair_is_told_apart_if_no_grouping_of_agents_explains_it() -> None:
    better, worse = [True] * 8, [False] * 8
    pair = compare([1.0] * 8).p_value
    found = compare_all({"a": better, "b": worse, "c": worse, "d": [None] * 8})
    assert found["a", "b"].p_value == found["a", "c"].p_value == pytest.approx(6 * pair)
    assert found["b", "c"].p_value == 1.0
    assert [one.pairs for one in found.values()] == [8, 8, 0, 8, 0, 0]
    two = compare_all({"a": better, "b": worse})
    assert two["a", "b"].p_value == pair


def test_intervals_hold_at_all_times_together() -> None:
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(20):
        drawn = rng.choice([1.0, 0.0, -1.0], p=[0.35, 0.5, 0.15], size=60).tolist()
        ends = [mean_interval(drawn[:n], ERROR) for n in range(10, 61, 10)]
        missed += any(not low <= 0.2 <= high for low, high in ends)
    assert missed <= 3  # 1 expected at most; 4 or more have a probability of 2 %
    for wrong in (1.5, float("nan")):
        with pytest.raises(ValueError, match="between -1 and 1"):
            mean_interval([wrong], ERROR)
