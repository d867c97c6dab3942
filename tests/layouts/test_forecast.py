"""Predictions for what was not played, against exact sums over its outcomes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from animalcat.layouts.checking.forecast import DRAWS, forecast
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout

LAYOUT = load_layout("one-capability")
RNG = np.random.default_rng(3)
THETA = np.stack([10.0 * RNG.beta(2, 3, DRAWS), RNG.beta(1, 9, DRAWS)], axis=1)
FEATURES = np.linspace(0.5, 9.5, 12)[:, np.newaxis]


def expected_variance(rows: tuple[int, ...]) -> float:
    """Of the ability, once the outcomes of some instances are known, by all their outcomes."""
    p = Evaluator(LAYOUT).probability(THETA, FEATURES[list(rows)])
    total = 0.0
    for outcomes in itertools.product((0.0, 1.0), repeat=len(rows)):
        weight = np.where(np.array(outcomes), p, 1.0 - p).prod(axis=1)
        chance = weight.mean()
        mean = weight @ THETA[:, 0] / weight.sum()
        total += chance * float(weight @ (THETA[:, 0] - mean) ** 2 / weight.sum())
    return total


def test_the_first_instance_tells_most_and_exactly_what_is_said() -> None:
    found = forecast(LAYOUT, THETA, FEATURES, ["all"] * 12, most=3)
    exact = [expected_variance((row,)) for row in range(12)]
    first, second, _ = found.telling
    assert first.row == int(np.argmin(exact))
    assert first.before == pytest.approx(THETA[:, 0].std())
    assert first.after**2 == pytest.approx(min(exact))
    # Of two outcomes the best guess is not linear, so it says a little less than is true.
    both = expected_variance((first.row, second.row))
    assert both <= second.after**2 + 1e-9
    assert second.after**2 == pytest.approx(both, rel=0.03)
    assert second.before == first.after


def test_what_was_played_is_not_proposed() -> None:
    first = forecast(LAYOUT, THETA, FEATURES, ["all"] * 12, most=1).telling[0].row
    again = forecast(LAYOUT, THETA, FEATURES, ["all"] * 12, most=12, without={first})
    rows = [one.row for one in again.telling]
    assert first not in rows
    assert len(rows) == len(set(rows)) == 11
    assert forecast(LAYOUT, THETA, FEATURES, ["all"] * 12, without=range(12)).telling == []


def test_numbers_of_instances_allow_for_luck() -> None:
    groups = ["easy"] * 6 + ["hard"] * 6
    found = forecast(LAYOUT, THETA, FEATURES, groups)
    p = Evaluator(LAYOUT).probability(THETA, FEATURES)
    played = RNG.uniform(size=(200, *p.shape)) < p
    for estimate, rows in ((found.passed, slice(None)), (found.groups["hard"], slice(6, None))):
        counts = played[:, :, rows].sum(axis=2)
        assert estimate.value == pytest.approx(counts.mean(), abs=0.05)
        low, high = np.quantile(counts, [0.05, 0.95])
        assert abs(estimate.low - low) <= 1
        assert abs(estimate.high - high) <= 1
    assert found.groups["easy"].value > found.groups["hard"].value
