"""Budget goes where agents overlap, and separates them with fewer episodes than equal shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from animalcat.layouts.adaptive.campaign import (
    Allocation,
    Standing,
    common_instances,
    next_round,
    overlapping,
    worth,
)
from animalcat.layouts.inference.randomness import rng

RULE = Allocation(budget=4000)
PRIOR = 0.3
NOISE = 0.4


def standing(mean: float, sd: float, episodes: int = 12, *, open: bool = True) -> Standing:
    return Standing(np.array([mean]), np.array([sd]), np.array([PRIOR]), episodes, open)


class Field:
    """Agents of known ability, measured with Gaussian noise, so that posteriors are exact."""

    def __init__(self, abilities: Sequence[float], seed: int) -> None:
        self._draws = rng(seed, "campaign", 0).normal(
            np.array(abilities)[:, np.newaxis], NOISE, (len(abilities), RULE.budget)
        )
        self.played = [0] * len(abilities)

    def play(self, agent: int, episodes: int) -> None:
        self.played[agent] += episodes

    @property
    def standings(self) -> list[Standing]:
        found: list[Standing] = []
        for draws, n in zip(self._draws, self.played, strict=True):
            precision = PRIOR**-2 + n * NOISE**-2
            mean = (0.5 * PRIOR**-2 + draws[:n].sum() * NOISE**-2) / precision
            found.append(standing(float(mean), precision**-0.5, n))
        return found


def by_rule(field: Field, left: int) -> dict[int, int]:
    return next_round(field.standings, RULE, left)


def equally(field: Field, left: int) -> dict[int, int]:
    """The two with fewest episodes are given the next ones, whatever is known."""
    least = np.argsort(field.played, kind="stable")[: RULE.at_once]
    return {int(agent): RULE.block for agent in least}


def needed(
    abilities: Sequence[float], seed: int, hand_out: Callable[[Field, int], dict[int, int]]
) -> Field:
    """Play until every pair is settled."""
    field = Field(abilities, seed)
    for agent in range(len(abilities)):
        field.play(agent, RULE.common)
    while overlapping(field.standings, RULE).any() and sum(field.played) < RULE.budget:
        for agent, episodes in hand_out(field, RULE.budget - sum(field.played)).items():
            field.play(agent, episodes)
    return field


@pytest.mark.parametrize(
    ("abilities", "at_most"),
    [
        pytest.param((0.1, 0.35, 0.6, 0.72), 0.75, id="two of four overlap"),
        pytest.param((0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.88, 0.96), 0.75, id="three of eight"),
        pytest.param((0.3, 0.42), 1.05, id="two: nothing to move"),
    ],
)
def test_fewer_episodes_than_equal_shares(abilities: Sequence[float], at_most: float) -> None:
    runs = range(30)
    ruled = [sum(needed(abilities, seed, by_rule).played) for seed in runs]
    equal = [sum(needed(abilities, seed, equally).played) for seed in runs]
    assert np.mean(ruled) <= at_most * np.mean(equal)


def test_the_budget_goes_to_those_who_overlap() -> None:
    field = needed((0.05, 0.5, 0.6, 0.95), 3, by_rule)
    assert max(field.played[0], field.played[3]) <= RULE.common + RULE.block
    assert min(field.played[1], field.played[2]) > RULE.common + RULE.block


def test_agents_that_are_alike_do_not_use_the_whole_budget() -> None:
    field = needed((0.5, 0.5, 0.9), 0, by_rule)
    assert sum(field.played) < RULE.budget
    assert not overlapping(field.standings, RULE).any()


def test_a_capability_of_which_the_battery_tells_nothing_draws_no_budget() -> None:
    told = Standing(np.array([0.5, 0.5]), np.array([0.1, PRIOR]), np.array([PRIOR] * 2), 20)
    untold = Standing(np.array([0.5, 0.5]), np.array([PRIOR] * 2), np.array([PRIOR] * 2), 20)
    assert told.movement(8)[0] > 0.0
    assert told.movement(8)[1] == 0.0
    assert worth([told, untold], RULE, 8)[1] == 0.0
    # They still overlap: what is left goes to those who played least.
    assert set(next_round([untold, untold, untold], RULE, 100)) == {0, 1}


def test_a_round_ends_with_the_budget_and_leaves_out_who_cannot_play() -> None:
    pair = [standing(0.5, 0.1), standing(0.52, 0.1)]
    assert next_round(pair, RULE, 100) == {0: 4, 1: 4}
    assert sum(next_round(pair, RULE, 5).values()) == 5
    assert next_round(pair, RULE, 0) == {}
    assert next_round([pair[0], standing(0.52, 0.1, open=False)], RULE, 100) == {0: 4}
    assert next_round([standing(0.1, 0.02), standing(0.9, 0.02)], RULE, 100) == {}


def test_common_instances_are_of_every_paradigm_by_its_share() -> None:
    paradigms = ["rare"] * 10 + ["usual"] * 60 + ["often"] * 30
    rows = common_instances(paradigms, 20, rng(0, "common", 0))
    assert len(set(rows)) == 20
    assert Counter(paradigms[row] for row in rows) == {"rare": 2, "usual": 12, "often": 6}
    assert rows == common_instances(paradigms, 20, rng(0, "common", 0))
    assert rows != common_instances(paradigms, 20, rng(1, "common", 0))
    assert sorted(common_instances(paradigms[:3], 20, rng(0, "common", 0))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": 0}, "budget 0"),
        ({"block": 0}, "block 0"),
        ({"alike": 1.0}, "alike"),
        ({"confidence": 0.5}, "confidence"),
    ],
)
def test_what_cannot_be_handed_out(changes: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Allocation(**{"budget": 10, **changes})  # pyright: ignore[reportArgumentType]
