"""Goals that change, spawners, builds: numbers of reference/animal-ai.md sections 1.4 and 2."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.builds import BUILDS, Build
from animalcat.arena_configs.catalogue import HATCH_HEIGHT
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, Item
from animalcat.arena_configs.sequence import merged
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.scene import Shape, Style, tag_index
from animalcat.envs.testing import (
    FORWARD,
    NOOP,
    lone_arena,
    play_episode,
    start,
    thing,
)
from animalcat.envs.types import (
    ACTIONS,
    CameraSpec,
    EndedBy,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
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


def played(arena: Arena, actions: list[int]) -> list[Step]:
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


def test_a_decay_goal_stops_at_its_final_value() -> None:
    item = goal("DecayGoal", z=18, initial_values=1.0, final_values=0.25, change_rates=-0.05)
    last = played(Arena(items=(start(), item)), [FORWARD] * 150)[-1]
    assert (last.ended_by, last.reward) == (EndedBy.GOAL, 0.25)


def test_ep_ending_goals_end_even_when_they_are_worth_nothing() -> None:
    worthless = {"initial_values": 1.0, "final_values": 0.0, "change_rates": -0.5}
    ends = played(
        Arena(items=(start(), goal("DecayGoalEpEnding", z=9, **worthless))), [FORWARD] * 80
    )
    assert (ends[-1].ended_by, ends[-1].reward) == (EndedBy.GOAL, 0.0)
    goes_on = played(Arena(items=(start(), goal("DecayGoal", z=9, **worthless))), [FORWARD] * 80)
    assert goes_on[-1].ended_by is None


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


def test_the_camera_shows_a_goal_decay_and_ripen() -> None:
    def frame(*items: Item) -> np.ndarray:
        environment = SimEnvironment(ObservationSpec(CameraSpec(64), rays=None))
        arena = Arena(items=(start(20, 12), *items))
        camera = list(play_episode(environment, arena, 0, [NOOP] * 40))[-1].observation.camera
        assert camera is not None
        return camera.astype(int)

    def shown(name: str, delay: float) -> np.ndarray:
        """The colour of most of the ball after 40 decisions."""
        seen = frame(goal(name, z=16, change_rates=0.05, delays=delay))
        return np.median(seen[(seen != frame()).any(axis=-1)], axis=0)

    fresh, old = shown("DecayGoal", 1000), shown("DecayGoal", 0)
    unripe, ripe = shown("RipenGoal", 1000), shown("RipenGoal", 0)
    assert fresh == pytest.approx(ripe, abs=8)
    assert old == pytest.approx(unripe, abs=8)
    # What light falls on is yellow all the time.
    assert fresh[:2].min() > 250 > old[:2].max() > old[2] > fresh[2] + 20


def test_values_out_of_range_are_bounded_and_a_goal_without_span_turns_at_once() -> None:
    item = goal("DecayGoal", initial_values=9.0, final_values=7.0, change_rates=-1e300)
    environment = still(Arena(items=(start(), item)), 2)
    assert environment.scene.color[0] == pytest.approx((*np.array(GREY) / 255, 0.0), abs=1e-6)
    near = goal("DecayGoal", z=9, initial_values=9.0, final_values=7.0)
    steps = played(Arena(items=(start(), near)), [FORWARD] * 80)
    assert (steps[-1].ended_by, steps[-1].reward) == (EndedBy.GOAL, 5.0)


def test_a_goal_of_a_later_arena_changes_from_its_own_start() -> None:
    first = Arena(items=(start(20, 5), thing("GoodGoal", 20, 0, 8)), merge_next_arena=True)
    second = Arena(items=(start(20, 5), goal("DecayGoal", z=9, delays=5)))
    alone = played(second, [FORWARD] * 80)
    sequence = merged(ArenaConfig(arenas={0: first, 1: second}))
    steps = played(sequence, [FORWARD] * 160)
    assert steps[-1].ended_by is EndedBy.GOAL
    rewards = [step.reward for step in steps if step.reward]
    assert rewards[0] == pytest.approx(0.999)
    assert rewards[1] == pytest.approx(alone[-1].reward, abs=0.02)


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


@pytest.mark.parametrize(
    "obstacle",
    [
        thing("Wall", 20, 1.0, 20, size=(3, 0.5, 3)),
        thing("Wall", 21, 0, 20, size=(1, 3, 3)),
    ],
    ids=["above", "beside"],
)
def test_growth_waits_for_room(obstacle: Item) -> None:
    held = (thing("Wall", x, 0, 20, size=(0.5, 1, 3)) for x in (18.75, 21.25))
    opposite = (thing("Wall", 19, 0, 20, size=(1, 3, 3)),)  # or it is pushed away, and grows on
    around = held if obstacle.positions[0].y else opposite
    arena = Arena(items=(start(), obstacle, *around, goal("GrowGoal", initial_values=0.5)))
    environment = still(arena, 300)
    row = len(environment.scene) - 1
    assert 0.5 < diameter(environment, row) < 1.15  # it may be 0.05 m in either side
    free = still(Arena(items=(start(), goal("GrowGoal", initial_values=0.5))), 300)
    assert diameter(free) > 1.4


def test_a_decoy_multi_goal_ends_only_after_a_pickup() -> None:
    decoy, multi = thing("DecoyGoalMulti", 20, 0, 9), thing("GoodGoalMulti", 20, 0, 14)
    more = thing("DecoyGoalMulti", 20, 0, 19), thing("GoodGoalMulti", 5, 0, 5)
    steps = played(Arena(items=(start(), decoy, multi, *more)), [FORWARD] * 200)
    assert [round(step.reward, 3) for step in steps if step.reward] == [0.999]
    assert steps[-1].ended_by is EndedBy.GOAL
    assert steps[-1].observation.position[2] > 17


def test_a_bad_multi_goal_takes_its_diameter_and_is_gone() -> None:
    bad = thing("BadGoalMulti", 20, 0, 9, size=(0.5, 0.5, 0.5))
    environment = SimEnvironment(PHYSICS)
    steps = list(play_episode(environment, Arena(items=(start(), bad)), 0, [FORWARD] * 100))
    assert [round(step.reward, 4) for step in steps if step.reward] == [-0.4995]
    assert steps[-1].ended_by is None
    assert steps[-1].observation.health == pytest.approx(50.05)
    assert not environment.scene.active.any()


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


def test_spawned_goals_add_to_the_number_of_goals() -> None:
    """A container holds one: with another goal outside, two pickups end the episode."""
    outside = thing("GoodGoalMulti", 20, 0, 9)
    container = thing("SpawnerContainerShort", 20, 0, 14, yaw=270)
    steps = played(Arena(items=(start(), outside, container)), [FORWARD] * 250)
    gains = [step.reward for step in steps if step.reward]
    assert gains == pytest.approx([0.999, 1.0])
    assert steps[-1].ended_by is EndedBy.GOAL


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
    steps = played(arena, [FORWARD] * 250)
    assert steps[-1].ended_by is EndedBy.GOAL
    assert len(steps) > 75
    # From behind there is no way in.
    closed = Arena(items=(start(20, 12), thing("SpawnerContainerShort", 20, 0, 14, yaw=90)))
    assert played(closed, [FORWARD] * 250)[-1].ended_by is None


def test_a_door_with_a_time_closes_again() -> None:
    item = thing("SpawnerContainerShort", 20, 0, 20)
    again = item.model_copy(update={"times_between_door_opens": (2.0,)})
    environment = still(Arena(items=(start(5, 5), again)), 50)
    hatch = int(np.flatnonzero(environment.scene.color[:, 3] < 1)[-1])
    high = float(environment.scene.center[hatch, 1])
    sunk: list[float] = []
    for _ in range(300):
        environment.step(NOOP)
        sunk.append(high - float(environment.scene.center[hatch, 1]))
    assert sunk[49] == pytest.approx(HATCH_HEIGHT, abs=1e-5)
    assert sunk[99:199] == [0.0] * 100
    assert sunk[249] == pytest.approx(HATCH_HEIGHT, abs=1e-5)


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


def test_a_housing_is_empty_in_the_first_frame() -> None:
    for name in ("SpawnerDispenserTall", "SpawnerContainerShort"):
        environment = still(Arena(items=(start(5, 5), thing(name, 20, 0, 20))), 3)
        assert len(balls(environment)) == 0
        environment.step(NOOP)
        assert len(balls(environment)) == 1


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


def test_rows_keep_their_place_when_something_is_spawned() -> None:
    items = (start(5, 5), thing("Wall", 10, 0, 10), thing("SpawnerTree", 20, 0, 20))
    environment = still(Arena(items=items), 99)
    before = environment.scene
    environment.step(NOOP)
    after = environment.scene
    assert len(after) == len(before) + 1
    assert (after.center[: len(before)] == before.center).all()


def test_an_invisible_data_zone_is_not_drawn_but_felt_by_rays() -> None:
    def seen(zones: tuple[Item, ...]) -> Step:
        spec = ObservationSpec(CameraSpec(32), RaySpec(tags=18))
        return SimEnvironment(spec).load(Arena(items=(start(), *zones)), 0)

    zone = thing("DataZone", 20, 0, 14, size=(3, 2, 3))
    nothing, shown = seen(()).observation, seen((zone,)).observation
    hidden = seen((zone.model_copy(update={"zone_visibility": False}),)).observation
    assert nothing.camera is not None
    assert hidden.camera is not None
    assert shown.camera is not None
    assert (hidden.camera == nothing.camera).all()
    assert (shown.camera != nothing.camera).any()
    assert hidden.rays is not None
    assert hidden.rays[16] == 1.0  # tag DataZone


def test_a_data_zone_looks_like_a_transparent_wall() -> None:
    """Their prefabs name the same material."""
    scenes = [still(lone_arena(name), 0).scene for name in ("DataZone", "WallTransparent")]
    zone, wall = ((int(s.style[0]), s.color[0].tolist()) for s in scenes)
    assert zone == wall
    assert zone[0] == Style.TRANSPARENT


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
