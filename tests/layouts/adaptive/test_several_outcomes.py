"""Layouts with several outcomes an instance: posterior, selection, alarm and bound take all."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.information import GainEstimator
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from animalcat.layouts.watching.alarm import log_factors

Floats = npt.NDArray[np.float64]
NAN = float("nan")

ONE = load_layout("one-capability", "trials")
NAVIGATION = load_layout("navigation-speed")


def with_outcomes(outcomes: dict[str, Any]) -> Layout:
    """`ONE` with other outcomes of the same nodes."""
    data = to_dict(ONE)
    del data["outcome"]
    return from_dict({**data, "outcomes": outcomes})


COUNT = {"kind": "count", "probability": "taskPerformance", "trials": "trials"}
EASIER = {"kind": "choice", "probability": "performance"}
TWO = with_outcomes({"count": COUNT, "first": EASIER})
SPREAD = np.array([[d, t] for d in (1.0, 3.0, 5.0, 8.0) for t in (1.0, 3.0)])


def knowledge_of(layout: Layout, particles: int = 2000) -> LivePosterior:
    """A posterior after a count at each of two instances."""
    posterior = LivePosterior(layout, 3, particles)
    for episode, (row, y) in enumerate((([4.0, 3.0], 2.0), ([6.0, 2.0], 0.0)), 1):
        posterior.update(row, y if len(layout.outcomes) == 1 else (y, NAN), episode)
    return posterior


def test_it_is_the_posterior_of_several_outcomes() -> None:
    evaluator = Evaluator(NAVIGATION)
    truth = [[25.0, 6.0, 0.1, 30.0]]
    g = np.random.default_rng(1)
    features = np.column_stack([g.uniform(2, 50, 20), g.uniform(5, 40, 20)])
    y = evaluator.simulate(truth, evaluator.columns(features), g)[:, 0]
    y[y[:, 0] == 0.0, 1] = NAN  # not passed
    y[::5, 0] = np.where(np.isnan(y[::5, 1]), y[::5, 0], NAN)
    z = g.standard_normal((150_000, 4))
    theta = np.column_stack(
        [n.prior.from_standard(z[:, i]) for i, n in enumerate(NAVIGATION.latents)]
    )
    log_likelihood = evaluator.log_likelihood(theta, evaluator.columns(features), y)
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    assert 1.0 / np.sum(weights**2) > 700
    mean = weights @ theta
    sd = np.sqrt(weights @ (theta - mean) ** 2)
    each, at_once = LivePosterior(NAVIGATION, 1), LivePosterior(NAVIGATION, 1)
    for i, row in enumerate(features):
        each.update(row, y[i].tolist(), i + 1)
    at_once.update_all(features, y)
    for posterior in (each, at_once):
        nodes = posterior.summary()
        assert (np.abs([n.mean for n in nodes] - mean) / sd).max() < 0.12
        assert np.abs(np.log([n.sd for n in nodes] / sd)).max() < 0.12


def exactly(posterior: LivePosterior, layout: Layout, row: Floats) -> tuple[Floats, float]:
    """Expected drop of variance of every capability, going through all outcomes; and their sum."""
    evaluator = Evaluator(layout)
    columns = evaluator.columns([row])
    values = [[*map(float, range(int(row[1]) + 1))], [0.0, 1.0]]
    ability = posterior.particles[:, list(layout.capabilities)]
    mean = posterior.weights @ ability
    drop, total = np.zeros(ability.shape[1]), 0.0
    for y in product(*values):
        like = np.exp(evaluator.pointwise(posterior.particles, columns, np.array([y]))[0])
        joint = posterior.weights * like
        drop += joint.sum() * (joint @ ability / joint.sum() - mean) ** 2
        total += joint.sum()
    return drop, total


def test_drops_are_those_of_all_outcomes_together() -> None:
    posterior = knowledge_of(TWO)
    bank = Bank(TWO, SPREAD, ["p"] * len(SPREAD))
    found = GainEstimator(bank).scores(posterior)
    alone = [
        GainEstimator(
            Bank(TWO, SPREAD, ["p"] * len(SPREAD), observes=np.tile(mask, (len(SPREAD), 1)))
        ).scores(posterior)
        for mask in ([True, False], [False, True])
    ]
    for i, row in enumerate(SPREAD):
        wanted, total = exactly(posterior, TWO, row)
        assert total == pytest.approx(1.0)
        # Half of the particles, and a linear guess, which has nearly all of it.
        assert found.drops[i] == pytest.approx(wanted, rel=0.2)
        assert found.total[i] >= max(one.total[i] for one in alone) * (1.0 - 1e-9)
    np.testing.assert_allclose(found.predicted, alone[0].predicted)


def test_information_of_all_outcomes_together() -> None:
    posterior = knowledge_of(TWO)
    whole = GainEstimator(Bank(TWO, SPREAD, ["p"] * len(SPREAD)))
    both = whole.information(posterior, [0])
    for mask in ([True, False], [False, True]):
        bank = Bank(TWO, SPREAD, ["p"] * len(SPREAD), observes=np.tile(mask, (len(SPREAD), 1)))
        assert (both >= GainEstimator(bank).information(posterior, [0]) - 1e-12).all()
    # Scores among them: outcomes are drawn, and the sum is near what it is for many of them.
    live = LivePosterior(NAVIGATION, 2)
    rows = np.array([[10.0, 10.0], [30.0, 10.0], [50.0, 100.0]])
    gained = GainEstimator(Bank(NAVIGATION, rows, ["p"] * 3)).information(live, [0, 1])
    success = np.tile([True, False], (3, 1))
    less = GainEstimator(Bank(NAVIGATION, rows, ["p"] * 3, observes=success)).information(
        live, [0, 1]
    )
    assert (gained > less).all()


def test_no_stake_is_expected_to_grow() -> None:
    posterior, evaluator = knowledge_of(TWO), Evaluator(TWO)
    columns = evaluator.columns([[4.0, 2.0]])
    g = np.random.default_rng(7)
    drawn = posterior.particles[g.choice(2000, 3000, p=posterior.weights)]
    y = evaluator.simulate(drawn, columns, g)[0]
    y[:500, 1] = NAN
    y[500:700, 0] = NAN
    stakes = np.exp(
        [log_factors(posterior, evaluator, columns, each, i) for i, each in enumerate(y.tolist())]
    )
    error = stakes.std(axis=0) / np.sqrt(len(stakes))
    assert (np.abs(stakes.mean(axis=0) - 1.0) < 4.0 * error).all()


def test_earlier_outcomes_of_an_episode_change_what_is_predicted_of_later_ones() -> None:
    posterior, evaluator = knowledge_of(TWO), Evaluator(TWO)
    columns = evaluator.columns([[4.0, 3.0]])
    both = log_factors(posterior, evaluator, columns, [3.0, 1.0], 9)
    count = log_factors(posterior, evaluator, columns, [3.0, NAN], 9)
    then = knowledge_of(TWO)
    then.update([4.0, 3.0], [3.0, NAN], 9)
    assert then.moves == posterior.moves
    first = log_factors(then, evaluator, columns, [NAN, 1.0], 9)
    np.testing.assert_allclose(both, count + first, rtol=1e-9)


def test_an_outcome_that_the_layout_gets_wrong_raises_the_alarm() -> None:
    g = np.random.default_rng(8)
    features = np.column_stack([g.uniform(2, 50, 40), g.uniform(10, 60, 40)])
    evaluator = Evaluator(NAVIGATION)
    columns = evaluator.columns(features)
    truth = [[30.0, 6.0, 0.05, 60.0]]
    fine = evaluator.simulate(truth, columns, g)[:, 0]
    strange = fine.copy()
    strange[::2, 1] = np.clip(strange[::2, 1] * 0.4, 0.02, 0.98)  # slow in half of the arenas
    standing: list[bool] = []
    bank = Bank(NAVIGATION, features, ["slow", "fast"] * 20)
    for y in (fine, strange):
        learner = Learner(bank, seed=3)
        for i, name in enumerate(bank.names):
            learner.tell(name, y[i].tolist(), i)
        standing.append(learner.contradicted)
    assert standing == [False, True]
