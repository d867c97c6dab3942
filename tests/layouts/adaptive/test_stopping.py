"""Stopping: for a stated reason, with a status for every capability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.layouts.adaptive.stopping import RuleStopper, StopVerdict
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]


def session(
    layout: Layout, features: Floats, y: Floats, rule: StoppingRule, repeats: bool = False
) -> tuple[StopVerdict, int, LivePosterior]:
    """Play until the stopper says stop."""
    posterior = LivePosterior(layout, 3)
    chooser = Chooser(
        Bank(layout, features, ["p"] * len(features)), Policy(exposures=0 if repeats else 1)
    )
    stopper = RuleStopper(layout, rule)
    used: list[int] = []
    while True:
        verdict = stopper.verdict(posterior, chooser, History(used))
        if verdict.stop:
            return verdict, len(used), posterior
        choice = chooser.choose(posterior, History(used), len(used) + 1)
        assert choice is not None
        used.append(choice.index)
        posterior.update(features[choice.index], bool(y[choice.index]), len(used))


def test_budget(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    features = draw_instances(100, 1)
    y = play(features, [3.0, 1.2, 0.0, 0.1], 1)
    rule = StoppingRule(max_episodes=12, target_sd=0.01)
    verdict, episodes, _ = session(aaio, features, y, rule)
    assert episodes == 12
    assert set(verdict.status.values()) == {"budget"}
    assert "12 episodes" in verdict.reason


def test_target(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    features = draw_instances(300, 2)
    y = play(features, [3.0, 1.0, 0.0, 0.05], 2)
    rule = StoppingRule(max_episodes=300, target_sd=0.12)
    verdict, episodes, posterior = session(aaio, features, y, rule)
    assert set(verdict.status.values()) == {"precise, if the layout holds"}
    assert verdict.reason == "every capability is precise, if the layout and its priors hold"
    assert 5 < episodes < 200
    sd = {node.name: node.sd for node in posterior.summary()}
    assert sd["navigationAbility"] <= 0.12 * 5.3
    assert sd["visualAbility"] <= 0.12 * 1.9


def test_a_battery_of_eight_is_played_whole(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    """Also where the last of it would tell little."""
    features = draw_instances(8, 3)
    y = play(features, [3.0, 1.0, 0.0, 0.05], 3)
    rule = StoppingRule(max_episodes=100, target_sd=0.02, futility=0.1)
    verdict, episodes, _ = session(aaio, features, y, rule)
    assert episodes == 8
    assert verdict.reason == EXHAUSTED
    assert set(verdict.status.values()) == {"used up"}
    empty = Chooser(Bank(aaio, np.empty((0, 4)), []))
    verdict = RuleStopper(aaio, rule).verdict(LivePosterior(aaio, 0), empty, History())
    assert verdict.stop
    assert set(verdict.status.values()) == {"used up"}


def test_a_battery_without_fitting_demands_is_futile(aaio: Layout, play: Play) -> None:
    """All rewards are huge and near: sight cannot be told from perfect sight."""
    features = np.tile([2.0, 10.0, 0.0, 0.0], (200, 1))
    rule = StoppingRule(max_episodes=200, target_sd=0.05, futility=0.02)
    verdict, episodes, _ = session(aaio, features, play(features, [5.0, 1.8, 0.0, 0.0], 1), rule)
    assert episodes < 200
    assert verdict.status["visualAbility"] == "limited by the battery"
    assert "25 more episodes" in verdict.reason
    assert verdict.expected_fall["visualAbility"] < 0.02


def test_an_agent_that_is_all_noise_is_limited_by_noise(aaio: Layout, draw_instances: Draw) -> None:
    features = draw_instances(400, 4)
    y = np.random.default_rng(1).integers(0, 2, 400).astype(np.float64)
    rule = StoppingRule(max_episodes=400, target_sd=0.05, futility=0.03)
    verdict, episodes, posterior = session(aaio, features, y, rule)
    noise = next(node for node in posterior.summary() if node.name == "noiseLevel")
    assert noise.mean > 0.8
    assert episodes < 400
    assert set(verdict.status.values()) == {"limited by noise"}


def test_it_goes_on_while_there_is_something_to_learn(aaio: Layout, draw_instances: Draw) -> None:
    features = draw_instances(50, 5)
    chooser = Chooser(Bank(aaio, features, ["p"] * 50))
    rule = StoppingRule(target_sd=0.2, futility=0.01)
    verdict = RuleStopper(aaio, rule).verdict(LivePosterior(aaio, 0), chooser, History())
    assert not verdict.stop
    assert verdict.reason == ""
    assert set(verdict.status.values()) == {"measuring"}
    assert all(0.05 < fall < 1.0 for fall in verdict.expected_fall.values())


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_episodes": 0},
        {"target_sd": -0.1},
        {"futility": float("nan")},
        {"max_seconds": -1},
        {"target_width": 1.5},
        {"combine": "some"},
    ],
)
def test_contradictory_rules_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        StoppingRule(**wrong)  # pyright: ignore[reportArgumentType]


def half_known(
    layout: Layout, features: Floats, y: Floats
) -> tuple[LivePosterior, Chooser, History]:
    """A posterior after every instance of a battery but one."""
    posterior = LivePosterior(layout, 3)
    for i in range(len(y) - 1):
        posterior.update(features[i], bool(y[i]), i + 1)
    bank = Bank(layout, features, ["p"] * len(y))
    return posterior, Chooser(bank), History(range(len(y) - 1))


@pytest.fixture
def half_known_state(
    aaio: Layout, draw_instances: Draw, play: Play
) -> tuple[LivePosterior, Chooser, History]:
    features = draw_instances(60, 7)
    return half_known(aaio, features, play(features, [3.0, 1.2, 0.0, 0.1], 7))


def test_a_capability_can_have_a_target_of_its_own(
    aaio: Layout, half_known_state: tuple[LivePosterior, Chooser, History]
) -> None:
    rule = StoppingRule(target_sd=0.99, targets={"visualAbility": 0.01}, futility=0.0)
    verdict = RuleStopper(aaio, rule).verdict(*half_known_state)
    assert not verdict.stop
    assert verdict.status == {
        "navigationAbility": "precise, if the layout holds",
        "visualAbility": "measuring",
    }
    assert verdict.episodes_needed == {"navigationAbility": 0, "visualAbility": None}
    with pytest.raises(ValueError, match=r"rightLeftBias: no capability; there are navigation"):
        RuleStopper(aaio, StoppingRule(targets={"rightLeftBias": 0.1}))


def test_a_contradicted_layout_measures_nothing(
    aaio: Layout, half_known_state: tuple[LivePosterior, Chooser, History]
) -> None:
    verdict = RuleStopper(aaio, StoppingRule(target_sd=0.99)).verdict(
        *half_known_state, contradicted=True
    )
    assert not verdict.stop
    assert set(verdict.status.values()) == {"layout contradicted"}
    rule = StoppingRule(target_sd=0.99, stop_at_alarm=True)
    verdict = RuleStopper(aaio, rule).verdict(*half_known_state, contradicted=True)
    assert verdict.end == "layout contradicted"


def test_how_many_episodes_are_needed(aaio: Layout, draw_instances: Draw, play: Play) -> None:
    """As many of the best instances as the first two, each by its own drop, take to the target."""
    features = draw_instances(60, 5)
    posterior, chooser, history = half_known(
        aaio, features, play(features, [3.0, 1.2, 0.0, 0.1], 5)
    )
    chooser = Chooser(chooser.bank, Policy(exposures=0))
    scores = chooser.scores(posterior, history)
    best = np.sort(scores.drops[:, 0] / scores.variance[0])[::-1]
    target = float(np.sqrt(scores.variance[0] * (1 - best[0]) * (1 - best[1]))) / 5.3
    rule = StoppingRule(targets={"navigationAbility": target * 1.0001})
    verdict = RuleStopper(aaio, rule).verdict(posterior, chooser, history)
    assert verdict.episodes_needed["navigationAbility"] == 2
