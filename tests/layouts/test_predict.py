"""Forward inference from draws, held-out splits, and layouts as assessors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.checking import scores
from animalcat.layouts.checking.checks import posterior_predictive
from animalcat.layouts.checking.predict import (
    LayoutAssessor,
    as_shares,
    predict,
    predict_held_out,
    split,
    splits,
)
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from benchmarks.agents import LayoutAgent

Floats = npt.NDArray[np.float64]


def test_predictions_are_means_and_quantiles_of_draws(
    aaio: Layout, draw_instances: Callable[[int, int], Floats]
) -> None:
    features = draw_instances(2500, 1)  # more than are predicted at once
    generator = np.random.default_rng(1)
    draws = np.column_stack(
        [node.prior.from_standard(generator.standard_normal(201)) for node in aaio.latents]
    )
    p = Evaluator(aaio).probability(draws, features)
    found = predict(aaio, draws, features)
    assert found.mean == pytest.approx(p.mean(axis=0))
    low, high = np.quantile(p, [0.05, 0.95], axis=0, method="inverted_cdf")
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    # Weights are as good as draws that often.
    twice = predict(aaio, np.concatenate([draws, draws[:50]]), features[:9])
    weighted = predict(aaio, draws, features[:9], np.r_[np.full(50, 2.0), np.ones(151)])
    for name in ("mean", "low", "high"):
        assert getattr(weighted, name) == pytest.approx(getattr(twice, name))


def test_a_layout_predicts_its_own_agents_nearly_as_well_as_can_be(
    aaio: Layout, draw_instances: Callable[[int, int], Floats]
) -> None:
    instances = Instances(aaio.feature_names, draw_instances(300, 2))
    agent = LayoutAgent(aaio, np.array([2.5, 1.7, 0.0, 0.05]))
    y = agent.outcomes(instances, np.random.default_rng(2))
    p = agent.probability(instances)
    ours = predict_held_out(LayoutAssessor(aaio, 1, by="live"), instances, y, splits(300, 3, 3))
    means = [np.full(len(one.test), y[one.train].mean()) for one in splits(300, 3, 3)]
    # Compared with the probabilities, so that luck with the outcomes plays no part. As good as
    # knowing every probability would be 0.
    truth = p[ours.rows]
    ratio = scores.brier(ours.predicted, truth) / scores.brier(np.concatenate(means), truth)
    assert ratio < 0.1
    assert (ours.repeat == np.repeat([0, 1, 2], 60)).all()
    assert (ours.outcomes == y[ours.rows]).all()


def test_what_takes_one_outcome_says_so_and_predictions_are_of_any() -> None:
    layout = load_layout("navigation-speed")
    draws = np.array([[40.0, 8.0, 0.1, 60.0]])
    features = np.array([[20.0, 10.0]])
    assert predict(layout, draws, features, outcome=1).mean == pytest.approx([0.75])
    instances = Instances(layout.feature_names, features)
    for refused in (
        lambda: LayoutAssessor(layout, 0).fit(instances, np.ones(1)),
        lambda: as_shares(layout, [[1.0, 0.5]], features),
        lambda: posterior_predictive(layout, draws, features, [[1.0, 0.5]], 0),
    ):
        with pytest.raises(ValueError, match=r"2 outcomes \(reached, timeLeft\); this"):
            refused()


def test_splits() -> None:
    once = split(2188, seed=1)
    assert len(once.test) == 438
    assert sorted([*once.train, *once.test]) == list(range(2188))
    assert (split(2188, seed=1).test == once.test).all()
    many = list(splits(69, seed=4, repeats=15))
    assert len({tuple(part.test) for part in many}) == 15
    assert all(len(part.test) == 14 for part in many)
    # Each instance is held out about three times in fifteen.
    assert np.bincount(np.concatenate([p.test for p in many]), minlength=69).max() <= 9

    for instances, share in ((1, 0.2), (10, 0.0), (10, 1.0)):
        with pytest.raises(ValueError, match="cannot be split"):
            split(instances, 1, share)
