"""Ids follow from what was asked for, and stay what they were."""

from __future__ import annotations

from dataclasses import replace

from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.ids import asked_values, campaign_id, session_id
from animalcat.values import CampaignSpec, SessionSpec

PLAIN = SessionSpec(
    "builtin:braitenberg", "navigation", "ab" * 32, "aaio", "", Policy(), StoppingRule()
)
RICH = SessionSpec(
    agent="lab/Ärger",
    battery="b",
    battery_digest="cd" * 32,
    layout="object-permanence",
    layout_variant="no-noise",
    policy=Policy(
        "information",
        random_share=1e-5,
        about=("visualAbility",),
        order=("a", "b"),
        generate=True,
    ),
    stop=StoppingRule(
        max_episodes=40,
        target_sd=1 / 3,
        targets={"visualAbility": 0.2, "é": 0.1},
        max_seconds=1e22,
        combine="all",
    ),
    seed=2**63 + 1,
    backend="unity",
    observation_spec=ObservationSpec(CameraSpec(32, True), None, 6),
    action_timeout_seconds=2.5,
    record_pixels=True,
    certify=False,
    slots=4,
)
RAYS = SessionSpec(
    "a",
    "b",
    "",
    "aaio",
    "",
    Policy("random"),
    StoppingRule(max_episodes=3, target_sd=0, futility=0),
    observation_spec=ObservationSpec(None, RaySpec(7, 30, 18)),
)


def test_ids_stay_what_they_are() -> None:
    """From the first release on, whatever fields come later: recordings and links hold by them."""
    assert session_id(PLAIN) == "braitenberg-0b06a146"
    assert session_id(RICH) == "lab-rger-79d143d4"
    assert session_id(RAYS) == "a-be5afedb"
    assert campaign_id(CampaignSpec(("a", "b"), PLAIN, 200, 5)) == "campaign-6d881473"
    assert campaign_id(CampaignSpec(("a", "b", "ö"), RICH, 200)) == "campaign-7c4c5496"


def test_the_id_of_a_session_follows_from_what_was_asked_for() -> None:
    assert session_id(PLAIN) != session_id(replace(PLAIN, seed=8))
    assert "/" not in session_id(replace(PLAIN, agent="../../a b:Ä/c"))


def test_what_the_server_brings_along_is_not_in_an_id() -> None:
    newer = replace(PLAIN, rules=7, layout_digest="ef" * 32)
    assert session_id(newer) == session_id(PLAIN)
    assert asked_values(newer) == asked_values(PLAIN)


def test_a_layout_of_ones_own_is_in_the_id_by_its_content() -> None:
    mine = replace(PLAIN, layout="mine", layout_digest="ef" * 32)
    assert session_id(mine) != session_id(replace(mine, layout_digest="01" * 32))
