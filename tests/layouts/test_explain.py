"""Why an episode failed: margins, what decided, and what would tell more."""

from __future__ import annotations

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.explaining.episode import CHANCE, explain
from animalcat.layouts.explaining.session import explain_of
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances

COLUMNS = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
FAR, SMALL, BOTH, EASY = ([45, 4, 0, 0], [4, 0.5, 0, 0], [45, 0.5, 0, 0], [4, 4, 0, 0])


def bank() -> Bank:
    rows = [FAR, SMALL, BOTH, EASY, [20, 2, 0, 0], [30, 1, 0, 0]]
    names = ("far", "small", "both", "easy", "middle", "hard")
    table = Instances(COLUMNS, np.array(rows, float), ("open",) * 6, names)
    return Bank.of(load_layout("aaio", "metres-15"), table)


def draws(navigation: float, sight: float, spread: float = 0.1) -> np.ndarray:
    g = np.random.default_rng(1)
    theta = g.normal([navigation, sight, 0.0, 0.02], [spread, spread, 0.01, 0.001], (400, 4))
    return np.clip(theta, [0, 0, -3, 0], [5.3, 1.9, 3, 1])


def test_a_weak_eye_is_what_decides() -> None:
    found = explain(bank(), draws(5.0, 0.3), BOTH, 0.0, instance="both")
    first = found.needs[0]
    assert first.node == "visualAbility"
    assert first.decided > 0.9
    assert first.margin is not None
    assert first.margin < 0.0
    assert first.changed == {"rewardSize": 10.0}
    assert first.without[0] > found.expected + 0.3
    other = next(need for need in found.needs if need.node == "navigationAbility")
    assert other.ahead is not None
    assert other.ahead > 0.9
    assert "visualAbility made it fail" in found.sentences[1]
    assert (
        "the arena asks for 0.5 m of rewardSize, and it masters 3.5 m (2.8 to" in found.sentences[1]
    )
    again = "It failed both; if it played both again, the layout would expect it to pass in "
    assert found.sentences[0].startswith(again)


def test_two_candidates_are_told_apart_by_an_arena_that_asks_for_one() -> None:
    either = np.concatenate([draws(5.0, 0.2), draws(0.4, 1.8)])
    found = explain(bank(), either, BOTH, 0.0, instance="both")
    named = {need.node: need.decided for need in found.needs if need.decided > 0.1}
    assert set(named) == {"navigationAbility", "visualAbility"}
    assert found.discriminators[0].instance in ("far", "small")
    best = found.discriminators[0]
    apart = abs(best.predicted["navigationAbility"] - best.predicted["visualAbility"])
    assert apart > 0.4
    assert 0.0 < best.bits <= 1.0
    played = explain(bank(), either, BOTH, 0.0, instance="both", played=[best.instance])
    assert best.instance not in [one.instance for one in played.discriminators]


def test_what_nothing_explains_is_chance() -> None:
    found = explain(bank(), draws(5.2, 1.88, 0.01), EASY, 0.0, instance="easy")
    assert found.chance > 0.5
    assert CHANCE in found.sentences[1]
    assert not found.discriminators


def test_nothing_that_the_agent_masters_is_blamed() -> None:
    """Its estimate is above the demand by little, so the demand costs it most all the same."""
    found = explain(bank(), draws(3.4, 1.8, 0.4), FAR, 0.0, instance="far", happened="It died.")
    first = found.needs[0]
    assert (first.node, first.decided > found.chance, first.short) == (
        "navigationAbility", True, False
    )  # fmt: skip
    assert found.sentences[0] == "It died."
    assert "nothing clearly made it fail. It is nearest to its limit in nav" in found.sentences[2]
    assert (
        "the arena asks for 45 m of rewardDistance, and it masters more, 5" in (found.sentences[2])
    )
    assert not any("most likely" in sentence for sentence in found.sentences)


def test_json_of_a_learner_follows_the_schema() -> None:
    learner = Learner(bank(), None, StoppingRule(20), seed=1)
    for number, (name, passed) in enumerate((("far", 0.0), ("easy", 1.0), ("both", 0.0))):
        learner.tell(name, passed, number)
    found = explain_of(learner, "both", 0.0)
    text = (resources.files("animalcat") / "schemas" / "episode_explain.schema.json").read_text()
    content = {"episode": "e", "predicted": 0.5, "contradicted": "", **found.to_dict()}
    jsonschema.validate(json.loads(json.dumps(content)), json.loads(text))
    assert all(one.instance not in ("far", "easy", "both") for one in found.discriminators)
    with pytest.raises(KeyError):
        explain_of(learner, "nowhere", 0.0)


def test_ability_and_demand_are_distances_of_the_same_arena() -> None:
    """Behind the agent 30 m count as 45 m, and who masters 15 m ahead masters 10 m behind."""
    behind = explain(bank(), draws(1.0, 1.8), [30, 4, 1, 0], 0.0, instance="behind").needs[0]
    assert behind.asks == "30 m of rewardDistance with rewardBehind 1"
    assert behind.has.startswith("10.0 m (")
    plain = explain(bank(), draws(1.0, 1.8), FAR, 0.0, instance="far").needs[0]
    assert plain.asks == "45 m of rewardDistance"
    assert plain.has.startswith("15")


def test_what_several_lacks_decide_together_is_not_called_chance() -> None:
    found = explain(bank(), draws(0.1, 0.2), [59, 0.4, 0, 0], 0.0, instance="both")
    assert found.chance > 0.9  # no single repair helps
    said = found.sentences[1]
    assert "several capabilities fall short at once, so none of them decided alone: " in said
    assert "navigationAbility, where it asks for " in said
    assert "of rewardDistance and it masters 1.6 m (" in said
    assert "visualAbility, where it asks for 0.4 m of rewardSize and it masters 3.9 m (" in said
