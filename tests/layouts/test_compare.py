"""Comparing agents: differences and ranks; and layouts, by ArviZ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import arviz
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from animalcat.layouts.checking.compare import (
    AgentStanding,
    Posterior,
    compare_agents,
    few_standings,
)
from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import Profile
from benchmarks.agents import LayoutAgent

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def normal(name: str, mean: float, sd: float, seed: int) -> Posterior:
    draws = np.random.default_rng(seed).normal(mean, sd, (20000, 1))
    return Posterior(name, "d" * 64, ("skill",), ("m",), draws)


def test_a_difference_of_two_normals() -> None:
    found = by_agent([normal("b", 2.5, 0.4, 2), normal("a", 3, 0.3, 1)])["b"].behind
    assert found is not None
    assert (found.agent, found.than, found.node, found.unit) == ("a", "b", "skill", "m")
    assert found.mean == pytest.approx(0.5, abs=0.01)
    assert found.more == pytest.approx(norm.cdf(1.0), abs=0.01)
    half = 1.645 * 0.5
    assert found.hdi == pytest.approx((0.5 - half, 0.5 + half), abs=0.06)
    same = by_agent([normal("a", 3, 0.3, 1), normal("b", 3, 0.3, 1)])["b"].behind
    assert same is not None
    assert (same.mean, same.more) == (0, pytest.approx(0.5))
    assert same.hdi[0] < 0 < same.hdi[1]  # one agent measured twice, not with itself


def by_agent(agents: list[Posterior], **options: Any) -> dict[str, AgentStanding]:
    return {row.agent: row for row in compare_agents(agents, **options)}


def test_a_table_of_ranks() -> None:
    agents = [normal("low", 0, 1, 1), normal("top", 9, 1, 2), normal("mid", 0.5, 1, 3)]
    found = by_agent(agents)
    assert list(found) == ["top", "mid", "low"]
    top, mid, low = found.values()
    assert (top.most, top.ranks, top.behind) == (1.0, (1, 1), None)
    assert mid.ranks == (2, 3)
    assert mid.rank == pytest.approx(3 - norm.cdf(0.5 / math.sqrt(2)), abs=0.02)
    assert sum(row.most for row in found.values()) == pytest.approx(1)
    assert low.behind is not None
    assert (low.behind.agent, low.behind.than) == ("top", "low")
    assert low.behind.mean == pytest.approx(9, abs=0.05)


def test_many_agents_are_put_into_groups_that_can_be_told_apart() -> None:
    means = {"low": 0.0, "top": 9.0, "near": 8.9, "mid": 5.0, "wide": 4.9}
    agents = [normal(name, mean, 0.3, k) for k, (name, mean) in enumerate(means.items())]
    agents[-1] = normal("wide", 4.7, 1.5, 9)
    groups = {name: row.group for name, row in by_agent(agents).items()}
    assert groups == {"top": 1, "near": 1, "mid": 2, "wide": 2, "low": 3}
    many = compare_agents([normal(f"agent {k}", 2.0 * k, 0.1, k) for k in range(40)])
    shown = [row.agent for row in few_standings(many)]
    assert shown == [f"agent {k}" for k in (39, 38, 37, 2, 1, 0)]
    assert few_standings(many[:24]) == many[:24]


def test_only_one_layout_compares() -> None:
    mine = normal("mine", 0, 1, 1)
    with pytest.raises(ValueError, match=r"mine was measured with layout dddd.*yours with eeee"):
        compare_agents([mine, replace(mine, name="yours", layout="e" * 64)])
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_agents([])
    with pytest.raises(ValueError, match="mine: no profile"):
        Posterior.of_profile("mine", {"nodes": {}})


def test_live_posteriors_and_their_profiles_compare_alike(
    aaio: Layout, draw_instances: Draw
) -> None:
    instances = Instances(aaio.feature_names, draw_instances(80, 3))
    found: list[list[Posterior]] = []
    for k, ability in enumerate((1.0, 4.5)):
        agent = LayoutAgent(aaio, np.array([ability, 1.5, 0.0, 0.05]))
        live = LivePosterior(aaio, 1, particles=1000)
        y = agent.outcomes(instances, np.random.default_rng(k))
        for i, row in enumerate(instances.values):
            live.update(row, y[i], i)
        profile = json.loads(Profile.of_live(live).to_json())
        rows = np.random.default_rng(k).choice(len(live.weights), 4000, p=live.weights)
        drawn = Posterior.of_draws(f"agent {k}", aaio, live.particles[rows])
        found.append([drawn, Posterior.of_profile(f"agent {k}", profile)])
    assert [p.approximate for p in found[0]] == [False, True]
    drawn, stood_for = (compare_agents(pair) for pair in zip(*found, strict=True))
    first, other = drawn[1].behind, stood_for[1].behind
    assert first is not None
    assert other is not None
    assert first.more > 0.95
    assert (first.mean, first.more) == pytest.approx((other.mean, other.more), abs=0.05)


@pytest.mark.slow
@pytest.mark.xdist_group("nuts")
def test_fits_of_a_table(aaio: Layout, draw_instances: Draw) -> None:
    """One test for all that needs compiled models: compiling takes longer than the rest."""
    instances = Instances(aaio.feature_names, draw_instances(150, 4))
    agent = LayoutAgent(aaio, np.array([2.0, 1.6, 0.0, 0.02]))
    y = agent.outcomes(instances, np.random.default_rng(4))
    table = OutcomeTable(instances, ("me", "winner"), np.stack([y, np.ones(150)]))
    fits = {
        name: fit(FitRequest(aaio, instances.features(aaio), table.of(name)[1], 1))
        for name in table.agents
    }

    assert all(fitted.converged for fitted in fits.values())
    mine, winners = (fitted.nodes[0] for fitted in fits.values())  # navigationAbility
    assert abs(mine.mean - 2.0) < mine.hdi[1] - mine.hdi[0]
    assert winners.mean > mine.mean

    # NUTS predicts as the live posterior.
    nuts = LayoutAssessor(aaio, 1).fit(instances, y).predict(instances)
    live = LayoutAssessor(aaio, 1, by="live").fit(instances, y).predict(instances)
    assert np.abs(nuts - live).max() < 0.03

    # The layout that made the outcomes predicts them better than one with other slopes.
    flat = load_layout("aaio", "as-printed")
    told = instances.features(flat)
    other = fit(FitRequest(flat, told, y, seed=1))
    found: Any = arviz.compare({"printed": other.to_arviz(), "scaled": fits["me"].to_arviz()})
    assert found.index[0] == "scaled"
