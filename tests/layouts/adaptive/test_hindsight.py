"""An alarm stands while the layout fails on what it knows, and not because an agent is rare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.watching.alarm import Alarm, ScoredPrediction, log_factors
from animalcat.layouts.watching.hindsight import LEVEL, Belief, fails
from animalcat.layouts.watching.strata import stratifications
from benchmarks.agents import LayoutAgent
from benchmarks.synthetic import op_battery, synthetic_agents

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
OP = load_layout("object-permanence")
BATTERY = op_battery(0)
HALVES: Ints = np.arange(60) % 2


def watch_it(truth: Floats, episodes: int = 150) -> tuple[bool, bool]:
    """Whether the alarm was raised, and stands, after random instances of the OP battery."""
    generator = np.random.default_rng(4)
    evaluator = Evaluator(OP)
    columns = evaluator.columns(BATTERY.features(OP))
    posterior = LivePosterior(OP, 1, particles=1000)
    alarm = Alarm(stratifications(BATTERY.paradigms, {}))
    rows = generator.permutation(len(BATTERY))[:episodes]
    outcomes = (generator.random(episodes) < truth[rows]).astype(np.float64)
    for episode, (row, y) in enumerate(zip(rows.tolist(), outcomes.tolist(), strict=True), 1):
        factors = log_factors(posterior, evaluator, columns[[row]], y, episode)
        predicted = (
            posterior.weights
            @ evaluator.by_instance(posterior.particles, columns[[row]], np.float64)[0]
        )
        alarm.update(row, factors, ScoredPrediction(float(predicted), y))
        posterior.update(columns[row, : len(OP.features)], y, episode)
    stands = alarm.standing
    if stands is None:
        stands = alarm.fails(belief_of(posterior), evaluator, columns[rows], outcomes, rows)
    return alarm.raised, stands


def test_an_able_agent_is_described_and_no_surprise() -> None:
    able = [*(0.95 * node.prior.high for node in OP.latents[:7]), 0.0, 0.02]
    assert watch_it(LayoutAgent(OP, np.array(able)).probability(BATTERY)) == (False, False)


def test_one_that_never_fails_is_described_too() -> None:
    """The layout expects a few failures of anybody: that is seen, and does not matter."""
    assert watch_it(np.ones(len(BATTERY))) == (True, False)


@pytest.mark.parametrize("number", [25, 29])
def test_an_agent_that_acts_by_the_apparatus_is_not_described(number: int) -> None:
    agent = next(agent for agent in synthetic_agents() if agent.number == number)
    assert watch_it(agent.probability(BATTERY)) == (True, True)


def belief_of(posterior: LivePosterior) -> Belief:
    return Belief(posterior.particles, posterior.weights)


def fails_on(
    layout: Layout, seed: int, able: npt.NDArray[np.bool_] | None = None, strata: Ints = HALVES
) -> bool:
    """Whether the layout fails on 60 outcomes of an agent of the prior, or of one or another."""
    generator = np.random.default_rng(seed)
    low, high = np.array([[f.low, f.high] for f in layout.features]).T
    features = low + (high - low) * generator.random((60, len(low)))
    for k, feature in enumerate(layout.features):
        if feature.name == "trials":
            features[:, k] = 8.0
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)

    def outcomes_of(z: Floats) -> Floats:
        nodes = [n.prior.from_standard(z[i : i + 1]) for i, n in enumerate(layout.latents)]
        return evaluator.simulate(np.stack(nodes, axis=1), columns, generator)[:, 0]

    z = generator.standard_normal(len(layout.latents))
    outcomes = outcomes_of(z)
    if able is not None:
        z[:] = [1.5, -1.5]  # able, and little noise
        other = z.copy()
        other[layout.capabilities[0]] = -1.5
        outcomes = np.where(able, outcomes_of(z), outcomes_of(other))
    posterior = LivePosterior(layout, seed, particles=500)
    posterior.update_all(features, outcomes)
    return fails(belief_of(posterior), evaluator, columns, outcomes, [[strata]])


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["success", "trials", "score"])
def test_agents_of_the_layout_are_described(variant: str) -> None:
    layout = load_layout("one-capability", variant)
    assert np.mean([fails_on(layout, seed) for seed in range(60)]) <= LEVEL


@pytest.mark.parametrize("variant", ["success", "trials", "score"])
def test_one_who_is_able_in_one_stratum_alone_is_not(variant: str) -> None:
    layout = load_layout("one-capability", variant)
    assert np.mean([fails_on(layout, seed, HALVES == 1) for seed in range(6)]) >= 0.8


def test_one_who_changes_is_not() -> None:
    """Parts of the session are looked at as strata are."""
    layout = load_layout("one-capability", "trials")
    assert np.mean([fails_on(layout, seed, np.arange(60) < 30) for seed in range(6)]) >= 0.8


def test_a_single_unlikely_outcome_is_no_misfit() -> None:
    layout = load_layout("one-capability", "success")
    posterior, evaluator = LivePosterior(layout, 0, particles=500), Evaluator(layout)
    features = np.zeros((40, len(layout.features)))
    outcomes = np.ones(40)
    outcomes[20] = 0.0
    posterior.update_all(features, outcomes)
    alone = (np.arange(40) == 20).astype(np.int64)
    assert not fails(
        belief_of(posterior), evaluator, evaluator.columns(features), outcomes, [[alone]]
    )


def test_without_outcomes_nothing_fails(aaio: Layout) -> None:
    posterior, evaluator = LivePosterior(aaio, 0, particles=500), Evaluator(aaio)
    columns = evaluator.columns(np.empty((0, len(aaio.features))))
    assert not fails(belief_of(posterior), evaluator, columns, np.empty(0), [])
