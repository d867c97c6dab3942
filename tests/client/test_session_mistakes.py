"""Plausible mistakes with sessions: each is refused with a sentence, or changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import animalcat
from animalcat.cli.shared.option_table import read_options
from animalcat.envs.agents.load import AgentLoadError, load_agent
from animalcat.envs.types import ObservationSpec, RaySpec
from animalcat.errors import AnimalcatError
from animalcat.values import StoppingRule
from animalcat.values.options import SessionOptions

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "S1 no episodes": ({"max_episodes": 0}, "max_episodes 0 is out of range; give 1"),
    "S3 two budgets": (
        {"stop": StoppingRule(100), "max_episodes": 3},
        "max_episodes=100, target_sd=0.1, targets={}",
    ),
    "S4 an unknown capability": (
        {"targets": {"nose": 0.1}},
        "target of nose: no capability; there are navigationAbility",
    ),
    "S6 half a seed": ({"seed": 1.5}, "seed is 1.5; give a whole number"),
    "S6 a seed as text": ({"seed": "3"}, "seed is '3'; give a whole number"),
    "S6 a seed that is true": ({"seed": True}, "seed is True; give a whole number"),
    "S7 a negative seed": ({"seed": -1}, "seed -1 is out of range; give 0 to"),
    "half an episode": ({"max_episodes": 2.5}, "max_episodes is 2.5; give a whole number"),
    "a share as text": ({"random_share": "0.1"}, "random_share is '0.1'; give a number"),
    "one text of several": ({"about": "visualAbility"}, "about is 'visualAbility'; give a list"),
    "targets as text": ({"targets": "visualAbility"}, "targets is 'visualAbility'; give a number"),
    "S8 a misspelt layout": ({"layout": "aiao"}, "no layout is named 'aiao'; there are: aaio"),
    "S15 practice on all there is": (
        {"practice": 12},
        "practice: 12 arenas are asked for, and there are 9; practise less",
    ),
    "S18 an unknown policy": (
        {"policy": "varianz"},
        "no policy is named 'varianz'; there are: information, listed",
    ),
    "S18 one that is made": (
        {"policy": animalcat.values.Policy("random")},
        "give a text",
    ),
    "S21 a misspelt variant": ({"layout_variant": "metres"}, "'metres' is unknown; valid: scaled"),
    "S23 per cent": ({"random_share": 90}, "random_share 90 is out of range; give 0 to 1"),
    "S23 a target in per cent": (
        {"target_sd": 10},
        "target_sd 10 is out of range; give 0 to less than 1",
    ),
}


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused(client: animalcat.Client, given: dict[str, Any], says: str) -> None:
    with pytest.raises(AnimalcatError) as error:
        client.create_session(agent="mistaken", battery="navigation", **given)
    assert says in str(error.value)


def test_an_option_that_there_is_not_is_no_argument(client: animalcat.Client) -> None:
    with pytest.raises(TypeError, match="no option 'max_episode'; did you mean 'max_episodes'"):
        client.create_session(
            agent="mistaken",
            battery="navigation",
            max_episode=3,  # pyright: ignore[reportCallIssue]
        )


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (
            lambda: ObservationSpec(None, RaySpec(1), 0),
            "decision_period 0 is out of range; give 1 to 20",
        ),
        (
            lambda: ObservationSpec(None, RaySpec(5000)),
            "per_side 5000 is out of range; give 0 to 50",
        ),
    ],
    ids=["S19", "S20"],
)
def test_what_cannot_be_observed_is_refused(mistake: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        mistake()


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ("memry=2", "no limit is named 'memry'; there are: sight"),
        ("memory=two", "memory=two is out of range; memory takes 0 to 600"),
        ("lapses=90", "lapses=90 is out of range; lapses takes 0 to 1 (share of decisions)"),
        ("memory=2+memory=3", "memory is given twice"),
    ],
    ids=["S17 misspelt", "S17 a word", "S23 a probability in per cent", "S17 twice"],
)
def test_what_an_agent_is_told_is_read(limits: str, says: str) -> None:
    with pytest.raises(AgentLoadError) as error:
        load_agent(f"builtin:scout+{limits}")
    assert says in str(error.value)


@pytest.mark.parametrize(
    "targets",
    [["visualAbility=0.1m"], ["visualAbility"], ["visualAbility=0.1", "visualAbility=0.2"]],
    ids=["S5 a unit", "no share", "two targets"],
)
def test_a_target_is_a_share_and_is_given_once(
    targets: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        read_options(SessionOptions, {"targets": targets})
    assert "--target visualAbility" in capsys.readouterr().err


LAYOUT = """
name: reaching
features:
  rewardDistance: {unit: m, low: 0, high: 60}
latents:
  reach: {kind: capability, unit: m, prior: {scaled_beta: {low: 0, high: 60}}}
derived:
  passing: {link: {logistic_margin: {ability: reach, demand: rewardDistance, slope: 0.115}}}
outcome: {bernoulli: {probability: passing}}
"""


def test_a_layout_that_is_edited_is_another(client: animalcat.Client, tmp_path: Path) -> None:
    """S11: a session keeps what it began with, and another one takes the file as it is."""
    file = tmp_path / "mine.yaml"

    def make() -> animalcat.values.Session:
        return client.create_session(agent="layouts", battery="navigation", layout=file)

    file.write_text(LAYOUT)
    began = make()
    file.write_text(LAYOUT.replace("slope: 0.115", "slope: 0.2"))
    assert client.get_session(began).spec == began.spec
    assert make().spec.layout_digest != began.spec.layout_digest
    file.unlink()
    assert client.profile(began)["provenance"]["layout_digest"] == began.spec.layout_digest


def test_another_battery_and_nothing_to_compare_with(client: animalcat.Client) -> None:
    """S13, S14, S16, and S12: what a campaign is, its file says."""
    first = client.create_session(agent="first", battery="navigation", max_episodes=2)
    client.build_battery("navigation", 4, seed=9, name="four")
    with pytest.raises(AnimalcatError, match="the battery is 'four, digest"):
        client.create_session(agent="other", battery="four", against=first)
    with pytest.raises(AnimalcatError, match="has no finished episode of an arena that this layou"):
        client.create_session(agent="first", battery="navigation", against=first)
    with pytest.raises(AnimalcatError, match="no session is named 'else-0123'; there are"):
        client.get_session("else-0123")

    def campaign(budget: int) -> str:
        agents = ("a.py:A", "b.py:B")
        return client.create_campaign(
            agents=agents, battery="navigation", budget=budget, common=2, certify=False
        ).id

    made, edited = campaign(4), campaign(6)
    assert made != edited
    assert campaign(4) == made


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
