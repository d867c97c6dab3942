"""Goals, zones, obstacles, lights and replays in the embedded simulator."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.draws import UnityRandom
from animalcat.arena_configs.model import Arena
from animalcat.envs.sim.environment import Rng, SimEnvironment
from animalcat.envs.sim.journal import Journal
from animalcat.envs.sim.scene import Shape
from animalcat.envs.types import ACTIONS, EndedBy, ObservationSpec, Phase, Step
from tests.small import (
    FORWARD,
    NOOP,
    goal_arena,
    lone_arena,
    play_episode,
    random_arena,
    start,
    thing,
)
from tests.suites.environments import assert_same_steps

PLAIN = ObservationSpec(rays=None)
HATCHED = ("SpawnerDispenserTall", "SpawnerContainerShort")


def episode(arena: Arena, actions: list[int], spec: ObservationSpec = PLAIN) -> list[Step]:
    return list(play_episode(SimEnvironment(spec), arena, 0, actions))


def test_a_pickup_counts_within_the_decision() -> None:
    """t = 500, GoodGoal of size 4: 3.9952 when the second of three steps touches it, as traced."""
    seen: dict[float, float] = {}
    goal = thing("GoodGoal", 20, 0, 15, size=(4, 4, 4))
    for millimetres in range(0, 1000, 40):
        arena = Arena(time_limit=500, items=(start(z=5 + millimetres / 1000), goal))
        last = episode(arena, [FORWARD] * 60)[-1]
        assert last.ended_by is EndedBy.GOAL
        assert last.observation.health == 100.0
        seen[round(last.reward, 6)] = last.reward
    step, gain = np.float32(-1) / np.float32(2500), np.float32(4 * 0.999)
    assert set(seen.values()) == {
        float(step + gain),
        float(step + step + gain),
        float(step + step + step + gain),
    }
    assert 3.9952 in seen


@pytest.mark.parametrize("period", [1, 2, 3, 5, 20])
def test_who_stands_in_a_hot_zone_at_the_end_dies_whatever_took_the_last_health(
    period: int,
) -> None:
    spec = ObservationSpec(rays=None, decision_period=period)
    for limit in (7, 20, 21, 22, 33, 50):
        for z in (8.0, 10.0, 14.0):  # inside from the start, entered soon, and at the very end
            zone = lone_arena("HotZone", size=(10.0, 1.0, 10.0), z=z, time_limit=limit)
            steps = episode(zone, [FORWARD] * (30 // period) + [NOOP] * 300, spec)
            pace = period / (5 * limit)
            told = min(step.reward for step in steps[-2:]) < -pace * 1.001
            # What a build's client can tell from rewards is what the simulator knows.
            assert steps[-1].ended_by is (EndedBy.DEATH if told else EndedBy.TIME_LIMIT)
            assert told


def test_the_factor_0_999_is_in_rewards_and_in_sizes() -> None:
    environment = SimEnvironment(PLAIN)
    steps = list(
        play_episode(environment, lone_arena("GoodGoal", size=(2, 2, 2)), 0, [FORWARD] * 60)
    )
    assert sum(s.reward for s in steps) + 3e-4 > 2 * 0.999 - len(steps) * 3 / 1250
    assert environment.scene.half[0, 0] == np.float32(0.999)


def test_collected_multi_goals_are_gone_and_the_last_one_ends() -> None:
    arena = Arena(
        time_limit=500,
        items=(start(), *(thing("GoodGoalMulti", 20, 0, z) for z in (9, 14, 19))),
    )
    environment = SimEnvironment(PLAIN)
    steps = list(play_episode(environment, arena, 0, [FORWARD] * 60))
    gains = [step.reward for step in steps if step.reward > 0]
    assert gains == pytest.approx([0.999] * 3, abs=2e-3)
    assert steps[-1].ended_by is EndedBy.GOAL
    assert not environment.scene.active.any()


def test_a_decay_goal_loses_value_and_ends_the_episode_as_first_pickup() -> None:
    decay = thing("DecayGoal", 20, 0, 9).model_copy(update={"initial_values": (2.0,)})
    others = (thing("GoodGoalMulti", 20, 0, z) for z in (14, 19))
    last = episode(Arena(items=(start(), decay, *others)), [FORWARD] * 60)[-1]
    assert last.ended_by is EndedBy.GOAL
    assert 1.8 < last.reward < 1.95


def test_a_bouncing_goal_leaves_along_its_heading() -> None:
    arena = Arena(items=(start(x=5, z=5), thing("GoodGoalBounce", 20, 0, 20, yaw=90)))
    environment = SimEnvironment(ObservationSpec(rays=None, decision_period=1))
    environment.load(arena, 0)
    moved = [0.0]
    for _ in range(3):
        environment.step(NOOP)
        away = environment.scene.center[0] - np.float32([20, 0.5 * 0.999 + 0.01, 20])
        assert abs(away[2]) < 1e-6
        moved.append(float(away[0]))
    # As a goal of the real build, it has moved by 0.40 m after three steps: it starts one late.
    assert moved[:3] == pytest.approx([0.0, 0.0, 0.2], abs=1e-6)
    # It meets the floor in the third step, and friction slows it in that very step.
    assert 0.39 < moved[3] < 0.4 - 1e-3
    for _ in range(60):
        environment.step(NOOP)
    assert 25.0 < environment.scene.center[0, 0] < 32.0  # friction slowed it


def test_blocks_are_pushed_and_walls_are_not() -> None:
    moved: dict[str, float] = {}
    for name in ("LightBlock", "HeavyBlock", "Wall"):
        environment = SimEnvironment(PLAIN)
        list(play_episode(environment, lone_arena(name, size=(1, 1, 1), z=9), 0, [FORWARD] * 30))
        moved[name] = float(environment.scene.center[0, 2]) - 9
    assert moved["LightBlock"] > moved["HeavyBlock"] > 0.5
    assert moved["Wall"] == 0.0


def test_walls_on_walls_stand_firm_and_walls_over_nothing_fall() -> None:
    items = (
        start(),
        thing("Wall", 20, 0, 20, size=(4, 2, 4)),
        thing("Wall", 20, 2, 20, yaw=30, size=(2, 1, 2)),
        thing("Wall", 20, 3, 20, size=(1, 1, 1)),
        thing("Wall", 24, 2, 20, size=(3, 1, 1)),
    )
    environment = SimEnvironment(PLAIN)
    environment.load(Arena(items=items), 0)
    heights = environment.scene.center[:, 1].copy()
    tops = np.cumsum([2 * 0.999, 0.999, 0.999]) - 0.01
    assert heights[:3] == pytest.approx(tops - np.array([0.999, 0.4995, 0.4995]), abs=1e-5)
    for _ in range(30):
        environment.step(NOOP)
    assert (environment.scene.center[:3, 1] == heights[:3]).all()
    assert environment.scene.center[3, 1] < 1.0


@pytest.mark.parametrize(("on_it", "at_rest"), [(True, False), (False, True)])
def test_only_the_stack_that_carries_the_agent_can_lean(on_it: bool, at_rest: bool) -> None:
    slab = thing("Wall", 20, 0, 20, size=(20, 0.1, 20))
    tower = thing("Wall", 14, 0.1, 20, size=(0.3, 8, 8))
    agent = thing("Agent", 20, 0.1, 12) if on_it else start(x=3)
    environment = SimEnvironment(PLAIN)
    environment.load(Arena(items=(agent, slab, tower)), 0)
    before = environment.scene.rotation[:2].copy()
    assert (before == np.eye(3, dtype=np.float32)).all()
    for _ in range(10):
        environment.step(NOOP)
    turned = np.abs(environment.scene.rotation[:2] - before).max()
    assert (turned == 0.0) == at_rest
    assert turned < 0.01


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"Agent"}))
def test_every_kind_of_object_is_built_and_seen(name: str) -> None:
    environment = SimEnvironment(ObservationSpec())
    arena = Arena(time_limit=250, items=(start(), thing(name, 20, 0, 14, size=(3, 1, 3))))
    steps = list(play_episode(environment, arena, 0, [FORWARD] * 40))
    assert environment.skipped == ()
    scene = environment.scene
    shown = len(KINDS[name].parts) + (name in HATCHED)
    # A spawner may have let goals out by now.
    assert len(scene) >= shown if KINDS[name].reward == "spawner" else len(scene) == shown
    for array in (scene.center, scene.rotation, scene.half, scene.color):
        assert np.isfinite(array).all()
    assert np.abs(np.linalg.det(scene.rotation) - 1).max() < 1e-5
    assert steps[0].observation.rays is not None
    ahead = steps[0].observation.rays[:14]
    assert ahead[13] < 39.5 / 200  # it is nearer than the far wall


def test_what_the_scene_shows_is_where_the_bodies_are() -> None:
    environment = SimEnvironment(PLAIN)
    block = thing("UBlock", 20, 0, 8, yaw=30, size=(3, 1, 8))
    environment.load(Arena(items=(start(), block)), 0)
    before = environment.scene.center.copy()
    for _ in range(40):
        environment.step(FORWARD)
    scene = environment.scene
    assert (scene.kind == Shape.BOX).all()
    assert np.abs(scene.center - before).max() > 0.1
    for i, j in ((0, 1), (0, 2), (1, 2)):  # its parts keep their distances
        apart = np.linalg.norm(scene.center[i] - scene.center[j])
        assert apart == pytest.approx(np.linalg.norm(before[i] - before[j]), abs=1e-4)


def test_two_processes_play_bitwise_the_same() -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from animalcat.envs.sim.environment import SimEnvironment\n"
        "from tests.small import arrays, play_episode, random_arena\n"
        "from animalcat.envs.types import ObservationSpec\n"
        "h = hashlib.sha256()\n"
        "actions = np.random.default_rng(0).integers(9, size=150).tolist()\n"
        "for s in play_episode(SimEnvironment(ObservationSpec()), random_arena(), 3, actions):\n"
        "    h.update(repr(s[:3]).encode())\n"
        "    [h.update(a.tobytes()) for a in arrays(s.observation)]\n"
        "print(h.hexdigest())\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr == ""  # not a word about libvulkan


@pytest.mark.parametrize("seed", [0, 1])
def test_shortcuts_where_nothing_is_near_change_nothing(seed: int) -> None:
    zones = [thing("HotZone", 20, 0, z, size=(40, 1, 2)) for z in (12, 28)]
    goals = [thing("GoodGoalMulti", x, 0, 22) for x in range(2, 40, 2)]
    arena = Arena(time_limit=60, items=(start(20, 3, yaw=0), *zones, *goals))
    actions = (3 + np.random.default_rng(seed).choice(3, 100, p=(0.8, 0.1, 0.1))).tolist()
    # One that is logged looks at everything in every step.
    logged = SimEnvironment(ObservationSpec(), journal=Journal())
    ours = list(play_episode(SimEnvironment(ObservationSpec()), arena, 0, actions))
    assert_same_steps(ours, list(play_episode(logged, arena, 0, actions)))
    rewards = [step.reward for step in ours]
    assert min(rewards) < -0.05  # burnt on the way
    assert max(rewards) > 0.5


def test_a_snapshot_of_800_decisions_restores_exactly() -> None:
    environment = SimEnvironment(ObservationSpec())
    actions = np.random.default_rng(1).integers(ACTIONS, size=800).tolist()
    arena = goal_arena().model_copy(update={"time_limit": 0, "items": goal_arena().items[::2]})
    steps = list(play_episode(environment, arena, 2, actions))
    assert len(steps) == 801
    snapshot = environment.snapshot()
    assert snapshot.actions == bytes(actions)
    restored = environment.restore(snapshot)
    assert_same_steps([restored], steps[-1:])


def test_unity_s_stream_goes_on_over_the_episodes_of_a_process() -> None:
    def places(rng: Rng, process_seed: int, episode_seed: int) -> list[tuple[float, ...]]:
        environment = SimEnvironment(PLAIN, rng=rng, process_seed=process_seed)
        steps = [environment.load(random_arena(), episode_seed) for _ in range(3)]
        return [tuple(step.observation.position.tolist()) for step in steps]

    assert places("unity", 3, 0) == places("unity", 3, 1) != places("unity", 4, 0)
    assert len(set(places("unity", 3, 0))) == 3
    assert len(set(places("animalcat", 3, 0))) == 1
    with pytest.raises(ValueError, match="there is no rng"):
        SimEnvironment(PLAIN, rng="dice")  # type: ignore[arg-type]


def test_a_snapshot_of_a_process_of_unity_restores_exactly() -> None:
    environment = SimEnvironment(PLAIN, rng="unity", process_seed=5)
    environment.load(random_arena(), 0)
    environment.load(random_arena(), 0)
    for action in (FORWARD, FORWARD + 1, NOOP):
        last = environment.step(action)
    snapshot = environment.snapshot()
    following = environment.load(random_arena(), 0)
    assert_same_steps([environment.restore(snapshot)], [last])
    assert_same_steps([environment.load(random_arena(), 0)], [following])


def test_a_button_draws_from_unity_s_stream_at_each_press() -> None:
    button = thing("SpawnerButton", 20, 0, 8, yaw=90).model_copy(
        update={"reward_names": ("GoodGoalMulti", "GoodGoal"), "move_durations": (0.1,)}
    )
    arena = Arena(time_limit=0, items=(start(20, 5), button))
    environment = SimEnvironment(PLAIN, rng="unity")
    environment.load(arena, 0)
    draws = environment.unity_draws
    assert draws is not None
    built = draws.random.state
    before = environment.step(NOOP)
    assert draws.random.state == built
    for _ in range(40):
        before = environment.step(FORWARD)
    assert before.phase is Phase.MID
    expected = UnityRandom(0)
    expected.state = built
    for _ in range(4):  # which reward, x, z, and a yaw
        expected.bits()
    assert draws.random.state == expected.state
