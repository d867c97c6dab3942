"""Goals that change, spawners, builds: numbers of reference/animal-ai.md sections 1.4 and 2."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.builds import BUILDS, Build
from animalcat.arena_configs.catalogue import HATCH_HEIGHT
from animalcat.arena_configs.model import Arena, ArenaError, Item
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.scene import Shape, tag_index
from animalcat.envs.types import (
    ACTIONS,
    CameraSpec,
    EndedBy,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from tests.small import (
    FORWARD,
    NOOP,
    lone_arena,
    play_episode,
    start,
    thing,
)
from tests.suites.environments import assert_same_steps

PHYSICS = ObservationSpec(rays=None, decision_period=1)
"""A decision is one physics step."""


def goal(name: str, z: float = 20.0, x: float = 20.0, **values: float) -> Item:
    """A goal that changes, with its values."""
    return thing(name, x, 0, z).model_copy(update={key: (v,) for key, v in values.items()})


def still(arena: Arena, steps: int) -> SimEnvironment:
    """The arena after so many physics steps in which the agent did nothing."""
    environment = SimEnvironment(PHYSICS)
    for step in play_episode(environment, arena, 0, [NOOP] * steps):
        assert step.phase is not Phase.LAST
    return environment


def diameter(environment: SimEnvironment, row: int = 0) -> float:
    return 2 * float(environment.scene.half[row, 0])


def balls(environment: SimEnvironment) -> np.ndarray:
    """Rows of goals that are there."""
    scene = environment.scene
    tag = tag_index("goodGoalMulti")
    return np.flatnonzero(scene.active & (scene.kind == Shape.SPHERE) & (scene.tag == tag))


def play_out(arena: Arena, actions: list[int]) -> list[Step]:
    return list(play_episode(SimEnvironment(PHYSICS), arena, 0, actions))


@pytest.mark.parametrize(("name", "size"), [("DecayGoal", 2.5), ("RipenGoal", 2.5)])
def test_decay_and_ripen_lose_value_by_step_and_keep_their_size(name: str, size: float) -> None:
    arena = Arena(items=(start(), goal(name, z=9, delays=10)))
    environment = SimEnvironment(PHYSICS)
    steps = list(play_episode(environment, arena, 0, [FORWARD] * 80))
    assert steps[-1].ended_by is EndedBy.GOAL
    age = len(steps) - 2 - 10  # its script starts in the second step
    assert steps[-1].reward == pytest.approx(2.5 - 0.005 * age, abs=1e-5)
    assert diameter(environment) == pytest.approx(size * 0.999)


EMITTED = {"DecayGoal": (233, 184, 35), "DecayGoalEpEnding": (128, 190, 64)}
GREY = (100, 100, 100)


@pytest.mark.parametrize("name", EMITTED)
@pytest.mark.parametrize("kin", ["Decay", "Ripen"])
def test_the_colour_of_a_changing_goal_follows_its_value(name: str, kin: str) -> None:
    values = {"initial_values": 2.0, "final_values": 1.0, "change_rates": 0.05, "delays": 10}
    first, last = np.array((EMITTED[name], GREY) if kin == "Decay" else (GREY, EMITTED[name])) / 255
    item = goal(name.replace("Decay", kin), **values)
    environment = still(Arena(items=(start(), item)), 1)  # its script starts in the second step
    seen: list[np.ndarray] = []
    for _ in range(10 + 20 + 5):
        seen.append(environment.scene.color[0].copy())
        environment.step(NOOP)
    colors = np.array(seen)
    assert colors[:11] == pytest.approx(np.tile((*first, 1.0), (11, 1)), abs=1e-6)
    half = (first + last) / 2 + 0.05  # it gleams on the way
    assert colors[20] == pytest.approx((*half, 0.5), abs=1e-5)
    assert colors[30:] == pytest.approx(np.tile((*last, 0.0), (5, 1)), abs=1e-6)
    assert (np.diff(colors[10:31, 3]) < 0).all()


@pytest.mark.parametrize(("name", "sign", "first"), [("GrowGoal", 1, 0.5), ("ShrinkGoal", -1, 2.5)])
def test_grow_and_shrink_change_by_the_rate_and_0_999_a_step(
    name: str, sign: int, first: float
) -> None:
    environment = still(Arena(items=(start(), goal(name, delays=20))), 21)
    assert diameter(environment) == pytest.approx(first * 0.999, rel=1e-6)
    size = first * 0.999
    for _ in range(100):
        environment.step(NOOP)
        size = (size + sign * 0.005) * 0.999
    assert diameter(environment) == pytest.approx(size, rel=1e-5)
    assert environment.scene.center[0, 1] == pytest.approx(size / 2 - 0.01, abs=0.02)


def test_growth_ends_at_the_final_value_and_is_what_contact_gives() -> None:
    item = goal("GrowGoal", z=16, initial_values=1.0, final_values=1.2, change_rates=0.05)
    environment = SimEnvironment(PHYSICS)
    steps = list(play_episode(environment, Arena(items=(start(), item)), 0, [FORWARD] * 150))
    assert steps[-1].ended_by is EndedBy.GOAL
    assert steps[-1].reward == pytest.approx(1.2 * 0.999)
    assert diameter(environment) == pytest.approx(1.2 * 0.999)
    distance = np.linalg.norm(environment.scene.center[0] - steps[-2].observation.position)
    assert distance == pytest.approx(0.5 + 0.6 * 0.999, abs=0.1)


def test_a_tree_bears_ten_goals_that_grow_for_four_seconds_and_fall() -> None:
    environment = still(Arena(items=(start(5, 5), thing("SpawnerTree", 20, 0, 20))), 0)
    seen: list[int] = []
    for step in range(1, 1100):
        before = len(balls(environment))
        environment.step(NOOP)
        if len(balls(environment)) > before:
            seen.append(step)
        if step == 100:
            [first] = balls(environment)
            middle = np.array([20 - 0.1, 0.01 + 4.3, 20 + 0.1])  # its frame is turned by 90
            assert diameter(environment, first) == pytest.approx(0.2)
            away = np.linalg.norm(environment.scene.center[first] - middle)
            assert away == pytest.approx(2.25, abs=1e-3)
            place = environment.scene.center[first].copy()
        if step == 200:
            assert diameter(environment, first) == pytest.approx(0.6, abs=0.01)
        if step == 299:
            assert (environment.scene.center[first] == place).all()
    assert seen == [100 + 75 * i for i in range(10)]
    fallen = environment.scene.center[balls(environment)]
    assert (fallen[:, 1] < 0.6).all()
    assert (environment.scene.half[balls(environment), 0] == 0.5).all()


def test_a_container_opens_its_hatch_from_the_first_to_the_second_second() -> None:
    arena = Arena(items=(start(5, 5), thing("SpawnerContainerShort", 20, 0, 20)))
    environment = still(arena, 1)
    hatch = int(np.flatnonzero(environment.scene.color[:, 3] < 1)[-1])
    heights = [float(environment.scene.center[hatch, 1])]
    for _ in range(150):
        environment.step(NOOP)
        heights.append(float(environment.scene.center[hatch, 1]))
    sunk = heights[0] - np.array(heights)
    assert (sunk[:50] == 0).all()
    assert sunk[75] == pytest.approx(HATCH_HEIGHT / 2, abs=0.03)
    assert sunk[100:] == pytest.approx(HATCH_HEIGHT, abs=1e-5)
    [ball] = balls(environment)
    assert environment.scene.center[ball, [0, 2]] == pytest.approx([20, 20], abs=0.03)


def test_a_closed_container_keeps_its_goal_from_the_agent() -> None:
    """Its door faces the agent: before it opens the agent runs into it."""
    arena = Arena(items=(start(20, 12), thing("SpawnerContainerShort", 20, 0, 14, yaw=270)))
    steps = play_out(arena, [FORWARD] * 250)
    assert steps[-1].ended_by is EndedBy.GOAL
    assert len(steps) > 75
    # From behind there is no way in.
    closed = Arena(items=(start(20, 12), thing("SpawnerContainerShort", 20, 0, 14, yaw=90)))
    assert play_out(closed, [FORWARD] * 250)[-1].ended_by is None


def test_a_dispenser_holds_its_goals_between_its_walls() -> None:
    """They may leave in front (-x), but here they come to rest on one another with most seeds."""
    arena = Arena(items=(start(5, 5), thing("SpawnerDispenserTall", 20, 0, 20)))
    environment = SimEnvironment(PHYSICS)
    environment.load(arena, 4)
    for _ in range(400):
        environment.step(NOOP)
    rows = balls(environment)
    assert 4 <= len(rows) <= 10
    x, z = (environment.scene.center[rows][:, axis] - 20 for axis in (0, 2))
    assert not (x > 1.67 / 2).any()
    assert not ((abs(z) > 1.67 / 2) & (x > -1.67 / 2)).any()


def test_moving_arenas_replay_bitwise_and_restore() -> None:
    names = ("SpawnerTree", "SpawnerDispenserTall", "GrowGoal", "DecayGoal", "LightBlock")
    board = Item(name="SignBoard", symbol_names=("5x4",))
    arena = Arena(items=(*(Item(name=name) for name in names), board))
    spec = ObservationSpec(camera=CameraSpec(16), rays=RaySpec(tags=18))
    actions = np.random.default_rng(2).integers(ACTIONS, size=200).tolist()
    one, two = SimEnvironment(spec), SimEnvironment(spec)
    steps = list(play_episode(one, arena, 1, actions))
    assert_same_steps(steps, list(play_episode(two, arena, 1, actions)))
    assert len(one.scene) > 12
    restored = two.restore(one.snapshot())
    assert_same_steps([restored], steps[-1:])
    assert one.scene.center.tobytes() == two.scene.center.tobytes()
    assert one.scene.color.tobytes() == two.scene.color.tobytes()
    assert one.scene.pixels.tobytes() == two.scene.pixels.tobytes()


def test_an_invisible_data_zone_is_not_drawn_but_felt_by_rays() -> None:
    def first_step(zones: tuple[Item, ...]) -> Step:
        spec = ObservationSpec(CameraSpec(32), RaySpec(tags=18))
        return SimEnvironment(spec).load(Arena(items=(start(), *zones)), 0)

    zone = thing("DataZone", 20, 0, 14, size=(3, 2, 3))
    nothing, shown = first_step(()).observation, first_step((zone,)).observation
    hidden = first_step((zone.model_copy(update={"zone_visibility": False}),)).observation
    assert nothing.camera is not None
    assert hidden.camera is not None
    assert shown.camera is not None
    assert (hidden.camera == nothing.camera).all()
    assert (shown.camera != nothing.camera).any()
    assert hidden.rays is not None
    assert hidden.rays[16] == 1.0  # tag DataZone


def test_builds_differ_in_masses_and_in_the_ramp_s_tag() -> None:
    pushed: dict[Build, float] = {}
    tags: dict[Build, int] = {}
    for build in BUILDS:
        environment = SimEnvironment(PHYSICS, build=build)
        list(play_episode(environment, lone_arena("HeavyBlock", z=9), 0, [FORWARD] * 90))
        pushed[build] = float(environment.scene.center[0, 2])
        environment.load(lone_arena("Ramp", size=(3, 1, 3)), 0)
        tags[build] = int(environment.scene.tag[0])
    assert pushed["4.2"] == pushed["4.1"] < pushed["3.1.3"] - 1
    assert pushed["4.x"] == pytest.approx(pushed["4.1"], abs=1e-4)
    immovable, ramp = tag_index("Immovable"), tag_index("Ramp")
    assert tags == {"4.x": immovable, "4.2": immovable, "4.1": ramp, "3.1.3": immovable}
    with pytest.raises(ValueError, match=r"4\.x, 4\.2, 4\.1, 3\.1\.3"):
        SimEnvironment(PHYSICS, build="5")


@pytest.mark.parametrize(
    ("blackouts", "words"), [((10, 60), "60 is after"), ((20, 10), "increase")]
)
def test_blackouts_that_a_build_refuses(blackouts: tuple[int, ...], words: str) -> None:
    arena = Arena(time_limit=50, items=(start(),), blackouts=blackouts)
    with pytest.raises(ArenaError, match=words):
        SimEnvironment(PHYSICS).load(arena, 0)
    SimEnvironment(PHYSICS, build="3.1.3").load(arena, 0)
