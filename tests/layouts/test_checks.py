"""Predictive checks and residuals: quiet on agents of the layout, loud on others."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.checking.checks import (
    group_instances,
    posterior_predictive,
    prior_predictive,
    residuals,
)
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from benchmarks.agents import LayoutAgent, prior_agents
from benchmarks.synthetic import op_battery, synthetic_agents

Floats = np.ndarray


@pytest.fixture(scope="module")
def permanence() -> Layout:
    return load_layout("object-permanence")


@pytest.fixture(scope="module")
def battery() -> Instances:
    """300 instances of the object permanence battery, in random order."""
    whole = op_battery(1)
    return whole.rows(np.random.default_rng(1).choice(len(whole), 300, replace=False))


def passes(probability: Floats, seed: int) -> Floats:
    """Outcomes of an agent that passes with these probabilities."""
    return (np.random.default_rng(seed).random(len(probability)) < probability).astype(float)


def tell_all(layout: Layout, instances: Instances, y: Floats, seed: int) -> Floats:
    """Draws of the posterior that knows these outcomes."""
    live = LivePosterior(layout, seed, particles=500)
    for i, row in enumerate(instances.features(layout)):
        live.update(row, y[i], i)
    rows = np.random.default_rng(seed).choice(500, 500, p=live.weights)
    return live.particles[rows]


def test_prior_p_values_are_exact(aaio: Layout, battery: Instances) -> None:
    values = np.random.default_rng(0).uniform(1, 50, (30, 1)) * [1, 0, 0, 0] + [0, 2, 0, 1]
    instances = Instances(aaio.feature_names, values)
    agents = prior_agents(aaio, 150, np.random.default_rng(7))
    p_values = [
        prior_predictive(aaio, values, agent.outcomes(instances, np.random.default_rng(s)), s)[0]
        for s, agent in enumerate(agents)
    ]
    shares = np.array([check.p_value for check in p_values])
    assert 0.01 <= np.mean(shares < 0.05) <= 0.1
    assert 0.4 <= np.mean(shares < 0.5) <= 0.6


@pytest.mark.slow
def test_residuals_are_quiet_on_agents_of_the_layout(
    permanence: Layout, battery: Instances
) -> None:
    alarms = 0
    for seed, agent in enumerate(prior_agents(permanence, 20, np.random.default_rng(3))):
        y = agent.outcomes(battery, np.random.default_rng(seed))
        draws = tell_all(permanence, battery, y, seed)
        rows = residuals(permanence, draws, battery, y, seed)
        assert {row.by for row in rows} == {"paradigm", *battery.columns}
        alarms += rows[0].adjusted < 0.05
    assert alarms <= 3  # 5 % of 20 is one


def test_residuals_find_the_paradigm_that_an_agent_fails(
    permanence: Layout, battery: Instances
) -> None:
    agent = synthetic_agents()[20]  # solves basic and grid tasks only
    assert "basic and grid" in agent.about
    y = passes(agent.probability(battery), 1)
    draws = tell_all(permanence, battery, y, 1)
    (worst, *rest) = residuals(permanence, draws, battery, y, 1, by=["paradigm"])
    assert len(rest) == 6
    assert worst.adjusted < 0.05
    assert worst.observed == pytest.approx(y[np.array(battery.paradigms) == worst.group].mean())
    assert not worst.low <= worst.observed <= worst.high
    assert all(a.adjusted <= b.adjusted for a, b in zip([worst, *rest], rest, strict=False))


def test_a_hidden_feature_is_found(permanence: Layout, battery: Instances) -> None:
    agent = synthetic_agents()[6]  # fails at red occluders
    y = passes(agent.probability(battery), 2)
    draws = tell_all(permanence, battery, y, 2)
    rows = residuals(
        permanence, draws, battery, y, 2, by=["occluderRedness", "goalSize", "rightLeftPosition"]
    )
    assert rows[0].by == "occluderRedness"
    assert rows[0].adjusted < 0.05
    red = next(row for row in rows if row.by == "occluderRedness" and row.observed < row.low)
    assert red.adjusted < 0.05
    assert float(red.group.split(" to ")[1]) > 200


def test_drift_shows_in_the_likeness_of_neighbours(aaio: Layout) -> None:
    generator = np.random.default_rng(2)
    values = np.column_stack(
        [generator.uniform(1, 55, 200), np.full(200, 3.0), np.zeros(200), np.zeros(200)]
    )
    instances = Instances(aaio.feature_names, values)
    weak, strong = (LayoutAgent(aaio, np.array([a, 1.8, 0.0, 0.0])) for a in (0.1, 5.2))
    still, before = (agent.probability(instances) for agent in (strong, weak))
    share = np.clip((np.arange(200) - 50) / 100, 0.0, 1.0)
    found = {}
    for name, p in (("still", still), ("drifting", (1 - share) * before + share * still)):
        y = passes(p, 3)
        draws = tell_all(aaio, instances, y, 3)
        checks = posterior_predictive(aaio, draws, values, y, 3)
        assert [c.name for c in checks][2] == "likeness of neighbours"
        for check in checks:
            assert check.low <= check.expected <= check.high
        found[name] = checks[2].p_value
    assert found["drifting"] < 0.01 < 0.05 < found["still"]


def test_groups_of_a_feature() -> None:
    values = np.column_stack([np.tile([0.0, 1.0], 20), np.arange(40.0)])
    values[3, 1] = np.nan
    instances = Instances(("lava", "depth"), values, paradigms=("a",) * 10 + ("b",) * 30)
    assert {name: int(mask.sum()) for name, mask in group_instances(instances, "lava").items()} == {
        "0": 20,
        "1": 20,
    }
    assert {n: int(m.sum()) for n, m in group_instances(instances, "paradigm").items()} == {
        "a": 10,
        "b": 30,
    }
    depth = group_instances(instances, "depth")
    assert list(depth)[-1] == "missing"
    assert len(depth) == 6
    assert (np.sum(list(depth.values()), axis=0) == 1).all()
    with pytest.raises(ValueError, match="no column 'color'"):
        group_instances(instances, "color")


def test_without_outcomes_there_is_nothing_to_check(aaio: Layout) -> None:
    with pytest.raises(ValueError, match="nothing to check"):
        prior_predictive(aaio, np.empty((0, 4)), [], 1)


@pytest.mark.parametrize("variant", ["success", "trials", "score"])
def test_every_kind_of_outcome_is_checked(variant: str) -> None:
    layout = load_layout("one-capability", variant)
    generator = np.random.default_rng(4)
    values = np.stack(
        [
            np.round(generator.uniform(f.low, min(f.high, f.low + 10), 60))
            if f.name == "trials"
            else generator.uniform(f.low, f.high, 60)
            for f in layout.features
        ],
        axis=1,
    )
    instances = Instances(
        layout.feature_names, np.maximum(values, [f.low for f in layout.features])
    )
    agent = prior_agents(layout, 1, generator)[0]
    y = agent.outcomes(instances, np.random.default_rng(1))
    draws = tell_all(layout, instances, y, 1)
    features = instances.features(layout)
    for check in posterior_predictive(layout, draws, features, y, 1)[:2]:
        assert 0 <= check.low <= check.expected <= check.high <= 1
        assert check.p_value > 0.01
    for row in residuals(layout, draws, instances, y, 1):
        assert 0 <= row.observed <= 1
        assert row.adjusted > 0.01
