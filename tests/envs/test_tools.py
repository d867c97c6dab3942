"""Tasks that the planner cannot solve are solved by going from stop to stop, and not by others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.outcome import success
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.state import Column
from animalcat.envs.types import ObservationSpec

DEGREES_PER_DECISION = 6.0
PATIENCE = 150
"""Decisions after which a stop that is not reached is given up: something is in the way."""


class Stop(NamedTuple):
    """Where to go, at most how fast in m/s, and whether backwards."""

    x: float
    z: float
    fast: float = 3.0
    back: bool = False


def plain(name: str, paradigm: str, seed: int, *controls: str) -> list[FamilyInstance]:
    """An instance that is neither turned nor a mirror image, and controls of it."""
    family = load_family(name)
    family = replace(family, variants=replace(family.variants, mirror=False, turns=False))
    rng = np.random.default_rng(seed)
    return generate(family, 1, rng, paradigm=paradigm, controls=controls)


def passes(one: FamilyInstance, stops: Sequence[Stop], decisions: int = 1000) -> bool:
    """Go from stop to stop, and then after the food wherever it is; whether that passes."""
    environment = SimEnvironment(ObservationSpec(None, None, privileged=True))
    try:
        step = environment.load(one.arena, 0)
        yaw, left, since, total = float(one.parameters["angle"]), [*stops], 0, 0.0
        for _ in range(decisions):
            x, _, z = map(float, step.observation.position)
            speed = float(step.observation.velocity[2])
            while left and (math.hypot(left[0].x - x, left[0].z - z) < 0.3 or since > PATIENCE):
                left, since = left[1:], 0
            since += 1
            to = left[0] if left else _food(step.observation.state)
            away = math.hypot(to.x - x, to.z - z)
            want = math.degrees(math.atan2(to.x - x, to.z - z)) + 180 * to.back
            off = (want - yaw + 180) % 360 - 180
            turn = 0 if abs(off) <= DEGREES_PER_DECISION / 2 else 1 if off > 0 else 2
            yaw += DEGREES_PER_DECISION * (0, 1, -1)[turn]
            slow = (-speed if to.back else speed) < min(to.fast, 0.8 + 2.5 * away)
            step = environment.step(3 * (1 + to.back) * (abs(off) < 12 and slow) + turn)
            total += step.reward
            if step.ended_by is not None:
                break
        return success(total, one.arena.pass_mark)
    finally:
        environment.close()


def _food(state: Any) -> Stop:
    row = next(row for row in state if row[Column.REWARD] > 0)
    return Stop(float(row[Column.CENTER]), float(row[Column.CENTER + 2]))


def push_end(p: Mapping[str, Any], held: bool) -> list[Stop]:
    """Push a swing door at its free end, or at the end that the post holds."""
    x = 20 + p["aside"] + (p["post"] / 2 - p["door"] / 2 if held else p["door"] / 2 - 0.7)
    return [Stop(x, 17.5), Stop(x, 23)]


def push_stick(p: Mapping[str, Any], right: bool) -> list[Stop]:
    """Push the stick on one side into the tube, and go round to the other end."""
    side = 1 if right else -1
    end = 20 + side * (p["free"] + p["stick"])
    far = p["channel"] / 2 + p["size"] / 2
    return [
        Stop(end + side * 1.5, 16.5),
        Stop(end + side * 1.5, 20, 1.0),
        Stop(end - side * (p["free"] + far + 1.2), 20, 1.5),
        Stop(end + side, 20, back=True),
        Stop(end + side, 16.5),
        Stop(20 - side * (far + 0.8), 16.5),
    ]


def draw_out(p: Mapping[str, Any], right: bool) -> list[Stop]:
    """Go between the arms of a block, on one side of the ridge, and push its near arm back."""
    side = 1 if right else -1
    middle = 20 + side * p["out"] * p["choice"]
    # The bay opens to the right on the left side, and to the left on the right side.
    inwards = -1 if right else 1
    near = p["middle"] - p["long"] * 0.55
    inside = min(p["shore"] - 1.2, near + 2.5)
    first = Stop(20 + side * 3, 6) if p["choice"] else Stop(middle + 6, near - 2)
    return [
        first,
        Stop(middle + inwards * 4.4, inside - 0.3),
        Stop(middle + inwards * 1.9, inside, 1.0),
        Stop(middle + inwards * 1.6, near - 4.5, 2.0),
        Stop(middle + inwards * 1.6, near - 5.5, 2.0),
    ]


def bridge(p: Mapping[str, Any], pushed: bool) -> list[Stop]:
    """Push the box between ramp and platform, or do not; then up the ramp and round the pane."""
    z, side = p["platform"] - p["gap"] / 2, 20 + p["wide"] / 2
    foot, top, lane = p["foot"], p["top"], 20 + p["width"] / 2 + 0.95
    push = [
        Stop(p["box"] + p["wide"] / 2 + 4, 10, 4.0),
        Stop(p["box"] + p["wide"] / 2 + 2.5, z, 4.0),
        Stop(side + 0.4, z, 2.0),
        Stop(side + 3, z, 4.0, back=True),
        Stop(side + 5, foot - 2, 4.0),
    ]
    climb = [Stop(20, foot - 3, 4.0), Stop(20, top + 0.6, 4.0), Stop(lane, top + 0.6)]
    over = [Stop(lane, top + 2.2), Stop(21, z), Stop(20, p["platform"] + 2)]
    leap = [Stop(lane, p["platform"] + 2, 25.0)]
    return [*push, *climb, *over] if pushed else [*climb, *leap]


Way = Callable[[Mapping[str, Any], bool], list[Stop]]
TASKS: dict[tuple[str, str], tuple[Way, bool, bool]] = {
    ("trap-tube", "trap-tube"): (push_stick, True, False),
    ("string", "one"): (draw_out, False, True),
    ("string", "no_arm"): (draw_out, False, True),
    ("string", "beyond"): (draw_out, False, True),
    ("ramp-and-box", "ramp-and-box"): (bridge, True, False),
}
"""By family and paradigm, how it is done, the right way and the wrong way."""


@pytest.mark.parametrize("task", TASKS, ids="-".join)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_tool_brings_the_food_if_it_is_used_rightly(task: tuple[str, str], seed: int) -> None:
    (one,) = plain(*task, seed)
    way, right, wrong = TASKS[task]
    assert passes(one, way(one.parameters, right))
    if task != ("string", "one"):  # there is one block, and no wrong side
        assert not passes(one, way(one.parameters, wrong))


@pytest.mark.parametrize("seed", [3, 4])
def test_a_door_swings_at_its_free_end_and_without_a_post_at_the_other_too(seed: int) -> None:
    one, loose = plain("swing-door", "swing-door", seed, "loose")
    free, held = (push_end(one.parameters, held) for held in (False, True))
    assert passes(one, free, decisions=250)
    assert not passes(one, held, decisions=250)
    assert passes(loose, held, decisions=250)
