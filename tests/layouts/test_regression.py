"""The regression on the demands, beside which a layout's predictions are judged."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.explaining.regression import RunningRegression


def test_a_regression_knows_nothing_first_and_then_learns() -> None:
    regression = RunningRegression(2)
    generator = np.random.default_rng(1)
    assert regression.forecast(np.array([3.0, np.nan])).tolist() == [0.5, 0.5]
    for _ in range(200):
        x = generator.normal(size=2)
        y = np.array([float(x[0] > 0.0), float(x[1] < 0.0)])
        y[generator.random(2) < 0.2] = np.nan
        x[generator.random(2) < 0.1] = np.nan
        regression.learn(x, y)
    assert regression.forecast(np.array([1.0, 1.0])) == pytest.approx([1.0, 0.0], abs=0.2)
    assert regression.forecast(np.array([-1.0, -1.0])) == pytest.approx([0.0, 1.0], abs=0.2)
    missing = regression.forecast(np.array([np.nan, -1.0]))
    assert missing == pytest.approx([0.5, 1.0], abs=0.25)


def test_what_was_never_observed_is_not_forecast() -> None:
    regression = RunningRegression(2)
    for value in (0.0, 1.0, 2.0):
        regression.learn(np.array([value]), np.array([1.0, np.nan]))
    first, second = regression.forecast(np.array([1.0]))
    assert (first > 0.7, second) == (True, 0.5)
