"""Scores of predictions: exact on small cases, and what they mean on simulated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from animalcat.layouts.checking import scores

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.3, 1.0])), min_size=1)


@given(PAIRS, st.sampled_from([None, 1, 3, 10]))
def test_the_decomposition_is_exact(pairs: list[tuple[float, float]], bins: int | None) -> None:
    p, y = np.array(pairs).T
    parts = scores.murphy(p, y, bins)
    total = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    assert total == pytest.approx(parts.brier, abs=1e-12)
    assert parts.brier == pytest.approx(np.mean((p - y) ** 2))
    assert parts.calibration + parts.refinement == pytest.approx(parts.brier)
    if bins is None:
        assert parts.within == pytest.approx(0, abs=1e-12)
        assert parts.groups == len(set(p.tolist()))


def test_auc_and_r2_by_hand() -> None:
    p, y = [0.9, 0.4, 0.4, 0.1], [1, 1, 0, 0]
    assert scores.auc(p, y) == pytest.approx(3.5 / 4)
    assert scores.auc([0.1, 0.9], [1, 0]) == 0
    assert math.isnan(scores.auc([0.1, 0.9], [1, 1]))
    assert scores.r2([0.5, 0.5], [0.1, 0.9]) == pytest.approx(0)
    assert scores.r2([0.1, 0.9], [0.1, 0.9]) == 1
    assert math.isnan(scores.r2([0.1, 0.9], [0.5, 0.5]))


@pytest.mark.parametrize(
    ("p", "y", "words"),
    [
        ([0.5], [1, 0], "equal lists"),
        ([], [], "equal lists"),
        ([1.2], [1], "prediction 0 is 1.2"),
        ([float("nan")], [1], "prediction 0 is nan"),
        ([0.5, 0.5], [0, 2], "outcome 1 is 2.0"),
    ],
)
def test_bad_input_is_named(p: list[float], y: list[float], words: str) -> None:
    for metric in (scores.brier, scores.auc, scores.r2):
        with pytest.raises(ValueError, match=words):
            metric(p, y)
    with pytest.raises(ValueError, match="take `r2`"):
        scores.auc([0.5], [0.5])
    with pytest.raises(ValueError, match="0 bins"):
        scores.murphy([0.5], [1], bins=0)


def test_the_reliability_curve_of_a_true_prediction_is_the_diagonal() -> None:
    generator = np.random.default_rng(3)
    p = generator.uniform(size=4000)
    y = (generator.uniform(size=4000) < p).astype(float)
    curve = scores.reliability_curve(p, y)
    assert sum(point.count for point in curve) == 4000
    inside = [point.low <= point.predicted <= point.high for point in curve]
    assert sum(inside) >= 8  # of ten 90 % intervals
    assert scores.murphy(p, y).reliability < 0.002
    squeezed = 0.25 + p / 2
    assert scores.murphy(squeezed, y).reliability > 0.015
    sure = scores.reliability_curve([0.05] * 5, [0] * 5)
    assert (sure[0].low, sure[0].observed) == (0, 0)
    assert 0 < sure[0].high < 0.5


def test_bootstrap_intervals_cover() -> None:
    """The 90 % interval of the Brier score holds the expected score in about 90 % of repeats."""
    truth = np.linspace(0.05, 0.95, 150)
    expected = float(np.mean(truth * (1 - truth)))
    hits = 0
    for seed in range(100):
        y = (np.random.default_rng([7, seed]).uniform(size=150) < truth).astype(float)
        found = scores.bootstrap(scores.brier, truth, y, seed, repeats=100)
        assert found.low <= found.value <= found.high
        hits += found.low <= expected <= found.high
    assert 80 <= hits <= 98
