"""Small arenas, and the loop of an episode, for tests and measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.envs.types import Environment, Observation, Phase, Step

NOOP, RIGHT, FORWARD = 0, 1, 3


def play_episode(
    environment: Environment, arena: Arena, seed: int, actions: Iterable[int]
) -> Iterator[Step]:
    """Play an episode; gives its steps: FIRST, then one for each action until it is over."""
    step = environment.load(arena, seed)
    yield step
    for action in actions:
        if step.phase is Phase.LAST:
            return
        step = environment.step(action)
        yield step


def arrays(observation: Observation) -> list[np.ndarray]:
    """The arrays of an observation."""
    every = (observation.velocity, observation.position, observation.rays, observation.camera)
    return [array for array in every if array is not None]


def thing(
    name: str,
    x: float,
    y: float,
    z: float,
    *,
    yaw: float = 0.0,
    size: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Item:
    """Make an item with one placed object."""
    w, h, d = size
    return Item(
        name=name,
        positions=(Vector3(x=x, y=y, z=z),),
        rotations=(yaw,),
        sizes=(Vector3(x=w, y=h, z=d),),
    )


def start(x: float = 20.0, z: float = 5.0, yaw: float = 0.0) -> Item:
    """Make the agent's own item."""
    return Item(name="Agent", positions=(Vector3(x=x, z=z),), rotations=(yaw,))


def lone_arena(
    name: str,
    *,
    size: tuple[float, float, float] = (1.0, 1.0, 1.0),
    z: float = 12.0,
    time_limit: int = 250,
) -> Arena:
    """Make an arena with one object straight ahead of the agent."""
    return Arena(time_limit=time_limit, items=(start(), thing(name, 20.0, 0.0, z, size=size)))


def goal_arena() -> Arena:
    """Make an arena with a goal of size 1 seven metres ahead, a wall and a hot zone aside."""
    return Arena(
        time_limit=250,
        items=(
            start(),
            thing("GoodGoal", 20.0, 0.0, 12.0),
            thing("Wall", 30.0, 0.0, 12.0, size=(4.0, 2.0, 1.0)),
            thing("HotZone", 8.0, 0.0, 12.0, size=(4.0, 1.0, 4.0)),
        ),
    )


def random_arena() -> Arena:
    """Make an arena with agent, goals and obstacles of given sizes, and all else left to chance."""
    names = ("Wall", "Ramp", "GoodGoalMultiBounce", "GoodGoalMulti", "LightBlock", "CylinderTunnel")
    size = Vector3(x=3.0, y=1.0, z=3.0)
    return Arena(time_limit=500, items=tuple(Item(name=name, sizes=(size,)) for name in names))
