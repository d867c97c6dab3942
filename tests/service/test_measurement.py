"""What a session makes of its outcomes: repeats and their weights, peers of what was chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.measurement import Measurement
from animalcat.values import Decision, SessionSpec

from .conftest import open_floor

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
    return open_floor(8, tmp_path_factory.mktemp("batteries"))


def play_out(measurement: Measurement, episodes: int, *, random: bool) -> list[Decision]:
    """Let an agent play that draws anew in every episode, or once for every instance."""
    generator = np.random.default_rng(3)
    fixed: dict[str, bool] = {}
    made: list[Decision] = []
    for number in range(measurement.learner.n, measurement.learner.n + episodes):
        decision = measurement.choose(number)
        assert decision is not None
        anew = bool(generator.random() < 0.5)
        success = anew if random else fixed.setdefault(decision.instance, anew)
        measurement.learner.tell(decision.instance, success, number)
        made.append(decision)
    return made


def test_repeats_of_a_random_agent_count(battery: Battery) -> None:
    spec = replace(SPEC, policy=Policy(exposures=0, probes=0.3))
    measurement = Measurement(spec, battery)
    decisions = play_out(measurement, 40, random=True)
    data = measurement.learner.data()
    assert "probe" in {decision.reason for decision in decisions}
    assert 0.5 < data.weights.min() < 1.0
    assert data.weights[0] == 1.0
    assert 30.0 < data.weights.sum() < 40.0
    retest = measurement.learner.retest
    assert retest is not None
    assert retest["repeats"] == 40 - len({decision.instance for decision in decisions})
    assert 0 < retest["agreements"] < retest["repeats"]
    assert retest["determinism"] < 0.5
    assert data.features.shape == (40, 4)


def test_a_certificate_knows_repeats_by_what_was_known_then(battery: Battery) -> None:
    """Its draws are applied later, when they count otherwise: live and after a restart alike."""
    lived = Measurement(SPEC, battery)
    decisions = play_out(lived, 20, random=True)
    draws = np.array([[node.mean] * 200 for node in lived.learner.summary()]).T
    decisions += play_out(lived, 8, random=True)
    outcomes = lived.learner.data().outcomes
    lived.learner.reseed(draws, 20)
    again = Measurement(SPEC, battery)
    for number, (decision, outcome) in enumerate(zip(decisions, outcomes, strict=True)):
        again.learner.tell(decision.instance, bool(outcome), number)
    again.learner.reseed(draws, 20)
    assert again.learner.summary() == lived.learner.summary()
    assert again.choose(28) == lived.choose(28)


def test_a_repeat_lays_no_bets(battery: Battery) -> None:
    """Outcomes that come again are nothing that the layout predicts: they raise no alarm."""
    measurement = Measurement(SPEC, battery)
    instance = battery.instances[0].name
    for number in range(60):
        measurement.learner.tell(instance, True, number)
    assert measurement.learner.misfit == ""
    others = battery.instances[1:]
    for number, other in enumerate(others, 60):
        measurement.learner.tell(other.name, True, number)
    assert measurement.learner.data().weights[-1] == 1.0


def test_a_session_of_rules_that_are_not_known_cannot_go_on(battery: Battery) -> None:
    with pytest.raises(ServiceError, match="began under decision rules of version 99") as error:
        Measurement(replace(SPEC, rules=99), battery)
    assert error.value.code is Code.SESSION_FAILED


def test_arenas_without_a_time_limit_are_taken_for_the_longest(battery: Battery) -> None:
    """They can be chosen, also where a second counts; nobody knows how long they take."""
    first, second, *rest = battery.instances
    some = (replace(first, time_limit_steps=0), replace(second, time_limit_steps=9999), *rest)
    mixed = replace(battery, instances=some)
    assert mixed.expected_steps[first.name] == 9999
    assert mixed.expected_steps[rest[0].name] == rest[0].time_limit_steps
    limitless = replace(
        battery, instances=tuple(replace(one, time_limit_steps=0) for one in battery.instances)
    )
    assert len(set(limitless.expected_steps.values())) == 1
    spec = replace(SPEC, policy=Policy("information", exposures=1, per_second=True))
    for some in (mixed, limitless):
        decisions = play_out(Measurement(spec, some), len(battery.instances), random=True)
        assert {decision.instance for decision in decisions} == set(some.index)


def test_variants_of_one_demand_vector_wait_together(battery: Battery) -> None:
    """Also where rounding makes their demands unequal."""
    one, *others = battery.instances[:4]
    nearly = {**one.features, "rewardDistance": one.features["rewardDistance"] + 1e-9}
    small = replace(battery, instances=(one, replace(one, name="twin", features=nearly), *others))
    assert small.groups["twin"] == one.name
    policy = Policy("random", exposures=0, probes=0.0, cool_down=1)
    measurement = Measurement(replace(SPEC, policy=policy), small)
    chosen = [small.groups[d.instance] for d in play_out(measurement, 40, random=True)]
    assert one.name in chosen
    assert all(a != b for a, b in pairwise(chosen))


def test_pairs_take_a_battery_that_has_some(battery: Battery) -> None:
    spec = replace(SPEC, policy=Policy(pairs=True))
    with pytest.raises(ServiceError, match="no arena of the battery together with a control"):
        Measurement(spec, battery)
    linked = [
        replace(instance, control="open", control_of=battery.instances[0].name)
        for instance in battery.instances[1:]
    ]
    paired = replace(battery, instances=(battery.instances[0], *linked))
    decisions = play_out(Measurement(spec, paired), 3, random=True)
    assert [decision.reason for decision in decisions][1] == "pair"
    with pytest.raises(ServiceError, match="leave out fresh or pairs"):
        Measurement(replace(spec, fresh=True), paired)
