"""What the simulator plays differently as another build of Animal-AI."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from animalcat.arena_configs.model import Arena, GrantReward, Item, Vector3
from animalcat.arena_configs.placement import PlacedObject
from animalcat.envs.backends import make_environment
from animalcat.envs.gym import ArenaEnv
from animalcat.envs.sim.builds import step_seconds
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.journal import EpisodeView, Journal
from animalcat.envs.sim.scene import tag_index
from animalcat.envs.types import EndedBy, ObservationSpec, Phase
from tests.small import FORWARD, NOOP, start, thing

PLAIN = ObservationSpec(rays=None)
SECOND = 50


@dataclass
class Notes(Journal):
    """Notes when a spawner gave what."""

    steps: int = 0
    given: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])

    def step(self, played: EpisodeView, move: int, turn: int) -> None:
        self.steps += 1

    def dispense(self, spawner: PlacedObject, goal: PlacedObject) -> None:
        self.given.append((self.steps, goal.size.x))


def spawner(name: str, **fields: object) -> Item:
    position = Vector3(x=20, y=0, z=25)
    values = {"name": name, "positions": (position,), "rotations": (0.0,), **fields}
    return Item.model_validate(values)


def watch(item: Item, build: str, seconds: int) -> tuple[list[tuple[int, float]], SimEnvironment]:
    """When and in which size goals appeared, and the arena after that."""
    notes = Notes()
    spec = ObservationSpec(rays=None, decision_period=1)
    environment = SimEnvironment(spec, build, journal=notes)
    environment.load(Arena(items=(start(2, 2), item)), 0)
    for _ in range(seconds * SECOND):
        environment.step(NOOP)
    return notes.given, environment


def diameters(environment: SimEnvironment) -> list[float]:
    scene = environment.scene
    rows = np.flatnonzero((scene.tag == tag_index("goodGoalMulti")) & scene.active)
    return sorted(round(2 * float(scene.half[row, 0]), 2) for row in rows)


def test_the_old_tree_heeds_its_item() -> None:
    item = spawner(
        "SpawnerTree",
        spawn_counts=(3,),
        initial_values=(0.4,),
        final_values=(2.0,),
        times_between_spawns=(1.0,),
        ripen_times=(2.0,),
        delays=(9.0,),
    )
    given, environment = watch(item, "3.1.3", 8)
    assert given == [(2 * SECOND + SECOND * number, 0.4) for number in range(3)]
    assert diameters(environment) == [2.0] * 3
    environment.load(Arena(items=(start(2, 2), item)), 0)


def test_the_old_dispenser_gives_as_many_as_it_is_told() -> None:
    item = spawner(
        "SpawnerDispenserTall",
        spawn_counts=(2,),
        initial_values=(9.0,),
        final_values=(0.5,),
        ripen_times=(1.0,),
        times_between_spawns=(0.5,),
    )
    given, environment = watch(item, "3.1.3", 4)
    assert [size for _, size in given] == [1.0, pytest.approx(0.5, abs=0.3)]
    assert diameters(environment) == [0.5, 0.5]
    new, environment = watch(item, "4.x", 2)
    assert len(new) > 2
    assert set(diameters(environment)) == {1.0}


def test_an_old_build_knows_no_operations() -> None:
    zone = Item(
        name="DataZone",
        positions=(Vector3(x=20, y=0, z=6),),
        rotations=(0.0,),
        sizes=(Vector3(x=5, y=1, z=5),),
        operations=(GrantReward(reward=1.0),),
    )
    returns: dict[str, float] = {}
    for build in ("4.x", "4.1"):
        environment = SimEnvironment(PLAIN, build)
        environment.load(Arena(items=(start(), zone)), 0)
        environment.step(NOOP)
        returns[build] = environment.episode_return
    assert returns == {"4.x": 1.0, "4.1": 0.0}


def test_the_newest_build_s_step_is_a_little_shorter() -> None:
    """A row of the real build's own log, after a step of free fall and after four of thrust."""
    assert step_seconds("3.1.3") == 0.02
    assert 0.0199999 < step_seconds("4.x") < 0.02
    spec = ObservationSpec(rays=None, decision_period=1)
    speeds: dict[str, list[float]] = {}
    for build in ("4.x", "3.1.3"):
        environment = SimEnvironment(spec, build)
        environment.load(Arena(items=(start(20, 20),)), 0)
        actions = [NOOP] * 3 + [FORWARD] * 4
        last = [environment.step(action).observation.velocity for action in actions]
        speeds[build] = [float(last[0][1]), float(last[-1][2])]
    assert [f"{speed:.7g}" for speed in speeds["4.x"]] == ["-0.1899215", "3.072131"]
    assert speeds["3.1.3"] == pytest.approx([-0.1899216, 3.072134], abs=1e-6)


def test_a_build_is_named_alike_everywhere() -> None:
    environment = make_environment("sim", PLAIN, build="3.1.3")
    assert isinstance(environment, SimEnvironment)
    assert environment.build == "3.1.3"
    env = ArenaEnv(rng="unity", build="4.1.0")
    assert env.reset(seed=0)[0].keys()
    env.close()
    with pytest.raises(ValueError, match="there is no build"):
        ArenaEnv(build="2")
    with pytest.raises(ValueError, match="only the backend"):
        make_environment("unity:/bin/true", PLAIN, build="4.1")


def test_a_goal_in_the_corner_need_not_be_taken_and_ends_the_episode() -> None:
    """Two goals at one place: the second stays in the corner (reference section 1.9)."""
    ball = thing("GoodGoal", 20, 0, 9, yaw=0, size=(1, 1, 1))
    multi = ball.model_copy(update={"name": "GoodGoalMulti"})
    environment = SimEnvironment(PLAIN, rng="unity")
    environment.load(Arena(items=(start(20, 5), multi, multi)), 0)
    assert len(environment.scene) == 2
    step = environment.step(NOOP)
    while step.phase is not Phase.LAST:
        step = environment.step(FORWARD)
    assert step.ended_by is EndedBy.GOAL
    assert environment.episode_return == pytest.approx(0.999, abs=1e-6)

    way = start(5, 5).model_copy(update={"rotations": (225.0,)})
    far = thing("GoodGoalMulti", 30, 0, 30, yaw=0, size=(1, 1, 1))
    step = environment.load(Arena(items=(way, multi, far, multi)), 0)
    while step.phase is not Phase.LAST:
        step = environment.step(FORWARD)
    assert step.ended_by is EndedBy.GOAL
    assert environment.episode_return == pytest.approx(0.999, abs=1e-6)
    assert float(step.observation.position[0]) < 2
