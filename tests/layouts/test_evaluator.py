"""The compiled evaluator on the shipped layouts, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout, from_dict, to_dict

HIDDEN = [1.0, 0.0, 1.0, 10.0, 2.0, -1.0, 1.0, 2.0, 5.0]
PLAIN = [0.0, 1.0, 0.0, 20.0, 0.5, 0.0, 0.0, math.nan, math.nan]
AGENT = [20.0, 2.5, 3.0, 0.5, 0.6, 0.7, 30.0, 0.5, 0.2]


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def test_aaio_by_hand(aaio: Layout) -> None:
    theta = [[3.0, 1.0, 0.5, 0.2]]
    features = [[20.0, 1.0, 1.0, -1.0]]
    navigation = 1 / (1 + math.exp(-6.9 / 5.3 * (3.0 - 2.0 * 1.5 - 0.5)))
    visual = 1 / (1 + math.exp(-6.9 / 1.9 * (1.0 - 1.9 * math.log10(5.0))))
    expected = 0.8 * navigation * visual + 0.2 * 0.5
    assert Evaluator(aaio).probability(theta, features)[0, 0] == pytest.approx(expected, abs=1e-12)


def test_wrong_shapes_say_what_is_wanted(aaio: Layout) -> None:
    with pytest.raises(ValueError, match="navigationAbility, visualAbility"):
        Evaluator(aaio).probability([[1.0, 2.0]], [[10.0, 1.0, 0.0, 0.0]])


def test_object_permanence_by_hand() -> None:
    layout = load_layout("object-permanence")
    left, right = ([*AGENT[:7], bias, 0.2] for bias in (-0.5, 0.5))
    got = Evaluator(layout).probability([right, left], [HIDDEN, PLAIN])
    memory = logistic(27.6 / 4.4 * (2.5 - 2.0))
    tracking = logistic(27.6 / 48.4 * (20.0 - 4 * 5))
    navigation = 0.5 * 0.7 * logistic(27.6 / 61.6 * (30.0 - 10.0))
    hidden = memory * tracking * navigation * logistic(27.6 / 6 * (3.0 - (5.0 - 2.0)))
    plain = 0.6 * logistic(27.6 / 61.6 * (30.0 - 20.0)) * logistic(27.6 / 6 * (3.0 - (5.0 - 0.5)))
    # The hidden reward is on the left, the plain one ahead; half of the trials go to one's side.
    wanted = [
        [0.8 * 0.5 * hidden + 0.1, 0.8 * 0.75 * plain + 0.1],
        [0.8 * hidden + 0.1, 0.8 * 0.75 * plain + 0.1],
    ]
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_the_base_chance_of_melting_pot_counts_for_every_absent_demand() -> None:
    agent = [[0.5, 0.6, 0.7, 0.8, 0.9, 0.4, 0.3, 0.95, 10.0]]
    demands = [[0] * 7, [1, 0, 0, 0, 0, 0, 1]]
    printed = Evaluator(load_layout("melting-pot")).probability(agent, demands)[0]
    np.testing.assert_allclose(printed, [0.95**7, 0.5 * 0.3 * 0.95**5])
    once = Evaluator(load_layout("melting-pot", "base-once")).probability(agent, demands)[0]
    np.testing.assert_allclose(once, [0.95, 0.95 * 0.5 * 0.3])


def test_drawn_outcomes_have_the_mean_and_the_range_that_the_layout_says() -> None:
    for name, variant, agent, row in (
        ("one-capability", "success", [5.0, 0.2], [4.0]),
        ("one-capability", "trials", [5.0, 0.2], [4.0, 12.0]),
        ("one-capability", "score", [5.0, 3.0], [4.0]),
    ):
        layout = load_layout(name, variant)
        evaluator = Evaluator(layout)
        features = np.tile(row, (20_000, 1))
        columns = evaluator.columns(features)
        drawn = evaluator.simulate([agent], columns, np.random.default_rng(0))[:, 0]
        assert (layout.check_outcomes(drawn, features) == drawn).all()
        trials = row[1] if variant == "trials" else 1.0
        p = evaluator.probability([agent], [row])[0, 0]
        assert drawn.mean() / trials == pytest.approx(p, abs=0.01)
        if variant == "score":
            sizes = evaluator.sample_sizes([agent], columns)
            assert sizes is not None
            assert (sizes == 3.0).all()
            assert drawn.var() == pytest.approx(p * (1 - p) / 4.0, rel=0.03)


def test_the_steepest_slopes_are_exact_where_ability_and_demand_meet() -> None:
    data = to_dict(load_layout("one-capability"))
    data["derived"]["performance"]["link"]["logistic_margin"]["slope"] = 1000.0
    p = Evaluator(from_dict(data)).probability([[9.0, 0.0]], [[9.001], [8.999], [1.0]])[0]
    np.testing.assert_allclose(p, [logistic(-1.0), logistic(1.0), 1.0], atol=1e-9)
