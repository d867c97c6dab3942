"""Repeats count as much as the agent is random, and no more."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from animalcat.layouts.adaptive.retest import DeterminismPrior, Retest, learnt_prior
from animalcat.layouts.inference.backend.graph import WEIGHTS, build_model
from animalcat.layouts.inference.certificate import certify
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout


def after_pairs(determinism: float, count: int, seed: int = 0) -> Retest:
    generator = np.random.default_rng(seed)
    retest = Retest()
    for p in generator.uniform(0.1, 0.9, count):
        first, anew = generator.uniform(size=2) < p
        second = first if generator.uniform() < determinism else anew
        retest.update(bool(first == second), float(p if second else 1.0 - p))
    return retest


@pytest.mark.parametrize("determinism", [0.0, 0.5, 1.0])
def test_determinism_is_found(determinism: float) -> None:
    retest = after_pairs(determinism, 400)
    assert retest.determinism == pytest.approx(determinism, abs=0.1)
    assert retest.sd < 0.1
    assert retest.pairs == 400


def test_a_fresh_instance_counts_as_one_and_repeats_as_the_design_effect_says() -> None:
    half = after_pairs(0.5, 5000)
    counted = half.weights(np.arange(4))
    assert counted[0] == 1.0
    # k / (1 + (k - 1) / 2) is 1, 4/3, 3/2 and 8/5.
    np.testing.assert_allclose(np.cumsum(counted), [1.0, 4 / 3, 3 / 2, 8 / 5], atol=0.03)
    np.testing.assert_allclose(after_pairs(0.0, 2000).weights([0, 1, 5]), 1.0, atol=0.12)


def test_all_repeats_of_a_deterministic_agent_together_count_less_than_one_outcome() -> None:
    """Weighted by what is known in the end; and next to nothing after ten pairs."""
    assert 0.0 < Retest().weights([1])[0] < 0.5
    retest = Retest()
    for pairs in range(1, 51):
        retest.update(same=True, chance=0.5)
        assert pairs * retest.weights([1])[0] < 0.75
    assert retest.weights([1])[0] < 0.001


def posterior(layout: Layout, weights: list[float]) -> LivePosterior:
    made = LivePosterior(layout, 4, particles=500)
    generator = np.random.default_rng(1)
    low, high = np.array([[f.low, f.high] for f in layout.features]).T
    for k, weight in enumerate(weights):
        share = 0.5 * generator.random(len(low))
        made.update(low + (high - low) * share, bool(share[0] < 0.3), k, weight)
    return made


def test_a_weight_is_a_power_of_the_likelihood_before_and_after_moves(aaio: Layout) -> None:
    """Importance sampling from the prior is the yardstick."""
    weights = [1.0, 0.25] * 20
    made = posterior(aaio, weights)
    assert made.moves > 0
    z = np.random.default_rng(0).standard_normal((200_000, len(aaio.latents)))
    theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(aaio.latents)], axis=1)
    evaluator = Evaluator(aaio)
    columns = evaluator.columns([t.features for t in made.tells])
    outcomes = np.array([t.outcome for t in made.tells])
    logs = np.array(weights) @ evaluator.pointwise(theta, columns, outcomes)
    np.testing.assert_allclose(
        evaluator.log_likelihood(theta, columns, outcomes, np.array(weights)), logs, rtol=1e-9
    )
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    for i, node in enumerate(made.summary()):
        mean = shares @ theta[:, i]
        assert node.mean == pytest.approx(mean, abs=0.25 * node.sd)
        sd = np.sqrt(shares @ (theta[:, i] - mean) ** 2)
        assert node.sd == pytest.approx(sd, rel=0.15)


def test_counted_anew_is_as_if_told_so(aaio: Layout) -> None:
    """Before a move to the last bit of rounding; after one within what moves leave to chance."""
    told, anew = posterior(aaio, [1.0, 0.5, 0.25]), posterior(aaio, [1.0, 1.0, 0.0])
    assert told.moves == anew.moves == 0
    anew.reweigh([1.0, 0.5, 0.25])
    assert anew.tells == told.tells
    np.testing.assert_allclose(anew.weights, told.weights, rtol=1e-9)
    weights = [1.0, 0.25] * 20
    told, anew = posterior(aaio, weights), posterior(aaio, [1.0] * 40)
    anew.reweigh(weights)
    for one, other in zip(told.summary(), anew.summary(), strict=True):
        assert other.mean == pytest.approx(one.mean, abs=0.3 * one.sd)
        assert other.sd == pytest.approx(one.sd, rel=0.2)


@pytest.mark.slow
@pytest.mark.xdist_group("nuts")
def test_nuts_gives_repeats_the_same_weights(aaio: Layout) -> None:
    """The live posterior and the fit of the same weighted outcomes are certified."""
    made = posterior(aaio, [1.0, 0.25] * 30)
    live = LivePosterior(aaio, 4, particles=4000)
    for tell in made.tells:
        live.update(tell.features, tell.outcome, tell.episode, tell.weight)
    features, outcomes = [t.features for t in made.tells], [t.outcome for t in made.tells]
    weights = [t.weight for t in made.tells]
    fitted = fit(FitRequest(aaio, features, outcomes, 1, weights=weights))
    assert fitted.converged
    assert certify(live.summary(), fitted).passed
    assert "30 of 60 outcomes are repeats" in fitted.diagnostics["notes"][0]
    assert "count as 37.5" in fitted.diagnostics["notes"][0]


@pytest.mark.xdist_group("nuts")
@pytest.mark.parametrize("variant", ["trials", "score"])
def test_the_graph_weighs_outcomes_of_every_kind(variant: str) -> None:
    """The model's log density is linear in the weights; with weights of 1 it is the plain one."""
    layout = load_layout("one-capability", variant)
    features = np.array([[f.high * share for f in layout.features] for share in (0.2, 0.6)])
    outcomes = np.array([0.3, 0.8]) if variant == "score" else np.array([1.0, 0.0])
    plain, graph = build_model(layout), build_model(layout, weighted=True)
    density, point = graph.model.compile_logp(), graph.model.initial_point()

    def at(weights: list[float]) -> float:
        with graph.model:
            pm.set_data({**graph.data(features, outcomes), WEIGHTS: np.array(weights)})
        return float(density(point))

    none, whole, part = at([0.0, 0.0]), at([1.0, 1.0]), at([1.0, 0.25])
    first = at([1.0, 0.0]) - none
    assert part - none == pytest.approx(first + 0.25 * (whole - none - first))
    with plain.model:
        pm.set_data(plain.data(features, outcomes))
    assert whole == pytest.approx(float(plain.model.compile_logp()(point)))


def test_a_prior_of_earlier_agents_saves_repeats() -> None:
    """Where half act at random and half deterministically, one disagreement says which."""
    halves = DeterminismPrior(0.5, 0.5)
    known, unknown = Retest(halves), Retest()
    assert known.determinism == pytest.approx(0.5)
    for retest in (known, unknown):
        retest.update(same=False, chance=0.5)
    assert known.weights([1])[0] > 0.99 > unknown.weights([1])[0]
    assert known.sd < 0.01 < unknown.sd


def test_shares_above_a_whole_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1"):
        DeterminismPrior(0.7, 0.5)


def test_the_shares_of_earlier_agents_are_learnt() -> None:
    g = np.random.default_rng(4)

    def pairs(deterministic: bool) -> list[tuple[bool, float]]:
        anew = g.random(12) < 0.5
        return [(True if deterministic else bool(one), 0.5) for one in anew]

    found = learnt_prior([pairs(i < 6) for i in range(24)])
    assert found.deterministic == pytest.approx(0.25, abs=0.1)
    assert found.random > 0.5
    none = learnt_prior([])
    assert none.random == pytest.approx(1 / 3, abs=0.01)
    assert none.deterministic == pytest.approx(1 / 3, abs=0.01)
