"""Plausible mistakes with sessions: each is refused with a sentence, or changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer

import animalcat
from animalcat.cli.session.plan import stopping_rule
from animalcat.client.values import StoppingRule
from animalcat.envs.types import ObservationSpec, RaySpec
from animalcat.errors import AnimalcatError

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "S1 no episodes": ({"max_episodes": 0}, "max_episodes 0 must be 1 at least"),
    "S3 two budgets": (
        {"stop": StoppingRule(100), "max_episodes": 3},
        "max_episodes is given as 3, and stop says 100",
    ),
    "S4 an unknown capability": (
        {"stop": StoppingRule(targets={"nose": 0.1})},
        "target of nose: no capability; there are navigationAbility",
    ),
    "S6 half a seed": ({"seed": 1.5}, "seed is 1.5; give a whole number"),
    "S6 a seed as text": ({"seed": "3"}, "seed is '3'; give a whole number"),
    "S6 a seed that is true": ({"seed": True}, "seed is True; give a whole number"),
    "S7 a negative seed": ({"seed": -1}, "seed is -1; give a whole number"),
    "half an episode": ({"max_episodes": 2.5}, "max_episodes is 2.5; give a whole number"),
    "half an episode in the rule": (
        {"stop": StoppingRule(2.5)},  # type: ignore[arg-type]
        "max_episodes is 2.5; give a whole number",
    ),
    "S8 a misspelt layout": ({"layout": "aiao"}, "no layout is named 'aiao'; there are: aaio"),
    "S21 a misspelt variant": ({"layout_variant": "metres"}, "'metres' is unknown; valid: scaled"),
    "S23 per cent": ({"random_share": 90}, "random_share 90.0 is not in"),
    "S23 a target in per cent": ({"target_sd": 10}, "target_sd 10.0 is not in"),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused(client: animalcat.Client, given: dict[str, Any], says: str) -> None:
    with pytest.raises(AnimalcatError) as error:
        client.create_session(agent="mistaken", battery="navigation", **given)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda: ObservationSpec(None, RaySpec(1), 0), "decision_period 0 is not in"),
        (lambda: ObservationSpec(None, RaySpec(5000)), "5000 rays a side is not in"),
    ],
    ids=["S19", "S20"],
)
def test_what_cannot_be_observed_is_refused(mistake: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        mistake()


@pytest.mark.parametrize(
    "targets",
    [["visualAbility=0.1m"], ["visualAbility"], ["visualAbility=0.1", "visualAbility=0.2"]],
    ids=["S5 a unit", "no share", "two targets"],
)
def test_a_target_is_a_share_and_is_given_once(
    targets: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        stopping_rule("", targets, {})
    assert "--target visualAbility" in capsys.readouterr().err


def test_what_is_more_than_there_is_and_never_mean_what_they_say(client: animalcat.Client) -> None:
    """S2, S22; and the default variant is the same whether it is named or not."""
    made = client.create_session(agent="plain", battery="navigation", max_episodes=5000)
    assert made.spec.stop.max_episodes == 5000
    assert made.spec.layout_variant == "metres-15"
    named = client.create_session(
        agent="plain", battery="navigation", max_episodes=5000, layout_variant="metres-15"
    )
    assert named.id == f"{made.id}-2"
    never = client.create_session(agent="plain", battery="navigation", target_sd=0.0)
    assert never.spec.stop.target_sd == 0.0
