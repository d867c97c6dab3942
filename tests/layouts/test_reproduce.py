"""Figures and tables of the papers, worked out here beside the printed ones."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.layouts.checking.predict import LayoutAssessor
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from benchmarks.papers.cooperation import population
from benchmarks.papers.olympics import (
    CHANCE,
    AverageChance,
    with_chance,
)
from benchmarks.papers.permanence import score, table_1, table_8
from benchmarks.papers.printed import printed_figures
from benchmarks.synthetic import CAPABILITIES, op_battery, synthetic_agents


def test_what_the_paper_prints() -> None:
    paper = printed_figures("burden2023")
    assert len(paper["figure_9"]["entrants"]) == 30
    assert sorted(paper["table_8"]["agents"]) == list(range(1, 31))
    rows = np.array([*paper["table_8"]["agents"].values()], np.float64)
    assert rows[:, :2].mean(axis=0) == pytest.approx([0.127, 0.178], abs=5e-4)  # as its text says
    assert np.abs(rows[:, 2] + rows[:, 4] - rows[:, 0]).max() < 2.1e-3  # the parts add up
    assert set(paper["table_1"]) == set(CAPABILITIES)


def test_the_agents_succeed_as_often_as_table_8_says() -> None:
    """The Brier score of the aggregate is p (1 - p) on the 438 test instances."""
    battery, agents = op_battery(1), synthetic_agents()
    assert [agent.number for agent in agents] == list(range(1, 31))
    assert sum(agent.known for agent in agents) == 13  # "Included" in Table 1
    printed = printed_figures("burden2023")["table_8"]["agents"]
    for agent in agents:
        rate = agent.probability(battery).mean()
        # 438 instances give the rate an error, and a rate near a half hides it.
        error = abs(1 - 2 * rate) * np.sqrt(rate * (1 - rate) / 438) + 0.002
        off = 0.01 if agent.number == 9 else 0.0  # no share of ramps fits agents 9 and 19 both
        assert abs(rate * (1 - rate) - printed[agent.number][1]) < 3 * error + off, agent
        assert set(agent.truth) <= set(CAPABILITIES)
        assert all(0 <= share <= 1 for share in agent.truth.values())


@pytest.fixture
def entrants() -> OutcomeTable:
    """Two made-up entrants under names of Figure 9, one good and one bad."""
    generator = np.random.default_rng(0)
    n = 40
    columns = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
    values = np.column_stack(
        [
            generator.uniform(2, 54, n),
            generator.choice([0.5, 1, 3, 5], n),
            generator.choice([0, 1], n),
            generator.choice([-1, 0, 1], n),
        ]
    )
    far = values[:, 0] > 30
    outcomes = np.stack([np.where(far, 0.0, 1.0), np.where(values[:, 0] > 8, 0.0, 1.0)])
    names = tuple(f"arena-{i:02}" for i in range(n))
    return OutcomeTable(Instances(columns, values, names=names), ("forest", "ice-play"), outcomes)


def test_chance_is_what_an_assessor_may_know(entrants: OutcomeTable) -> None:
    layout = load_layout("aaio", "figure-9")
    instances, outcomes = entrants.of("ice-play")
    told = with_chance(with_chance(instances, np.array([0.8])), np.array([0.0, 0.6]))
    assert told.columns.count(CHANCE) == 1
    assert set(told.column(CHANCE)) == {0.7}
    half, rest = instances.rows(np.arange(20)), instances.rows(np.arange(20, 40))
    known = outcomes[:20]
    fitted = AverageChance(LayoutAssessor(layout, 0, "live")).fit(half, known)
    by_hand = LayoutAssessor(layout, 0, "live").fit(with_chance(half, known), known)
    expected = by_hand.predict(with_chance(rest, known))
    np.testing.assert_array_equal(fitted.predict(rest), expected)


def test_an_agent_that_fails_at_lava() -> None:
    layout = load_layout("object-permanence")
    found = score((layout, 0, 0, 6))
    assert found.oracle <= found.layout.brier + 0.005 < found.aggregate.brier
    assert found.mean["lavaAbility"] == pytest.approx(0.1 / 0.95, abs=0.05)
    rows = {row["name"].partition(": ")[2]: row for row in table_8(layout, [found])}
    assert rows["ml brier"]["value"] == pytest.approx(rows["ml brier"]["baseline"], abs=0.02)
    assert rows["ml brier"]["ratio"] == rows["ml brier"]["value"] / rows["ml brier"]["baseline"]
    errors = {row["name"]: row["value"] for row in table_1(layout, [found])}
    assert errors["Table 1, refined: error of lavaAbility, in shares of its range"] < 0.05


def test_entrants_of_the_contest() -> None:
    layout = load_layout("melting-pot")
    people = population(layout, 3)
    played = np.isfinite(people.table.outcomes).sum(axis=1)
    assert played.tolist() == [816] * 15 + [204] * 8  # as section 3.1 of the paper says
    assert people.truth.shape == (23, len(layout.latents))
    assert people.truth[:, layout.latent_names.index("base_chance")].min() > 0.75
