"""Comparing agents: differences, ranks and trajectories; and layouts, by PSIS-LOO."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from animalcat.layouts.checking.compare import (
    Posterior,
    every_difference,
    node_differences,
    plot_trajectory,
    ranking,
    standings,
    superiority,
    trajectory,
)
from animalcat.layouts.checking.loo import Loo, compare_layouts, loo
from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.checking.side_by_side import cluster_rows, compare_agents, rank_rows
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.posterior_table import fit_all, fitted_table, posterior_table
from animalcat.layouts.reporting.profile import Profile
from animalcat.layouts.simulation.simulate import LayoutAgent, simulate_outcomes

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def normal(name: str, mean: float, sd: float, seed: int) -> Posterior:
    draws = np.random.default_rng(seed).normal(mean, sd, (20000, 1))
    return Posterior(name, "d" * 64, ("skill",), ("m",), draws)


def test_a_difference_of_two_normals() -> None:
    (found,) = node_differences(normal("a", 3, 0.3, 1), normal("b", 2.5, 0.4, 2))
    assert (found.node, found.unit) == ("skill", "m")
    assert found.mean == pytest.approx(0.5, abs=0.01)
    assert found.more == pytest.approx(norm.cdf(1.0), abs=0.01)
    half = 1.645 * 0.5
    assert found.hdi == pytest.approx((0.5 - half, 0.5 + half), abs=0.06)
    (same,) = node_differences(normal("a", 3, 0.3, 1), normal("a", 3, 0.3, 1))
    assert same.more == pytest.approx(0.5)
    assert same.mean == 0
    assert same.hdi[0] < 0 < same.hdi[1]  # one agent measured twice, not with itself


def test_a_ranking() -> None:
    agents = [normal("low", 0, 1, 1), normal("top", 9, 1, 2), normal("mid", 0.5, 1, 3)]
    found = ranking(agents, "skill")
    assert [entry.name for entry in found] == ["top", "mid", "low"]
    assert found[0].probabilities == (1.0, 0.0, 0.0)
    assert found[0].interval == (1, 1)
    assert found[1].interval == (2, 3)
    assert found[1].probabilities[1] == pytest.approx(norm.cdf(0.5 / math.sqrt(2)), abs=0.02)
    for entry in found:
        assert sum(entry.probabilities) == pytest.approx(1)
        expected = sum((k + 1) * p for k, p in enumerate(entry.probabilities))
        assert entry.rank == pytest.approx(expected)


def test_many_agents_are_put_into_groups_that_can_be_told_apart() -> None:
    means = {"low": 0.0, "top": 9.0, "near": 8.9, "mid": 5.0, "wide": 4.9}
    agents = [normal(name, mean, 0.3, k) for k, (name, mean) in enumerate(means.items())]
    agents[-1] = normal("wide", 4.7, 1.5, 9)
    (found,) = standings(agents)
    assert [cluster.agents for cluster in found.clusters] == [
        ("top", "near"),
        ("mid", "wide"),
        ("low",),
    ]
    assert [cluster.above for cluster in found.clusters] == [1.0, 1.0, None]
    assert found.apart is not None
    assert (found.apart.agent, found.apart.than) == ("top", "low")
    assert found.apart.mean == pytest.approx(9, abs=0.05)
    assert (found.ranks[0].most, found.ranks[-1].least) == pytest.approx((0.55, 0.95), abs=0.06)
    report = compare_agents(agents)
    assert report["differences"] == []
    assert "probabilities" not in report["ranking"][0]
    assert len(compare_agents(agents, pairs="every")["differences"]) == 10
    assert [row["than"] for row in compare_agents(agents, pairs="first")["differences"]] == [
        "low"
    ] * 4
    many = [normal(f"agent {k}", 2.0 * k, 0.1, k) for k in range(40)]
    rows = cluster_rows(compare_agents(many))
    assert [row["group"] for row in rows] == ["1", "2", "3", "4 to 39", "40"]
    assert sum(row["agents"] for row in rows) == 40
    assert [row["agent"] for row in rank_rows(compare_agents(many))] == ["agent 39", "agent 0"]


def test_pairs_are_compared_as_one_pair_is() -> None:
    agents = [normal(name, k, 0.5, k) for k, name in enumerate("abc")]
    every = list(every_difference(agents))
    assert [(one.agent, one.than) for one in every] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert every[1:] == [*node_differences(agents[0], agents[2]), *node_differences(*agents[1:])]
    a, b = (np.sort(np.round(one.draws[::100, 0], 1)) for one in agents[:2])
    pairs = a[:, None] - b
    assert superiority(a, b) == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)


def test_a_ranking_says_no_more_than_profiles_do() -> None:
    agents = [normal("known", 3, 0.3, 1), normal("unknown", 2, 3, 2), normal("able", 9, 1, 3)]
    measured = {"mean": 3.0, "sd": 0.3, "hdi": [2.5, 3.5], "known": True}
    nodes = {
        "known": {"skill": measured},
        "unknown": {"skill": {**measured, "known": False}},
        "able": {"skill": {**measured, "side": "at least", "bound": 7.6}},
    }
    found = compare_agents(agents, nodes=nodes)
    words = {row["name"]: row["words"]["estimate"] for row in found["ranking"]}
    assert words == {"known": "3.0 m", "unknown": "not known yet", "able": "at least 8 m"}


def test_a_trajectory_and_its_picture() -> None:
    agents = [normal(f"at {k}", k / 2, 0.2, k) for k in range(4)]
    (path,) = trajectory(agents, [0, 10, 20, 40])
    assert path.steps == (0, 10, 20, 40)
    assert path.rise[0] is None
    assert all(rise is not None and rise > 0.9 for rise in path.rise[1:])
    assert all(a < b for a, b in pairwise(path.mean))
    for low, mean, high in zip(path.low, path.mean, path.high, strict=True):
        assert high - low == pytest.approx(2 * 1.645 * 0.2, rel=0.1)
        assert low < mean < high
    figure = plot_trajectory([path, path])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["skill (m)"] * 2
    for wrong in ([0, 10], [0, 10, 10, 20]):
        with pytest.raises(ValueError, match="4 checkpoints want as many rising steps"):
            trajectory(agents, wrong)


def test_only_one_layout_compares() -> None:
    mine = normal("mine", 0, 1, 1)
    with pytest.raises(ValueError, match=r"mine was measured with layout dddd.*yours with eeee"):
        node_differences(mine, replace(mine, name="yours", layout="e" * 64))
    with pytest.raises(ValueError, match="nothing to compare"):
        ranking([], "skill")
    with pytest.raises(ValueError, match="no node 'height'; nodes: skill"):
        ranking([mine], "height")
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
        y = simulate_outcomes(agent, instances, np.random.default_rng(k))
        for i, row in enumerate(instances.values):
            live.update(row, y[i], i)
        profile = json.loads(Profile.of_live(live).to_json())
        found.append([Posterior.of_live("a", live), Posterior.of_profile("a", profile)])
    assert [p.approximate for p in found[0]] == [False, True]
    drawn, stood_for = (node_differences(*pair) for pair in zip(*found, strict=True))
    assert drawn[0].more < 0.05
    for a, b in zip(drawn, stood_for, strict=True):
        assert a.mean == pytest.approx(b.mean, abs=0.05)
        assert a.more == pytest.approx(b.more, abs=0.05)


@pytest.mark.parametrize("ends", [(0.0, 10.0), (0.0, None), (None, None)])
def test_what_stands_for_a_profile_has_its_mean_sd_and_range(
    ends: tuple[float | None, float | None],
) -> None:
    node = {"mean": 2.0, "sd": 0.8, "range": list(ends), "unit": "m"}
    profile = {"layout": {"digest": "d"}, "nodes": {"skill": node}}
    draws = Posterior.of_profile("a", profile).column("skill")
    assert draws.mean() == pytest.approx(2.0, abs=0.05)
    assert draws.std() == pytest.approx(0.8, rel=0.05)
    assert ends[0] is None or draws.min() >= ends[0]
    assert ends[1] is None or draws.max() <= ends[1]


def test_layouts_are_told_apart_by_what_they_leave_out() -> None:
    generator = np.random.default_rng(1)
    good, bad = generator.normal(-0.4, 0.2, 200), generator.normal(-0.6, 0.2, 200)
    k = np.r_[0.9, np.zeros(199)]
    rows = compare_layouts([Loo("bad", bad, np.zeros(200), 3), Loo("good", good, k, 4)])
    assert [row.name for row in rows] == ["good", "bad"]
    assert (rows[0].behind, rows[0].behind_se, rows[0].doubtful) == (0, 0, 1)
    assert rows[1].behind == pytest.approx(good.sum() - bad.sum())
    assert rows[1].behind_se == pytest.approx(math.sqrt(200) * (good - bad).std())
    with pytest.raises(ValueError, match="the same outcomes"):
        compare_layouts([Loo("a", good, k, 1), Loo("b", bad[:9], k[:9], 1)])


def test_a_fit_that_weighs_its_outcomes_is_refused(aaio: Layout, draw_instances: Draw) -> None:
    features, y = draw_instances(3, 1), np.array([1.0, 0.0, 1.0])
    data = FitData(features, y, np.array([1.0, 1.0, 0.3]))
    draws = aaio.from_standard(np.zeros((2, 5, len(aaio.latents))))
    fitted = FitResult(aaio, draws, [], {"outcomes": 3}, data)
    with pytest.raises(ValueError, match="repeats count as less than one"):
        loo(fitted, features, y)


def exact(layout: Layout, features: Floats, y: Floats, left_out: int) -> float:
    """Log predictive density of one outcome, by leaving it out."""
    kept = np.arange(len(y)) != left_out
    draws = fit(FitRequest(layout, features[kept], y[kept], seed=left_out)).flat_draws
    p = Evaluator(layout).probability(draws, features[[left_out]]).mean()
    return math.log(p if y[left_out] == 1 else 1 - p)


@pytest.mark.slow
@pytest.mark.xdist_group("nuts")
def test_fits_of_a_table(aaio: Layout, draw_instances: Draw) -> None:
    """One test for all that needs compiled models: compiling takes longer than the rest."""
    instances = Instances(aaio.feature_names, draw_instances(150, 4))
    agent = LayoutAgent(aaio, np.array([2.0, 1.6, 0.0, 0.02]))
    y = simulate_outcomes(agent, instances, np.random.default_rng(4))
    table = OutcomeTable(instances, ("me", "winner"), np.stack([y, np.ones(150)]))
    fits = fit_all(aaio, table, seed=1)

    # Table 2 of Tesic et al., for agents of which one always succeeds.
    rows = posterior_table(fits)
    assert [(row.agent, row.node) for row in rows] == [
        (agent, node) for agent in table.agents for node in aaio.latent_names
    ]
    for row in rows:
        assert row.low < row.mean < row.high
        assert row.rhat < 1.01
        assert min(row.ess_bulk, row.ess_tail) > 400
    (row,) = [row for row in fitted_table(aaio, table, seed=1) if row == rows[0]]
    assert abs(row.mean - 2.0) < row.high - row.low  # 3.8 standard deviations
    assert rows[4].mean > rows[0].mean  # navigationAbility of the winner

    # Leaving one out by importance sampling is leaving it out.
    mine: FitResult = fits["me"]
    estimated = loo(mine, instances.values, y)
    assert estimated.doubtful == 0
    assert 0.5 < estimated.effective < 6  # of four latent nodes, two of which matter here
    for i in (0, 50, 100):
        assert estimated.elpd[i] == pytest.approx(exact(aaio, instances.values, y, i), abs=0.02)
    with pytest.raises(ValueError, match="149 outcomes; fitted were 150"):
        loo(mine, instances.values[1:], y[1:])

    # NUTS predicts as the live posterior.
    nuts = LayoutAssessor(aaio, 1).fit(instances, y).predict(instances)
    live = LayoutAssessor(aaio, 1, by="live").fit(instances, y).predict(instances)
    assert np.abs(nuts - live).max() < 0.03

    # The layout that made the outcomes predicts them better than one with other slopes.
    flat = load_layout("aaio", "as-printed")
    told = instances.features(flat)
    other = loo(fit(FitRequest(flat, told, y, seed=1)), told, y)
    assert compare_layouts([other, estimated])[0].name == "aaio (scaled)"
