"""The regression on the demands that a layout has to outdo before choices trust it."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.bench.sessions import World
from animalcat.layouts.adaptive.advantage import Advantage
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.regression import RunningRegression
from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.synthetic import op_battery
from benchmarks.trust_agents import able

BATTERY = op_battery(0)
LAYOUT = load_layout("object-permanence")
WORLD = World(LAYOUT, BATTERY)


def test_a_regression_knows_nothing_first_and_then_learns() -> None:
    regression = RunningRegression(2)
    generator = np.random.default_rng(1)
    assert regression.forecast(np.array([3.0, np.nan])).tolist() == [0.5, 0.5]
    for _ in range(200):
        x = generator.normal(size=2)
        y = np.array([float(x[0] > 0.0), float(x[1] < 0.0)])
        y[generator.random(2) < 0.2] = np.nan
        x[generator.random(2) < 0.1] = np.nan
        regression.learn(x, y)
    assert regression.forecast(np.array([1.0, 1.0])) == pytest.approx([1.0, 0.0], abs=0.2)
    assert regression.forecast(np.array([-1.0, -1.0])) == pytest.approx([0.0, 1.0], abs=0.2)
    missing = regression.forecast(np.array([np.nan, -1.0]))
    assert missing == pytest.approx([0.5, 1.0], abs=0.25)


def test_what_was_never_observed_is_not_forecast() -> None:
    regression = RunningRegression(2)
    for value in (0.0, 1.0, 2.0):
        regression.learn(np.array([value]), np.array([1.0, np.nan]))
    first, second = regression.forecast(np.array([1.0]))
    assert (first > 0.7, second) == (True, 0.5)


@pytest.mark.parametrize("scale", [1.0, 0.1])  # how far outcomes are from their middle
def test_who_predicts_better_gets_ahead_however_fine_outcomes_are(scale: float) -> None:
    generator = np.random.default_rng(2)
    right, wrong = Advantage(1), Advantage(1)
    for _ in range(60):
        x = generator.normal(size=1)
        chance = 0.5 + 0.4 * scale * np.sign(np.abs(x) - 0.7)  # no logistic form
        y = chance + 0.05 * scale * generator.normal(size=1)
        right.update(x, chance, y)
        wrong.update(x, 1.0 - chance, y)
    assert right.nats > 20.0
    assert right.doubt < 1e-6
    assert wrong.nats < -20.0
    assert wrong.doubt == 1.0


def test_nothing_is_known_before_the_first_outcome() -> None:
    advantage = Advantage(1)
    assert (advantage.nats, advantage.doubt) == (0.0, 1.0)
    advantage.update(np.array([1.0]), np.array([0.9]), np.array([np.nan]))
    assert (advantage.nats, advantage.doubt) == (0.0, 1.0)


def doubts(success: np.ndarray, seed: int = 1) -> list[float]:
    """The doubt after each of 60 outcomes of an agent with these chances."""
    bank = Bank(LAYOUT, BATTERY.features(LAYOUT), BATTERY.paradigms or [""] * len(BATTERY))
    learner = Learner(bank, Policy(), StoppingRule(60), seed)
    drawn = np.random.default_rng(seed).random(len(bank))
    made: list[float] = []
    while len(made) < 60 and (choice := learner.ask()):
        learner.tell(choice.instance, float(drawn[choice.index] < success[choice.index]))
        made.append(learner.doubt)
    return made


def test_a_layout_that_is_right_is_trusted_as_before() -> None:
    made = doubts(able(WORLD, 0.6).before)
    assert set(made[:11]) == {1.0}
    assert made[-1] == pytest.approx(1 / 3)


def test_an_agent_that_a_regression_describes_better_keeps_the_layout_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For longer than bets alone would."""
    near = BATTERY.column("goalDistance") < 14.0
    chances = np.where(near, 0.1, able(WORLD).before)
    both = np.mean(doubts(chances)[12:])
    monkeypatch.setattr(Advantage, "doubt", 0.0)
    assert both > np.mean(doubts(chances)[12:]) + 0.1


def test_forgetting_an_outcome_forgets_what_it_said_of_the_layout() -> None:
    bank = Bank(LAYOUT, BATTERY.features(LAYOUT), [""] * len(BATTERY))
    passed = np.random.default_rng(3).random(len(bank)) < able(WORLD, 0.6).before
    learner, other = (Learner(bank, Policy(), StoppingRule(60), 4) for _ in range(2))
    for number, row in enumerate(range(0, 1000, 50)):
        learner.tell(bank.names[row], float(passed[row]), number)
        if number != 15:
            other.tell(bank.names[row], float(passed[row]), number)
    before = learner.doubt
    learner.invalidate(15)
    assert 1 / 3 < learner.doubt == other.doubt < 1.0
    assert learner.doubt != before
