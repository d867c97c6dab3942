"""Which cues a battery cannot tell from ability."""

from __future__ import annotations

import numpy as np

from animalcat.arena_configs.instance import Instance
from animalcat.service.batteries.impostors import ENOUGH, impostors


def instances(paradigm: str, count: int, **features: object) -> list[Instance]:
    """Instances of a paradigm; a feature is a number, or one for each of them."""
    columns = {name: np.broadcast_to(np.asarray(v, float), count) for name, v in features.items()}
    return [
        Instance(
            name=f"{paradigm}-{k}",
            paradigm=paradigm,
            features={n: float(c[k]) for n, c in columns.items()},
            pass_mark=0.0,
            time_limit_steps=100,
            seed=0,
            arena="",
            missing={},
        )
        for k in range(count)
    ]


def test_arenas_in_which_a_cue_and_the_goal_part_are_counted() -> None:
    hidden = {"occluderPresence": 1.0, "rightLeftPosition": 0.0}
    same = instances("cups", 70, lastPlaceShows=1.0, occluderRed=240.0, **hidden)
    moved = instances("cups", 10, lastPlaceShows=0.0, occluderRed=20.0, **hidden)
    right = instances("food", 60, lastPlaceShows=1.0, occluderPresence=0.0, rightLeftPosition=1.0)
    found = {one.agent: one for one in impostors([*same, *moved, *right])}
    counted = {agent: one.parting for agent, one in found.items()}
    assert counted == {
        "goes to where it last saw the goal": 10,
        "goes to the left": 60,
        "goes to the right": 0,
        "fails where red hides the goal": 10,
        "fails at an apparatus in which the goal is hidden": 0,
    }
    assert found["goes to the right"].verdict == "cannot be told apart"
    assert found["goes to where it last saw the goal"].verdict == "can hardly be told apart"
    assert counted["goes to the left"] >= ENOUGH
    assert found["goes to the left"].verdict == "can be told apart"


def test_a_ramp_that_is_not_needed_tells_who_fails_wherever_there_is_one() -> None:
    needed = instances("ramp", 9, ramps=1.0, rampNeeded=1.0)
    aside = instances("slope", 7, ramps=1.0, rampNeeded=0.0)
    unknown = instances("odd", 5, ramps=1.0)
    (found,) = impostors([*needed, *aside, *unknown])
    assert (found.agent, found.parting) == ("fails wherever a ramp is", 7)
