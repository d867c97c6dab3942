"""What a session makes of its outcomes: repeats and their weights, peers of what was chosen."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.battery import Battery, build_family
from animalcat.service.measurement import Measurement
from animalcat.service.model import Decision, SessionSpec

SPEC = SessionSpec(
    agent="tests:agent",
    battery="navigation",
    battery_digest="",
    layout="aaio",
    layout_variant="",
    policy=Policy(exposures=0),
    stop=StoppingRule(100, target_sd=0, futility=0),
    seed=7,
)


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return build_family("navigation", 8, 0, tmp_path_factory.mktemp("batteries"))


def played(measurement: Measurement, episodes: int, *, random: bool) -> list[Decision]:
    """Let an agent play that draws anew in every episode, or once for every instance."""
    generator = np.random.default_rng(3)
    fixed: dict[str, bool] = {}
    made: list[Decision] = []
    for number in range(measurement.n, measurement.n + episodes):
        decision = measurement.choose(number)
        assert decision is not None
        anew = bool(generator.random() < 0.5)
        success = anew if random else fixed.setdefault(decision.instance, anew)
        measurement.tell(number, decision.instance, success)
        made.append(decision)
    return made


def test_repeats_of_a_random_agent_count_more_and_more(battery: Battery) -> None:
    measurement = Measurement(SPEC, battery)
    decisions = played(measurement, 40, random=True)
    told, final = measurement.data(40), measurement.final_data()
    assert "probe" in {decision.reason for decision in decisions}
    assert told.weights.min() < 0.3
    assert told.weights.sum() < final.weights.sum() < 40.0
    assert (final.weights[:1] == 1.0).all()
    retest = measurement.retest
    assert retest is not None
    assert retest["repeats"] == 40 - len({decision.instance for decision in decisions})
    assert 0 < retest["agreements"] < retest["repeats"]
    assert retest["determinism"] < 0.5
    assert measurement.data(5).features.shape == (5, 4)


def test_repeats_of_a_deterministic_agent_end_with_its_battery(battery: Battery) -> None:
    measurement = Measurement(SPEC, battery)
    while not measurement.verdict().stop:
        played(measurement, 1, random=False)
    assert measurement.verdict().reason == "the battery is exhausted"
    assert len(battery.instances) < measurement.n < 40
    assert measurement.final_data().weights.sum() < len(battery.instances) + 1.0


def test_telling_the_same_again_gives_the_same_choice(battery: Battery) -> None:
    """As after a restart: weights and probes follow from what was told."""
    first = Measurement(SPEC, battery)
    decisions = played(first, 25, random=True)
    outcomes = first.data(25).outcomes
    second = Measurement(SPEC, battery)
    for number, (decision, outcome) in enumerate(zip(decisions, outcomes, strict=True)):
        second.tell(number, decision.instance, bool(outcome))
    np.testing.assert_array_equal(first.data(25).weights, second.data(25).weights)
    assert first.choose(25) == second.choose(25)
    assert first.summary() == second.summary()


def test_a_repeat_lays_no_bets(battery: Battery) -> None:
    """Outcomes that come again are nothing that the layout predicts: they raise no alarm."""
    measurement = Measurement(SPEC, battery)
    instance = battery.instances[0].name
    for number in range(60):
        measurement.tell(number, instance, success=True)
    assert measurement.misfit == ""
    others = battery.instances[1:]
    for number, other in enumerate(others, 60):
        measurement.tell(number, other.name, success=True)
    assert measurement.data(67).weights[-1] == 1.0


def test_by_default_there_are_neither_repeats_nor_probes(battery: Battery) -> None:
    measurement = Measurement(replace(SPEC, policy=Policy()), battery)
    decisions = played(measurement, 8, random=True)
    assert len({decision.instance for decision in decisions}) == 8
    assert "probe" not in {decision.reason for decision in decisions}
    assert measurement.retest is None
    assert measurement.choose(8) is None


def test_decisions_say_what_else_of_the_paradigm_was_left(battery: Battery) -> None:
    measurement = Measurement(replace(SPEC, policy=Policy("random")), battery)
    paradigm = {instance.name: instance.paradigm for instance in battery.instances}
    left = Counter(paradigm.values())
    for number, decision in enumerate(played(measurement, 8, random=True)):
        mine = paradigm[decision.instance]
        assert decision.peers is not None
        assert decision.peers.left == left[mine]
        assert decision.peers.open
        assert decision.peers.propensity == pytest.approx(left[mine] / (8 - number))
        left[mine] -= 1
