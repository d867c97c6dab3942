"""An agent may be abler than the ranges of a layout reach, and no alarm stands for that."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.watching.beyond import LIFTS, lift_capabilities

Floats = npt.NDArray[np.float64]
AAIO = load_layout("aaio", "metres-15")
COUNT = 400


def arenas() -> Instances:
    """Goals of many distances and sizes, many of them as hard as the ranges end."""
    generator = np.random.default_rng(0)
    values = np.column_stack(
        [
            generator.uniform(20.0, 55.0, COUNT),
            generator.uniform(0.5, 2.0, COUNT),
            generator.choice([0.0, 0.5, 1.0], COUNT),
            generator.choice([-1.0, 0.0, 1.0], COUNT),
            generator.choice([0.0, 1.0], COUNT),
        ]
    )
    columns = ("rewardDistance", "rewardSize", "rewardBehind", "XPos", "red")
    return Instances(columns, values, names=tuple(f"arena-{i}" for i in range(COUNT)))


def session(passes: npt.NDArray[np.bool_], episodes: int = 120) -> Learner:
    """A session of an agent that passes what `passes` says of each arena."""
    instances = arenas()
    bank = Bank.of(AAIO, instances)
    learner = Learner(bank, Policy(), StoppingRule(episodes), 1)
    for _ in range(episodes):
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, float(passes[bank.names.index(choice.instance)]))
    return learner


def test_only_what_is_near_the_top_is_lifted() -> None:
    prior = AAIO.latents[0].prior
    shares = np.array([0.0, 0.5, 0.75, 0.875, 1.0])
    theta = np.tile([1.0, 1.0, 0.0, 0.5], (5, 1))
    theta[:, 0] = prior.low + shares * prior.span
    moved = (lift_capabilities(AAIO, theta, 0.4) - theta) / prior.span
    np.testing.assert_allclose(moved[:, 0], [0.0, 0.0, 0.0, 0.2, 0.4])
    np.testing.assert_array_equal(moved[:, 1:], 0.0)
    assert lift_capabilities(AAIO, theta, LIFTS[0]) is theta


def test_no_alarm_stands_for_an_agent_that_passes_everything() -> None:
    """The ranges hold it, so it is not even raised."""
    learner = session(np.ones(COUNT, np.bool_), 60)
    assert learner.alarm is None
    assert not learner.contradicted
    assert learner.summary()[0].mean > 5.3  # the hardest demand


@pytest.mark.parametrize("able", [True, False])
def test_who_fails_by_a_colour_is_found_all_the_same(able: bool) -> None:
    """Also somebody who is abler than the ranges reach, where nothing is red."""
    values = arenas().values
    red = values[:, -1] == 1.0
    passes = ~red if able else ~red & (values[:, 0] < 40.0)
    learner = session(passes)
    assert learner.contradicted
    assert "red" in learner.misfit
